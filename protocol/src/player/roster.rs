//! What the network says of sources: who serves a layer, who stands by, whom to
//! keep connected, and who is no longer needed.

use crate::player::failover::{Link, Source, Sources};
use crate::player::io::SourceId;
use media::{Layer, Time};

impl Sources {
    /// A layer is served by this one alone, or by nobody.
    pub(super) fn set_order(&mut self, layer: Layer, nodes: Vec<SourceId>) {
        if let Some(order) = self.order.get_mut(layer.index()) {
            *order = nodes;
        }
        if let Some(serving) = self.serving.get_mut(layer.index()) {
            *serving = None;
        }
    }

    /// Who serves a layer, or would first be asked for it.
    pub(super) fn first(&self, layer: Layer) -> Option<SourceId> {
        self.serving(layer).or_else(|| self.order.get(layer.index())?.first().copied())
    }

    /// Everybody who may be asked for a layer.
    pub(super) fn order_of(&self, layer: Layer) -> Vec<SourceId> {
        self.order.get(layer.index()).cloned().unwrap_or_default()
    }

    /// How many layers there are.
    pub(super) fn layers(&self) -> u8 {
        u8::try_from(self.order.len()).unwrap_or(u8::MAX)
    }

    /// Whether a source serves or may serve this layer.
    pub(super) fn offers(&self, layer: Layer, id: SourceId) -> bool {
        self.order.get(layer.index()).is_some_and(|order| order.contains(&id))
    }

    /// Puts a backup behind the first source of Base; it leaves that place when
    /// another one is named.
    pub(super) fn put_behind(&mut self, id: SourceId) {
        if let Some(base) = self.order.first_mut()
            && !base.contains(&id)
        {
            base.insert(base.len().min(1), id);
        }
    }

    /// Takes a source out of a layer's order.
    pub(super) fn take_out(&mut self, layer: Layer, id: SourceId) {
        if let Some(order) = self.order.get_mut(layer.index()) {
            order.retain(|other| *other != id);
        }
        if let Some(serving) = self.serving.get_mut(layer.index()).filter(|serving| **serving == Some(id)) {
            *serving = None;
        }
    }

    /// Keeps of each layer only the source that the network named first.
    pub(super) fn only_the_first(&mut self) {
        for order in &mut self.order {
            order.truncate(1);
        }
    }

    /// Whether a source is in use or kept for the day it will be.
    pub(super) fn is_needed(&self, id: SourceId) -> bool {
        self.keep.contains(&id) || self.order.iter().any(|order| order.contains(&id))
    }

    /// Forgets a source. Inputs about it are those of a stranger from now on. That
    /// it has another version is remembered: it may be named again.
    pub(super) fn forget(&mut self, id: SourceId) {
        if self.known.get(&id).is_some_and(|source| source.link != Link::Useless) {
            self.known.remove(&id);
        }
        for layer in Layer::first(self.layers()) {
            self.take_out(layer, id);
        }
    }

    /// A source has another version of the title.
    pub(super) fn useless(&mut self, id: SourceId) {
        if let Some(source) = self.known.get_mut(&id) {
            source.link = Link::Useless;
        }
    }

    /// Service was found at a source, in the version that is watched.
    pub(super) fn useful(&mut self, id: SourceId) {
        if let Some(source) = self.known.get_mut(&id).filter(|source| source.link == Link::Useless) {
            source.link = Link::Down;
        }
    }

    /// Connected, heard, and not about to stop.
    pub(super) fn is_usable(&self, id: SourceId) -> bool {
        self.known.get(&id).is_some_and(Source::usable)
    }

    /// Known, and found silent, lost or about to stop.
    pub(super) fn is_gone(&self, id: SourceId) -> bool {
        self.known.get(&id).is_some_and(|source| !source.hopeful())
    }

    /// Whether no piece of film came from it since then.
    pub(super) fn withholds_since(&self, id: SourceId, since: Time) -> bool {
        self.known.get(&id).is_none_or(|source| source.delivered <= since)
    }

    /// Whether anything can be said to it.
    pub(super) fn is_up(&self, id: SourceId) -> bool {
        self.known.get(&id).is_some_and(|source| source.link == Link::Up)
    }

    /// A source decides by itself what the line carries.
    pub(super) fn filters(&mut self, now: Time, id: SourceId) {
        self.add(now, id);
        if let Some(source) = self.known.get_mut(&id) {
            source.filters = true;
        }
    }

    /// Whether whoever serves Base decides what the line carries.
    pub(super) fn is_filtered(&self) -> bool {
        let first = self.first(Layer::BASE).and_then(|id| self.known.get(&id));
        first.is_some_and(|source| source.filters)
    }

    /// Asks a source whether it is there, out of turn; nothing if it cannot be.
    pub(super) fn probe_now(&mut self, now: Time, id: SourceId) -> Option<u32> {
        self.known.get_mut(&id).filter(|source| source.link == Link::Up).map(|source| source.probe(now))
    }

    /// A source said that it does not serve this viewer, or not yet. Tells
    /// whether this is news.
    pub(super) fn stands_by(&mut self, id: SourceId, layer: Layer, again: Time) -> bool {
        // Who does serve is not passed over for it.
        if let Some(serving) = self.serving.get_mut(layer.index()).filter(|serving| **serving == Some(id)) {
            *serving = None;
        }
        let Some(source) = self.known.get_mut(&id) else { return false };
        source.failed = true;
        source.stands_by.replace(again).is_none()
    }

    /// A source serves this viewer: it said so, or delivered.
    pub(super) fn serves(&mut self, id: SourceId) {
        if let Some(source) = self.known.get_mut(&id) {
            source.stands_by = None;
        }
    }

    /// Whether a source last said that it does not serve this viewer.
    pub(super) fn is_standing_by(&self, id: SourceId) -> bool {
        self.known.get(&id).is_some_and(|source| source.stands_by.is_some())
    }

    /// Whether somebody serves Base, or is hoped to.
    pub(super) fn has_base(&self) -> bool {
        let serves = |id: &SourceId| self.known.get(id).is_some_and(|s| s.hopeful() && s.stands_by.is_none());
        self.order.first().is_some_and(|base| base.iter().any(serves))
    }

    /// When somebody who stood by may be asked again.
    pub(super) fn asked_again_at(&self) -> Option<Time> {
        let waits = self.known.values().filter(|source| source.usable());
        waits.filter_map(|source| source.stands_by).filter(|when| *when > self.now).min()
    }
}
