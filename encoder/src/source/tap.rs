//! One stream at the end of the pipeline.

use crate::drive::signed_nanos;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSink;
use std::collections::VecDeque;
use std::time::Duration;

/// How many samples are looked at before the first one is given out.
const LOOK_AHEAD: usize = 2;

/// A sink and what was pulled from it early.
pub(super) struct Tap {
    sink: AppSink,
    held: VecDeque<gst::Sample>,
    /// Whether the first sample was given out.
    flows: bool,
    /// Where the samples pulled so far end in the film's own time, in nanoseconds.
    reached: u64,
    /// How much later than there the first sample is by its own time.
    shift: u64,
}

impl Tap {
    pub(super) fn new(sink: AppSink) -> Self {
        Self { sink, held: VecDeque::new(), flows: false, reached: 0, shift: 0 }
    }

    /// Looks at the first samples; the format of the stream once it is known.
    /// None at the end of a stream without samples, and while nothing came.
    pub(super) fn caps(&mut self, wait: Duration) -> Option<gst::Caps> {
        self.fill(1, wait);
        self.held.front()?.caps_owned()
    }

    /// The name of the stream, once something came.
    pub(super) fn stream(&self) -> Option<String> {
        Some(self.sink.static_pad("sink")?.stream_id()?.to_string())
    }

    /// The next sample and its running time in nanoseconds.
    pub(super) fn pull(&mut self, wait: Duration) -> Option<(gst::Sample, Option<i64>)> {
        if self.flows {
            self.fill(1, wait);
        } else {
            self.fill(LOOK_AHEAD, wait);
            if self.held.len() < LOOK_AHEAD && !self.sink.is_eos() {
                return None;
            }
        }
        let sample = self.held.pop_front()?;
        let time = if self.flows { running_time(&sample, &sample) } else { self.first_time(&sample) };
        if !self.flows {
            self.shift = shift(&sample).unwrap_or(0);
        }
        self.flows = true;
        self.reached = self.reached.max(end_in_film(&sample).unwrap_or(0));
        Some((sample, time))
    }

    /// Where the samples pulled so far end in the film's own time, in nanoseconds.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Whether nothing will come any more.
    pub(super) fn ended(&self) -> bool {
        self.held.is_empty() && self.sink.is_eos()
    }

    /// How much later than by the film's own time the first sample is by its own.
    pub(super) fn shift(&self) -> u64 {
        self.shift
    }

    fn fill(&mut self, count: usize, wait: Duration) {
        while self.held.len() < count {
            let wait = gst::ClockTime::try_from(wait).unwrap_or(gst::ClockTime::ZERO);
            let Some(sample) = self.sink.try_pull_sample(wait) else { return };
            self.held.push_back(sample);
        }
    }

    /// Some demuxers (Matroska) start a stream at its first time and correct
    /// themselves when they have seen the other streams. Segments that follow
    /// each other as edits do count on from the one before; a corrected one
    /// starts at nothing again, and then holds for the first sample too.
    fn first_time(&self, first: &gst::Sample) -> Option<i64> {
        let corrected = self.held.front().filter(|next| {
            let segment = next.segment().and_then(|segment| segment.downcast_ref::<gst::ClockTime>());
            segment.is_some_and(|segment| segment.base() == Some(gst::ClockTime::ZERO))
        });
        running_time(corrected.unwrap_or(first), first)
    }
}

/// The running time of `of` by the segment of `by`.
fn running_time(by: &gst::Sample, of: &gst::Sample) -> Option<i64> {
    let segment = by.segment()?.downcast_ref::<gst::ClockTime>()?;
    signed_nanos(segment.to_running_time_full(of.buffer()?.pts()?)?)
}

/// Where a sample ends on the clock that the film's length is told by.
fn end_in_film(sample: &gst::Sample) -> Option<u64> {
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    let buffer = sample.buffer()?;
    let start = segment.to_stream_time(buffer.pts()?)?.nseconds();
    Some(start.saturating_add(buffer.duration().map_or(0, gst::ClockTime::nseconds)))
}

fn shift(sample: &gst::Sample) -> Option<u64> {
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    let pts = sample.buffer()?.pts()?;
    Some(pts.saturating_sub(segment.to_stream_time(pts)?).nseconds())
}
