//! The watch at the sink: what was shown, when, and whether it was right.

use super::check::Tally;
use super::combine::{display_caps, with_picture};
use super::error::PipelineError;
use super::events::{Events, PipelineEvent};
use super::meter::{FreezeMeter, MeterReport};
use super::preview::Preview;
use super::schedule::{Schedule, Slot};
use super::snapshot::{Shown, Snapshots};
use gstreamer as gst;
use gstreamer_video as gst_video;
use media::{Manifest, Quality, Span, Time};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Times in ticks become nanoseconds rounded down.
const ROUNDING: u64 = 1_000;

/// Everything that happens to pictures at the sink.
#[derive(Debug)]
pub(crate) struct Watch {
    schedule: Arc<Schedule>,
    events: Events,
    info: gst_video::VideoInfo,
    snapshots: Option<Arc<Snapshots>>,
    preview: Option<Arc<Preview>>,
    /// The zero of the meter's clock.
    origin: Instant,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    meter: FreezeMeter,
    tally: Tally,
    check: bool,
    /// The title time of the picture on screen.
    position: Option<Span>,
    /// How much sound was played.
    sound: Span,
    /// The stream time at which the picture on screen ends, and when it came.
    last: Option<(u64, Span, Instant)>,
}

impl Watch {
    pub(crate) fn new(
        manifest: &Arc<Manifest>,
        schedule: Arc<Schedule>,
        events: Events,
        (check, snapshots): (bool, Option<Arc<Snapshots>>),
        preview: Option<Arc<Preview>>,
    ) -> Result<Self, PipelineError> {
        let caps = display_caps(manifest)?;
        let info = gst_video::VideoInfo::from_caps(&caps).map_err(PipelineError::build)?;
        if let Some(preview) = &preview {
            preview.prepare(&info);
        }
        let rate = manifest.frame_rate;
        let nominal = Span::from_ticks(u64::from(rate.den), rate.num);
        let seen = Seen {
            meter: FreezeMeter::new(nominal),
            tally: Tally::new(manifest.clone(), check),
            check,
            position: None,
            sound: Span::ZERO,
            last: None,
        };
        Ok(Self {
            schedule,
            events,
            info,
            snapshots,
            preview,
            origin: Instant::now(),
            seen: Mutex::new(seen),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self, at: Instant) -> Time {
        Time::ZERO + Span::from(at.saturating_duration_since(self.origin))
    }

    /// A picture was shown at `at`.
    pub(crate) fn shown(&self, buffer: &gst::Buffer, at: Instant) {
        let Some(stream) = buffer.pts().map(gst::ClockTime::nseconds) else { return };
        let Some(slot) = self.schedule.find(stream) else { return };
        let quality = Quality(u8::try_from(buffer.offset_end()).unwrap_or(0));
        let length = buffer.duration().map_or(0, gst::ClockTime::nseconds);
        let pts = self.note(&slot, (stream, length), quality, at, Some(buffer));
        if let Some(preview) = &self.preview {
            preview.shown(buffer, &self.info, at);
        }
        if let Some(snapshots) = &self.snapshots {
            let (length, block, buffer) = (Span::from_nanos(length), slot.block, buffer.clone());
            snapshots.shown(&Shown { pts, length, quality, block, buffer }, &self.info);
        }
    }

    /// A picture would have been seen at `at`: its stream time and its length.
    pub(crate) fn seen_at(&self, slot: &Slot, span: (u64, u64), quality: Quality, at: Instant) {
        self.note(slot, span, quality, at, None);
    }

    /// Measures, and tells the owner; the picture's time in the title.
    fn note(
        &self,
        slot: &Slot,
        (stream, length): (u64, u64),
        quality: Quality,
        at: Instant,
        buffer: Option<&gst::Buffer>,
    ) -> Span {
        let pts = slot.title_time(stream);
        let mut guard = self.seen();
        let seen = &mut *guard;
        let first = seen.meter.first().is_none();
        if slot.key_only {
            seen.meter.interrupt();
        }
        let freeze = seen.meter.shown(self.time(at), pts);
        seen.position = Some(pts);
        seen.last = Some((stream.saturating_add(length), Span::from_nanos(length), at));
        let checked = match buffer.filter(|_| seen.check) {
            Some(buffer) => {
                with_picture(buffer, &self.info, |picture| seen.tally.shown(slot, quality, Some(picture)))
                    .flatten()
            }
            None => seen.tally.shown(slot, quality, None),
        };
        drop(guard);
        if first {
            self.events.send(PipelineEvent::FirstPicture { at });
        }
        if let Some(freeze) = freeze {
            let (start, length, position) = (freeze.start, freeze.length, freeze.position);
            self.events.send(PipelineEvent::Freeze { start, length, position });
        }
        self.events.mention(PipelineEvent::Shown { pts, quality, at, block: slot.block });
        if let Some(checked) = checked {
            let (block, quality, ok) = (checked.block, checked.quality, checked.ok);
            self.events.send(PipelineEvent::BlockChecked { block, quality, ok });
        }
        pts
    }

    /// Playback stands still because it was asked to.
    pub(crate) fn paused(&self) {
        self.seen().meter.interrupt();
    }

    /// Playback jumps to `to`.
    pub(crate) fn jumped(&self, to: Span) {
        if let Some(snapshots) = &self.snapshots {
            snapshots.jumped();
        }
        let mut seen = self.seen();
        seen.meter.interrupt();
        seen.tally.leave();
        seen.position = Some(to);
        seen.last = None;
    }

    /// The film came to its end.
    pub(crate) fn ended(&self) {
        let mut seen = self.seen();
        seen.meter.interrupt();
        seen.tally.end();
    }

    pub(crate) fn position(&self) -> Option<Span> {
        self.seen().position
    }

    /// Whether the last picture before the stream time `end` has been on screen
    /// as long as it should.
    pub(crate) fn all_shown(&self, end: u64, now: Instant) -> bool {
        let last = self.seen().last;
        last.is_some_and(|(until, length, at)| {
            until.saturating_add(ROUNDING) >= end && Span::from(now.saturating_duration_since(at)) >= length
        })
    }

    /// A stretch of sound went to its sink.
    pub(crate) fn heard(&self, length: Span) {
        self.seen().sound += length;
    }

    /// Everything measured; `due` is when the measurement ended while more
    /// pictures were due.
    pub(crate) fn report(&self, due: Option<Instant>) -> MeterReport {
        let mut seen = self.seen();
        if let Some(due) = due {
            let due = self.time(due);
            seen.meter.finish(due);
        }
        MeterReport {
            freeze_count: seen.meter.count(),
            freeze_total: seen.meter.total(),
            freeze_longest: seen.meter.longest(),
            freezes: seen.meter.list().to_vec(),
            sound: seen.sound,
            ..seen.tally.report()
        }
    }
}
