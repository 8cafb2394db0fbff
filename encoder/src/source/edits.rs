//! Following the edit lists of an MP4 film ourselves.
//!
//! `GStreamer`'s demuxer (1.22) ends a film too early, or loses pictures, where
//! two tracks start within their data or a track has several parts. The lists of
//! such a film are read here and hidden from it, the data come whole, and what no
//! part displays is left out.

use crate::error::EncodeError;
use crate::input::Input;
use gstreamer as gst;
use gstreamer::prelude::*;
use media::Span;
use media::container::{Edit, EditedFilm, read_edits};
use std::fs::File;
use std::io::BufReader;

/// What is seen for a shorter time is not shown: lengths of parts are told by a
/// coarse clock.
const SLIVER: i64 = 2_000_000;

/// Data before the first part that every demuxer masters: what an encoder of sound
/// puts before it, and the delay of pictures that are reordered.
const PRIMING: Span = Span::from_millis(150);

/// The edit lists of a film.
#[derive(Debug, Clone)]
pub(super) struct Edits {
    film: EditedFilm,
}

/// The parts of one track.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    parts: Vec<Edit>,
}

impl Edits {
    /// Reads those of a file; none if its demuxer
    /// masters them.
    pub(super) fn read(film: &Input) -> Result<Option<Self>, EncodeError> {
        let Input::File(path) = film else { return Ok(None) };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let film = read_edits(&mut file).map_err(unreadable)?;
        let film = film.map_err(|error| EncodeError::NoFilm { why: error.to_string() })?;
        let late = |parts: &Vec<Edit>| parts.first().is_some_and(|part| part.from > PRIMING);
        let parts = || film.tracks.iter().map(|track| &track.edits);
        let awkward = parts().any(|parts| parts.len() > 1) || parts().filter(|parts| late(parts)).count() > 1;
        // Whether a demuxer shifts its times then differs from one to the next.
        if awkward && film.tracks.iter().any(|track| track.shifted) {
            let why = "its edits stand over negative composition offsets".to_owned();
            return Err(EncodeError::NoFilm { why });
        }
        Ok(awkward.then_some(Self { film }))
    }

    /// Hides them from the demuxer: whoever pulls their bytes from the file gets
    /// others instead.
    pub(super) fn hide(&self, decoder: &gst::Element) {
        overwrite_as_read(decoder, self.film.overwrites.clone());
    }

    /// The parts of the track with this stream; none if it is displayed whole.
    pub(super) fn cut(&self, stream: &str) -> Option<Cut> {
        // qtdemux ends the names of its streams with the number of the track.
        let id = stream.rsplit('/').next()?.parse::<u32>().ok()?;
        let track = self.film.tracks.iter().find(|track| track.id == id)?;
        Some(Cut { parts: track.edits.clone() })
    }

    /// How long the film is, if it tells.
    pub(super) fn length(&self) -> Option<Span> {
        self.latest(|part| part.at)
    }

    /// Up to where its data are displayed, if it tells.
    pub(super) fn data_end(&self) -> Option<Span> {
        self.latest(|part| part.from)
    }

    fn latest(&self, start: impl Fn(&Edit) -> Span) -> Option<Span> {
        let end = |part: &Edit| Some(start(part).as_nanos().saturating_add(part.length?.as_nanos()));
        let ends: Option<Vec<u64>> =
            self.film.tracks.iter().filter_map(|track| track.edits.last()).map(end).collect();
        ends?.into_iter().max().map(Span::from_nanos)
    }
}

/// Gives whoever reads the film other bytes at these places.
pub(super) fn overwrite_as_read(decoder: &gst::Element, overwrites: Vec<(u64, [u8; 4])>) {
    decoder.connect("source-setup", false, move |values| {
        let source = values.get(1)?.get::<gst::Element>().ok()?;
        let overwrites = overwrites.clone();
        let kinds = gst::PadProbeType::PULL | gst::PadProbeType::BUFFER;
        source.static_pad("src")?.add_probe(kinds, move |_, info| {
            if let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data {
                overwrite(buffer, &overwrites);
            }
            gst::PadProbeReturn::Ok
        });
        None
    });
}

/// Writes whatever part of these bytes belongs here.
fn overwrite(buffer: &mut gst::Buffer, overwrites: &[(u64, [u8; 4])]) {
    let start = buffer.offset();
    let end = start.saturating_add(u64::try_from(buffer.size()).unwrap_or(0));
    let touched = |(place, _): &&(u64, [u8; 4])| *place < end && place.saturating_add(4) > start;
    if start == u64::MAX || !overwrites.iter().any(|one| touched(&one)) {
        return;
    }
    let Ok(mut map) = buffer.make_mut().map_writable() else { return };
    for (place, bytes) in overwrites.iter().filter(touched) {
        for (at, byte) in (*place..).zip(bytes) {
            let here = at.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            if let Some(to) = here.and_then(|at| map.get_mut(at)) {
                *to = *byte;
            }
        }
    }
}

impl Cut {
    /// When a picture of the data is displayed and how long, in nanoseconds; none
    /// if it is not.
    pub(super) fn picture(&self, time: i64, duration: u64) -> Option<(i64, u64)> {
        let end = time.saturating_add(i64::try_from(duration).unwrap_or(i64::MAX));
        self.parts.iter().find_map(|part| {
            let (from, to) = bounds(part);
            let (start, stop) = (time.max(from), end.min(to));
            // Pictures shorter than a sliver are shown if they are inside.
            if stop.saturating_sub(start) < SLIVER.min(end.saturating_sub(time)).max(1) {
                return None;
            }
            Some((shown(part, start), u64::try_from(stop.saturating_sub(start)).ok()?))
        })
    }

    /// When a frame of sound is heard that starts at `time`: at least half of it
    /// must be wanted.
    pub(super) fn sound(&self, time: i64, duration: u64) -> Option<i64> {
        let middle = time.saturating_add(i64::try_from(duration / 2).unwrap_or(0));
        self.parts.iter().find_map(|part| {
            let (from, to) = bounds(part);
            (from..to).contains(&middle).then(|| shown(part, time))
        })
    }
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn bounds(part: &Edit) -> (i64, i64) {
    let from = nanos(part.from);
    (from, from.saturating_add(part.length.map_or(i64::MAX, nanos)))
}

fn shown(part: &Edit, time: i64) -> i64 {
    nanos(part.at).saturating_add(time.saturating_sub(nanos(part.from)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// From 400 ms on for a second, then from 2.4 s on.
    fn cut() -> Cut {
        let edit = |at, from, length: Option<u64>| Edit {
            at: Span::from_millis(at),
            from: Span::from_millis(from),
            length: length.map(Span::from_millis),
        };
        Cut { parts: vec![edit(0, 400, Some(1_000)), edit(1_000, 2_400, None)] }
    }

    #[test]
    fn pictures_are_shown_for_as_long_as_a_part_wants_them() {
        let at = |millis: i64| cut().picture(millis * MS, 40_000_000);
        assert_eq!(at(360), None);
        assert_eq!(at(380), Some((0, 20_000_000)), "from the middle on");
        assert_eq!(at(400), Some((0, 40_000_000)));
        assert_eq!(at(1_380), Some((980 * MS, 20_000_000)), "up to the middle");
        assert_eq!(at(1_399), None, "a sliver");
        assert_eq!(at(2_400), Some((1_000 * MS, 40_000_000)));
        assert_eq!(at(9_400), Some((8_000 * MS, 40_000_000)));
    }

    #[test]
    fn a_frame_of_sound_is_heard_where_half_of_it_is_wanted() {
        let at = |millis: i64| cut().sound(millis * MS, 20_000_000);
        assert_eq!([at(380), at(395), at(1_385), at(1_395)], [None, Some(-5 * MS), Some(985 * MS), None]);
        assert_eq!(at(2_391), Some(991 * MS));
    }

    #[test]
    fn the_bytes_of_the_lists_are_overwritten_wherever_a_read_begins() {
        gst::init().unwrap();
        let read = |start: u64| {
            let mut buffer = gst::Buffer::from_mut_slice(*b"....edts....");
            buffer.get_mut().unwrap().set_offset(start);
            overwrite(&mut buffer, &[(104, *b"free")]);
            let map = buffer.map_readable().unwrap();
            String::from_utf8(map.to_vec()).unwrap()
        };
        assert_eq!(read(100), "....free....");
        // The read begins in the middle of the type, or ends there.
        assert_eq!([read(106), read(93)], ["ee..edts....", "....edts...f"]);
    }
}
