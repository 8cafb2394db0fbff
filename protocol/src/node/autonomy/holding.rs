//! What one node stores of what the origins' agents bring, which copy of it, and
//! what becomes of copies that are replaced, withdrawn or lost.
//!
//! A copy of another version than the one that the network knows is of no use to
//! who comes now: the node gets the new one, and until then does not say that it
//! has the layer.

use super::Autonomy;
use super::agent::{LayerOrder, Level, PlacementAgent, PlacementOrder};
use super::io::{AutonomyEvent, AutonomyOutput, Bound, RejectedWhy};
use super::ledger::{Edition, Told};
use super::talk::{AgentMessage, PlacementAnswer, PlacementRefusal};
use crate::peer::PeerId;
use media::{ByteCount, Hash, Layer, TitleName};
use std::collections::{BTreeMap, BTreeSet};

/// What one node stores, and what it was offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    held: BTreeMap<(TitleName, Layer), Held>,
    offers: BTreeMap<(TitleName, Layer), Offered>,
    seen: BTreeSet<(PeerId, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    size: ByteCount,
    version: Hash,
    whole: bool,
    origin: Option<PeerId>,
}

#[derive(Clone, Copy, Debug)]
struct Offered {
    origin: PeerId,
    size: ByteCount,
    version: Hash,
}

impl Store {
    pub(super) fn has(&self, title: &TitleName, layer: Layer) -> bool {
        self.version(title, layer).is_some()
    }

    /// Which version of a layer is here, whole.
    fn version(&self, title: &TitleName, layer: Layer) -> Option<Hash> {
        // The key owns its title; a range over the borrowed name is not possible.
        let whole = self.held.iter().filter(|(_, held)| held.whole);
        let of = |((have, of), _): &(&(TitleName, Layer), &Held)| *of == layer && have == title;
        whole.into_iter().find(of).map(|(_, held)| held.version)
    }

    fn whole(&self) -> impl Iterator<Item = (&TitleName, Layer)> {
        self.held.iter().filter(|(_, held)| held.whole).map(|((title, layer), _)| (title, *layer))
    }

    fn used(&self) -> ByteCount {
        self.held.values().fold(ByteCount(0), |sum, held| sum + held.size)
    }
}

impl Autonomy {
    /// Titles and layers placed here, whole. What an origin has of its own was not
    /// placed.
    pub fn stored(&self) -> impl Iterator<Item = (&TitleName, Layer)> {
        self.kept().filter(|_| self.level != Level::Origin)
    }

    /// Titles and layers that are here, whole, an origin's own too.
    pub fn kept(&self) -> impl Iterator<Item = (&TitleName, Layer)> {
        self.store.whole()
    }

    /// Which version of a layer is here, whole.
    pub fn version(&self, title: &TitleName, layer: Layer) -> Option<Hash> {
        self.store.version(title, layer)
    }

    /// A Push-MA comes by.
    pub(super) fn hear_placement(&mut self, from: PeerId, mut agent: PlacementAgent) {
        let Level::Layer(own) = self.level else {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::WrongLevel });
        };
        if self.survival.neighbour(from).is_none_or(|neighbour| neighbour.level <= self.level) {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotANeighbour });
        }
        if !self.store.seen.insert((agent.origin, agent.serial)) {
            return;
        }
        if self.store.seen.len() > self.config.max_titles {
            self.store.seen.pop_first();
        }
        if !self.is_current(&agent) {
            return;
        }
        if agent.withdraw {
            self.withdraw(&agent.order.title);
        } else if let Some(order) = agent.order.layers.iter().find(|order| order.layer == own).copied()
            && self.consider(&agent, order)
        {
            agent.order.layers =
                agent.order.layers.iter().filter(|order| order.layer != own).copied().collect();
        }
        // What is left for levels further out travels on.
        // Where a level has no node, the next one further out is reached directly.
        let outer = self.survival.alive().map(|(_, n)| n.level).filter(|level| *level < self.level);
        let outward = outer.max();
        if agent.withdraw || agent.order.layers.iter().any(|order| order.layer < own) {
            let next = self.survival.alive().filter(|(_, n)| Some(n.level) == outward);
            let next: Vec<PeerId> = next.map(|(peer, _)| peer).collect();
            for peer in next {
                self.send(peer, AgentMessage::Placement(agent.clone()));
            }
        }
    }

    /// Whether an agent brings the last order about its title, or one for the
    /// same version by another origin. One that does not travels no further, and
    /// its origin hears so.
    fn is_current(&mut self, agent: &PlacementAgent) -> bool {
        let (title, version) = (agent.order.title.clone(), agent.order.version);
        let said = Edition {
            title: title.clone(),
            origin: agent.origin,
            number: agent.edition,
            version: (!agent.withdraw).then_some(version),
        };
        let told = self.note_edition(&said);
        let last = self.ledger.get(&title).cloned();
        let same = last.as_ref().is_some_and(|last| !agent.withdraw && last.version == Some(version));
        if told != Told::Old || same {
            return true;
        }
        if let Some(last) = last {
            self.send(agent.origin, AgentMessage::Editions([last].into()));
        }
        if let Some(order) = agent.order.layers.iter().find(|order| Level::Layer(order.layer) == self.level) {
            let why = PlacementRefusal::Outdated;
            self.answer(agent.origin, &title, order.layer, version, PlacementAnswer::Unwilling(why));
            self.event(AutonomyEvent::NotStoring { title, layer: order.layer, why });
        }
        false
    }

    /// Whether this node takes its layer off the agent.
    fn consider(&mut self, agent: &PlacementAgent, order: LayerOrder) -> bool {
        let (title, layer, version) = (agent.order.title.clone(), order.layer, agent.order.version);
        let key = (title.clone(), layer);
        let held = self.store.held.get_mut(&key).filter(|held| held.version == version);
        if let Some(held) = held {
            held.origin = Some(agent.origin);
            if held.whole {
                self.answer(agent.origin, &title, layer, version, PlacementAnswer::Whole);
            }
            return true;
        }
        // Who has another version has been chosen before.
        let chosen = self.store.held.contains_key(&key) || agent.order.copies == 0;
        let offered = Offered { origin: agent.origin, size: order.size, version };
        match self.would_store(&agent.order, order) {
            Ok(()) if chosen => {
                self.fetch(title, layer, offered);
                true
            }
            Ok(()) => {
                self.store.offers.insert(key, offered);
                self.answer(agent.origin, &title, layer, version, PlacementAnswer::Willing);
                true
            }
            Err(why) => {
                if self.store.held.remove(&key).is_some() {
                    self.output(AutonomyOutput::Drop { title: title.clone(), layer });
                }
                self.answer(agent.origin, &title, layer, version, PlacementAnswer::Unwilling(why));
                self.event(AutonomyEvent::NotStoring { title, layer, why });
                false
            }
        }
    }

    fn would_store(&self, title: &PlacementOrder, order: LayerOrder) -> Result<(), PlacementRefusal> {
        let weight = u32::from(title.popularity).saturating_mul(u32::from(order.importance)) / 100;
        // The new version takes the place of the old one.
        let old = self.store.held.get(&(title.title.clone(), order.layer)).map(|held| held.size);
        let used = ByteCount(self.store.used().0.saturating_sub(old.unwrap_or_default().0));
        let titles = self.store.held.len().max(self.store.offers.len());
        if weight < self.config.popularity_floor {
            Err(PlacementRefusal::NotPopular)
        } else if used + order.size > self.config.storage {
            Err(PlacementRefusal::NoStorage)
        } else if old.is_none() && titles >= self.config.max_titles {
            Err(PlacementRefusal::TooManyTitles)
        } else {
            Ok(())
        }
    }

    fn answer(
        &mut self,
        origin: PeerId,
        title: &TitleName,
        layer: Layer,
        version: Hash,
        answer: PlacementAnswer,
    ) {
        self.send(origin, AgentMessage::Placed { title: title.clone(), layer, answer, version });
    }

    fn fetch(&mut self, title: TitleName, layer: Layer, offered: Offered) {
        let Offered { origin, size, version } = offered;
        let held = Held { size, version, whole: false, origin: Some(origin) };
        if self.store.held.insert((title.clone(), layer), held).is_some() {
            self.event(AutonomyEvent::CopyOutdated { title: title.clone(), layer });
        }
        self.event(AutonomyEvent::Storing { title: title.clone(), layer });
        self.output(AutonomyOutput::Fetch { title, layer, origin, version });
    }

    /// The origin accepts an offer.
    pub(super) fn hear_take(&mut self, from: PeerId, title: TitleName, layer: Layer) {
        match self.store.offers.remove(&(title.clone(), layer)) {
            Some(offered) if offered.origin == from => self.fetch(title, layer, offered),
            Some(_) | None => self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs }),
        }
    }

    /// A layer is here, whole: it is announced now, and served from now on, unless
    /// it is of a version or title that the network has no more.
    pub(super) fn layer_stored(&mut self, title: TitleName, layer: Layer, size: ByteCount, version: Hash) {
        if self.level != Level::Layer(layer) && self.level != Level::Origin {
            return self.event(AutonomyEvent::Rejected { from: self.id, why: RejectedWhy::WrongLevel });
        }
        let key = (title.clone(), layer);
        let before = self.store.held.get(&key).copied();
        if before.is_none() && self.store.held.len() >= self.config.max_titles {
            return self.event(AutonomyEvent::BoundReached { what: Bound::Titles });
        }
        let last = self.ledger.get(&title).filter(|_| self.level != Level::Origin);
        match last.map(|last| (last.version, last.origin)) {
            Some((None, _)) => {
                self.store.held.remove(&key);
                return self.output(AutonomyOutput::Drop { title, layer });
            }
            Some((Some(right), origin)) if right != version => {
                let under_way = before.is_some_and(|held| !held.whole && held.version == right);
                if !under_way {
                    self.fetch(title, layer, Offered { origin, size, version: right });
                }
                return;
            }
            Some(_) | None => {}
        }
        let origin = before.and_then(|held| held.origin);
        self.store.held.insert(key, Held { size, version, whole: true, origin });
        if let Some(origin) = origin {
            self.answer(origin, &title, layer, version, PlacementAnswer::Whole);
        }
    }

    /// A layer that was here, whole, is not there any more, or damaged: its
    /// origin hears so, and places it anew.
    pub(super) fn copy_lost(&mut self, title: TitleName, layer: Layer) {
        let key = (title.clone(), layer);
        let Some(held) = self.store.held.get(&key).copied().filter(|held| held.whole) else { return };
        self.store.held.remove(&key);
        let origin = held.origin.or_else(|| self.ledger.get(&title).map(|last| last.origin));
        if let Some(origin) = origin.filter(|origin| *origin != self.id) {
            self.answer(origin, &title, layer, held.version, PlacementAnswer::Lost);
        }
        self.event(AutonomyEvent::CopyLost { title, layer });
    }

    /// Another version of a title is the right one by now: a copy is replaced.
    pub(super) fn renew(&mut self, title: &TitleName, layer: Layer, version: Hash, origin: PeerId) {
        self.store.offers.retain(|(of, _), offered| of != title || offered.version == version);
        let held = self.store.held.get(&(title.clone(), layer)).copied();
        if let Some(held) = held.filter(|held| held.version != version) {
            self.fetch(title.clone(), layer, Offered { origin, size: held.size, version });
        }
    }

    /// A title is no more.
    pub(super) fn withdraw(&mut self, title: &TitleName) {
        self.store.offers.retain(|(of, _), _| of != title);
        let gone = self.store.held.keys().filter(|(of, _)| of == title).cloned().collect::<Vec<_>>();
        for key in gone {
            self.store.held.remove(&key);
            let (title, layer) = key;
            self.output(AutonomyOutput::Drop { title, layer });
        }
    }
}
