//! Who of a connection's streams writes next.
//!
//! QUIC's scheduler orders what was written. What could not be written yet,
//! because the receiver allows no more bytes to be under way, it wakes in an order
//! of its own: the last one who asked would go first. So only who has the highest
//! priority writes, and among equals who came first.

use crate::priority::Priority;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Highest priority first, then in the order of arrival.
type Place = (Reverse<Priority>, u64);

/// Everybody who has something to write on one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(watch::Sender<Queue>);

#[derive(Debug, Default)]
struct Queue {
    places: BTreeSet<Place>,
    next: u64,
}

impl Turns {
    /// Takes a place; it is given up when dropped.
    pub(crate) fn wait(&self, priority: Priority) -> Turn {
        let mut place = (Reverse(priority), 0);
        self.0.send_if_modified(|queue| {
            place.1 = queue.next;
            queue.next += 1;
            queue.places.insert(place);
            queue.places.first() == Some(&place)
        });
        Turn { place, turns: self.0.clone(), queue: self.0.subscribe() }
    }
}

/// A place among those who write.
#[derive(Debug)]
pub(crate) struct Turn {
    place: Place,
    turns: watch::Sender<Queue>,
    queue: watch::Receiver<Queue>,
}

impl Turn {
    /// Waits until nobody is ahead.
    pub(crate) async fn begins(&mut self) {
        let place = self.place;
        // The sender lives as long as we do.
        let _ = self.queue.wait_for(|queue| queue.places.first() == Some(&place)).await;
    }

    /// Waits until somebody is ahead.
    pub(crate) async fn ends(&mut self) {
        let place = self.place;
        let _ = self.queue.wait_for(|queue| queue.places.first() != Some(&place)).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let place = self.place;
        self.turns.send_if_modified(|queue| {
            let first = queue.places.first() == Some(&place);
            queue.places.remove(&place);
            first
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Layer;
    use std::time::Duration;

    fn is_ready(future: impl Future) -> bool {
        let mut future = std::pin::pin!(future);
        future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn the_highest_priority_has_the_turn_and_among_equals_the_first() {
        let turns = Turns::default();
        let at = |layer, ms| turns.wait(Priority::chunk(layer, Duration::from_millis(ms)));
        let mut enhancement = at(Layer::ENH1, 0);
        assert!(is_ready(enhancement.begins()) && !is_ready(enhancement.ends()));
        let mut later = at(Layer::BASE, 900);
        let [mut first, mut second] = [at(Layer::BASE, 500), at(Layer::BASE, 500)];
        assert!(is_ready(enhancement.ends()) && is_ready(later.ends()), "Base came, and an earlier one");
        assert!(is_ready(first.begins()) && !is_ready(second.begins()));
        drop(first);
        assert!(is_ready(second.begins()) && !is_ready(later.begins()));
        drop(second);
        assert!(is_ready(later.begins()) && !is_ready(enhancement.begins()));
        drop(later);
        assert!(is_ready(enhancement.begins()));
    }
}
