//! A few blocks of a film, encoded as often as the search needs.

use crate::base::{self, BaseFormat};
use crate::blocks::{Cutter, FilmBlock};
use crate::encode::plan::block_ticks;
use crate::error::EncodeError;
use crate::input::Input;
use crate::memory::fits_beside_others;
use crate::options::EncodeOptions;
use crate::report::to_f64;
use crate::source::{Source, Wanted};
use codec::{Ladder, LayerEncoder, Picture, Preset, downscale_to_base, metrics};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most blocks in a sample: they are in memory as long as the search runs.
const BLOCKS: usize = 4;

/// A tier as it came out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tier {
    /// Rate of this tier's layers and the sound.
    pub(super) kbit: f64,
    /// PSNR of luma in dB.
    pub(super) psnr: f64,
}

/// Some blocks, evenly spaced over the film.
pub(super) struct Sample {
    blocks: Vec<FilmBlock>,
    ladder: Ladder,
    base: BaseFormat,
    preset: Preset,
    halves: bool,
    jobs: usize,
    /// Length of the blocks in seconds.
    seconds: f64,
    sound_kbit: f64,
    /// Base of all blocks at the rate factor that was asked for last.
    coded: Option<(u32, Vec<CodedBase>)>,
}

/// Base of one block.
struct CodedBase {
    bytes: u64,
    pictures: Vec<Picture>,
}

/// Bytes of each layer and squared error of each tier of a block.
#[derive(Default)]
struct Sums {
    bytes: Vec<u64>,
    errors: Vec<f64>,
    pictures: u64,
}

impl Sample {
    /// Reads a film to its end and keeps a few of its blocks.
    pub(super) fn read(options: &EncodeOptions, cancel: &AtomicBool) -> Result<Self, EncodeError> {
        if options.input == Input::Pipe {
            return Err(EncodeError::Option(
                "a film from standard input is read once: aims need a file".into(),
            ));
        }
        let EncodeOptions { from, to, keep_going, .. } = *options;
        let mut source = Source::open(Wanted { film: &options.input, from, to, keep_going }, cancel)?;
        let film = source.format().clone();
        let ladder = Ladder::new(film.size.0, film.size.1, &options.factors)?;
        let (size, look) = (ladder.size(0), film.look.clone());
        let effort = base::effort(options.preset);
        let base = BaseFormat { size, rate: film.rate, look, crf: 0, effort };
        let timescale = f64::from(source.timescale());
        let mut cutter = Cutter::new(block_ticks(options, source.timescale()));
        let (mut kept, mut sound, mut end) = (Spaced::default(), 0, 0);
        let mut take = |source: &mut Source, block: FilmBlock| {
            end = block.end;
            let frames = source.sound_until(end, cancel)?;
            sound += frames.iter().map(|frame| length(&frame.data)).sum::<u64>();
            kept.push(block);
            Ok::<(), EncodeError>(())
        };
        while let Some(shown) = source.next_picture(cancel)? {
            if let Some(block) = cutter.push(shown) {
                take(&mut source, block)?;
            }
        }
        if let Some(block) = cutter.finish() {
            take(&mut source, block)?;
        }
        let all = to_f64(end) / timescale;
        let blocks = kept.blocks;
        let ticks: u64 = blocks.iter().map(|block| block.end - block.start).sum();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = options.jobs.unwrap_or(cores).clamp(1, BLOCKS);
        // Two large blocks at once would need more memory than the film's encoding.
        let pictures = blocks.iter().map(|block| length(&block.pictures)).max().unwrap_or(0);
        let jobs = if fits_beside_others(&ladder, pictures) { jobs } else { jobs.div_ceil(2) };
        Ok(Self {
            blocks,
            ladder,
            base,
            preset: options.preset,
            halves: options.halves,
            jobs,
            seconds: (to_f64(ticks) / timescale).max(1e-3),
            sound_kbit: to_f64(sound) * 8.0 / 1_000.0 / all.max(1e-3),
            coded: None,
        })
    }

    /// What the lowest tiers are with these settings: Base's, and one for each
    /// quantizer.
    pub(super) fn tiers(
        &mut self,
        crf: u32,
        quantizers: &[u8],
        cancel: &AtomicBool,
    ) -> Result<Vec<Tier>, EncodeError> {
        if self.coded.as_ref().map(|(crf, _)| *crf) != Some(crf) {
            let format = BaseFormat { crf, ..self.base.clone() };
            let coded = self.each(cancel, |_, block| self.code_base(&format, block))?;
            self.coded = Some((crf, coded));
        }
        let bases = self.coded.as_ref().map(|(_, bases)| bases.as_slice()).unwrap_or_default();
        let coded = self.each(cancel, |index, block| match bases.get(index) {
            Some(base) => self.code_layers(block, base, quantizers),
            None => Err(EncodeError::Empty),
        })?;
        let mut sums = Sums::default();
        for block in &coded {
            sums.add(block);
        }
        let mut kbit = self.sound_kbit;
        let tiers = sums.bytes.iter().zip(&sums.errors).map(|(&bytes, error)| {
            kbit += to_f64(bytes) * 8.0 / 1_000.0 / self.seconds;
            Tier { kbit, psnr: metrics::psnr(error / to_f64(sums.pictures.max(1))) }
        });
        Ok(tiers.collect())
    }

    /// Does something with each block, several at a time; what comes of it is in
    /// the blocks' order.
    fn each<T: Send>(
        &self,
        cancel: &AtomicBool,
        work: impl Fn(usize, &FilmBlock) -> Result<T, EncodeError> + Sync,
    ) -> Result<Vec<T>, EncodeError> {
        let next = AtomicUsize::new(0);
        let run = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(block) = self.blocks.get(index) else { return Ok(done) };
                if cancel.load(Ordering::Relaxed) {
                    return Err(EncodeError::Cancelled);
                }
                done.push((index, work(index, block)?));
            }
        };
        let mut all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs).map(|_| scope.spawn(run)).collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect::<Result<Vec<Vec<(usize, T)>>, EncodeError>>()
        })?
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
        all.sort_by_key(|(index, _)| *index);
        Ok(all.into_iter().map(|(_, done)| done).collect())
    }

    fn code_base(&self, format: &BaseFormat, block: &FilmBlock) -> Result<CodedBase, EncodeError> {
        let small = block.pictures.iter().map(|shown| downscale_to_base(&shown.picture, &self.ladder));
        let small: Vec<Picture> = small.collect::<Result<_, _>>()?;
        let coded = base::encode(format, small)?;
        let units = coded.samples.iter().map(|(index, data)| (*index, data));
        let pictures = base::decode(&coded.config, format.size, units)?;
        Ok(CodedBase { bytes: coded.samples.iter().map(|(_, data)| length(data)).sum(), pictures })
    }

    fn code_layers(
        &self,
        block: &FilmBlock,
        base: &CodedBase,
        quantizers: &[u8],
    ) -> Result<Sums, EncodeError> {
        let mut encoder = LayerEncoder::lowest(&self.ladder, self.preset, quantizers, self.halves)?;
        encoder.start_block_of(block.pictures.iter().map(|shown| &shown.picture))?;
        let mut sums = Sums { bytes: vec![0; quantizers.len()], ..Sums::default() };
        sums.bytes.insert(0, base.bytes);
        for (shown, below) in block.pictures.iter().zip(&base.pictures) {
            let coded = encoder.encode(&shown.picture, below)?;
            let errors = coded.qualities.iter().map(|quality| metrics::mse_y(&shown.picture, quality));
            let layers = std::iter::once(0).chain(coded.layers.iter().map(|data| length(data)));
            let errors = errors.collect::<Result<_, _>>()?;
            sums.add(&Sums { bytes: layers.collect(), errors, pictures: 1 });
        }
        Ok(sums)
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let longest = |a: usize, b: usize| a.max(b);
        self.bytes.resize(longest(self.bytes.len(), other.bytes.len()), 0);
        self.errors.resize(longest(self.errors.len(), other.errors.len()), 0.0);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(sum, more)| *sum += more);
        self.errors.iter_mut().zip(&other.errors).for_each(|(sum, more)| *sum += more);
        self.pictures += other.pictures;
    }
}

fn length<T>(data: &[T]) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}

/// At most [`BLOCKS`] blocks, evenly spaced, of a film whose length is not known.
struct Spaced {
    blocks: Vec<FilmBlock>,
    stride: u32,
}

impl Default for Spaced {
    fn default() -> Self {
        Self { blocks: Vec::new(), stride: 1 }
    }
}

impl Spaced {
    fn push(&mut self, block: FilmBlock) {
        let wanted = |index: u32, stride: u32| index % stride == stride / 2;
        if wanted(block.index, self.stride) {
            self.blocks.push(block);
        }
        while self.blocks.len() > BLOCKS {
            self.stride = self.stride.saturating_mul(3);
            let stride = self.stride;
            self.blocks.retain(|block| wanted(block.index, stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_evenly_spaced_whatever_the_length() {
        let sampled = |blocks: u32| {
            let mut kept = Spaced::default();
            for index in 0..blocks {
                kept.push(FilmBlock { index, start: 0, end: 1, pictures: Vec::new() });
            }
            kept.blocks.iter().map(|block| block.index).collect::<Vec<_>>()
        };
        assert_eq!(sampled(1), [0]);
        assert_eq!(sampled(4), [0, 1, 2, 3]);
        assert_eq!(sampled(5), [1, 4]);
        assert_eq!(sampled(12), [1, 4, 7, 10]);
        assert_eq!(sampled(14), [4, 13]);
        assert_eq!(sampled(100), [13, 40, 67, 94]);
    }
}
