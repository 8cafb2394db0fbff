//! The manifest: everything about a title but its pictures and its sound.
//!
//! It lies beside the layers as `title.json`, travels like a chunk, and lets
//! anybody fetch, check and recombine the title. All times of pictures are in
//! ticks of `timescale`, counted from the first displayed picture.

use crate::chunk::{ChunkId, MAX_CHUNK_BYTES};
use crate::class::TitleClass;
use crate::hash::Hash;
use crate::layer::{Layer, MAX_LAYERS, Quality};
use crate::title::{TitleName, TitleSummary};
use crate::units::{BitRate, ByteCount, Span};
use serde::{Deserialize, Serialize};

mod check;
mod packed;
#[cfg(test)]
pub(crate) use check::tests as tests_support;
pub use packed::{PackedManifest, UnpackError};

/// The newest version of the manifest, that of titles in halves; all from
/// [`OLDEST_MANIFEST`] on are read.
pub const MANIFEST_VERSION: u32 = 3;
/// The version of a title without halves, so that older programs play it.
pub const WHOLE_MANIFEST: u32 = 2;
/// The oldest version that is read: it names no class, and its titles are
/// archived ones.
pub const OLDEST_MANIFEST: u32 = 1;
/// The longest manifest that is read, in bytes: about 30 hours of film.
pub const MAX_MANIFEST_BYTES: u64 = 64 * 1024 * 1024;
/// The name of the manifest in a title's folder.
pub const MANIFEST_FILE: &str = "title.json";

/// A whole title in words. Values read from outside come through
/// [`Manifest::parse`] and are consistent: see `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`], or an older one.
    pub version: u32,
    /// The title's name.
    pub title: TitleName,
    /// By what admission tells it from others.
    #[serde(default)]
    pub class: TitleClass,
    /// Width of the displayed picture in pixels, at every quality.
    pub width: u32,
    /// Height of the displayed picture in pixels, at every quality.
    pub height: u32,
    /// Nominal pictures a second; blocks tell the real times.
    pub frame_rate: Ratio,
    /// Ticks a second of every picture time below.
    pub timescale: u32,
    /// Length of the programme in ticks.
    pub duration: u64,
    /// What the sample values mean.
    pub color: Color,
    /// Width over height of one pixel.
    pub pixel_aspect: Ratio,
    /// How it was made.
    pub made: Made,
    /// The sound, if there is any.
    pub audio: Option<Audio>,
    /// The layers, Base first.
    pub layers: Vec<LayerInfo>,
    /// The blocks in order of time, without gaps.
    pub blocks: Vec<BlockInfo>,
}

/// A fraction of two positive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// Numerator.
    pub num: u32,
    /// Denominator, never 0.
    pub den: u32,
}

/// Code points of ISO/IEC 23091-2 (the same as H.264's VUI): 2 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Color {
    /// Whether luma uses 0..255 instead of 16..235.
    pub full_range: bool,
    /// Colour primaries.
    pub primaries: u8,
    /// Transfer characteristics.
    pub transfer: u8,
    /// Matrix coefficients.
    pub matrix: u8,
}

/// How the encoder was set, so that the same film gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Program and version.
    pub by: String,
    /// `fast`, `default` or `best`.
    pub preset: String,
    /// Constant rate factor of Base (x264), in hundredths.
    pub crf_centi: u32,
    /// Quantizer of each enhancement (libvpx, 0..63), lowest layer first.
    pub quantizers: Vec<u8>,
    /// Target length of a block in milliseconds.
    pub block_ms: u32,
}

/// The sound: AAC-LC, riding in Base as track 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audio {
    /// RFC 6381 name, such as `mp4a.40.2`.
    pub codec: String,
    /// Samples a second; audio times in chunks are in these ticks.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: u8,
    /// The `AudioSpecificConfig` of ISO/IEC 14496-3.
    #[serde(with = "base64_bytes")]
    pub config: Vec<u8>,
}

/// One layer of the title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerInfo {
    /// How many times smaller than the displayed picture, a power of two.
    pub factor: u8,
    /// Coded width in pixels: width / factor, rounded up to even.
    pub width: u32,
    /// Coded height in pixels: height / factor, rounded up to even.
    pub height: u32,
    /// RFC 6381 name for Base (`avc1.640020`), `lenh` for enhancements.
    pub codec: String,
    /// Name of the layer's file in the title's folder.
    pub file: String,
    /// The file's init segment (`ftyp` and `moov`), exactly as on disk.
    #[serde(with = "base64_bytes")]
    pub init: Vec<u8>,
    /// Ticks by which composition times in the chunks run late, because
    /// pictures are reordered; the init segment's edit list undoes it.
    pub delay: u32,
    /// Every how many pictures a layer can be entered inside a block; none if
    /// only at its start.
    pub sync_every: Option<u32>,
    /// Whether chunks come in `a` (reference) and `b` (droppable) halves: see
    /// [`Half`]. All enhancements do, or none; Base never does.
    pub halves: bool,
}

/// One block: a closed group of pictures, decodable on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockInfo {
    /// Time of the first displayed picture, in ticks.
    pub start: u64,
    /// Time from that to the next block's, in ticks.
    pub duration: u64,
    /// Number of pictures.
    pub frames: u32,
    /// Hash of the decoded Base pictures at Base's own size: I420, rows without
    /// padding, Y then U then V, display order.
    pub base_hash: Hash,
    /// Hash of the recombined pictures at full size, cropped, per quality,
    /// bronze first.
    pub quality_hashes: Vec<Hash>,
    /// The block's chunk in each layer, Base first.
    pub chunks: Vec<ChunkInfo>,
    /// The `a` half of the chunk of each enhancement, lowest first; none if the
    /// title's layers do not come in halves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub halves: Vec<Half>,
}

/// The `a` half of a chunk: its first bytes, which hold the even pictures of the
/// block. The rest is the `b` half: the odd pictures, to which nothing refers.
/// A chunk of a single picture has no `b`.
///
/// A quality step is all layers below, and of the topmost one the `a` half or
/// the whole chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Half {
    /// Length in bytes, at most the chunk's.
    pub length: u64,
    /// BLAKE3 of the bytes.
    pub hash: Hash,
    /// Hash of what is shown with this half and all layers below, as in
    /// [`BlockInfo::quality_hashes`]: the odd pictures are those of the lower quality.
    pub pictures: Hash,
}

/// Where a chunk lies and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkInfo {
    /// Offset in the layer's file in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// BLAKE3 of the bytes.
    pub hash: Hash,
}

impl ChunkInfo {
    /// Offset of the first byte after it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl Manifest {
    /// Reads a manifest from disk or from a peer.
    ///
    /// # Errors
    /// Too long, not JSON, another version, or inconsistent with itself.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLong);
        }
        let Versioned { version } = serde_json::from_slice(bytes).map_err(ManifestError::json)?;
        if !(OLDEST_MANIFEST..=MANIFEST_VERSION).contains(&version) {
            return Err(ManifestError::Version(version));
        }
        let mut manifest: Self = serde_json::from_slice(bytes).map_err(ManifestError::json)?;
        if version == OLDEST_MANIFEST {
            manifest.class = TitleClass::default();
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// The bytes of `title.json`.
    ///
    /// # Errors
    /// The manifest is inconsistent or too long to be read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        self.check()?;
        let mut bytes = serde_json::to_vec(self).map_err(ManifestError::json)?;
        bytes.push(b'\n');
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLong);
        }
        Ok(bytes)
    }

    /// Length of the programme.
    pub fn span(&self) -> Span {
        self.at(self.duration)
    }

    /// The span of `ticks` of this title.
    pub fn at(&self, ticks: u64) -> Span {
        Span::from_ticks(ticks, self.timescale)
    }

    /// The best quality there is.
    pub fn top_quality(&self) -> Quality {
        Quality(u8::try_from(self.layers.len()).unwrap_or(u8::MAX))
    }

    /// Number of blocks.
    pub fn block_count(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(u32::MAX)
    }

    /// The block with this index.
    pub fn block(&self, index: u32) -> Option<&BlockInfo> {
        self.blocks.get(usize::try_from(index).ok()?)
    }

    /// What the chunk of this block and layer must be.
    pub fn chunk(&self, block: u32, layer: Layer) -> Option<&ChunkInfo> {
        self.block(block)?.chunks.get(layer.index())
    }

    /// What the first half of that chunk must be; none if it does not come in halves.
    pub fn half(&self, block: u32, layer: Layer) -> Option<&Half> {
        self.block(block)?.halves.get(layer.index().checked_sub(1)?)
    }

    /// The name of the chunk of this block and layer.
    pub fn chunk_id(&self, block: u32, layer: Layer) -> ChunkId {
        ChunkId { title: self.title.clone(), block, layer }
    }

    /// The block on screen at `position`; the last one after the end.
    pub fn block_at(&self, position: Span) -> u32 {
        let after = self.blocks.partition_point(|block| self.at(block.start) <= position);
        u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The mean rate of a layer over the whole programme.
    pub fn nominal_rate(&self, layer: Layer) -> BitRate {
        let bytes = self.blocks.iter().filter_map(|block| block.chunks.get(layer.index()));
        ByteCount(bytes.map(|chunk| chunk.length).sum()).over(self.span())
    }

    /// One line for the list of what can be watched.
    pub fn summary(&self) -> TitleSummary {
        TitleSummary {
            title: self.title.clone(),
            duration: self.span(),
            width: self.width,
            height: self.height,
            layers: self.top_quality().layers(),
            audio: self.audio.is_some(),
            class: self.class,
        }
    }
}

/// Why a manifest cannot be believed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Longer than [`MAX_MANIFEST_BYTES`].
    #[error("the manifest is longer than {MAX_MANIFEST_BYTES} bytes")]
    TooLong,
    /// Not the JSON of a manifest.
    #[error("the manifest cannot be read: {0}")]
    Json(String),
    /// Written by another version.
    #[error("the manifest has version {0}, this program reads up to {MANIFEST_VERSION}")]
    Version(u32),
    /// A value that contradicts the others or exceeds a bound.
    #[error("the manifest contradicts itself: {0}")]
    Inconsistent(String),
}

impl ManifestError {
    #[allow(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
    fn json(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }
}

/// Bytes as standard base64 text.
mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// What every version of the manifest begins with.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Keeps the bound in one place: a chunk must fit what a receiver accepts.
const fn fits_a_chunk(length: u64) -> bool {
    length > 0 && length <= MAX_CHUNK_BYTES
}

/// Keeps the bound in one place: as many layers as the words allow.
const fn lawful_layers(count: usize) -> bool {
    count >= 1 && count <= MAX_LAYERS
}
