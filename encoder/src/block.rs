//! Encoding one block: Base, then the enhancements over what Base decodes to.

use crate::base::{self, BaseBlock, BaseFormat};
use crate::blocks::FilmBlock;
use crate::error::EncodeError;
use crate::report::Measured;
use bytes::Bytes;
use codec::{EncodedPicture, Ladder, LayerEncoder, LayerGroup, Picture, Preset, downscale_to_base, metrics};
use media::container::{AudioSample, BlockSamples, VideoSample};
use media::{Hash, Hasher};
use std::sync::mpsc::sync_channel;

/// How all blocks of a title are made.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) ladder: Ladder,
    pub(crate) base: BaseFormat,
    pub(crate) preset: Preset,
    pub(crate) quantizers: Vec<u8>,
}

/// One block, coded in all layers.
#[derive(Debug)]
pub(crate) struct CodedBlock {
    pub(crate) index: u32,
    /// Base's `AVCDecoderConfigurationRecord`.
    pub(crate) config: Vec<u8>,
    /// The samples of each layer, Base first.
    pub(crate) layers: Vec<BlockSamples>,
    /// See `BlockInfo`.
    pub(crate) base_hash: Hash,
    pub(crate) quality_hashes: Vec<Hash>,
    pub(crate) measured: Measured,
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
    /// Whether the lowest enhancement has a thread of its own.
    pub(crate) paired: bool,
    /// Told of each picture of the film that is not needed any more.
    pub(crate) done: &'a (dyn Fn() + Sync),
}

/// Encodes enhancements of blocks, one after another; what came before has no influence.
pub(crate) struct BlockEncoder {
    layers: LayerEncoder,
}

impl BlockEncoder {
    pub(crate) fn new(recipe: &Recipe) -> Result<Self, EncodeError> {
        let layers = LayerEncoder::new(&recipe.ladder, recipe.preset, &recipe.quantizers)?;
        Ok(Self { layers })
    }

    /// The grey key frame of each enhancement, equal in all blocks.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        self.layers.keys()
    }

    /// Encodes a block; pictures are given up as soon as they are coded.
    pub(crate) fn encode(&mut self, block: BasedBlock, how: &How<'_>) -> Result<CodedBlock, EncodeError> {
        let BasedBlock { mut film, sound, base, decoded } = block;
        let times = times(&film);
        let pictures = std::mem::take(&mut film.pictures);
        let mut base_hash = Hasher::new();
        self.layers.start_block()?;
        let (lower, upper) = self.layers.split(if how.paired { 1 } else { usize::MAX })?;
        let mut under = Part::new(lower, how.measure);
        let pairs = pictures.into_iter().zip(decoded).map(|(shown, decoded)| {
            decoded.hash_into(&mut base_hash);
            (shown.picture, decoded)
        });
        let parts = if how.paired {
            pairs_of_threads(under, Part::new(upper, how.measure), pairs, how.done)?
        } else {
            for (picture, decoded) in pairs {
                under.add(&picture, &decoded)?;
                (how.done)();
            }
            vec![under.coded]
        };
        let mut layers = vec![base_samples(&film, &times, &base.samples, sound)];
        let mut quality_hashes = Vec::new();
        let mut compared: Vec<Vec<(f64, f64)>> = Vec::new();
        for part in parts {
            layers.extend(part.layers.into_iter().map(|data| enhancement_samples(&film, &times, data)));
            quality_hashes.extend(part.hashes.iter().map(Hasher::finish));
            compared.resize_with(part.compared.len(), Vec::new);
            for (all, more) in compared.iter_mut().zip(part.compared) {
                all.extend(more);
            }
        }
        let mut measured = Measured::default();
        for picture in compared {
            measured.add_picture(picture);
        }
        let base_hash = base_hash.finish();
        Ok(CodedBlock { index: film.index, config: base.config, layers, base_hash, quality_hashes, measured })
    }
}

/// The lower part in this thread, the upper one in another, one picture behind.
fn pairs_of_threads(
    mut under: Part<'_>,
    mut over: Part<'_>,
    pairs: impl Iterator<Item = (Picture, Picture)>,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<CodedPart>, EncodeError> {
    let (sender, receiver) = sync_channel::<(Picture, Picture)>(1);
    std::thread::scope(|scope| {
        let above = scope.spawn(move || {
            for (picture, below) in receiver {
                over.add(&picture, &below)?;
                done();
            }
            Ok::<_, EncodeError>(over.coded)
        });
        let lower = || {
            for (picture, decoded) in pairs {
                under.add(&picture, &decoded)?;
                drop(decoded);
                let below = under.group.reconstruction().cloned();
                // Where the upper part has failed it says why.
                if below.is_none_or(|below| sender.send((picture, below)).is_err()) {
                    break;
                }
            }
            Ok::<_, EncodeError>(())
        };
        let below = lower();
        drop(sender);
        let above = above.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        below.and(above).map(|above| vec![under.coded, above])
    })
}

/// Layers of a block that one thread encodes.
struct Part<'a> {
    group: LayerGroup<'a>,
    measure: bool,
    coded: CodedPart,
}

/// What it made.
#[derive(Default)]
struct CodedPart {
    /// The pictures of each layer.
    layers: Vec<Vec<Bytes>>,
    /// The hash of each quality.
    hashes: Vec<Hasher>,
    /// Each picture beside the film's, at each quality.
    compared: Vec<Vec<(f64, f64)>>,
}

impl<'a> Part<'a> {
    fn new(group: LayerGroup<'a>, measure: bool) -> Self {
        Self { group, measure, coded: CodedPart::default() }
    }

    fn add(&mut self, film: &Picture, below: &Picture) -> Result<(), EncodeError> {
        let made = self.group.encode(film, below)?;
        let CodedPart { layers, hashes, compared } = &mut self.coded;
        hashes.resize(made.qualities.len(), Hasher::new());
        for (hasher, picture) in hashes.iter_mut().zip(&made.qualities) {
            picture.hash_into(hasher);
        }
        if self.measure {
            compared.push(compare(film, &made)?);
        }
        layers.resize(made.layers.len(), Vec::new());
        for (samples, data) in layers.iter_mut().zip(made.layers) {
            samples.push(data);
        }
        Ok(())
    }
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
