//! Who stores what (ADVODS 2.2: Push-MA, "information fading"): the origin's
//! agent carries a title's layers outwards, each level keeps its own, and the
//! rest travels on. Nodes decide themselves whether to store.
//!
//! A layer lives at one level only, and all storing nodes of a level store the
//! same one: no node ever stores a layer of another level. A node that refuses is
//! passed through, so that those behind it are not lost. The origin counts
//! copies, pushes again what is short, and says so.

use super::Autonomy;
use super::agent::{LayerOrder, Level, PlacementAgent, PlacementOrder};
use super::io::{AutonomyEvent, AutonomyOutput, Bound, RejectedWhy};
use super::talk::{AgentMessage, PlacementAnswer, PlacementRefusal};
use crate::peer::PeerId;
use media::{ByteCount, Layer, Span, Time, TitleName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How long an origin waits for more nodes to join before it offers titles again.
const JOIN_WAIT: Span = Span::from_millis(500);

/// What one node stores, and what it was offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    held: BTreeMap<(TitleName, Layer), Held>,
    offers: BTreeMap<(TitleName, Layer), (PeerId, ByteCount)>,
    seen: BTreeSet<(PeerId, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    size: ByteCount,
    whole: bool,
    origin: Option<PeerId>,
}

impl Store {
    pub(super) fn has(&self, title: &TitleName, layer: Layer) -> bool {
        // The key owns its title; a range over the borrowed name is not possible.
        self.held.iter().any(|((have, of), held)| *of == layer && held.whole && have == title)
    }

    pub(super) fn whole(&self) -> impl Iterator<Item = (&TitleName, Layer)> {
        self.held.iter().filter(|(_, held)| held.whole).map(|((title, layer), _)| (title, *layer))
    }

    fn used(&self) -> ByteCount {
        self.held.values().fold(ByteCount(0), |sum, held| sum + held.size)
    }
}

/// The origin's book of titles.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes {
    titles: BTreeMap<TitleName, Push>,
    serial: u32,
}

#[derive(Clone, Debug)]
struct Push {
    order: PlacementOrder,
    /// Who has a layer, or is getting it (`false`).
    holders: BTreeMap<Layer, BTreeMap<PeerId, bool>>,
    check: Option<Time>,
    /// Whether it is pushed at the next look whether or not it is short.
    renew: bool,
}

impl Push {
    fn wanted(&self) -> usize {
        usize::from(self.order.copies.max(1))
    }

    /// Copies of a layer: whole ones, and all with those on their way.
    fn copies(&self, layer: Layer) -> (usize, usize) {
        let holders = self.holders.get(&layer);
        holders.map_or((0, 0), |of| (of.values().filter(|whole| **whole).count(), of.len()))
    }
}

impl Pushes {
    pub(super) fn counting_from(serial: u32) -> Self {
        Self { serial, ..Self::default() }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.titles.values().filter_map(|push| push.check).min()
    }
}

impl Autonomy {
    /// Origin: the titles published, with the copies wanted and, for each layer,
    /// the whole copies and all with those on their way.
    pub fn published(&self) -> impl Iterator<Item = (&TitleName, u16, Vec<(Layer, usize, usize)>)> {
        self.pushes.titles.iter().map(|(title, push)| {
            let line = |order: &LayerOrder| {
                let (whole, all) = push.copies(order.layer);
                (order.layer, whole, all)
            };
            (title, push.order.copies, push.order.layers.iter().map(line).collect())
        })
    }

    /// Titles and layers placed here, whole. What an origin has of its own was not
    /// placed.
    pub fn stored(&self) -> impl Iterator<Item = (&TitleName, Layer)> {
        self.store.whole().filter(|_| self.level != Level::Origin)
    }

    /// Origin: spreads a title, or spreads it anew.
    pub(super) fn publish(&mut self, now: Time, mut order: PlacementOrder) {
        if self.level != Level::Origin {
            return self.event(AutonomyEvent::Rejected { from: self.id, why: RejectedWhy::WrongLevel });
        }
        let known = self.pushes.titles.contains_key(&order.title);
        if !known && self.pushes.titles.len() >= self.config.max_titles {
            return self.event(AutonomyEvent::BoundReached { what: Bound::Titles });
        }
        let mut layers: Vec<LayerOrder> = order.layers.to_vec();
        layers.sort_by_key(|order| Reverse(order.layer));
        layers.truncate(media::layer::MAX_LAYERS);
        order.layers = layers.into();
        let check = Some(now + self.config.placement_check);
        let before = self.pushes.titles.remove(&order.title);
        let holders = before.map_or_else(BTreeMap::new, |push| push.holders);
        let push = Push { order: order.clone(), holders, check, renew: false };
        self.pushes.titles.insert(order.title.clone(), push);
        self.push(order, false);
    }

    /// Origin: deletes a title on all nodes.
    pub(super) fn unpublish(&mut self, title: &TitleName) {
        if let Some(push) = self.pushes.titles.remove(title) {
            self.push(push.order, true);
        }
    }

    fn push(&mut self, order: PlacementOrder, withdraw: bool) {
        self.pushes.serial = self.pushes.serial.wrapping_add(1);
        let agent = PlacementAgent { origin: self.id, serial: self.pushes.serial, order, withdraw };
        let adjacent: Vec<PeerId> = self.survival.alive().map(|(peer, _)| peer).collect();
        for peer in adjacent {
            self.send(peer, AgentMessage::Placement(agent.clone()));
        }
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

    /// Whether this node takes its layer off the agent.
    fn consider(&mut self, agent: &PlacementAgent, order: LayerOrder) -> bool {
        let (title, layer) = (agent.order.title.clone(), order.layer);
        let key = (title.clone(), layer);
        if let Some(held) = self.store.held.get_mut(&key) {
            held.origin = Some(agent.origin);
            if held.whole {
                self.answer(agent.origin, title, layer, PlacementAnswer::Whole);
            }
            return true;
        }
        match self.would_store(&agent.order, order) {
            Ok(()) if agent.order.copies == 0 => {
                self.fetch(title, layer, order.size, agent.origin);
                true
            }
            Ok(()) => {
                self.store.offers.insert(key, (agent.origin, order.size));
                self.answer(agent.origin, title, layer, PlacementAnswer::Willing);
                true
            }
            Err(why) => {
                self.answer(agent.origin, title.clone(), layer, PlacementAnswer::Unwilling(why));
                self.event(AutonomyEvent::NotStoring { title, layer, why });
                false
            }
        }
    }

    fn would_store(&self, title: &PlacementOrder, order: LayerOrder) -> Result<(), PlacementRefusal> {
        let weight = u32::from(title.popularity).saturating_mul(u32::from(order.importance)) / 100;
        if weight < self.config.popularity_floor {
            Err(PlacementRefusal::NotPopular)
        } else if self.store.used() + order.size > self.config.storage {
            Err(PlacementRefusal::NoStorage)
        } else if self.store.held.len().max(self.store.offers.len()) >= self.config.max_titles {
            Err(PlacementRefusal::TooManyTitles)
        } else {
            Ok(())
        }
    }

    fn answer(&mut self, origin: PeerId, title: TitleName, layer: Layer, answer: PlacementAnswer) {
        self.send(origin, AgentMessage::Placed { title, layer, answer });
    }

    fn fetch(&mut self, title: TitleName, layer: Layer, size: ByteCount, origin: PeerId) {
        let held = Held { size, whole: false, origin: Some(origin) };
        self.store.held.insert((title.clone(), layer), held);
        self.event(AutonomyEvent::Storing { title: title.clone(), layer });
        self.output(AutonomyOutput::Fetch { title, layer, origin });
    }

    /// The origin accepts an offer.
    pub(super) fn hear_take(&mut self, from: PeerId, title: TitleName, layer: Layer) {
        match self.store.offers.remove(&(title.clone(), layer)) {
            Some((origin, size)) if origin == from => self.fetch(title, layer, size, origin),
            Some(_) | None => self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs }),
        }
    }

    /// A layer is here, whole: it is announced now, and served from now on.
    pub(super) fn layer_stored(&mut self, title: TitleName, layer: Layer, size: ByteCount) {
        if self.level != Level::Layer(layer) && self.level != Level::Origin {
            return self.event(AutonomyEvent::Rejected { from: self.id, why: RejectedWhy::WrongLevel });
        }
        let key = (title.clone(), layer);
        if !self.store.held.contains_key(&key) && self.store.held.len() >= self.config.max_titles {
            return self.event(AutonomyEvent::BoundReached { what: Bound::Titles });
        }
        let origin = self.store.held.get(&key).and_then(|held| held.origin);
        self.store.held.insert(key, Held { size, whole: true, origin });
        if let Some(origin) = origin {
            self.answer(origin, title, layer, PlacementAnswer::Whole);
        }
    }

    fn withdraw(&mut self, title: &TitleName) {
        self.store.offers.retain(|(of, _), _| of != title);
        let gone = self.store.held.keys().filter(|(of, _)| of == title).cloned().collect::<Vec<_>>();
        for key in gone {
            self.store.held.remove(&key);
            let (title, layer) = key;
            self.output(AutonomyOutput::Drop { title, layer });
        }
    }

    /// Origin: a node speaks of a layer.
    pub(super) fn hear_placed(
        &mut self,
        from: PeerId,
        title: &TitleName,
        layer: Layer,
        answer: PlacementAnswer,
    ) {
        let max = self.config.max_nodes;
        let Some(push) = self.pushes.titles.get_mut(title) else {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        };
        let Some(order) = push.order.layers.iter().find(|order| order.layer == layer).copied() else {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        };
        let (_, all) = push.copies(layer);
        let wanted = push.wanted();
        let of = push.holders.entry(layer).or_default();
        match answer {
            PlacementAnswer::Willing if all < wanted && !of.contains_key(&from) => {
                of.insert(from, false);
                let size = order.size;
                self.send(from, AgentMessage::Take { title: title.clone(), layer, size });
            }
            PlacementAnswer::Whole if of.len() < max => {
                of.insert(from, true);
                self.whole_title(title);
            }
            PlacementAnswer::Willing | PlacementAnswer::Whole | PlacementAnswer::Unwilling(_) => {}
        }
    }

    /// Origin: the looks that are due.
    pub(super) fn pushes_due(&mut self, now: Time) {
        let due = self.pushes.titles.iter().filter(|(_, push)| push.check.is_some_and(|at| at <= now));
        let due: Vec<TitleName> = due.map(|(title, _)| title.clone()).collect();
        for title in due {
            let mut renew = false;
            if let Some(push) = self.pushes.titles.get_mut(&title) {
                push.check = Some(now + self.config.placement_check);
                renew = std::mem::take(&mut push.renew);
            }
            let short = !self.whole_title(&title) && self.short_title(&title);
            if short || renew {
                self.push_again(&title);
            }
        }
    }

    /// When every layer has its whole copies, nothing is looked at until a node
    /// dies or joins.
    fn whole_title(&mut self, title: &TitleName) -> bool {
        let Some(push) = self.pushes.titles.get_mut(title) else { return false };
        let wanted = push.wanted();
        let whole = push.order.layers.iter().all(|order| push.copies(order.layer).0 >= wanted);
        if whole && !push.renew && push.check.take().is_some() {
            self.event(AutonomyEvent::PlacementWhole { title: title.clone() });
        }
        whole
    }

    /// Whether a title is short of copies, those on their way included; says so.
    fn short_title(&mut self, title: &TitleName) -> bool {
        let Some(push) = self.pushes.titles.get(title) else { return false };
        let (wanted, layers) = (push.wanted(), push.order.layers.iter());
        let counts = layers.map(|order| (order.layer, push.copies(order.layer)));
        let short: Vec<(Layer, usize)> =
            counts.filter(|(_, (_, all))| *all < wanted).map(|(layer, (whole, _))| (layer, whole)).collect();
        let wanted = push.order.copies.max(1);
        for (layer, copies) in &short {
            let (layer, copies) = (*layer, *copies);
            self.event(AutonomyEvent::PlacementShort { title: title.clone(), layer, copies, wanted });
        }
        !short.is_empty()
    }

    fn push_again(&mut self, title: &TitleName) {
        if let Some(order) = self.pushes.titles.get(title).map(|push| push.order.clone()) {
            self.push(order, false);
        }
    }

    /// Origin: a node that stores died; what it held is pushed again.
    pub(super) fn holder_died(&mut self, now: Time, node: PeerId) {
        let mut lost = Vec::new();
        for (title, push) in &mut self.pushes.titles {
            let before: usize = push.holders.values().map(BTreeMap::len).sum();
            for of in push.holders.values_mut() {
                of.remove(&node);
            }
            if push.holders.values().map(BTreeMap::len).sum::<usize>() < before {
                push.check = Some(now);
                lost.push(title.clone());
            }
        }
        if !lost.is_empty() {
            self.pushes_due(now);
        }
    }

    /// Origin: a node has joined further out; every title is offered again in a
    /// moment, once for all that join together.
    pub(super) fn somebody_joined(&mut self, now: Time) {
        let soon = now + JOIN_WAIT;
        for push in self.pushes.titles.values_mut() {
            push.check = Some(push.check.map_or(soon, |check| check.min(soon)));
            push.renew = true;
        }
    }

    /// Origin: a node joined or returned; every title is offered again.
    pub(super) fn holder_returned(&mut self, now: Time) {
        let titles: Vec<TitleName> = self.pushes.titles.keys().cloned().collect();
        for title in titles {
            if let Some(push) = self.pushes.titles.get_mut(&title) {
                push.check = Some(now + self.config.placement_check);
            }
            self.push_again(&title);
        }
    }
}
