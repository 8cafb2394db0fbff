//! A title of known bytes; nobody here looks into its chunks.

use bytes::Bytes;
use media::manifest::{Color, Made, Ratio};
use media::{BlockInfo, ChunkInfo, Half, Hash, Layer, LayerInfo, Manifest};
use std::sync::LazyLock;

pub(crate) const BLOCKS: u32 = 4;
/// Length of every chunk in bytes.
pub(crate) const LENGTH: usize = 300_000;

pub(crate) fn chunk_bytes(block: u32, layer: Layer) -> Bytes {
    let name = format!("block {block} of {layer} ");
    name.into_bytes().into_iter().cycle().take(LENGTH).collect()
}

/// The first half of a chunk: its first third.
fn half(block: u32, layer: Layer) -> Half {
    let bytes = &chunk_bytes(block, layer)[..LENGTH / 3];
    Half { length: 100_000, hash: Hash::of(bytes), pictures: Hash::of(b"pictures") }
}

pub(crate) fn manifest() -> &'static Manifest {
    static MANIFEST: LazyLock<Manifest> = LazyLock::new(make);
    &MANIFEST
}

fn make() -> Manifest {
    let layers = || Layer::first(3);
    let info = |layer: Layer| LayerInfo {
        factor: if layer == Layer::BASE { 2 } else { 1 },
        width: if layer == Layer::BASE { 32 } else { 64 },
        height: if layer == Layer::BASE { 32 } else { 64 },
        codec: if layer == Layer::BASE { "avc1.640020".into() } else { "lenh".into() },
        file: format!("{layer}.mp4"),
        init: vec![1],
        delay: 0,
        sync_every: None,
        halves: layer != Layer::BASE,
    };
    let length = u64::try_from(LENGTH).unwrap();
    let chunk = |block: u32, layer: Layer| ChunkInfo {
        offset: 100 + u64::from(block) * length,
        length,
        hash: Hash::of(&chunk_bytes(block, layer)),
    };
    let block = |block: u32| BlockInfo {
        start: u64::from(block) * 1000,
        duration: 1000,
        frames: 25,
        base_hash: Hash::of(b"pictures"),
        quality_hashes: vec![Hash::of(b"pictures"); 3],
        chunks: layers().map(|layer| chunk(block, layer)).collect(),
        halves: layers().skip(1).map(|layer| half(block, layer)).collect(),
    };
    Manifest {
        version: media::manifest::MANIFEST_VERSION,
        title: "film".parse().unwrap(),
        width: 64,
        height: 64,
        frame_rate: Ratio { num: 25, den: 1 },
        timescale: 1000,
        duration: u64::from(BLOCKS) * 1000,
        color: Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 },
        pixel_aspect: Ratio { num: 1, den: 1 },
        class: media::TitleClass::Archived,
        made: Made {
            by: "a test".into(),
            preset: "default".into(),
            crf_centi: 3000,
            quantizers: vec![38, 28],
            block_ms: 1000,
        },
        audio: None,
        layers: layers().map(info).collect(),
        blocks: (0..BLOCKS).map(block).collect(),
    }
}
