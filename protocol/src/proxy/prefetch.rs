//! Fetching ahead: which block needs it, and the two queues in which requests of
//! one session wait (Wakamiya et al., 3.3).

use super::cooperation::{Fetch, FetchId, FetchKind};
use std::collections::VecDeque;

/// The nearest of the `ahead` blocks behind `block` of which neither enough is
/// held nor enough is on its way. Only that one is fetched ahead: the next
/// request looks again.
pub(super) fn nearest(block: u32, ahead: u32, blocks: u32, is_provided: impl Fn(u32) -> bool) -> Option<u32> {
    let end = block.saturating_add(ahead).saturating_add(1).min(blocks);
    (block.saturating_add(1)..end).find(|next| !is_provided(*next))
}

/// What one requester waits for at one server: misses first come, first served;
/// prefetches only when no miss waits, in a queue so short that a newer one
/// overwrites the oldest. What is being served is not here, and is not
/// interrupted. Whoever carries fetches out owns one for each session.
#[derive(Clone, Debug)]
pub struct SessionQueue {
    misses: VecDeque<Fetch>,
    prefetches: VecDeque<Fetch>,
    prefetch_size: usize,
    max_misses: usize,
}

impl SessionQueue {
    /// Nothing waits yet. The paper's `prefetch_size` is 1.
    pub const fn new(prefetch_size: usize, max_misses: usize) -> Self {
        Self { misses: VecDeque::new(), prefetches: VecDeque::new(), prefetch_size, max_misses }
    }

    /// A request has come. Returns those which it drives out: prefetches of the
    /// same block at the same or a lower quality if it is a miss, the oldest
    /// prefetch if it is one too many, or itself if there is no room.
    pub fn push(&mut self, fetch: Fetch) -> Vec<Fetch> {
        match fetch.kind {
            FetchKind::Miss if self.misses.len() >= self.max_misses => vec![fetch],
            FetchKind::Miss => {
                let is_same = |other: &Fetch| {
                    other.title == fetch.title && other.block == fetch.block && other.want <= fetch.want
                };
                let (out, stay): (Vec<_>, Vec<_>) = self.prefetches.drain(..).partition(is_same);
                self.prefetches = stay.into();
                self.misses.push_back(fetch);
                out
            }
            FetchKind::Prefetch => {
                self.prefetches.push_back(fetch);
                let extra = self.prefetches.len().saturating_sub(self.prefetch_size);
                self.prefetches.drain(..extra).collect()
            }
        }
    }

    /// What is to be served next.
    pub fn pop(&mut self) -> Option<Fetch> {
        self.misses.pop_front().or_else(|| self.prefetches.pop_front())
    }

    /// A request is of no use any more; itself, if it still waited.
    pub fn cancel(&mut self, fetch: FetchId) -> Option<Fetch> {
        for queue in [&mut self.misses, &mut self.prefetches] {
            if let Some(at) = queue.iter().position(|waiting| waiting.id == fetch) {
                return queue.remove(at);
            }
        }
        None
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.misses.is_empty() && self.prefetches.is_empty()
    }

    /// How many misses and prefetches wait.
    pub fn waiting(&self) -> (usize, usize) {
        (self.misses.len(), self.prefetches.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests state exact values")]
    use super::*;
    use crate::proxy::cooperation::Server;
    use media::{ByteCount, Quality};

    fn fetch(id: u64, block: u32, want: u8, kind: FetchKind) -> Fetch {
        Fetch {
            id: FetchId(id),
            server: Server::Origin,
            title: "film".parse().unwrap(),
            block,
            have: Quality::NONE,
            want: Quality(want),
            bytes: ByteCount(1),
            kind,
        }
    }

    fn ids(fetches: impl IntoIterator<Item = Fetch>) -> Vec<u64> {
        fetches.into_iter().map(|fetch| fetch.id.0).collect()
    }

    #[test]
    fn a_newer_prefetch_overwrites_the_one_that_waits_and_misses_go_first() {
        let mut queue = SessionQueue::new(1, 8);
        assert_eq!(ids(queue.push(fetch(1, 10, 3, FetchKind::Prefetch))), [0; 0]);
        assert_eq!(ids(queue.push(fetch(2, 11, 3, FetchKind::Prefetch))), [1]);
        assert_eq!(ids(queue.push(fetch(3, 5, 3, FetchKind::Miss))), [0; 0]);
        assert_eq!(ids(queue.push(fetch(4, 4, 3, FetchKind::Miss))), [0; 0]);
        assert_eq!(queue.waiting(), (2, 1));
        assert_eq!(ids(std::iter::from_fn(|| queue.pop())), [3, 4, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_miss_for_the_same_block_at_the_same_or_a_higher_quality_cancels_the_prefetch() {
        for (want, out) in [(2, vec![]), (3, vec![1]), (4, vec![1])] {
            let mut queue = SessionQueue::new(1, 8);
            queue.push(fetch(1, 10, 3, FetchKind::Prefetch));
            assert_eq!(ids(queue.push(fetch(2, 10, want, FetchKind::Miss))), out, "{want}");
        }
        let mut queue = SessionQueue::new(1, 8);
        queue.push(fetch(1, 10, 3, FetchKind::Prefetch));
        assert_eq!(ids(queue.push(fetch(2, 11, 9, FetchKind::Miss))), [0; 0], "another block");
    }

    #[test]
    fn the_queues_are_as_long_as_they_are_told_and_give_back_what_is_cancelled() {
        let mut queue = SessionQueue::new(2, 1);
        for id in 1..=3 {
            queue.push(fetch(id, 10, 3, FetchKind::Prefetch));
        }
        assert_eq!(queue.waiting(), (0, 2));
        queue.push(fetch(4, 1, 1, FetchKind::Miss));
        assert_eq!(ids(queue.push(fetch(5, 2, 1, FetchKind::Miss))), [5], "no room");
        assert_eq!(ids(queue.cancel(FetchId(3))), [3]);
        assert_eq!(queue.cancel(FetchId(3)), None);
        assert_eq!(ids(std::iter::from_fn(|| queue.pop())), [4, 2]);
        let mut none = SessionQueue::new(0, 1);
        assert_eq!(ids(none.push(fetch(1, 1, 1, FetchKind::Prefetch))), [1]);
    }

    #[test]
    fn only_the_nearest_block_that_lacks_is_fetched_ahead() {
        let provided = |block: u32| [11, 12, 15].contains(&block);
        assert_eq!(nearest(10, 10, 100, provided), Some(13));
        assert_eq!(nearest(10, 2, 100, provided), None, "beyond the window");
        assert_eq!(nearest(10, 10, 13, provided), None, "beyond the end");
        assert_eq!(nearest(10, 0, 100, provided), None);
        assert_eq!(nearest(u32::MAX, 10, u32::MAX, provided), None);
    }
}
