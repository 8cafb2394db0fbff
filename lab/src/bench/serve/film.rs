//! A title whose Base chunks all have one length; nobody looks into them.

use crate::bench::BenchError;
use media::library::{Library, LibraryError, TitleWriter};
use media::manifest::{Color, MANIFEST_VERSION, Made, Ratio};
use media::{BlockInfo, ChunkInfo, Hash, Layer, LayerInfo, Manifest, TitleName};

/// Bytes that no two chunks share.
pub(in crate::bench) fn chunk_bytes(block: u32, length: usize) -> Vec<u8> {
    let name = block.to_be_bytes().into_iter().chain(*b"chunk");
    let seed: Vec<u8> = name.collect();
    seed.into_iter().cycle().take(length).collect()
}

/// Writes the title with `chunks` chunks of `length` bytes.
pub(in crate::bench) fn write(
    library: &Library,
    title: &TitleName,
    chunks: u32,
    length: usize,
) -> Result<Manifest, BenchError> {
    let unwritten = |error: LibraryError| BenchError::Setting(format!("no library for the bench: {error}"));
    let file = "base.mp4".to_owned();
    let files = [file.clone()];
    let mut writer = TitleWriter::create(library, title.clone(), true, &files).map_err(unwritten)?;
    let mut blocks = Vec::new();
    for block in 0..chunks {
        let bytes = chunk_bytes(block, length);
        let offset = writer.append(Layer::BASE, &bytes).map_err(unwritten)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        blocks.push(BlockInfo {
            start: u64::from(block),
            duration: 1,
            frames: 1,
            base_hash: Hash::of(b""),
            quality_hashes: vec![Hash::of(b"")],
            chunks: vec![ChunkInfo { offset, length, hash: Hash::of(&bytes) }],
            halves: Vec::new(),
        });
    }
    let base = LayerInfo {
        factor: 1,
        width: 64,
        height: 64,
        codec: "avc1.640020".to_owned(),
        file,
        init: vec![0],
        delay: 0,
        sync_every: None,
        halves: false,
    };
    let made = Made {
        by: "a bench".to_owned(),
        preset: "none".to_owned(),
        crf_centi: 0,
        quantizers: Vec::new(),
        block_ms: 1000,
    };
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        title: title.clone(),
        width: 64,
        height: 64,
        frame_rate: Ratio { num: 1, den: 1 },
        timescale: 1,
        duration: u64::from(chunks),
        color: Color { full_range: false, primaries: 2, transfer: 2, matrix: 2 },
        pixel_aspect: Ratio { num: 1, den: 1 },
        class: media::TitleClass::Archived,
        made,
        audio: None,
        layers: vec![base],
        blocks,
    };
    writer.finish(&manifest).map_err(unwritten)?;
    Ok(manifest)
}
