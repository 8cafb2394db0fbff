//! Where service can be sought when nobody serves any more: one door after the
//! other, in rounds with a pause between them.

use media::{Span, Time};
use std::collections::VecDeque;

/// The most doors remembered.
const MOST_DOORS: usize = 32;

/// How long what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the loss to the first search: the backup's time.
    pub first: Span,
    /// For the answer of one door.
    pub door: Span,
    /// Between two rounds.
    pub pause: Span,
}

/// The doors, and how far the search has come. `S` names a node.
#[derive(Clone, Debug)]
pub struct Doors<S> {
    known: Vec<S>,
    /// Since when nobody serves.
    lost_since: Option<Time>,
    /// The door at which service is being sought, and since when.
    seeking: Option<(S, Time)>,
    /// Doors not tried yet in this round.
    round: VecDeque<S>,
    /// When the next round may begin.
    next_round: Time,
}

impl<S> Default for Doors<S> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            lost_since: None,
            seeking: None,
            round: VecDeque::new(),
            next_round: Time::ZERO,
        }
    }
}

impl<S: Copy + PartialEq> Doors<S> {
    /// Remembers doors, before those that were known.
    pub fn know(&mut self, doors: Vec<S>) {
        // The last ones told are those of the node that knows best.
        let mut all = doors;
        all.append(&mut self.known);
        for door in all {
            if !self.known.contains(&door) && self.known.len() < MOST_DOORS {
                self.known.push(door);
            }
        }
    }

    /// All of them, those told last first.
    pub fn known(&self) -> &[S] {
        &self.known
    }

    /// Whether an answer is awaited from this door.
    pub fn is_asked(&self, door: S) -> bool {
        self.seeking.is_some_and(|(asked, _)| asked == door)
    }

    /// Somebody serves.
    pub fn served(&mut self) {
        self.lost_since = None;
    }

    /// Nobody serves: where to seek now, if it is time. `doors` orders a new round.
    pub fn next(
        &mut self,
        now: Time,
        patience: &Patience,
        doors: impl FnOnce(&[S]) -> VecDeque<S>,
    ) -> Option<S> {
        let since = *self.lost_since.get_or_insert(now);
        if self.seeking.is_some_and(|(_, asked)| now < asked + patience.door) {
            return None;
        }
        self.seeking = None;
        if now < self.seek_at(since, patience) {
            return None;
        }
        if self.round.is_empty() {
            self.round = doors(&self.known);
        }
        let door = self.round.pop_front()?;
        if self.round.is_empty() {
            self.next_round = now + patience.pause;
        }
        self.seeking = Some((door, now));
        Some(door)
    }

    fn seek_at(&self, since: Time, patience: &Patience) -> Time {
        let first = since + patience.first;
        if self.round.is_empty() { first.max(self.next_round) } else { first }
    }

    /// This door found nothing. Whether it was the last of its round.
    pub fn not_found(&mut self, now: Time, door: S, patience: &Patience) -> bool {
        if !self.is_asked(door) {
            return false;
        }
        self.seeking = None;
        let last = self.round.is_empty();
        if last {
            self.next_round = now + patience.pause;
        }
        last
    }

    /// Service was found: the search is over.
    pub fn found(&mut self, now: Time, patience: &Patience) {
        self.seeking = None;
        self.round.clear();
        self.next_round = now + patience.pause;
    }

    /// When `next` has something to do, while nobody serves.
    pub fn poll_timeout(&self, patience: &Patience) -> Option<Time> {
        let since = self.lost_since?;
        Some(self.seeking.map_or_else(|| self.seek_at(since, patience), |(_, asked)| asked + patience.door))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience =
        Patience { first: Span::from_millis(900), door: Span::from_secs(3), pause: Span::from_millis(500) };

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn doors_are_tried_in_turn_and_rounds_pause() {
        let mut doors = Doors::<u8>::default();
        doors.know(vec![2, 3]);
        doors.know(vec![1, 2]);
        assert_eq!(doors.known(), [1, 2, 3]);
        let next = |doors: &mut Doors<u8>, now| {
            doors.next(at(now), &PATIENCE, |known| known.iter().copied().take(2).collect())
        };
        assert_eq!(next(&mut doors, 0), None, "the backup has its time");
        assert_eq!(doors.poll_timeout(&PATIENCE), Some(at(900)));
        assert_eq!(next(&mut doors, 900), Some(1));
        assert_eq!(next(&mut doors, 1_000), None);
        assert!(!doors.not_found(at(1_000), 1, &PATIENCE));
        assert_eq!(next(&mut doors, 1_000), Some(2));
        assert!(doors.not_found(at(1_100), 2, &PATIENCE), "that was the last");
        assert_eq!(next(&mut doors, 1_100), None);
        assert_eq!(doors.poll_timeout(&PATIENCE), Some(at(1_600)));
        assert_eq!(next(&mut doors, 1_600), Some(1));
        // Who says nothing is passed over.
        assert_eq!(next(&mut doors, 4_600), Some(2));
        doors.found(at(4_700), &PATIENCE);
        doors.served();
        assert_eq!(doors.poll_timeout(&PATIENCE), None);
    }
}
