//! The layered codec: pictures, scalers, and the two VP9 enhancement layers
//! that are predicted from the layer below.
//!
//! A title has a *Base* layer (MPEG-4 AVC, coded elsewhere) and one or more
//! *enhancement* layers. An enhancement layer is a VP9 stream whose golden
//! reference picture is overwritten, before each frame and on both sides, by
//! the picture of the layer below: *reference injection*. The streams are
//! ordinary VP9, yet they decode only with the lower layer at hand.
//! `docs/codec.md` describes the bitstream and the settings.
//!
//! * [`Ladder`]: how much smaller each layer is than the display;
//! * [`LayerEncoder`], [`LayerDecoder`]: one block after another, any prefix
//!   of the layers;
//! * [`Settings`]: one quality knob for all layers;
//! * [`scale`], [`metrics`]: the bit-exact scalers, PSNR and SSIM.
//!
//! What is not here: H.264, files, networks, time, threads. Values of this
//! crate can be sent to other threads; blocks are independent, so encode them
//! in parallel with one [`LayerEncoder`] each.

mod error;
mod frame_header;
pub mod ladder;
mod layer_decoder;
mod layer_encoder;
mod lift;
pub mod metrics;
pub mod picture;
pub mod scale;
mod scene;
pub mod settings;
mod vpx;

pub use error::{CodecError, FrameError};
pub use ladder::{Ladder, LadderError};
pub use layer_decoder::{DecodedPicture, LayerDecoder};
pub use layer_encoder::{EncodedPicture, LayerEncoder, LayerGroup, downscale_to_base};
pub use picture::{Picture, PictureRef, PlaneRef};
pub use settings::{Preset, Settings};
pub use vpx::libvpx_version;
