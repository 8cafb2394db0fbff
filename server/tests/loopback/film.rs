//! A small title of known bytes; nobody here looks into its chunks.

use media::container::random_access_index;
use media::library::{Library, TitleFolder, TitleWriter};
use media::manifest::{Color, Made, Ratio};
use media::{BlockInfo, ChunkInfo, Half, Hash, Layer, LayerInfo, Manifest};

pub(crate) const BLOCKS: u32 = 4;
/// What each file begins with.
const INIT: [u8; 1] = [1];

pub(crate) fn chunk_bytes(title: &str, block: u32, layer: Layer) -> Vec<u8> {
    let length = 20_000 * (usize::from(layer.0) + 1);
    format!("{title} {block} {layer} ").into_bytes().into_iter().cycle().take(length).collect()
}

/// The first half of a chunk: its first 12,345 bytes.
pub(crate) fn half(title: &str, block: u32, layer: Layer) -> Half {
    let bytes = &chunk_bytes(title, block, layer)[..12_345];
    Half { length: 12_345, hash: Hash::of(bytes), pictures: Hash::of(b"pictures") }
}

pub(crate) fn write(library: &Library, title: &str) -> TitleFolder {
    let layers: Vec<Layer> = Layer::first(3).collect();
    let file = |layer: &Layer| format!("{layer}.mp4");
    let files: Vec<String> = layers.iter().map(file).collect();
    let mut writer = TitleWriter::create(library, title.parse().unwrap(), true, &files).unwrap();
    for layer in &layers {
        writer.append(*layer, &INIT).unwrap();
    }
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let mut append = |layer: &Layer| {
            let bytes = chunk_bytes(title, block, *layer);
            let offset = writer.append(*layer, &bytes).unwrap();
            ChunkInfo { offset, length: u64::try_from(bytes.len()).unwrap(), hash: Hash::of(&bytes) }
        };
        blocks.push(BlockInfo {
            start: u64::from(block) * 1000,
            duration: 1000,
            frames: 25,
            base_hash: Hash::of(b"pictures"),
            quality_hashes: vec![Hash::of(b"pictures"); 3],
            chunks: layers.iter().map(&mut append).collect(),
            halves: layers.iter().skip(1).map(|layer| half(title, block, *layer)).collect(),
        });
    }
    for layer in &layers {
        let places = blocks.iter().map(|block: &BlockInfo| (block.start, block.chunks[layer.index()].offset));
        let index = random_access_index(0, places).unwrap();
        writer.append(*layer, &index).unwrap();
    }
    let info = |layer: &Layer| LayerInfo {
        factor: if layer.0 == 0 { 2 } else { 1 },
        width: if layer.0 == 0 { 32 } else { 64 },
        height: if layer.0 == 0 { 32 } else { 64 },
        codec: if layer.0 == 0 { "avc1.640020".into() } else { "lenh".into() },
        file: file(layer),
        init: INIT.to_vec(),
        delay: 0,
        sync_every: None,
        halves: layer.0 > 0,
    };
    let manifest = Manifest {
        version: media::manifest::MANIFEST_VERSION,
        title: title.parse().unwrap(),
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
        layers: layers.iter().map(info).collect(),
        blocks,
    };
    writer.finish(&manifest).unwrap()
}
