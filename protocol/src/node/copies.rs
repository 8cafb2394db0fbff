//! What lies on disk against what should: copies on their way here, copies that
//! were lost, and titles that were replaced while somebody watches them.

use super::autonomy::{AutonomyInput, Level};
use super::{Event, Held, Node, Output};
use crate::peer::PeerId;
use media::{Hash, Layer, Time, TitleName};

/// A layer that is to be copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetching {
    origin: PeerId,
    version: Hash,
}

impl Node {
    /// A layer is wanted here.
    pub(super) fn fetch(&mut self, title: TitleName, layer: Layer, origin: PeerId, version: Hash) {
        let key = (title, layer);
        self.leaving.remove(&key);
        self.fetching.insert(key.clone(), Fetching { origin, version });
        self.event(Event::Copying { title: key.0.clone(), layer, from: origin });
        if self.book.address(origin).is_none() {
            // It is said as soon as somebody tells where the origin is.
            self.event(Event::Unsaid { to: origin });
        }
        self.say_fetch(&key);
    }

    fn say_fetch(&mut self, key: &(TitleName, Layer)) {
        let Some(fetching) = self.fetching.get(key).copied() else { return };
        if let Some(from) = self.book.address(fetching.origin) {
            let ((title, layer), version) = (key.clone(), fetching.version);
            self.outputs.push_back(Output::Fetch { title, layer, from, version });
        }
    }

    /// It became known where a node is, or it is elsewhere now: what is copied
    /// from it is copied from there.
    pub(super) fn fetch_from_there(&mut self, origin: PeerId) {
        let of = self.fetching.iter().filter(|(_, fetching)| fetching.origin == origin);
        let of: Vec<(TitleName, Layer)> = of.map(|(key, _)| key.clone()).collect();
        for key in &of {
            self.say_fetch(key);
        }
    }

    /// A layer is deleted by order, or not copied to its end.
    pub(super) fn drop_copy(&mut self, title: TitleName, layer: Layer) {
        let key = (title.clone(), layer);
        self.fetching.remove(&key);
        self.leaving.insert(key);
        self.outputs.push_back(Output::Remove { title, layer });
    }

    /// A copy turned out to be damaged when it was read. A node gets another one;
    /// an origin has no other.
    pub(super) fn damaged(&mut self, now: Time, title: TitleName, layer: Layer, version: Hash) {
        if self.autonomy.version(&title, layer) != Some(version) {
            return;
        }
        if self.config.level != Level::Origin {
            self.drop_copy(title.clone(), layer);
        }
        self.network(now, AutonomyInput::Lost { title, layer });
    }

    /// The library was looked through.
    pub(super) fn shelve(&mut self, now: Time, held: Vec<Held>) {
        let (stored, held) = held.into_iter().partition(|held: &Held| held.archived);
        self.store_shows(stored);
        self.shelf.replace(held, self.config.max_titles);
        let shelf = &self.shelf;
        self.leaving.retain(|(title, layer)| shelf.placed(title).is_some_and(|held| held.has(*layer)));
        self.fetching.retain(|(title, layer), fetching| !shelf.has_version(title, *layer, fetching.version));
        self.describe(now);
        self.drop_old_editions(now);
        self.lose_what_is_gone(now);
        for (title, layer) in self.fresh() {
            let Some(held) = self.shelf.placed(&title) else { continue };
            let (size, version) = (held.size(layer), held.manifest_hash);
            self.network(now, AutonomyInput::Stored { title, layer, size, version });
        }
        let shelf = &self.shelf;
        let before = self.withdrawn.len();
        self.withdrawn.retain(|title| shelf.placed(title).is_some());
        if self.withdrawn.len() < before {
            self.keep_withdrawn();
        }
        self.publish_replaced(now);
        self.publish_all(now);
        self.choose_neighbours(now);
    }

    /// What was there, and is not any more: somebody deleted it by hand, or the
    /// disk did.
    fn lose_what_is_gone(&mut self, now: Time) {
        let shelf = &self.shelf;
        let gone = |title: &TitleName, layer: Layer| !shelf.placed(title).is_some_and(|held| held.has(layer));
        let kept = self.autonomy.kept().filter(|(title, layer)| gone(title, *layer));
        let lost: Vec<(TitleName, Layer)> = kept.map(|(title, layer)| (title.clone(), layer)).collect();
        for (title, layer) in lost {
            self.network(now, AutonomyInput::Lost { title, layer });
        }
    }

    /// Layers of this node's level that are on disk and that the network's part
    /// does not know in this version.
    fn fresh(&self) -> Vec<(TitleName, Layer)> {
        let own = |layer: Layer| match self.config.level {
            Level::Origin => true,
            Level::Layer(of) => of == layer,
        };
        let mut fresh = Vec::new();
        for held in self.shelf.all() {
            let title = &held.summary.title;
            let offered = held.layers.iter().filter(|layer| own(**layer) && self.config.offers(**layer));
            let new = offered.filter(|layer| {
                self.autonomy.version(title, **layer) != Some(held.manifest_hash)
                    && !self.leaving.contains(&(title.clone(), **layer))
            });
            fresh.extend(new.map(|layer| (title.clone(), *layer)));
        }
        fresh
    }

    /// Versions that were replaced and that nobody watches any more.
    pub(super) fn release_the_old(&mut self) {
        let guests = &self.guests;
        let released = self.shelf.release(|title, version| guests.watch_version(title, version));
        for (title, version) in released {
            self.outputs.push_back(Output::Release { title, version });
        }
    }
}
