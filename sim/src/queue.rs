//! Virtual time: what happens next.
//!
//! Two things at the same time happen in the order in which they were planned,
//! so that a run depends on its seed alone.

use media::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is planned, soonest first. The queue owns the clock: `now` is the time
/// of what was taken last and never goes back.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    now: Time,
    planned: u64,
    taken: u64,
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    /// The heap moves its entries about, so that it holds places only.
    places: Vec<Option<T>>,
    vacant: Vec<usize>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            planned: 0,
            taken: 0,
            heap: BinaryHeap::new(),
            places: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Queue<T> {
    /// The time of what was taken last, or the time it was set forward to.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How many things have happened so far.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// How many things are planned.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Plans `what` at a time; a time gone by counts as now.
    pub fn plan(&mut self, at: Time, what: T) {
        let at = at.max(self.now);
        let place = self.vacant.pop().unwrap_or(self.places.len());
        match self.places.get_mut(place) {
            Some(vacant) => *vacant = Some(what),
            None => self.places.push(Some(what)),
        }
        self.heap.push(Reverse((at, self.planned, place)));
        self.planned += 1;
    }

    /// The time of the next thing.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next thing if it happens no later than `limit`.
    pub fn take_until(&mut self, limit: Time) -> Option<T> {
        if self.next_at()? > limit {
            return None;
        }
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.now = at;
        self.taken += 1;
        self.vacant.push(place);
        self.places.get_mut(place)?.take()
    }

    /// Everything that is planned, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// Forgets everything that is planned but what is `wanted`.
    pub fn keep(&mut self, wanted: impl Fn(&T) -> bool) {
        let Self { heap, places, vacant, .. } = self;
        heap.retain(|Reverse((_, _, place))| {
            let Some(what) = places.get_mut(*place) else { return false };
            let keep = what.as_ref().is_some_and(&wanted);
            if !keep {
                *what = None;
                vacant.push(*place);
            }
            keep
        });
    }

    /// Lets time pass in which nothing happens.
    pub fn set_forward(&mut self, to: Time) {
        let to = self.next_at().map_or(to, |next| next.min(to));
        self.now = self.now.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sooner_comes_first_and_equals_keep_their_order() {
        let mut queue = Queue::default();
        for (at, what) in [(3, 'c'), (1, 'a'), (3, 'd'), (2, 'b'), (9, 'z')] {
            queue.plan(Time::from_nanos(at), what);
        }
        let order: String = std::iter::from_fn(|| queue.take_until(Time::from_nanos(5))).collect();
        assert_eq!(order, "abcd");
        assert_eq!((queue.now(), queue.taken(), queue.len()), (Time::from_nanos(3), 4, 1));
    }

    #[test]
    fn what_is_not_kept_never_happens_and_leaves_its_place() {
        let mut queue = Queue::default();
        for (at, what) in [(3, 'c'), (1, 'a'), (2, 'b')] {
            queue.plan(Time::from_nanos(at), what);
        }
        queue.keep(|what| *what != 'b');
        queue.plan(Time::from_nanos(2), 'd');
        let order: String = std::iter::from_fn(|| queue.take_until(Time::from_nanos(5))).collect();
        assert_eq!((order.as_str(), queue.taken(), queue.iter().count()), ("adc", 3, 0));
    }

    #[test]
    fn time_never_goes_back_and_never_jumps_over_what_is_planned() {
        let mut queue = Queue::default();
        queue.set_forward(Time::from_nanos(7));
        queue.plan(Time::from_nanos(2), 'a');
        queue.set_forward(Time::from_nanos(99));
        assert_eq!((queue.now(), queue.next_at()), (Time::from_nanos(7), Some(Time::from_nanos(7))));
        assert_eq!(queue.take_until(Time::from_nanos(7)), Some('a'));
        assert!(queue.is_empty());
    }
}
