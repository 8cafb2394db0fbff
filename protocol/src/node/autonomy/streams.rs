//! The enhancements served from here. Only the Base node of a user knows more of
//! the user than this.

use super::agent::UserId;
use crate::peer::PeerId;
use media::{Layer, Time};
use std::collections::BTreeMap;

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    base: PeerId,
    epoch: u64,
    /// When it ends unless another Base node adopts it.
    orphaned: Option<Time>,
}

/// All deliveries of enhancements.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    streams: BTreeMap<(UserId, Layer), Stream>,
    /// Counts those that came and went.
    changes: u64,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn contains(&self, user: UserId, layer: Layer) -> bool {
        self.streams.contains_key(&(user, layer))
    }

    pub(super) fn any(&self, user: UserId) -> bool {
        self.streams.range((user, Layer::BASE)..).next().is_some_and(|((of, _), _)| *of == user)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (UserId, Layer, PeerId)> {
        self.streams.iter().map(|((user, layer), stream)| (*user, *layer, stream.base))
    }

    pub(super) fn start(&mut self, user: UserId, layer: Layer, base: PeerId, epoch: u64) {
        self.streams.insert((user, layer), Stream { base, epoch, orphaned: None });
        self.changes = self.changes.wrapping_add(1);
    }

    /// Another Base node, or the same as before, unless it speaks of an epoch that
    /// has passed. Whether there is such a delivery.
    pub(super) fn adopt(&mut self, user: UserId, layer: Layer, base: PeerId, epoch: u64) -> bool {
        let Some(stream) = self.streams.get_mut(&(user, layer)) else { return false };
        if stream.epoch <= epoch {
            (stream.base, stream.epoch, stream.orphaned) = (base, epoch, None);
        }
        true
    }

    /// Ends the deliveries of a user, or `only` that of one layer, on the word of
    /// its Base node, or of one in a later epoch.
    pub(super) fn release(
        &mut self,
        user: UserId,
        only: Option<Layer>,
        from: PeerId,
        epoch: u64,
    ) -> Vec<Layer> {
        let may = |stream: &Stream| stream.base == from || epoch > stream.epoch;
        let of = self.streams.iter().filter(|((of, _), stream)| *of == user && may(stream));
        let layers = of.map(|((_, layer), _)| *layer).filter(|layer| only.is_none_or(|only| *layer == only));
        let layers: Vec<Layer> = layers.collect();
        self.changes = self.changes.wrapping_add(1);
        for layer in &layers {
            self.streams.remove(&(user, *layer));
        }
        layers
    }

    /// The Base node died: somebody has to adopt its deliveries until `until`.
    pub(super) fn orphan(&mut self, base: PeerId, until: Time) {
        for stream in self.streams.values_mut().filter(|stream| stream.base == base) {
            stream.orphaned = Some(until);
        }
    }

    /// The Base node is alive after all.
    pub(super) fn comfort(&mut self, base: PeerId) {
        for stream in self.streams.values_mut().filter(|stream| stream.base == base) {
            stream.orphaned = None;
        }
    }

    /// Deliveries nobody has adopted in time; they are ended.
    pub(super) fn lapse(&mut self, now: Time) -> Vec<(UserId, Layer)> {
        let over =
            self.streams.iter().filter(|(_, stream)| stream.orphaned.is_some_and(|until| until <= now));
        let over: Vec<(UserId, Layer)> = over.map(|(key, _)| *key).collect();
        self.changes = self.changes.wrapping_add(1);
        for key in &over {
            self.streams.remove(key);
        }
        over
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.streams.values().filter_map(|stream| stream.orphaned).min()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Span;

    const USER: UserId = UserId(7);

    fn peer(name: &str) -> PeerId {
        name.parse().unwrap()
    }

    fn one() -> Streams {
        let mut streams = Streams::default();
        streams.start(USER, Layer::ENH1, peer("b1"), 1);
        streams
    }

    #[test]
    fn an_orphan_ends_unless_the_later_epoch_adopts_it() {
        let until = Time::ZERO + Span::from_secs(1);
        let mut streams = one();
        streams.orphan(peer("b1"), until);
        assert_eq!(streams.clone().lapse(until), [(USER, Layer::ENH1)]);
        assert!(streams.adopt(USER, Layer::ENH1, peer("b2"), 2));
        assert_eq!((streams.next(), streams.lapse(until)), (None, vec![]));
        assert!(streams.adopt(USER, Layer::ENH1, peer("b1"), 1));
        assert!(streams.release(USER, None, peer("b1"), 1).is_empty(), "an old epoch adopts nothing");
        assert!(!streams.adopt(USER, Layer::ENH2, peer("b2"), 2), "that layer is not served");
    }

    #[test]
    fn only_the_base_node_or_a_later_epoch_ends_a_delivery() {
        let mut streams = one();
        assert!(streams.release(USER, None, peer("b9"), 1).is_empty());
        assert_eq!(streams.clone().release(USER, None, peer("b9"), 2), [Layer::ENH1]);
        streams.start(USER, Layer::ENH2, peer("b1"), 1);
        assert_eq!(streams.release(USER, Some(Layer::ENH2), peer("b1"), 0), [Layer::ENH2]);
        assert_eq!(streams.release(USER, None, peer("b1"), 0), [Layer::ENH1]);
        assert_eq!(streams.len(), 0);
    }
}
