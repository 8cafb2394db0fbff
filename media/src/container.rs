//! The fragmented-MP4 container (ISO/IEC 14496-12) of a title's layers.
//!
//! Each layer is one file: an *init segment*, then one `moof` and `mdat` pair
//! per block, then an `mfra` index. A chunk is the bytes of one such pair.
//!
//! * Base: an ordinary fragmented MP4. Track 1 is H.264 (`avc1`), track 2 the
//!   AAC sound if there is any. Decoding times of pictures are counted from 0;
//!   composition offsets are never negative: they include the layer's `delay`,
//!   which one edit list (`media_time` = delay) takes back.
//! * Enhancements: track 1 has the private sample entry `lenh` (laid out like
//!   `vp09`), so that players refuse it instead of showing garbage. After
//!   `moov` a `uuid` box ([`KEY_BOX`]) holds the grey key frame that a decoder
//!   is given before the first picture of each block, so that samples and
//!   pictures are the same in number.
//!
//! A chunk in *halves* is two such pairs: the even pictures of the block, then
//! the odd ones. The first pair alone is a chunk too.
//!
//! Times outside this module are free of the delay: [`VideoSample::pts`] counts
//! ticks of the title from its first displayed picture. Sound is counted from
//! the same moment in samples; what would start before is not stored.

pub(crate) mod boxes;
mod edits;
mod fragment;
mod index;
mod init;
mod init_read;
mod parse;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod test_boxes;
mod tracks;

pub use edits::{Edit, EditError, EditedFilm, EditedTrack, read_edits};
pub use fragment::{write_chunk, write_halves};
pub use index::random_access_index;
pub use init::{base_codec, base_init, enhancement_init};
pub use init_read::{avc_config, enhancement_key};
pub use parse::parse_chunk;
pub use tracks::{FilmTrack, FilmTracks, read_tracks};

use bytes::Bytes;

/// The track of the pictures, in every layer.
pub const VIDEO_TRACK: u32 = 1;
/// The track of the sound, in Base.
pub const AUDIO_TRACK: u32 = 2;
/// The most samples that a track has in one chunk.
pub const MAX_SAMPLES: usize = 10_000;
/// The type of the `uuid` box with an enhancement's grey key frame.
pub const KEY_BOX: [u8; 16] = *b"lamina.grey.key\0";
/// Samples in a frame of AAC-LC.
pub const AAC_FRAME: u64 = 1_024;

/// One coded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoSample {
    /// When it is displayed, in ticks of the title from its start.
    pub pts: u64,
    /// How long it is displayed, in ticks: until the next one or the block's end.
    pub duration: u64,
    /// Whether decoding can start here.
    pub sync: bool,
    /// H.264: length-prefixed units (4 bytes) without parameter sets, which are
    /// in the init segment. Enhancements: one VP9 frame.
    pub data: Bytes,
}

/// One frame of sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioSample {
    /// When it starts, in samples (ticks of the sample rate) from the title's
    /// start; never before it.
    pub pts: u64,
    /// Its length in samples.
    pub duration: u64,
    /// One raw AAC frame.
    pub data: Bytes,
}

/// What a chunk holds: the coded pictures and sound of one block in one layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockSamples {
    /// When the first picture is displayed, in ticks.
    pub start: u64,
    /// When the block ends, in ticks.
    pub end: u64,
    /// The pictures in decoding order.
    pub video: Vec<VideoSample>,
    /// The frames of sound that start in the block; Base only.
    pub audio: Vec<AudioSample>,
}

/// Why something is not of this container's form. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// A box that must be there is not.
    #[error("there is no `{0}` box")]
    Missing(&'static str),
    /// A box that has no place here.
    #[error("a `{0}` box has no place there")]
    Unexpected(String),
    /// A size that reaches beyond the bytes around it.
    #[error("`{0}` reaches beyond its bounds")]
    OutOfBounds(&'static str),
    /// A box whose fields cannot be read or written.
    #[error("`{name}`: {why}")]
    Box {
        /// Name of the box.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A value that contradicts another or exceeds a bound.
    #[error("{0}")]
    Inconsistent(&'static str),
}

impl ContainerError {
    pub(crate) fn in_box(name: &'static str) -> impl Fn(mp4_atom::Error) -> Self {
        move |error| Self::Box { name, why: error.to_string() }
    }
}

#[cfg(test)]
mod tests;
