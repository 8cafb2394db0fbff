//! The words of Lamina, pure: units, layers and qualities, chunks, manifests,
//! the fragmented-MP4 container and the layout of a title on disk.
//!
//! Nothing here knows the network, `GStreamer`, an asynchronous runtime or the
//! wall clock. Everything read from disk or from a peer is checked before it is
//! believed.

pub mod chunk;
pub mod class;
pub mod container;
pub mod hash;
pub mod layer;
pub mod library;
pub mod manifest;
pub mod title;
pub mod units;

pub use chunk::{Chunk, ChunkError, ChunkId};
pub use class::{ByClass, TitleClass, TitleClassError};
pub use hash::{Hash, Hasher};
pub use layer::{Layer, Quality};
pub use library::{Library, LibraryError, TitleFolder};
pub use manifest::{BlockInfo, ChunkInfo, Half, LayerInfo, Manifest, ManifestError, PackedManifest};
pub use title::{TitleName, TitleNameError, TitleSummary};
pub use units::{BitRate, ByteCount, Span, Time};
