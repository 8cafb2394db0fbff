//! Who stores what (ADVODS 2.2: Push-MA, "information fading"): the origin's
//! agent carries a title's layers outwards, each level keeps its own, and the
//! rest travels on. Nodes decide themselves whether to store. This is the origin's
//! side; what a node does is in `holding.rs`.
//!
//! A layer lives at one level only, and all storing nodes of a level store the
//! same one: no node ever stores a layer of another level. A node that refuses is
//! passed through, so that those behind it are not lost. The origin counts
//! copies, pushes again what is short, and says so.

use super::Autonomy;
use super::agent::{LayerOrder, Level, PlacementAgent, PlacementOrder};
use super::io::{AutonomyEvent, Bound, RejectedWhy};
use super::ledger::Edition;
use super::talk::{AgentMessage, PlacementAnswer};
use crate::peer::PeerId;
use media::{Hash, Layer, Span, Time, TitleName};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How long an origin waits for more nodes to join before it offers titles again.
const JOIN_WAIT: Span = Span::from_millis(500);

/// The origin's book of titles.
#[derive(Clone, Debug, Default)]
pub(super) struct Pushes {
    titles: BTreeMap<TitleName, Push>,
    serial: u32,
}

#[derive(Clone, Debug)]
struct Push {
    order: PlacementOrder,
    /// The number of the order.
    edition: u64,
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

    /// Origin: the order by which a title is published.
    pub fn order(&self, title: &TitleName) -> Option<&PlacementOrder> {
        self.pushes.titles.get(title).map(|push| &push.order)
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
        let (title, version) = (order.title.clone(), order.version);
        let last = self.ledger.get(&title).filter(|last| last.origin == self.id);
        let last = last.filter(|last| last.version == Some(version)).map(|last| last.number);
        let edition = last.unwrap_or_else(|| self.next_edition(&title));
        let check = Some(now + self.config.placement_check);
        // Copies of another version are none of this one.
        let before = self.pushes.titles.remove(&title).filter(|push| push.order.version == version);
        let holders = before.map_or_else(BTreeMap::new, |push| push.holders);
        let push = Push { order, edition, holders, check, renew: false };
        self.pushes.titles.insert(title.clone(), push);
        let said = Edition { title: title.clone(), origin: self.id, number: edition, version: Some(version) };
        self.note_edition(&said);
        self.push_again(&title);
    }

    /// Origin: nodes know an order of this origin about a title that is above the
    /// one it gives now. It lost its memory, and its clock ran back.
    pub(super) fn publish_above(&mut self, said: &Edition) {
        let Some(push) = self.pushes.titles.get(&said.title) else { return };
        if said.version == Some(push.order.version) {
            return;
        }
        let (order, now) = (push.order.clone(), self.now);
        self.publish(now, order);
    }

    /// Origin: deletes a title on all nodes.
    pub(super) fn unpublish(&mut self, title: &TitleName) {
        if let Some(push) = self.pushes.titles.remove(title) {
            let number = self.next_edition(title);
            self.note_edition(&Edition { title: title.clone(), origin: self.id, number, version: None });
            self.push(push.order, number, true);
        }
    }

    fn push(&mut self, order: PlacementOrder, edition: u64, withdraw: bool) {
        self.pushes.serial = self.pushes.serial.wrapping_add(1);
        let agent = PlacementAgent { origin: self.id, serial: self.pushes.serial, order, withdraw, edition };
        let adjacent: Vec<PeerId> = self.survival.alive().map(|(peer, _)| peer).collect();
        for peer in adjacent {
            self.send(peer, AgentMessage::Placement(agent.clone()));
        }
    }

    /// Origin: a node speaks of a layer.
    pub(super) fn hear_placed(
        &mut self,
        from: PeerId,
        (title, layer, version): (&TitleName, Layer, Hash),
        answer: PlacementAnswer,
    ) {
        let (max, soon) = (self.config.max_nodes, self.now + JOIN_WAIT);
        let Some(push) = self.pushes.titles.get_mut(title) else {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        };
        let Some(order) = push.order.layers.iter().find(|order| order.layer == layer).copied() else {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        };
        if version != push.order.version {
            // It speaks of what was there before, and is about to hear of this one.
            return;
        }
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
            PlacementAnswer::Lost => {
                of.remove(&from);
                push.check = Some(push.check.map_or(soon, |check| check.min(soon)));
                push.renew = true;
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
        let push = self.pushes.titles.get(title).map(|push| (push.order.clone(), push.edition));
        if let Some((order, edition)) = push {
            self.push(order, edition, false);
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
