//! Making a long programme of a short one, without encoding anything again.

mod sound;

use crate::assemble::{Assembler, Finished, Shared};
use crate::block::BlockHashes;
use crate::error::EncodeError;
use crate::report::Measured;
use bytes::Bytes;
use media::container::{BlockSamples, avc_config, enhancement_key, parse_chunk};
use media::library::{Library, TitleFolder};
use media::{Layer, Span};
use sound::SoundRun;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a title of the same name into `library` whose blocks are those of
/// `title`, over and over, until it is at least `at_least` long (whole rounds,
/// at least one). Each repeat is a chunk of its own with its own times and
/// hash; the hashes of pictures stay. Frames of sound run on without a gap and
/// are never further from their pictures than half a frame: where the rounds
/// do not divide by a frame, one is left out or comes twice.
///
/// # Errors
/// A layer of the title is missing or damaged, or the disk refuses; the library
/// is as before then.
pub fn repeat(
    title: &TitleFolder,
    library: &Library,
    at_least: Span,
    replace: bool,
    cancel: &AtomicBool,
) -> Result<TitleFolder, EncodeError> {
    Ok(run(title, library, at_least, replace, cancel)?.title)
}

/// A block that waits for frames of sound from the next round.
struct Waiting {
    layers: Vec<BlockSamples>,
    hashes: BlockHashes,
}

pub(crate) fn run(
    title: &TitleFolder,
    library: &Library,
    at_least: Span,
    replace: bool,
    cancel: &AtomicBool,
) -> Result<Finished, EncodeError> {
    let manifest = title.manifest();
    let failed = |why: String| EncodeError::Repeat { title: manifest.title.clone(), why };
    let config = manifest.layers.first().map(|base| avc_config(&base.init)).transpose()?.unwrap_or_default();
    let keys =
        manifest.layers.iter().skip(1).map(|layer| enhancement_key(&layer.init).map(Bytes::copy_from_slice));
    let shared = Shared { config: config.to_vec(), keys: keys.collect::<Result<_, _>>()? };
    let mut assembler = Assembler::create(library, replace, (**manifest).clone(), shared)?;
    let mut sound = manifest.audio.as_ref().map(|audio| SoundRun::new(audio.sample_rate, manifest.timescale));
    let mut waiting: Option<Waiting> = None;
    let mut offset = 0_u64;
    while offset == 0 || manifest.at(offset) < at_least {
        for (index, block) in (0..).zip(&manifest.blocks) {
            if cancel.load(Ordering::Relaxed) {
                return Err(EncodeError::Cancelled);
            }
            let mut layers = read(title, index)?;
            for layer in &mut layers {
                shift(layer, offset).ok_or_else(|| failed("its times would exceed 64 bits".into()))?;
            }
            if let (Some(sound), Some(base)) = (&mut sound, layers.first_mut()) {
                base.audio = sound.place(std::mem::take(&mut base.audio), offset);
                let earlier = waiting.as_mut().and_then(|waiting| waiting.layers.first_mut());
                sound.settle(earlier, base);
            }
            let hashes = BlockHashes {
                base: block.base_hash,
                qualities: block.quality_hashes.clone(),
                halves: block.halves.iter().map(|half| half.pictures).collect(),
            };
            let next = Waiting { layers, hashes };
            if let Some(ready) = waiting.replace(next) {
                push(&mut assembler, config, ready)?;
            }
        }
        offset = offset.checked_add(manifest.duration).ok_or_else(|| failed("it would never end".into()))?;
    }
    if let Some(last) = waiting {
        push(&mut assembler, config, last)?;
    }
    assembler.finish()
}

fn push(assembler: &mut Assembler, config: &[u8], block: Waiting) -> Result<(), EncodeError> {
    assembler.push(assembler.blocks(), config, &block.layers, block.hashes, Measured::default())
}

/// All layers of a block, whole and undamaged.
fn read(title: &TitleFolder, block: u32) -> Result<Vec<BlockSamples>, EncodeError> {
    let manifest = title.manifest();
    let failed = |why: String| EncodeError::Repeat { title: manifest.title.clone(), why };
    let mut layers = Vec::with_capacity(manifest.layers.len());
    for (layer, info) in (0..).map(Layer).zip(&manifest.layers) {
        let bytes = title.read_chunk(block, layer)?;
        let chunk = title.verified(block, layer, bytes).map_err(|error| failed(error.to_string()))?;
        layers.push(parse_chunk(chunk.bytes(), info.delay)?);
    }
    Ok(layers)
}

fn shift(block: &mut BlockSamples, ticks: u64) -> Option<()> {
    block.start = block.start.checked_add(ticks)?;
    block.end = block.end.checked_add(ticks)?;
    for sample in &mut block.video {
        sample.pts = sample.pts.checked_add(ticks)?;
    }
    Some(())
}
