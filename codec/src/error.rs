//! What can go wrong in the codec.

use crate::ladder::LadderError;

/// An error of the codec. No error leaves a half-changed picture visible to
/// the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A picture must have between 1 and 16384 samples a side.
    #[error("a picture of {width}x{height} is outside 1x1..16384x16384")]
    PictureSize {
        /// Asked width in luma samples.
        width: u32,
        /// Asked height in luma samples.
        height: u32,
    },
    /// A plane's bytes do not cover its rows.
    #[error("plane {plane} has {found} bytes, its rows need {needed}")]
    PlaneTooShort {
        /// 0 = Y, 1 = U, 2 = V.
        plane: usize,
        /// Bytes handed in.
        found: usize,
        /// Bytes the rows reach over.
        needed: usize,
    },
    /// A picture does not have the size that the ladder gives its layer.
    #[error("{what} is {}x{}, expected {}x{}", .found.0, .found.1, .expected.0, .expected.1)]
    SizeMismatch {
        /// Which picture.
        what: &'static str,
        /// Width and height that fit.
        expected: (u32, u32),
        /// Width and height handed in.
        found: (u32, u32),
    },
    /// A list does not have one entry per enhancement layer.
    #[error("{found} {what} for {expected} enhancement layers")]
    LayerCount {
        /// What the list holds.
        what: &'static str,
        /// Number of enhancement layers.
        expected: usize,
        /// Entries handed in.
        found: usize,
    },
    /// A quantizer outside 0..=63.
    #[error("a quantizer of {0} is outside 0..=63")]
    Quantizer(u8),
    /// The ladder of layer sizes is not lawful.
    #[error("no such layers")]
    Ladder(#[from] LadderError),
    /// An enhancement frame is not one this codec writes.
    #[error("refused enhancement frame")]
    Frame(#[from] FrameError),
    /// `encode` before `start_block`.
    #[error("no block was started")]
    NoBlock,
    /// libvpx made another grey key frame than before, so that blocks would not
    /// decode with the stored one.
    #[error("libvpx made a different key frame for the same settings")]
    KeyChanged,
    /// libvpx refused.
    #[error("libvpx: {call}: {detail}")]
    Vpx {
        /// The call that failed.
        call: &'static str,
        /// libvpx's own words.
        detail: String,
    },
}

/// Why an enhancement frame was refused before or after libvpx saw it.
///
/// Frames come from disk and network. Only the narrow form that the encoder
/// writes passes: everything else VP9 can say (new sizes, hidden frames,
/// superframes, other profiles) would let a stream ask for memory or disturb
/// references that the prediction relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header ends before it is complete.
    #[error("the frame ends inside its header")]
    Truncated,
    /// More bytes than any frame of this size can need.
    #[error("a frame of {found} bytes exceeds the bound of {bound}")]
    TooLarge {
        /// Bytes of the frame.
        found: usize,
        /// The bound for this picture size.
        bound: usize,
    },
    /// The frame marker, sync code or a reserved bit is wrong.
    #[error("not a VP9 frame")]
    NotVp9,
    /// A profile other than 0, that is not 8-bit 4:2:0.
    #[error("profile {0} instead of 0 (8-bit 4:2:0)")]
    Profile(u8),
    /// A superframe, a repeated frame, a hidden frame, or an intra frame where
    /// an inter frame belongs (or the reverse).
    #[error("{0} in an enhancement layer")]
    Kind(&'static str),
    /// Another picture size than the layer's.
    #[error("a picture of {}x{} in a layer of {}x{}", .found.0, .found.1, .expected.0, .expected.1)]
    Size {
        /// The layer's coded size.
        expected: (u32, u32),
        /// The frame's.
        found: (u32, u32),
    },
    /// The frame would overwrite a reference other than LAST and ALTREF.
    #[error("refreshes reference slots {0:#010b}, only LAST and ALTREF may be")]
    Refresh(u8),
    /// The frame decoded to nothing, or to more than one picture.
    #[error("the frame holds {0} pictures instead of one")]
    Pictures(usize),
}
