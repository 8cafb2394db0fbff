//! Encoding one block: Base, then the enhancements over what Base decodes to.

use crate::base::{self, BaseFormat};
use crate::blocks::FilmBlock;
use crate::error::EncodeError;
use crate::report::Measured;
use bytes::Bytes;
use codec::{EncodedPicture, Ladder, LayerEncoder, Picture, Preset, downscale_to_base, metrics};
use media::container::{AudioSample, BlockSamples, VideoSample};
use media::{Hash, Hasher};

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

/// Encodes blocks, one after another; what came before has no influence.
pub(crate) struct BlockEncoder {
    recipe: Recipe,
    layers: LayerEncoder,
}

impl BlockEncoder {
    pub(crate) fn new(recipe: Recipe) -> Result<Self, EncodeError> {
        let Recipe { ladder, preset, quantizers, .. } = &recipe;
        let layers = if recipe.halves {
            LayerEncoder::with_halves(ladder, *preset, quantizers)?
        } else {
            LayerEncoder::new(ladder, *preset, quantizers)?
        };
        Ok(Self { recipe, layers })
    }

    /// The grey key frame of each enhancement, equal in all blocks.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        self.layers.keys()
    }

    /// Encodes a block with its sound; `measure` compares it with the film.
    pub(crate) fn encode(
        &mut self,
        film: &FilmBlock,
        sound: Vec<AudioSample>,
        measure: bool,
    ) -> Result<CodedBlock, EncodeError> {
        let ladder = &self.recipe.ladder;
        let small: Vec<Picture> = film
            .pictures
            .iter()
            .map(|shown| downscale_to_base(&shown.picture, ladder))
            .collect::<Result<_, _>>()?;
        let base = base::encode(&self.recipe.base, &small)?;
        drop(small);
        let access_units = base.samples.iter().map(|(index, data)| (*index, data));
        let decoded = base::decode(&base.config, self.recipe.base.size, access_units)?;

        let halves = self.recipe.halves;
        let mut hashes = Hashes::new(ladder.layers(), halves);
        let mut enhancements = vec![Vec::new(); ladder.enhancements()];
        let mut measured = Measured::default();
        self.layers.start_block_of(film.pictures.iter().map(|shown| &shown.picture))?;
        for (shown, decoded) in film.pictures.iter().zip(&decoded) {
            let coded = self.layers.encode(&shown.picture, decoded)?;
            hashes.add(decoded, &coded);
            if measure {
                let values = compare(&shown.picture, &coded)?;
                let odd = hashes.pictures.is_multiple_of(2);
                measured.add_picture(if halves { steps(&values, odd) } else { values });
            }
            for (samples, data) in enhancements.iter_mut().zip(coded.layers) {
                samples.push(data);
            }
        }
        let mut layers = vec![base_samples(film, &base.samples, sound)];
        layers.extend(enhancements.into_iter().map(|data| enhancement_samples(film, data)));
        Ok(CodedBlock { index: film.index, config: base.config, layers, hashes: hashes.finish(), measured })
    }
}

struct Hashes {
    base: Hasher,
    qualities: Vec<Hasher>,
    halves: Vec<Hasher>,
    /// Pictures so far.
    pictures: usize,
}

impl Hashes {
    fn new(qualities: usize, halves: bool) -> Self {
        let count = if halves { qualities.saturating_sub(1) } else { 0 };
        let some = |count| vec![Hasher::new(); count];
        Self { base: Hasher::new(), qualities: some(qualities), halves: some(count), pictures: 0 }
    }

    fn add(&mut self, base: &Picture, coded: &EncodedPicture) {
        base.hash_into(&mut self.base);
        for (hasher, picture) in self.qualities.iter_mut().zip(&coded.qualities) {
            picture.hash_into(hasher);
        }
        let odd = self.pictures % 2 == 1;
        let shown = coded.qualities.iter().skip(usize::from(!odd));
        for (hasher, picture) in self.halves.iter_mut().zip(shown) {
            picture.hash_into(hasher);
        }
        self.pictures += 1;
    }

    fn finish(&self) -> BlockHashes {
        let all = |hashers: &[Hasher]| hashers.iter().map(Hasher::finish).collect();
        BlockHashes { base: self.base.finish(), qualities: all(&self.qualities), halves: all(&self.halves) }
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

fn compare(film: &Picture, coded: &EncodedPicture) -> Result<Vec<(f64, f64)>, EncodeError> {
    let one = |picture| Ok((metrics::mse_y(film, picture)?, metrics::ssim_y(film, picture)?));
    coded.qualities.iter().map(one).collect()
}

/// Each picture's time and how long it is displayed, in display order.
fn times(film: &FilmBlock) -> Vec<(u64, u64)> {
    let starts = film.pictures.iter().map(|shown| shown.pts);
    let ends = starts.clone().skip(1).chain(std::iter::once(film.end));
    starts.zip(ends).map(|(start, end)| (start, end.saturating_sub(start))).collect()
}

fn base_samples(film: &FilmBlock, coded: &[(usize, Bytes)], audio: Vec<AudioSample>) -> BlockSamples {
    let times = times(film);
    let sample = |(index, data): &(usize, Bytes)| {
        let (pts, duration) = times.get(*index).copied()?;
        Some(VideoSample { pts, duration, sync: *index == 0, data: data.clone() })
    };
    let video = coded.iter().filter_map(sample).collect();
    BlockSamples { start: film.start, end: film.end, video, audio }
}

fn enhancement_samples(film: &FilmBlock, coded: Vec<Bytes>) -> BlockSamples {
    let sample = |((index, (pts, duration)), data)| VideoSample { pts, duration, sync: index == 0, data };
    let video = times(film).into_iter().enumerate().zip(coded).map(sample).collect();
    BlockSamples { start: film.start, end: film.end, video, audio: Vec::new() }
}
