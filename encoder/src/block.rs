//! Encoding one block: Base, then the enhancements over what Base decodes to.

mod parts;

use crate::base::{self, BaseBlock, BaseFormat};
use crate::blocks::FilmBlock;
use crate::error::EncodeError;
use crate::report::Measured;
use bytes::Bytes;
use codec::{Ladder, LayerEncoder, Picture, Preset, downscale_to_base};
use media::container::{AudioSample, BlockSamples, VideoSample};
use media::{Hash, Hasher};
use parts::{CodedPart, Part};

/// How all blocks of a title are made.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) ladder: Ladder,
    pub(crate) base: BaseFormat,
    pub(crate) preset: Preset,
    pub(crate) quantizers: Vec<u8>,
    /// Whether the enhancements are written in halves.
    pub(crate) halves: bool,
}

/// One block, coded in all layers.
#[derive(Debug)]
pub(crate) struct CodedBlock {
    pub(crate) index: u32,
    /// Base's `AVCDecoderConfigurationRecord`.
    pub(crate) config: Vec<u8>,
    /// The samples of each layer, Base first.
    pub(crate) layers: Vec<BlockSamples>,
    pub(crate) hashes: BlockHashes,
    pub(crate) measured: Measured,
}

/// Hashes of a block's decoded pictures: see `BlockInfo`.
#[derive(Debug, Clone)]
pub(crate) struct BlockHashes {
    pub(crate) base: Hash,
    pub(crate) qualities: Vec<Hash>,
    /// With the first half of each enhancement; empty without halves.
    pub(crate) halves: Vec<Hash>,
}

/// A block whose Base is made: what the enhancements are encoded over.
#[derive(Debug)]
pub(crate) struct BasedBlock {
    film: FilmBlock,
    sound: Vec<AudioSample>,
    base: BaseBlock,
    /// Base as players decode it.
    decoded: Vec<Picture>,
}

impl BasedBlock {
    /// Makes Base of a block with its sound.
    pub(crate) fn encode(
        recipe: &Recipe,
        film: FilmBlock,
        sound: Vec<AudioSample>,
    ) -> Result<Self, EncodeError> {
        let pictures = film.pictures.iter().map(|shown| downscale_to_base(&shown.picture, &recipe.ladder));
        let small: Vec<Picture> = pictures.collect::<Result<_, _>>()?;
        let base = base::encode(&recipe.base, small)?;
        let access_units = base.samples.iter().map(|(index, data)| (*index, data));
        let decoded = base::decode(&base.config, recipe.base.size, access_units)?;
        Ok(Self { film, sound, base, decoded })
    }

    /// Index of the block.
    pub(crate) fn index(&self) -> u32 {
        self.film.index
    }
}

/// How the enhancements of a block are encoded.
pub(crate) struct How<'a> {
    /// Whether the block is compared with the film.
    pub(crate) measure: bool,
    /// Whether a second thread is there for the layers above the lowest enhancement:
    /// asked before each picture until it is, and then not any more.
    pub(crate) hand: &'a dyn Fn() -> bool,
    /// Told of each picture of the film that is not needed any more.
    pub(crate) done: &'a (dyn Fn() + Sync),
}

/// Encodes enhancements of blocks, one after another; what came before has no influence.
pub(crate) struct BlockEncoder {
    layers: LayerEncoder,
    halves: bool,
}

impl BlockEncoder {
    pub(crate) fn new(recipe: &Recipe) -> Result<Self, EncodeError> {
        let Recipe { ladder, preset, quantizers, halves, .. } = recipe;
        let make = if *halves { LayerEncoder::with_halves } else { LayerEncoder::new };
        Ok(Self { layers: make(ladder, *preset, quantizers)?, halves: *halves })
    }

    /// The grey key frame of each enhancement, equal in all blocks.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        self.layers.keys()
    }

    /// Encodes a block; pictures are given up as soon as they are coded.
    pub(crate) fn encode(&mut self, block: BasedBlock, how: &How<'_>) -> Result<CodedBlock, EncodeError> {
        let BasedBlock { mut film, sound, base, decoded } = block;
        let times = times(&film);
        self.layers.start_block_of(film.pictures.iter().map(|shown| &shown.picture))?;
        let pictures = std::mem::take(&mut film.pictures);
        let mut base_hash = Hasher::new();
        let (lower, upper) = self.layers.split(1)?;
        let part = |group| Part::new(group, how.measure, self.halves);
        let pairs = pictures.into_iter().zip(decoded).map(|(shown, decoded)| {
            decoded.hash_into(&mut base_hash);
            (shown.picture, decoded)
        });
        let parts = parts::encode(part(lower), part(upper), pairs, how)?;
        let measured = self.measured(&parts);
        let hashes = |of: fn(&CodedPart) -> &[Hasher]| {
            parts.iter().flat_map(|part| of(part).iter().map(Hasher::finish)).collect()
        };
        let hashes = BlockHashes {
            base: base_hash.finish(),
            qualities: hashes(|part| &part.qualities),
            halves: hashes(|part| &part.halves),
        };
        let mut layers = vec![base_samples(&film, &times, &base.samples, sound)];
        let above = parts.into_iter().flat_map(|part| part.layers);
        layers.extend(above.map(|data| enhancement_samples(&film, &times, data)));
        Ok(CodedBlock { index: film.index, config: base.config, layers, hashes, measured })
    }

    /// What the parts measured, picture by picture.
    fn measured(&self, parts: &[CodedPart]) -> Measured {
        let mut measured = Measured::default();
        let count = parts.first().map_or(0, |part| part.compared.len());
        for index in 0..count {
            let values = parts.iter().filter_map(|part| part.compared.get(index)).flatten();
            let values: Vec<_> = values.copied().collect();
            measured.add_picture(if self.halves { steps(&values, index % 2 == 1) } else { values });
        }
        measured
    }
}

/// From values of the qualities to those of the steps in halves: before each
/// quality above the lowest, its first half, in which the odd pictures are those
/// of the quality below.
fn steps(qualities: &[(f64, f64)], odd: bool) -> Vec<(f64, f64)> {
    let above = qualities.windows(2).filter_map(|pair| match *pair {
        [below, whole] => Some([if odd { below } else { whole }, whole]),
        _ => None,
    });
    qualities.first().copied().into_iter().chain(above.flatten()).collect()
}

/// Each picture's time and how long it is displayed, in display order.
fn times(film: &FilmBlock) -> Vec<(u64, u64)> {
    let starts = film.pictures.iter().map(|shown| shown.pts);
    let ends = starts.clone().skip(1).chain(std::iter::once(film.end));
    starts.zip(ends).map(|(start, end)| (start, end.saturating_sub(start))).collect()
}

fn base_samples(
    film: &FilmBlock,
    times: &[(u64, u64)],
    coded: &[(usize, Bytes)],
    audio: Vec<AudioSample>,
) -> BlockSamples {
    let sample = |(index, data): &(usize, Bytes)| {
        let (pts, duration) = times.get(*index).copied()?;
        Some(VideoSample { pts, duration, sync: *index == 0, data: data.clone() })
    };
    let video = coded.iter().filter_map(sample).collect();
    BlockSamples { start: film.start, end: film.end, video, audio }
}

fn enhancement_samples(film: &FilmBlock, times: &[(u64, u64)], coded: Vec<Bytes>) -> BlockSamples {
    let sample = |((index, &(pts, duration)), data)| VideoSample { pts, duration, sync: index == 0, data };
    let video = times.iter().enumerate().zip(coded).map(sample).collect();
    BlockSamples { start: film.start, end: film.end, video, audio: Vec::new() }
}
