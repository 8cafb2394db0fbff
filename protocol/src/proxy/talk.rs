//! What proxies ask one another: QUERY and REPLY (Wakamiya et al., 3.1).

use media::{Quality, TitleName};
use serde::{Deserialize, Serialize};

/// The most ranges in one query: what is beyond is not asked.
pub const MAX_RANGES: usize = 256;
/// The most blocks that are asked about in one query.
pub const MAX_ASKED_BLOCKS: u32 = 16_384;
/// The most runs in one reply: what is beyond is not told.
pub const MAX_RUNS: usize = 4_096;

/// Neighbouring blocks of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockRange {
    /// Index of the first block.
    pub first: u32,
    /// How many blocks.
    pub count: u32,
}

impl BlockRange {
    /// The blocks from `first` to before `end`; none if that is before it.
    pub const fn new(first: u32, end: u32) -> Self {
        Self { first, count: end.saturating_sub(first) }
    }

    /// The index behind the last block.
    pub const fn end(self) -> u32 {
        self.first.saturating_add(self.count)
    }

    /// Whether the block is one of these.
    pub const fn contains(self, block: u32) -> bool {
        block >= self.first && block < self.end()
    }

    /// The same blocks, without those from `blocks` on.
    #[must_use]
    pub fn cut(self, blocks: u32) -> Self {
        Self::new(self.first.min(blocks), self.end().min(blocks))
    }
}

/// "What do you have of these blocks? I shall want them": the one who is asked
/// marks these blocks, and no others, as wanted by the one who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// The title.
    pub title: TitleName,
    /// Ascending ranges that do not touch, at most [`MAX_RANGES`]; none when
    /// nobody watches any more.
    pub ranges: Vec<BlockRange>,
}

impl Query {
    /// Whether it is within its bounds.
    pub fn is_bounded(&self) -> bool {
        let asked: u64 = self.ranges.iter().map(|range| u64::from(range.count)).sum();
        self.ranges.len() <= MAX_RANGES && asked <= u64::from(MAX_ASKED_BLOCKS)
    }
}

/// Neighbouring blocks that are held at one quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QualityRun {
    /// The blocks.
    pub blocks: BlockRange,
    /// What is held of each of them; nothing is a quality too.
    pub quality: Quality,
}

/// The answer to a [`Query`]: what is held of the blocks that were asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The title.
    pub title: TitleName,
    /// Ascending runs, at most [`MAX_RUNS`], together at most
    /// [`MAX_ASKED_BLOCKS`] blocks.
    pub runs: Vec<QualityRun>,
}

impl Reply {
    /// Whether it is within its bounds.
    pub fn is_bounded(&self) -> bool {
        let told: u64 = self.runs.iter().map(|run| u64::from(run.blocks.count)).sum();
        self.runs.len() <= MAX_RUNS && told <= u64::from(MAX_ASKED_BLOCKS)
    }
}

/// Qualities of neighbouring blocks as runs, at most [`MAX_RUNS`].
pub(super) fn runs(qualities: impl Iterator<Item = (u32, Quality)>) -> Vec<QualityRun> {
    let mut runs: Vec<QualityRun> = Vec::new();
    for (block, quality) in qualities {
        let is_full = runs.len() >= MAX_RUNS;
        match runs.last_mut() {
            Some(run) if run.quality == quality && run.blocks.end() == block => {
                run.blocks.count = run.blocks.count.saturating_add(1);
            }
            _ if is_full => break,
            _ => runs.push(QualityRun { blocks: BlockRange { first: block, count: 1 }, quality }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests state exact values")]
    use super::*;

    #[test]
    fn neighbours_of_one_quality_are_one_run() {
        let told = [(0, 2), (1, 2), (2, 3), (7, 3), (8, 3)];
        let runs = runs(told.into_iter().map(|(block, quality)| (block, Quality(quality))));
        let run = |first, count, quality| QualityRun {
            blocks: BlockRange { first, count },
            quality: Quality(quality),
        };
        assert_eq!(runs, [run(0, 2, 2), run(2, 1, 3), run(7, 2, 3)]);
    }

    #[test]
    fn a_query_that_asks_for_a_billion_blocks_is_out_of_bounds() {
        let ranges = |range| Query { title: "film".parse().unwrap(), ranges: vec![range] };
        assert!(ranges(BlockRange { first: 7, count: MAX_ASKED_BLOCKS }).is_bounded());
        assert!(!ranges(BlockRange { first: 7, count: u32::MAX }).is_bounded());
        assert_eq!(BlockRange { first: u32::MAX, count: u32::MAX }.end(), u32::MAX);
        assert_eq!(BlockRange::new(5, 40).cut(10), BlockRange { first: 5, count: 5 });
        assert_eq!(BlockRange::new(50, 70).cut(10).count, 0);
    }
}
