//! Pairing the frames of one enhancement pad with Base pictures by time.

use gst_base::prelude::*;
use gstreamer as gst;
use gstreamer_base as gst_base;

/// What an enhancement pad has for one Base picture.
#[derive(Debug)]
pub(super) enum Answer {
    /// The frame of this picture.
    Frame(gst::Buffer),
    /// The layer is missing here.
    Missing,
    /// Nothing is known yet: wait for more data.
    Unknown,
}

/// What a pad's first buffer says about the picture at a stream time.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// It belongs to an earlier time.
    Past,
    /// It is the frame.
    Here,
    /// It covers the time with a gap, or comes later.
    Absent,
}

fn head(buffer: &gst::BufferRef, time: gst::ClockTime) -> Head {
    let Some(start) = buffer.pts() else { return Head::Past };
    if buffer.flags().contains(gst::BufferFlags::GAP) {
        match buffer.duration() {
            Some(length) if start + length <= time => Head::Past,
            _ => Head::Absent,
        }
    } else {
        match start.cmp(&time) {
            std::cmp::Ordering::Less => Head::Past,
            std::cmp::Ordering::Equal => Head::Here,
            std::cmp::Ordering::Greater => Head::Absent,
        }
    }
}

/// Drops what is past and tells what the pad has for the picture at `time`.
/// The frame stays on the pad.
pub(super) fn answer(pad: &gst_base::AggregatorPad, time: gst::ClockTime) -> Answer {
    while let Some(buffer) = pad.peek_buffer() {
        match head(&buffer, time) {
            Head::Past => drop(pad.pop_buffer()),
            Head::Here => return Answer::Frame(buffer),
            Head::Absent => return Answer::Missing,
        }
    }
    if pad.is_eos() { Answer::Missing } else { Answer::Unknown }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn buffer(start: u64, length: u64, flags: gst::BufferFlags) -> gst::Buffer {
        gst::init().unwrap();
        let mut buffer = gst::Buffer::new();
        let inside = buffer.get_mut().unwrap();
        inside.set_pts(gst::ClockTime::from_nseconds(start));
        inside.set_duration(gst::ClockTime::from_nseconds(length));
        inside.set_flags(flags);
        buffer
    }

    #[test]
    fn a_frame_belongs_to_the_picture_with_its_very_time() {
        let frame = buffer(100, 40, gst::BufferFlags::empty());
        let at = |time| head(&frame, gst::ClockTime::from_nseconds(time));
        assert_eq!(at(99), Head::Absent);
        assert_eq!(at(100), Head::Here);
        assert_eq!(at(101), Head::Past);
    }

    #[test]
    fn a_gap_answers_for_all_pictures_that_it_covers() {
        let gap = buffer(100, 40, gst::BufferFlags::GAP);
        let at = |time| head(&gap, gst::ClockTime::from_nseconds(time));
        assert_eq!(at(60), Head::Absent);
        assert_eq!(at(100), Head::Absent);
        assert_eq!(at(139), Head::Absent);
        assert_eq!(at(140), Head::Past);
    }
}
