//! What a title's blocks weigh and how long they last: `a(q, i)` and tau of
//! Wakamiya et al., 3.1, for blocks of any length and layers of any size.

use media::{ByteCount, Manifest, Quality, Span};

/// The sizes and times of all blocks of a title. A block at quality `q` is its
/// layers 1 to `q`, so that sizes are sums. Shared, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTable {
    top: Quality,
    /// The end of each block from the start of the title.
    ends: Vec<Span>,
    /// For each block, the size at each quality, the lowest first.
    sizes: Vec<u64>,
}

impl BlockTable {
    /// A title whose blocks last `durations`, with the size of each layer in
    /// bytes for each block, Base first. Layers that a block lacks weigh
    /// nothing.
    pub fn new<'a>(top: Quality, blocks: impl IntoIterator<Item = (Span, &'a [u64])>) -> Self {
        let (mut ends, mut sizes, mut end) = (Vec::new(), Vec::new(), Span::ZERO);
        for (duration, layers) in blocks {
            end += duration;
            ends.push(end);
            let mut sum = 0_u64;
            for layer in 0..usize::from(top.layers()) {
                sum = sum.saturating_add(layers.get(layer).copied().unwrap_or(0));
                sizes.push(sum);
            }
        }
        Self { top, ends, sizes }
    }

    /// The blocks of a title as its manifest tells them.
    pub fn of(manifest: &Manifest) -> Self {
        let lengths: Vec<(Span, Vec<u64>)> = manifest
            .blocks
            .iter()
            .map(|block| {
                let duration = manifest.at(block.start.saturating_add(block.duration));
                let duration = duration.saturating_sub(manifest.at(block.start));
                (duration, block.chunks.iter().map(|chunk| chunk.length).collect())
            })
            .collect();
        Self::new(manifest.top_quality(), lengths.iter().map(|(span, layers)| (*span, layers.as_slice())))
    }

    /// Blocks of one duration, with layers of one size in bytes each: the
    /// stream of the evaluation of Wakamiya et al.
    pub fn uniform(blocks: u32, duration: Span, layers: &[u64]) -> Self {
        let top = Quality(u8::try_from(layers.len()).unwrap_or(u8::MAX));
        Self::new(top, (0..blocks).map(|_| (duration, layers)))
    }

    /// Number of blocks (L).
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// The best quality there is.
    pub const fn top(&self) -> Quality {
        self.top
    }

    /// `a(q, i)`: what a block weighs at a quality; nothing for no quality or no
    /// such block, and for a quality above the best as for the best.
    pub fn size(&self, block: u32, quality: Quality) -> ByteCount {
        let layers = usize::from(quality.min(self.top).layers());
        let place = layers.checked_sub(1).and_then(|layer| {
            let block = usize::try_from(block).ok()?;
            block.checked_mul(usize::from(self.top.layers()))?.checked_add(layer)
        });
        ByteCount(place.and_then(|place| self.sizes.get(place)).copied().unwrap_or(0))
    }

    /// What lies between two qualities of a block.
    pub fn between(&self, block: u32, from: Quality, to: Quality) -> ByteCount {
        ByteCount(self.size(block, to).0.saturating_sub(self.size(block, from).0))
    }

    /// When a block begins, from the start of the title; the end of the title
    /// for a block behind it.
    pub fn start(&self, block: u32) -> Span {
        let ends = |block: u32| self.ends.get(usize::try_from(block).ok()?).copied();
        match block.checked_sub(1) {
            None => Span::ZERO,
            Some(before) => ends(before).unwrap_or_else(|| self.duration()),
        }
    }

    /// The length of the title.
    pub fn duration(&self) -> Span {
        self.ends.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_at_a_quality_is_the_sum_of_its_layers() {
        let second = Span::from_secs(1);
        let table =
            BlockTable::new(Quality(3), [(second, [5, 7, 9].as_slice()), (Span::from_millis(400), &[1, 2])]);
        let sizes = |block| (0..5).map(|q| table.size(block, Quality(q)).0).collect::<Vec<_>>();
        assert_eq!(sizes(0), [0, 5, 12, 21, 21]);
        assert_eq!(sizes(1), [0, 1, 3, 3, 3]);
        assert_eq!(sizes(2), [0; 5], "there is no such block");
        assert_eq!(table.between(0, Quality(1), Quality(3)), ByteCount(16));
        assert_eq!(table.between(0, Quality(3), Quality(1)), ByteCount(0));
    }

    #[test]
    fn blocks_begin_where_those_before_them_end() {
        let spans = [1001, 400, 960].map(Span::from_millis);
        let table = BlockTable::new(Quality(1), spans.map(|span| (span, [1].as_slice())));
        let starts: Vec<u64> = (0..5).map(|block| table.start(block).as_millis()).collect();
        assert_eq!(starts, [0, 1001, 1401, 2361, 2361]);
        assert_eq!((table.blocks(), table.duration()), (3, Span::from_millis(2361)));
    }
}
