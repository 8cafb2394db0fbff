//! The inquiry window: which blocks a proxy asks the others about, and when it
//! asks again (Wakamiya et al., 3.1).

use super::talk::{BlockRange, MAX_ASKED_BLOCKS, MAX_RANGES};

/// The blocks that a query asks about: for each client from where it is, and at
/// the head of the title. A query tells a peer all that is wanted, since it
/// clears every other marker; so it holds the ranges of all clients, united.
pub(super) fn asked(positions: impl Iterator<Item = u32>, inquiry: u32, blocks: u32) -> Vec<BlockRange> {
    let mut ranges: Vec<BlockRange> = positions
        .chain([0])
        .map(|first| BlockRange { first, count: inquiry }.cut(blocks))
        .filter(|range| range.count > 0)
        .collect();
    ranges.sort_unstable();
    let mut united: Vec<BlockRange> = Vec::with_capacity(ranges.len());
    let mut left = MAX_ASKED_BLOCKS;
    for range in ranges {
        let known = united.last().map_or(0, |last| last.end());
        let more = range.end().saturating_sub(known.max(range.first)).min(left);
        left -= more;
        let has_room = united.len() < MAX_RANGES;
        match united.last_mut() {
            Some(last) if range.first <= last.end() => last.count = last.count.saturating_add(more),
            _ if has_room && more > 0 => {
                united.push(BlockRange { first: range.first, count: more });
            }
            _ => break,
        }
    }
    united
}

/// Whether a client that asked about its window from `asked_at` on has to be
/// asked for again at `position`: the P-th block from there has reached the end
/// of the window, which is every I - P blocks; or it has gone back.
pub(super) const fn is_due(asked_at: Option<u32>, position: u32, inquiry: u32, ahead: u32) -> bool {
    let Some(asked_at) = asked_at else { return true };
    let step = inquiry.saturating_sub(ahead);
    position < asked_at || position - asked_at >= if step == 0 { 1 } else { step }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, count: u32) -> BlockRange {
        BlockRange { first, count }
    }

    #[test]
    fn a_query_asks_about_the_window_and_the_head() {
        let ask = |positions: &[u32]| asked(positions.iter().copied(), 20, 100);
        assert_eq!(ask(&[0]), [range(0, 20)], "the same at the start");
        assert_eq!(ask(&[7]), [range(0, 27)], "they touch");
        assert_eq!(ask(&[50]), [range(0, 20), range(50, 20)]);
        assert_eq!(ask(&[90]), [range(0, 20), range(90, 10)], "no block behind the end");
        assert_eq!(ask(&[99]), [range(0, 20), range(99, 1)]);
        assert_eq!(ask(&[100]), [range(0, 20)]);
        assert_eq!(asked([3].into_iter(), 20, 5), [range(0, 5)], "a title shorter than the window");
        assert_eq!(asked([0].into_iter(), 20, 0), []);
    }

    #[test]
    fn the_ranges_of_all_clients_are_united() {
        let ask = asked([70, 30, 35, 55].into_iter(), 20, 1000);
        assert_eq!(ask, [range(0, 20), range(30, 60)]);
        let crowd = asked((0..100_000).map(|client| client * 21), 20, u32::MAX);
        assert_eq!((crowd.len(), crowd.last()), (MAX_RANGES, Some(&range(255 * 21, 20))));
        let total: u32 =
            asked((0..100_000).map(|client| client * 20), 20, u32::MAX).iter().map(|r| r.count).sum();
        assert_eq!(total, MAX_ASKED_BLOCKS);
    }

    #[test]
    fn a_query_is_due_at_the_start_every_i_less_p_blocks_and_after_a_step_back() {
        let due: Vec<u32> = (100..140)
            .scan(None, |asked_at, position| {
                let due = is_due(*asked_at, position, 20, 10);
                if due {
                    *asked_at = Some(position);
                }
                Some((position, due))
            })
            .filter_map(|(position, due)| due.then_some(position))
            .collect();
        assert_eq!(due, [100, 110, 120, 130]);
        assert!(is_due(Some(100), 99, 20, 10));
        assert!(!is_due(Some(100), 100, 20, 20), "windows of one size still move on");
        assert!(is_due(Some(100), 101, 20, 20));
    }
}
