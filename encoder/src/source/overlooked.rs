//! What an MP4 film says of itself and its demuxer (`GStreamer` 1.22) overlooks.

use super::edits::overwrite_as_read;
use crate::error::EncodeError;
use crate::input::Input;
use gstreamer as gst;
use media::Span;
use media::container::{FilmTrack, FilmTracks, read_tracks};
use std::fs::File;
use std::io::BufReader;

/// The demuxer takes tracks shorter than this part of the film for something else
/// and leaves them out: a fifth, and some for its rounding.
const PREVIEW: (u64, u64) = (21, 100);

/// What stands in a film's header.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlooked {
    film: FilmTracks,
}

impl Overlooked {
    /// Reads the header of a file. Of other films nothing is known.
    pub(super) fn read(film: &Input) -> Result<Self, EncodeError> {
        let Input::File(path) = film else { return Ok(Self::default()) };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        Ok(Self { film: read_tracks(&mut file).map_err(unreadable)? })
    }

    /// The length of a film of which a track would be left out because it is short.
    /// A picture before a trailer is rightly left out: there is a longer track.
    pub(super) fn length(&self) -> Option<Span> {
        let film = self.film.length?;
        let (part, whole) = PREVIEW;
        let length = |track: &FilmTrack| track.length.unwrap_or(film).as_nanos();
        let bound = film.as_nanos() / whole * part;
        let alone = |kind: [u8; 4]| {
            let mut tracks = self.film.tracks.iter().filter(|track| track.kind == kind).peekable();
            tracks.peek().is_some() && tracks.all(|track| length(track) < bound)
        };
        (alone(*b"vide") || alone(*b"soun")).then_some(film)
    }

    /// Lets the demuxer see all tracks: of a film without a length none is short.
    pub(super) fn keep_short_tracks(&self, decoder: &gst::Element) {
        if self.length().is_some() {
            let nothing = |place: &u64| (*place, [0; 4]);
            overwrite_as_read(decoder, self.film.length_places.iter().map(nothing).collect());
        }
    }

    /// What is said of the track with this stream.
    pub(super) fn track(&self, stream: &str) -> Option<&FilmTrack> {
        // qtdemux ends the names of its streams with the number of the track.
        let id = stream.rsplit('/').next()?.parse::<u32>().ok()?;
        self.film.tracks.iter().find(|track| track.id == id)
    }
}
