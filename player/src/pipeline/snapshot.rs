//! Pictures kept as they were shown: at given times, and around each change of
//! quality.

use super::combine::with_picture;
use codec::Picture;
use gstreamer as gst;
use gstreamer_video as gst_video;
use media::{Quality, Span};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most pictures that are kept: 64 of 1080p are 200 MB.
const MAX_TAKEN: usize = 64;

/// A picture as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its time in the title.
    pub pts: Span,
    /// What it was made of.
    pub quality: Quality,
    /// The block it belongs to.
    pub block: u32,
    /// Why it was kept.
    pub reason: SnapshotReason,
    /// The picture at display size.
    pub picture: Picture,
}

/// Why a picture was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReason {
    /// Its time was asked for.
    Asked,
    /// The next one has another quality.
    BeforeChange,
    /// The one before had another quality.
    AfterChange,
}

/// Which pictures are to be kept, and those that were. Shared by who asks, who
/// looks at the end, and the pipeline.
#[derive(Debug)]
pub struct Snapshots {
    at: Vec<Span>,
    around_changes: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: Vec<Snapshot>,
    before: Option<Shown>,
}

/// A picture on screen, not yet copied.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) pts: Span,
    pub(crate) length: Span,
    pub(crate) quality: Quality,
    pub(crate) block: u32,
    pub(crate) buffer: gst::Buffer,
}

impl Snapshots {
    /// Keeps the pictures that are shown at these times of the title, each time
    /// they are shown, and the two pictures at each change of quality if asked.
    /// 64 in all, then no more.
    pub fn new(at: Vec<Span>, around_changes: bool) -> Arc<Self> {
        Arc::new(Self { at, around_changes, state: Mutex::default() })
    }

    /// The pictures kept so far, in the order in which they were shown.
    pub fn taken(&self) -> Vec<Snapshot> {
        self.state().taken.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A picture was shown.
    pub(crate) fn shown(&self, shown: &Shown, info: &gst_video::VideoInfo) {
        let mut state = self.state();
        let before = if self.around_changes { state.before.replace(shown.clone()) } else { None };
        let changed = before.filter(|before| before.quality != shown.quality);
        let asked = self.at.iter().any(|at| *at >= shown.pts && *at < shown.pts + shown.length);
        let kept = [
            changed.as_ref().map(|before| (before, SnapshotReason::BeforeChange)),
            changed.as_ref().map(|_| (shown, SnapshotReason::AfterChange)),
            asked.then_some((shown, SnapshotReason::Asked)),
        ];
        for (shown, reason) in kept.into_iter().flatten() {
            if state.taken.len() < MAX_TAKEN
                && let Some(snapshot) = shown.snapshot(info, reason)
            {
                state.taken.push(snapshot);
            }
        }
    }

    /// Playback jumps: what comes next does not follow what was shown.
    pub(crate) fn jumped(&self) {
        self.state().before = None;
    }
}

impl Shown {
    fn snapshot(&self, info: &gst_video::VideoInfo, reason: SnapshotReason) -> Option<Snapshot> {
        let picture = with_picture(&self.buffer, info, |picture| picture.to_picture())?.ok()?;
        let Self { pts, quality, block, .. } = *self;
        Some(Snapshot { pts, quality, block, reason, picture })
    }
}
