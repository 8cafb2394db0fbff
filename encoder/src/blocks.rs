//! Cutting the film into blocks: whole pictures, nearest to the target.

use crate::source::Shown;

/// The most pictures in a block; a film with more of them in a block's time
/// gets shorter blocks. libvpx makes a key frame by itself after 128.
pub(crate) const MAX_PICTURES: u64 = 120;

/// One block of the film.
#[derive(Debug)]
pub(crate) struct FilmBlock {
    /// Its index.
    pub(crate) index: u32,
    /// When its first picture is displayed, in ticks.
    pub(crate) start: u64,
    /// When it ends, in ticks.
    pub(crate) end: u64,
    /// Its pictures in display order.
    pub(crate) pictures: Vec<Shown>,
}

/// Collects pictures until a block is complete.
#[derive(Debug)]
pub(crate) struct Cutter {
    target: u64,
    index: u32,
    held: Vec<Shown>,
}

impl Cutter {
    /// Blocks of about `target` ticks.
    pub(crate) fn new(target: u64) -> Self {
        Self { target: target.max(1), index: 0, held: Vec::new() }
    }

    /// Takes the next picture; returns the block that it completes. A block
    /// ends at the picture whose time lies nearest to the target: this one, or
    /// the one before, which then starts the next block.
    pub(crate) fn push(&mut self, shown: Shown) -> Option<FilmBlock> {
        let Some(start) = self.held.first().map(|first| first.pts) else {
            self.held.push(shown);
            return None;
        };
        let goal = start + self.target;
        let end = shown.pts;
        let room = u64::try_from(self.held.len()).is_ok_and(|held| held < MAX_PICTURES);
        if end < goal && room {
            self.held.push(shown);
            return None;
        }
        let earlier = self
            .held
            .last()
            .filter(|last| self.held.len() > 1 && end > goal && goal.saturating_sub(last.pts) < end - goal);
        let (end, early) = match earlier.map(|last| last.pts) {
            Some(earlier) => (earlier, self.held.pop()),
            None => (end, None),
        };
        let mut next = early.into_iter().collect::<Vec<_>>();
        next.push(shown);
        Some(self.close(end, next))
    }

    /// How many blocks there are if the film ends here.
    pub(crate) fn blocks(&self) -> u32 {
        self.index + u32::from(!self.held.is_empty())
    }

    /// What is left at the end of the film.
    pub(crate) fn finish(mut self) -> Option<FilmBlock> {
        let end = self.held.last().map(|last| last.pts.saturating_add(last.duration.max(1)))?;
        Some(self.close(end, Vec::new()))
    }

    fn close(&mut self, end: u64, next: Vec<Shown>) -> FilmBlock {
        let pictures = std::mem::replace(&mut self.held, next);
        let start = pictures.first().map_or(end, |first| first.pts);
        let index = self.index;
        self.index += 1;
        FilmBlock { index, start, end, pictures }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use codec::Picture;

    fn cut(target: u64, times: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, usize)> {
        let mut cutter = Cutter::new(target);
        let shown = |pts| Shown { pts, duration: 10, picture: Picture::new(2, 2).unwrap() };
        let mut blocks: Vec<_> = times.into_iter().filter_map(|pts| cutter.push(shown(pts))).collect();
        blocks.extend(cutter.finish());
        assert!(blocks.iter().zip(0..).all(|(block, index)| block.index == index));
        blocks.iter().map(|block| (block.start, block.end, block.pictures.len())).collect()
    }

    #[test]
    fn a_block_is_the_number_of_pictures_nearest_to_its_target() {
        // 29.97 and 12.5 pictures a second: 30 of 1001/30000 s, 12 or 13 of 80 ms.
        let ntsc = cut(30_000, (0..70).map(|n| n * 1_001));
        assert_eq!(ntsc, [(0, 30_030, 30), (30_030, 60_060, 30), (60_060, 60_060 + 9 * 1_001 + 10, 10)]);
        let slow = cut(1_000, (0..30).map(|n| n * 80));
        assert_eq!(slow.iter().map(|block| block.2).collect::<Vec<_>>(), [13, 13, 4]);
    }

    #[test]
    fn the_earlier_picture_is_taken_where_it_is_nearer() {
        let blocks = cut(100, [0, 50, 95, 150, 190]);
        assert_eq!(blocks, [(0, 95, 2), (95, 200, 3)]);
    }

    #[test]
    fn a_still_of_ten_seconds_is_one_block() {
        assert_eq!(cut(100, [0, 1_000, 1_010]), [(0, 1_000, 1), (1_000, 1_020, 2)]);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(cut(100, []).is_empty());
    }
}
