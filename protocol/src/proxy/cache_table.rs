//! The cache table of one title: at which quality each block is held, and who
//! has said to want it (Wakamiya et al., 3.1: q(i) and M(i)).

use super::block_table::BlockTable;
use super::talk::BlockRange;
use media::Quality;

/// A peer proxy by its place in the remote table.
pub(super) type PeerIndex = usize;

/// Qualities and markers of a title's blocks.
#[derive(Clone, Debug)]
pub(super) struct CacheTable {
    qualities: Vec<Quality>,
    /// One bit for each block that is held, so that the last one is found soon.
    held: Vec<u64>,
    bytes: u64,
    /// What each peer has asked about last: all its markers.
    markers: Vec<(PeerIndex, Vec<BlockRange>)>,
}

fn bit(block: u32) -> Option<(usize, u64)> {
    Some((usize::try_from(block / 64).ok()?, 1 << (block % 64)))
}

impl CacheTable {
    pub(super) fn new(blocks: u32) -> Self {
        let count = usize::try_from(blocks).unwrap_or(0);
        let words = count.div_ceil(64);
        Self { qualities: vec![Quality::NONE; count], held: vec![0; words], bytes: 0, markers: Vec::new() }
    }

    /// q(i): what is held of a block.
    pub(super) fn quality(&self, block: u32) -> Quality {
        usize::try_from(block).ok().and_then(|block| self.qualities.get(block)).copied().unwrap_or_default()
    }

    /// What all blocks weigh.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many blocks are held, at any quality.
    pub(super) fn held(&self) -> u32 {
        self.held.iter().map(|word| word.count_ones()).sum()
    }

    /// Holds a block at this quality from now on; nothing for no such block.
    pub(super) fn set(&mut self, table: &BlockTable, block: u32, quality: Quality) {
        let Some((word, bit)) = bit(block) else { return };
        let place = usize::try_from(block).ok().and_then(|block| self.qualities.get_mut(block));
        let (Some(place), Some(word)) = (place, self.held.get_mut(word)) else { return };
        let before = std::mem::replace(place, quality);
        if quality == Quality::NONE {
            *word &= !bit;
        } else {
            *word |= bit;
        }
        let bytes = self.bytes.saturating_add(table.size(block, quality).0);
        self.bytes = bytes.saturating_sub(table.size(block, before).0);
    }

    /// The last block before `end` that is held.
    pub(super) fn last_held_before(&self, end: u32) -> Option<u32> {
        let last = end.checked_sub(1)?;
        let (word, _) = bit(last)?;
        let mut index = word.min(self.held.len().checked_sub(1)?);
        let mut mask = if index == word { u64::MAX >> (63 - last % 64) } else { u64::MAX };
        loop {
            let bits = self.held.get(index)? & mask;
            if bits != 0 {
                let base = u32::try_from(index).ok()?.checked_mul(64)?;
                return base.checked_add(bits.ilog2());
            }
            index = index.checked_sub(1)?;
            mask = u64::MAX;
        }
    }

    /// A peer has asked about these blocks: it is added to their markers and
    /// removed from all others.
    pub(super) fn mark(&mut self, peer: PeerIndex, ranges: Vec<BlockRange>) {
        self.unmark(peer);
        if !ranges.is_empty() {
            self.markers.push((peer, ranges));
        }
    }

    /// A peer is removed from all markers.
    pub(super) fn unmark(&mut self, peer: PeerIndex) {
        self.markers.retain(|(other, _)| *other != peer);
    }

    /// M(i): who has marked a block.
    pub(super) fn marked_by(&self, block: u32) -> impl Iterator<Item = PeerIndex> {
        let has = move |ranges: &[BlockRange]| {
            let behind = ranges.partition_point(|range| range.first <= block);
            behind.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|range| range.contains(block))
        };
        self.markers.iter().filter(move |(_, ranges)| has(ranges)).map(|(peer, _)| *peer)
    }

    /// The first block of a range that somebody has marked and that holds this one.
    pub(super) fn marked_from(&self, block: u32) -> Option<u32> {
        let range = |ranges: &[BlockRange]| {
            let behind = ranges.partition_point(|range| range.first <= block);
            let range = behind.checked_sub(1).and_then(|at| ranges.get(at)).copied();
            range.filter(|range| range.contains(block)).map(|range| range.first)
        };
        self.markers.iter().filter_map(|(_, ranges)| range(ranges)).min()
    }

    /// Whether M(i) is not empty.
    pub(super) fn is_marked(&self, block: u32) -> bool {
        self.marked_by(block).next().is_some()
    }

    /// Who has marked anything.
    pub(super) fn markers(&self) -> impl Iterator<Item = (PeerIndex, &[BlockRange])> {
        self.markers.iter().map(|(peer, ranges)| (*peer, ranges.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Span;

    fn range(first: u32, count: u32) -> BlockRange {
        BlockRange { first, count }
    }

    #[test]
    fn a_query_sets_the_markers_of_its_blocks_and_clears_all_others_of_that_peer() {
        let mut table = CacheTable::new(100);
        table.mark(1, vec![range(0, 5), range(40, 10)]);
        table.mark(2, vec![range(42, 1)]);
        table.mark(1, vec![range(0, 2), range(45, 10)]);
        let marked: Vec<u32> = (0..100).filter(|block| table.is_marked(*block)).collect();
        assert_eq!(marked, [0, 1, 42, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54]);
        table.unmark(1);
        let marked: Vec<u32> = (0..100).filter(|block| table.is_marked(*block)).collect();
        assert_eq!(marked, [42]);
        table.mark(2, Vec::new());
        assert_eq!(table.markers().count(), 0);
    }

    #[test]
    fn the_weight_is_that_of_what_is_held_and_the_last_block_is_found() {
        let blocks = BlockTable::uniform(200, Span::from_secs(1), &[3, 4]);
        let mut table = CacheTable::new(200);
        for (block, quality) in [(5, 1), (64, 2), (130, 2), (64, 1), (130, 0), (900, 2)] {
            table.set(&blocks, block, Quality(quality));
        }
        assert_eq!((table.bytes(), table.held()), (6, 2));
        let last = |end| table.last_held_before(end);
        assert_eq!(
            [last(u32::MAX), last(200), last(65), last(64), last(6), last(5), last(0)],
            [Some(64), Some(64), Some(64), Some(5), Some(5), None, None]
        );
    }
}
