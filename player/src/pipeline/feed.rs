//! From chunks to buffers, in the order that the combiner relies on.

use super::BlockFeed;
use super::front::Front;
use super::schedule::{Schedule, Slot};
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use media::container::{self, AudioSample, BlockSamples, ContainerError, VideoSample};
use media::{BlockInfo, Manifest, Span};
use std::sync::Arc;

/// Why a block could not be fed. Nothing of it was pushed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error("the title has no block {0}")]
    NoSuchBlock(u32),
    #[error("block {0} came without its Base chunk")]
    NoBase(u32),
    #[error("the Base chunk of block {block} cannot be read")]
    Base { block: u32, source: ContainerError },
    #[error("the Base chunk of block {0} does not start with a key picture")]
    NoKey(u32),
    #[error("GStreamer takes no more data: {0}")]
    Flow(gst::FlowError),
}

/// Pushes blocks into the sources of a front.
#[derive(Debug)]
pub(crate) struct Feed {
    manifest: Arc<Manifest>,
    schedule: Arc<Schedule>,
    /// Where playback begins in the next block; nothing after it.
    begin_at: Option<Span>,
    /// 1 for normal play.
    rate: f64,
    /// Stream time at which what was fed ends.
    end: u64,
    /// Whether the sound's source was told where it begins or, in trick play,
    /// that there is none.
    sound_begun: bool,
}

impl Feed {
    pub(crate) fn new(manifest: Arc<Manifest>, schedule: Arc<Schedule>) -> Self {
        let mut feed = Self { manifest, schedule, begin_at: None, rate: 1.0, end: 0, sound_begun: false };
        feed.restart(Span::ZERO, 1.0);
        feed
    }

    /// Stream time at which what was fed ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Begins anew, in front sources that were emptied.
    pub(crate) fn restart(&mut self, to: Span, rate: f64) {
        self.schedule.clear();
        self.begin_at = Some(to);
        self.rate = if rate.is_finite() && rate != 0.0 { rate } else { 1.0 };
        self.end = 0;
        self.sound_begun = false;
    }

    /// Pushes one block: first what the combiner must know about enhancements,
    /// then sound, then Base.
    pub(crate) fn push(&mut self, front: &Front, feed: &BlockFeed) -> Result<Slot, FeedError> {
        let manifest = self.manifest.clone();
        let info = manifest.block(feed.block).ok_or(FeedError::NoSuchBlock(feed.block))?;
        let base = self.read_base(feed)?;
        let slot = self.slot(feed, info, &base);
        self.schedule.push(slot);
        self.end = slot.end;
        if feed.key_only.is_some() {
            self.push_key(front, &slot, &base, feed.block)?;
        } else {
            self.push_enhancements(front, feed, &slot)?;
            self.push_sound(front, &slot, &base.audio)?;
            for sample in &base.video {
                push(&front.base, picture(&manifest, sample))?;
            }
        }
        // Without this the decoder keeps the last pictures of a block until the
        // next one comes, and would show them late if that one is late.
        front.base.send_event(gst_video::StillFrameEvent::builder(true).build());
        Ok(slot)
    }

    /// Nothing comes any more.
    pub(crate) fn end_of_stream(front: &Front) {
        for source in front.sources() {
            if let Err(error) = source.end_of_stream() {
                tracing::debug!(%error, "a source was closed before its end");
            }
        }
    }

    fn read_base(&self, feed: &BlockFeed) -> Result<BlockSamples, FeedError> {
        let block = feed.block;
        let chunk = feed.chunks.first().ok_or(FeedError::NoBase(block))?;
        let delay = self.manifest.layers.first().map_or(0, |layer| layer.delay);
        let base =
            container::parse_chunk(chunk, delay).map_err(|source| FeedError::Base { block, source })?;
        if base.video.first().is_some_and(|first| first.sync) {
            Ok(base)
        } else {
            Err(FeedError::NoKey(block))
        }
    }

    fn slot(&mut self, feed: &BlockFeed, info: &BlockInfo, base: &BlockSamples) -> Slot {
        let title_start = self.manifest.at(info.start);
        let title_end = self.manifest.at(info.start.saturating_add(info.duration));
        let begin = self.begin_at.take().unwrap_or(Span::ZERO).as_nanos();
        if let Some(way) = feed.key_only {
            let length = shown_for(way, self.rate);
            let (start, end) = (self.end, self.end.saturating_add(length.as_nanos().max(1)));
            return Slot {
                start,
                end,
                show_from: start,
                block: feed.block,
                pictures: 1,
                key_only: true,
                half: None,
                title_start,
            };
        }
        let start = title_start.as_nanos();
        let times = || base.video.iter().map(|sample| self.manifest.at(sample.pts).as_nanos());
        // The picture that is on screen at that moment is the first one shown.
        let show_from = times().filter(|time| *time <= begin).max().unwrap_or(start).max(start);
        let pictures = times().filter(|time| *time >= show_from).count();
        Slot {
            start,
            end: title_end.as_nanos().max(start + 1),
            show_from,
            block: feed.block,
            pictures: u32::try_from(pictures).unwrap_or(u32::MAX),
            key_only: false,
            half: feed.half.then_some(feed.quality),
            title_start,
        }
    }

    /// All frames of each layer at hand, or one gap for each that is not. What
    /// stands above a missing or unreadable layer is of no use.
    fn push_enhancements(&self, front: &Front, feed: &BlockFeed, slot: &Slot) -> Result<(), FeedError> {
        let mut whole = true;
        for (number, source) in (1..).zip(&front.enhancements) {
            let samples = if whole { self.read_enhancement(feed, number) } else { None };
            whole = samples.is_some();
            match samples {
                Some(samples) => {
                    for sample in &samples.video {
                        push(source, picture(&self.manifest, sample))?;
                    }
                    // A chunk with too few frames must not leave the combiner
                    // waiting for a frame that never comes.
                    let last =
                        samples.video.iter().map(|sample| self.manifest.at(sample.pts).as_nanos()).max();
                    push(source, gap(last.map_or(slot.start, |last| last + 1), slot.end))?;
                }
                None => push(source, gap(slot.start, slot.end))?,
            }
        }
        Ok(())
    }

    fn read_enhancement(&self, feed: &BlockFeed, number: usize) -> Option<BlockSamples> {
        let chunk = feed.chunks.get(number)?;
        let delay = self.manifest.layers.get(number)?.delay;
        match container::parse_chunk(chunk, delay) {
            Ok(samples) => Some(samples),
            Err(error) => {
                tracing::warn!(block = feed.block, layer = number, %error, "an enhancement chunk cannot be read");
                None
            }
        }
    }

    fn push_sound(&mut self, front: &Front, slot: &Slot, frames: &[AudioSample]) -> Result<(), FeedError> {
        let (Some(source), Some(audio)) = (&front.sound, &self.manifest.audio) else { return Ok(()) };
        if !std::mem::replace(&mut self.sound_begun, true) {
            // Sound before the first picture that is shown is decoded, not heard.
            let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
            let start = gst::ClockTime::from_nseconds(slot.show_from);
            segment.set_start(start);
            segment.set_time(start);
            segment.set_position(start);
            source.send_event(gst::event::Segment::new(&segment));
        }
        for frame in frames {
            let start = Span::from_ticks(frame.pts, audio.sample_rate);
            let length = Span::from_ticks(frame.duration, audio.sample_rate);
            push(source, buffer(Some(frame.data.clone()), start.as_nanos(), length.as_nanos()))?;
        }
        if frames.is_empty() {
            // The sink must not wait for sound that does not come.
            let start = gst::ClockTime::from_nseconds(slot.show_from);
            let length = gst::ClockTime::from_nseconds(slot.end.saturating_sub(slot.show_from));
            source.send_event(gst::event::Gap::builder(start).duration(length).build());
        }
        Ok(())
    }

    /// The block's key picture alone, silently.
    fn push_key(
        &mut self,
        front: &Front,
        slot: &Slot,
        base: &BlockSamples,
        block: u32,
    ) -> Result<(), FeedError> {
        for source in &front.enhancements {
            push(source, gap(slot.start, slot.end))?;
        }
        if let Some(sound) = &front.sound
            && !std::mem::replace(&mut self.sound_begun, true)
        {
            sound.end_of_stream().map_err(FeedError::Flow)?;
        }
        let key = base.video.first().ok_or(FeedError::NoKey(block))?;
        push(&front.base, buffer(Some(key.data.clone()), slot.start, slot.end - slot.start))
    }
}

/// How long a key picture that stands for `length` of the programme is shown at a
/// rate.
#[allow(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#[allow(clippy::cast_precision_loss, reason = "that is seconds, not weeks; rates are 1/16 to 16")]
pub(super) fn shown_for(length: Span, rate: f64) -> Span {
    Span::from_nanos((length.as_nanos() as f64 / rate.abs().clamp(1.0 / 16.0, 64.0)) as u64)
}

fn push(source: &gst_app::AppSrc, buffer: gst::Buffer) -> Result<(), FeedError> {
    source.push_buffer(buffer).map(drop).map_err(FeedError::Flow)
}

/// A coded picture.
fn picture(manifest: &Manifest, sample: &VideoSample) -> gst::Buffer {
    let start = manifest.at(sample.pts).as_nanos();
    let end = manifest.at(sample.pts.saturating_add(sample.duration)).as_nanos();
    let mut buffer = buffer(Some(sample.data.clone()), start, end.saturating_sub(start));
    if !sample.sync
        && let Some(inside) = buffer.get_mut()
    {
        inside.set_flags(gst::BufferFlags::DELTA_UNIT);
    }
    buffer
}

/// What an enhancement's source says about a stretch for which it has nothing.
fn gap(start: u64, end: u64) -> gst::Buffer {
    let mut buffer = buffer(None, start, end.saturating_sub(start));
    if let Some(inside) = buffer.get_mut() {
        inside.set_flags(gst::BufferFlags::GAP | gst::BufferFlags::DROPPABLE);
    }
    buffer
}

fn buffer(data: Option<bytes::Bytes>, start: u64, length: u64) -> gst::Buffer {
    let mut buffer = data.map_or_else(gst::Buffer::new, gst::Buffer::from_slice);
    if let Some(inside) = buffer.get_mut() {
        inside.set_pts(gst::ClockTime::from_nseconds(start));
        inside.set_duration(gst::ClockTime::from_nseconds(length));
    }
    buffer
}
