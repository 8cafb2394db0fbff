//! What is being watched: the title's times and lengths, and where it ends.

use crate::player::io::{BlockShape, TitleShape};
use media::{BitRate, ByteCount, Layer, Quality, Span};
use std::sync::Arc;

/// A title under way.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    shape: Arc<TitleShape>,
    last: u32,
}

impl Session {
    /// Nothing if there is nothing to play.
    pub(crate) fn new(shape: Arc<TitleShape>, until: Option<Span>) -> Option<Self> {
        let last = u32::try_from(shape.blocks.len().checked_sub(1)?).ok()?;
        if shape.layers == 0 {
            return None;
        }
        let mut session = Self { shape, last };
        if let Some(until) = until {
            session.last = session.block_at(Span::from_nanos(until.as_nanos().saturating_sub(1)));
        }
        Some(session)
    }

    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    pub(crate) fn layers(&self) -> u8 {
        self.shape.layers
    }

    fn block(&self, block: u32) -> Option<&BlockShape> {
        self.shape.blocks.get(usize::try_from(block).ok()?)
    }

    pub(crate) fn start(&self, block: u32) -> Span {
        self.block(block).map_or(Span::ZERO, |b| b.start)
    }

    pub(crate) fn duration(&self, block: u32) -> Span {
        self.block(block).map_or(Span::ZERO, |b| b.duration)
    }

    pub(crate) fn end(&self, block: u32) -> Span {
        self.start(block) + self.duration(block)
    }

    /// Where the programme ends for this viewer.
    pub(crate) fn programme_end(&self) -> Span {
        self.end(self.last)
    }

    /// The block on screen at `position`, at most the last one.
    pub(crate) fn block_at(&self, position: Span) -> u32 {
        let after = self.shape.blocks.partition_point(|block| block.start <= position);
        u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX).min(self.last)
    }

    pub(crate) fn length(&self, block: u32, layer: Layer) -> ByteCount {
        let length = self.block(block).and_then(|b| b.lengths.get(layer.index()));
        length.copied().unwrap_or_default()
    }

    /// The mean rate of `quality` over the ten blocks from `block` on.
    pub(crate) fn rate_of(&self, block: u32, quality: Quality) -> BitRate {
        let mut bytes = ByteCount(0);
        let mut time = Span::ZERO;
        for block in block..=self.last.min(block.saturating_add(9)) {
            time += self.duration(block);
            for layer in Layer::first(quality.layers()) {
                bytes += self.length(block, layer);
            }
        }
        bytes.over(time)
    }

    /// The best quality up to `top` that `rate` carries, at least Base.
    pub(crate) fn carried_by(&self, block: u32, rate: BitRate, top: Quality) -> Quality {
        let fits = |quality: &Quality| self.rate_of(block, *quality) <= rate;
        (1..=top.layers()).rev().map(Quality).find(fits).unwrap_or(Quality::BRONZE)
    }
}
