//! What operators ask of a node: titles to be spread or withdrawn, and how the
//! node stands.

use super::autonomy::{AutonomyInput, EntryKind, LayerOrder, Level, PlacementOrder};
use super::{Drain, Event, Node, Output};
use crate::guests::LinkId;
use crate::message::{Hello, Message, OPERATOR, Refusal, Role};
use crate::status::{
    Admission, ClassLine, MAX_LINES, NeighbourLine, NodeStatus, PlacementLine, RefusedLine, Slots,
    StoredLine, TitleLine, Traffic,
};
use media::{BitRate, ByteCount, Layer, Time, TitleClass, TitleName};

/// How much every layer matters to a node that weighs it.
const IMPORTANCE: u16 = 100;
/// How much a title is wanted that nobody said anything about.
const POPULARITY: u16 = 1000;

impl Node {
    /// An operator wants a title spread.
    pub(super) fn publish(
        &mut self,
        now: Time,
        link: LinkId,
        hello: Hello,
        request: u32,
        (title, copies, popularity): (&TitleName, u16, u16),
    ) {
        let outcome = self.may_order(hello).and_then(|()| self.order(title, copies, popularity));
        match outcome {
            Ok(order) => {
                self.send(link, Message::Done { request });
                if self.withdrawn.remove(title) {
                    self.keep_withdrawn();
                }
                self.event(Event::Published { title: title.clone(), copies });
                self.network(now, AutonomyInput::Publish(order));
            }
            Err(why) => self.send(link, Message::Refused { request, why }),
        }
    }

    /// A certificate proves a name, and any member could claim any part: only
    /// the operator's own name gives orders.
    fn may_order(&self, hello: Hello) -> Result<(), Refusal> {
        let operator = hello.role == Role::Operator && hello.peer.as_str() == OPERATOR;
        match self.config.level {
            _ if self.drain != Drain::No => Err(Refusal::Draining),
            _ if !operator => Err(Refusal::NotAllowed),
            Level::Origin => Ok(()),
            Level::Layer(_) => Err(Refusal::NotOrigin),
        }
    }

    fn order(&self, title: &TitleName, copies: u16, popularity: u16) -> Result<PlacementOrder, Refusal> {
        let held = self.shelf.placed(title).ok_or(Refusal::NoSuchTitle)?;
        let layer = |layer: Layer| LayerOrder { layer, size: held.size(layer), importance: IMPORTANCE };
        let layers = held.layers.iter().rev().copied().map(layer).collect();
        Ok(PlacementOrder { title: title.clone(), layers, popularity, copies, version: held.manifest_hash })
    }

    /// An origin that publishes by itself does so with every title it finds.
    pub(super) fn publish_all(&mut self, now: Time) {
        let Some(copies) = self.config.publish.filter(|_| self.config.level == Level::Origin) else { return };
        let known: Vec<&TitleName> = self.autonomy.published().map(|(title, _, _)| title).collect();
        let titles = self.shelf.all().map(|held| &held.summary.title);
        let fresh = titles.filter(|title| !known.contains(title) && !self.withdrawn.contains(*title));
        for title in fresh.cloned().collect::<Vec<TitleName>>() {
            if let Ok(order) = self.order(&title, copies, POPULARITY) {
                self.event(Event::Published { title, copies });
                self.network(now, AutonomyInput::Publish(order));
            }
        }
    }

    /// A title that is published and was replaced in the library is spread anew.
    pub(super) fn publish_replaced(&mut self, now: Time) {
        let published = self.autonomy.published().filter_map(|(title, _, _)| self.autonomy.order(title));
        let known =
            published.map(|order| (order.title.clone(), order.copies, order.popularity, order.version));
        for (title, copies, popularity, version) in known.collect::<Vec<_>>() {
            let order = self.order(&title, copies, popularity).ok();
            if let Some(order) = order.filter(|order| order.version != version) {
                self.event(Event::Replaced { title });
                self.network(now, AutonomyInput::Publish(order));
            }
        }
    }

    /// An operator wants a title deleted elsewhere.
    pub(super) fn unpublish(
        &mut self,
        now: Time,
        link: LinkId,
        hello: Hello,
        request: u32,
        title: &TitleName,
    ) {
        let published = self.autonomy.published().any(|(known, _, _)| known == title);
        let known = if published { Ok(()) } else { Err(Refusal::NoSuchTitle) };
        let outcome = self.may_order(hello).and(known);
        match outcome {
            Ok(()) => {
                self.send(link, Message::Done { request });
                self.withdrawn.insert(title.clone());
                self.keep_withdrawn();
                self.event(Event::Unpublished { title: title.clone() });
                self.network(now, AutonomyInput::Unpublish { title: title.clone() });
            }
            Err(why) => self.send(link, Message::Refused { request, why }),
        }
    }

    /// What is withdrawn has changed, and counts after a restart too.
    pub(super) fn keep_withdrawn(&mut self) {
        let titles = self.withdrawn.iter().cloned().collect();
        self.outputs.push_back(Output::Withdrawn { titles });
    }

    /// Members hear how the node stands.
    pub(super) fn tell_status(&mut self, now: Time, link: LinkId, role: Role) {
        if role == Role::Viewer {
            return self.send(link, Message::Refused { request: 0, why: Refusal::NotAllowed });
        }
        let status = Box::new(self.status(now));
        self.outputs.push_back(Output::TellStatus { link, status });
    }

    fn admission(&self) -> Admission {
        let admission = self.autonomy.grants().admission();
        let (limits, used) = (admission.limits(), admission.used());
        let bound = |value: u64| (value < u64::MAX).then_some(value);
        let line = |class| ClassLine {
            class,
            viewings: used.viewings[class],
            threshold: bound(limits.thresholds[class]),
        };
        let refused = admission.refusals().iter();
        Admission {
            classes: TitleClass::ALL.map(line).to_vec(),
            to_viewers: used.to_viewers,
            link_rate: bound(limits.to_viewers.0).map(BitRate),
            to_origin: used.to_origin,
            origin_rate: bound(limits.to_origin.0).map(BitRate),
            store: (admission.store().taken(), limits.storage),
            stored: admission
                .store()
                .iter()
                .take(MAX_LINES)
                .map(|(title, class, size, viewings, whole)| StoredLine {
                    title: title.clone(),
                    class,
                    size,
                    viewings,
                    whole,
                })
                .collect(),
            refused: refused.map(|(class, reason, count)| RefusedLine { class, reason, count }).collect(),
        }
    }

    fn status(&self, now: Time) -> NodeStatus {
        let autonomy = &self.autonomy;
        let count = |kind| u32::try_from(autonomy.users(kind)).unwrap_or(u32::MAX);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let slots = Slots {
            capacity: autonomy.used().saturating_add(autonomy.free()),
            used: autonomy.used(),
            headroom: autonomy.headroom(),
            vip: count(EntryKind::Vip),
            normal: count(EntryKind::Normal),
            vip_dual: count(EntryKind::VipDual),
            normal_dual: count(EntryKind::NormalDual),
            enhancements: small(autonomy.streams().count()),
            searching: small(autonomy.searching()),
        };
        let titles = self.shelf.all().take(MAX_LINES).map(|held| TitleLine {
            title: held.summary.title.clone(),
            layers: held.layers.clone(),
            size: held.layers.iter().fold(ByteCount(0), |sum, layer| sum + held.size(*layer)),
        });
        let neighbours = autonomy.neighbours().take(MAX_LINES).filter_map(|(peer, neighbour)| {
            Some(NeighbourLine {
                node: self.book.address(peer)?,
                level: neighbour.level,
                silent: now - neighbour.heard,
                dead: autonomy.thinks_dead(peer),
            })
        });
        let placements = autonomy.published().take(MAX_LINES).map(|(title, wanted, layers)| {
            let few = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
            let layers = layers
                .into_iter()
                .map(|(layer, whole, all)| (layer, few(whole), few(all.saturating_sub(whole))));
            PlacementLine { title: title.clone(), layers: layers.collect(), wanted }
        });
        NodeStatus {
            peer: self.id,
            level: self.config.level,
            up: now - self.born,
            draining: self.drain != Drain::No,
            titles: titles.collect(),
            slots,
            admission: self.admission(),
            sessions: small(self.guests.session_count()),
            neighbours: neighbours.collect(),
            dead: autonomy.believed_dead().take(MAX_LINES).collect(),
            placements: placements.collect(),
            traffic: Traffic::default(),
            events: Vec::new(),
        }
    }
}
