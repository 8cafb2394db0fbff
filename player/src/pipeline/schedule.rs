//! Which block a picture belongs to, told from its stream time.
//!
//! Decoders carry nothing but times. The feed notes each block here before it
//! pushes the first byte of it; the combiner and the watch at the sink look the
//! blocks up again by the time stamps of decoded pictures.

use media::{Quality, Span};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most blocks between the feed and the screen that are remembered. One
/// and a half are in the sources, the rest is for very short blocks.
const MAX_SLOTS: usize = 64;

/// One block on its way to the screen. Stream times are nanoseconds: those of
/// the title in normal play, counted from 0 and compressed in trick play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Stream time of the block's first picture.
    pub(crate) start: u64,
    /// Stream time at which the next block starts.
    pub(crate) end: u64,
    /// Pictures before this stream time are decoded, not shown.
    pub(crate) show_from: u64,
    /// Index of the block in the title.
    pub(crate) block: u32,
    /// Number of pictures that are to be shown of it.
    pub(crate) pictures: u32,
    /// Whether only the block's key picture is shown (trick play).
    pub(crate) key_only: bool,
    /// The quality of which only the first half of the topmost layer is there; none if
    /// all of it is.
    pub(crate) half: Option<Quality>,
    /// Title time of the block's first picture.
    pub(crate) title_start: Span,
}

impl Slot {
    /// The title time of the picture with this stream time.
    pub(crate) fn title_time(&self, stream: u64) -> Span {
        if self.key_only {
            self.title_start
        } else {
            self.title_start + Span::from_nanos(stream.saturating_sub(self.start))
        }
    }
}

/// The blocks between the feed and the screen, in the order they were fed.
#[derive(Debug, Default)]
pub(crate) struct Schedule(Mutex<VecDeque<Slot>>);

impl Schedule {
    fn slots(&self) -> MutexGuard<'_, VecDeque<Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a block that is about to be fed; its times follow the last one's.
    pub(crate) fn push(&self, slot: Slot) {
        let mut slots = self.slots();
        if slots.len() >= MAX_SLOTS {
            slots.pop_front();
        }
        slots.push_back(slot);
    }

    /// The block that covers a stream time.
    pub(crate) fn find(&self, stream: u64) -> Option<Slot> {
        self.slots().iter().rev().find(|slot| (slot.start..slot.end).contains(&stream)).copied()
    }

    /// Forgets everything: a seek.
    pub(crate) fn clear(&self) {
        self.slots().clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn slot(block: u32, start: u64, end: u64) -> Slot {
        let title_start = Span::from_nanos(start + 7);
        Slot { start, end, show_from: 0, block, pictures: 1, key_only: false, half: None, title_start }
    }

    #[test]
    fn a_picture_is_found_in_the_block_that_covers_its_time() {
        let schedule = Schedule::default();
        schedule.push(slot(4, 100, 200));
        schedule.push(slot(5, 200, 300));
        assert_eq!(schedule.find(199).unwrap().block, 4);
        assert_eq!(schedule.find(200).unwrap().block, 5);
        assert_eq!(schedule.find(300), None);
        assert_eq!(schedule.find(250).unwrap().title_time(250), Span::from_nanos(257));
        schedule.clear();
        assert_eq!(schedule.find(200), None);
    }

    #[test]
    fn a_key_picture_has_the_time_of_its_block_however_fast_it_is_shown() {
        let key = Slot { key_only: true, title_start: Span::from_secs(9), ..slot(9, 0, 50) };
        assert_eq!(key.title_time(40), Span::from_secs(9));
    }

    #[test]
    fn old_blocks_are_forgotten_when_there_are_too_many() {
        let schedule = Schedule::default();
        (0..100).for_each(|n| schedule.push(slot(n, u64::from(n) * 10, u64::from(n) * 10 + 10)));
        assert_eq!(schedule.find(5), None);
        assert_eq!(schedule.find(36 * 10).unwrap().block, 36);
    }
}
