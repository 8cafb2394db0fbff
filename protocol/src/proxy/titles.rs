//! What is known about titles, and who waits to know.

use super::config::Upstream;
use crate::guests::LinkId;
use crate::message::{ChunkRequest, Open, Opened, Part, Refusal};
use crate::quality::Step;
use media::{BitRate, ByteCount, ChunkId, Hash, Layer, Manifest, Quality, Span, Time, TitleName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rate is a mean over so many blocks.
const BLOCKS_OF_A_RATE: usize = 10;

/// What a proxy knows about a title: names and lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of the manifest in bytes.
    pub manifest_length: u64,
    /// BLAKE3 of the manifest.
    pub manifest_hash: Hash,
    /// Number of blocks.
    pub blocks: u32,
    /// For each layer, Base first, who has it, in the order to be tried.
    pub sources: Vec<Vec<Upstream>>,
    /// What each block carries.
    pub paces: Arc<[Pace]>,
}

/// One block in figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long it plays.
    pub duration: Span,
    /// Bytes of each layer, Base first.
    pub lengths: Vec<ByteCount>,
    /// Bytes of the first half of each enhancement, lowest first; empty if the title
    /// does not come in halves.
    pub halves: Vec<ByteCount>,
}

impl Shape {
    /// The shape of a title as the node `from` told it. Whatever it says, it
    /// is asked itself after all others; the backup is a source of Base.
    pub fn new(opened: &Opened, manifest: &Manifest, from: Upstream) -> Self {
        let sources = |layer: Layer| {
            let told = opened.sources.iter().filter(|sources| sources.layer == layer);
            let mut all: Vec<Upstream> =
                told.flat_map(|told| told.nodes.iter().copied()).map(Into::into).collect();
            let backup = opened.backup.filter(|_| layer == Layer::BASE).map(Upstream::from);
            for more in backup.into_iter().chain([from]) {
                if !all.iter().any(|known| known.address == more.address) {
                    all.push(more);
                }
            }
            all
        };
        Self {
            manifest_length: opened.manifest_length,
            manifest_hash: opened.manifest_hash,
            blocks: manifest.block_count(),
            sources: Layer::first(manifest.top_quality().layers()).map(sources).collect(),
            paces: Pace::of(manifest),
        }
    }

    /// The best quality the title has.
    pub fn top_quality(&self) -> Quality {
        Quality(u8::try_from(self.sources.len()).unwrap_or(u8::MAX))
    }

    /// The mean rate of a quality over the ten blocks from this one on.
    pub(super) fn rate_of(&self, block: u32, quality: Quality) -> BitRate {
        let first = usize::try_from(block).unwrap_or(usize::MAX);
        let mut bytes = ByteCount(0);
        let mut time = Span::ZERO;
        for pace in self.paces.iter().skip(first).take(BLOCKS_OF_A_RATE) {
            time += pace.duration;
            for length in pace.lengths.iter().take(usize::from(quality.layers())) {
                bytes += *length;
            }
        }
        bytes.over(time)
    }

    /// The mean rate of a step over the same blocks.
    pub(super) fn rate_of_step(&self, block: u32, step: Step) -> BitRate {
        let whole = self.rate_of(block, step.quality);
        let (Part::First, Some(top)) = (step.part, step.quality.top()) else { return whole };
        let first = usize::try_from(block).unwrap_or(usize::MAX);
        let mut bytes = ByteCount(0);
        let mut time = Span::ZERO;
        for pace in self.paces.iter().skip(first).take(BLOCKS_OF_A_RATE) {
            time += pace.duration;
            bytes += pace.half(top).unwrap_or_default();
        }
        let below = self.rate_of(block, Quality(top.0));
        BitRate(below.0.saturating_add(bytes.over(time).0))
    }

    /// Whether the title's enhancements come in halves.
    pub(super) fn is_in_halves(&self) -> bool {
        self.paces.first().is_some_and(|pace| !pace.halves.is_empty())
    }

    /// The length of the first half of a chunk; none if it does not come in halves.
    pub(super) fn half_of(&self, chunk: &ChunkId) -> Option<u64> {
        let pace = self.paces.get(usize::try_from(chunk.block).ok()?)?;
        pace.half(chunk.layer).map(|bytes| bytes.0)
    }

    /// Whether the title has what is asked for.
    pub(super) fn check(&self, chunk: &ChunkRequest) -> Result<(), Refusal> {
        let ChunkRequest { id, part, .. } = chunk;
        let there = id.block < self.blocks && self.top_quality().includes(id.layer);
        if there && (*part == Part::Whole || self.half_of(id).is_some()) {
            Ok(())
        } else {
            Err(Refusal::NoSuchChunk)
        }
    }
}

impl Pace {
    /// The blocks of a title, as its manifest tells them.
    pub fn of(manifest: &Manifest) -> Arc<[Self]> {
        let pace = |block: &media::BlockInfo| {
            let (start, end) =
                (manifest.at(block.start), manifest.at(block.start.saturating_add(block.duration)));
            let lengths = block.chunks.iter().map(|chunk| ByteCount(chunk.length)).collect();
            let halves = block.halves.iter().map(|half| ByteCount(half.length)).collect();
            Self { duration: end.saturating_sub(start), lengths, halves }
        };
        manifest.blocks.iter().map(pace).collect()
    }

    fn half(&self, layer: Layer) -> Option<ByteCount> {
        self.halves.get(layer.index().checked_sub(1)?).copied()
    }
}

/// All titles that are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Titles {
    known: BTreeMap<TitleName, Known>,
    waiting: BTreeMap<TitleName, Vec<(LinkId, Open)>>,
}

#[derive(Clone, Debug)]
struct Known {
    shape: Shape,
    learnt: Time,
}

impl Titles {
    pub(super) fn shape(&self, title: &TitleName) -> Option<&Shape> {
        self.known.get(title).map(|known| &known.shape)
    }

    pub(super) fn is_fresh(&self, now: Time, title: &TitleName, fresh: Span) -> bool {
        self.known.get(title).is_some_and(|known| now - known.learnt < fresh)
    }

    /// Somebody waits to open this title; whether it is the first to do so.
    ///
    /// # Errors
    /// Too many wait already.
    pub(super) fn wait_for(&mut self, link: LinkId, open: Open, max: usize) -> Result<bool, Box<Open>> {
        if self.waiting.values().map(Vec::len).sum::<usize>() >= max {
            return Err(Box::new(open));
        }
        let waiting = self.waiting.entry(open.title.clone()).or_default();
        waiting.push((link, open));
        Ok(waiting.len() == 1)
    }

    pub(super) fn waiting_for(&mut self, title: &TitleName) -> Vec<(LinkId, Open)> {
        self.waiting.remove(title).unwrap_or_default()
    }

    /// A link is gone; the question it asked is still under way for others.
    pub(super) fn forget_asker(&mut self, link: LinkId) {
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(asker, _)| *asker != link);
        }
    }

    pub(super) fn forget(&mut self, title: &TitleName) {
        self.known.remove(title);
    }

    /// Keeps what was learnt; the title that had to make room, which nobody
    /// watches.
    pub(super) fn learn(
        &mut self,
        now: Time,
        title: &TitleName,
        shape: Shape,
        max: usize,
        is_watched: impl Fn(&TitleName) -> bool,
    ) -> Result<Option<TitleName>, Refusal> {
        let mut forgotten = None;
        if !self.known.contains_key(title) && self.known.len() >= max {
            let idle = self.known.iter().filter(|(title, _)| !is_watched(title));
            let oldest = idle.min_by_key(|(_, known)| known.learnt).map(|(title, _)| title.clone());
            let oldest = oldest.ok_or(Refusal::Full)?;
            self.known.remove(&oldest);
            forgotten = Some(oldest);
        }
        self.known.insert(title.clone(), Known { shape, learnt: now });
        Ok(forgotten)
    }
}
