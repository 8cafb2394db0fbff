//! From a film to a layered title: `GStreamer` in, codec, media out.
//!
//! [`encode`] reads a film, cuts it into blocks, encodes them in parallel and
//! writes a title into a library. Base is made by x264, one fresh encoder per
//! block, and the enhancements over what Base decodes to, so that a block's
//! bytes depend on its pictures alone. [`verify`] decodes a title again and
//! compares every hash, [`inspect`] describes one, [`repeat`] makes a long
//! programme of a short one, [`merge`] joins what several machines encoded,
//! [`export`] makes a file for other players.

mod assemble;
mod base;
mod block;
mod blocks;
mod drive;
mod encode;
mod error;
mod export;
mod frame;
mod input;
mod inspect;
mod journal;
mod memory;
mod merge;
mod nal;
mod options;
mod repeat;
mod report;
mod source;
mod tune;
mod verify;
mod work;

pub use codec::{Preset, Settings};
pub use drive::ElementError;
pub use encode::encode;
pub use error::EncodeError;
pub use export::{ExportOptions, ExportReport, export, export_hls};
pub use input::Input;
pub use inspect::{AudioInspection, Inspection, LayerInspection, inspect};
pub use merge::merge;
pub use options::{EncodeOptions, Metrics, Progress, Share};
pub use repeat::repeat;
pub use report::{BlockReport, EncodeReport, LayerReport, QualityReport, StepReport};
pub use tune::Aims;
pub use verify::{Fault, FaultKind, VerifyReport, verify};

/// Starts `GStreamer`. The first call on a machine looks at all plugins and
/// takes about a second, later ones do nothing; the functions of this crate
/// call it themselves.
pub fn init() -> Result<(), EncodeError> {
    gstreamer::init().map_err(|error| EncodeError::NoGStreamer(error.to_string()))
}
