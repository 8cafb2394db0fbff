//! The nodes upstream: to whom a connection stands, who is silent, and who is to
//! be called next.

use super::config::{ProxyConfig, Upstream};
use crate::message::NodeAddress;
use crate::peer::PeerId;
use crate::service::{Hedge, Vigil};
use media::{Span, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The most nodes remembered; those that nobody needs make room.
const MOST_NODES: usize = 256;
/// How many times longer silence is borne on a crowded line.
const CROWDED: u64 = 3;

/// A node upstream, numbered in the order in which it was first heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Dialling,
    Up,
}

#[derive(Clone, Debug)]
struct Node {
    at: Upstream,
    link: Link,
    silent: bool,
    draining: bool,
    /// Whether it ever let us down; before that it is hoped for.
    failed: bool,
    vigil: Vigil,
    redial_at: Time,
    /// When a piece of film last came from it.
    delivered: Time,
}

/// What is to be done about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineAction {
    /// Connect to it.
    Dial(NodeId),
    /// Ask whether it is there.
    Probe(NodeId, u32),
    /// It has just been found silent.
    Silent(NodeId),
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    nodes: BTreeMap<NodeId, Node>,
    next: u32,
}

impl Lines {
    /// The number of a node. Who is reached already under its name is not dialled
    /// at another address. Nothing if there are too many.
    pub(super) fn number(&mut self, now: Time, at: Upstream) -> Option<NodeId> {
        let same = |node: &Node| node.at.address == at.address;
        let named = |node: &Node| node.link == Link::Up && at.peer.is_some() && node.at.peer == at.peer;
        let found = self.nodes.iter_mut().find(|(_, node)| same(node) || named(node));
        if let Some((id, node)) = found {
            node.at.peer = node.at.peer.or(at.peer);
            return Some(*id);
        }
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.next.wrapping_add(1);
        let node = Node {
            at,
            link: Link::Down,
            silent: false,
            draining: false,
            failed: false,
            vigil: Vigil::new(now, 0),
            redial_at: now,
            delivered: now,
        };
        self.nodes.insert(id, node);
        Some(id)
    }

    /// Forgets everybody who is not connected and not needed, if there are many.
    pub(super) fn prune(&mut self, is_needed: impl Fn(NodeId) -> bool) {
        if self.nodes.len() >= MOST_NODES {
            self.nodes.retain(|id, node| node.link == Link::Up || is_needed(*id));
        }
    }

    /// Who is found at this address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.at.address == address).map(|(id, _)| *id)
    }

    /// Where a node is.
    pub(super) fn at(&self, id: NodeId) -> Option<Upstream> {
        self.nodes.get(&id).map(|node| node.at)
    }

    /// Where a node is, if its name is known.
    pub(super) fn address(&self, id: NodeId) -> Option<NodeAddress> {
        let at = self.at(id)?;
        Some(NodeAddress { peer: at.peer?, address: at.address })
    }

    /// A connection stands.
    pub(super) fn up(&mut self, now: Time, id: NodeId, peer: PeerId, round_trip: Span) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.at.peer = Some(peer);
            node.link = Link::Up;
            node.silent = false;
            node.draining = false;
            node.vigil.connected(now, round_trip);
        }
    }

    /// A connection is over, or could not be made.
    pub(super) fn down(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.link = Link::Down;
            node.silent = false;
            node.failed = true;
            node.vigil.lost();
        }
    }

    /// Something came from it; whether it was silent.
    pub(super) fn heard(&mut self, now: Time, id: NodeId) -> bool {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.link == Link::Up) else { return false };
        node.vigil.heard(now);
        std::mem::take(&mut node.silent)
    }

    /// It answered a probe.
    pub(super) fn alive(&mut self, now: Time, id: NodeId, number: u32) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.vigil.answered(now, number);
        }
    }

    /// It is about to stop.
    pub(super) fn draining(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.draining = true;
            node.failed = true;
        }
    }

    /// Connected, heard, and not about to stop.
    pub(super) fn is_usable(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.link == Link::Up && !node.silent && !node.draining)
    }

    /// Whether anything can be said to it.
    pub(super) fn is_up(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.link == Link::Up)
    }

    /// Usable, or never tried in vain.
    pub(super) fn is_hopeful(&self, id: NodeId) -> bool {
        let untried = |node: &Node| !node.failed && node.link != Link::Up;
        self.is_usable(id) || self.nodes.get(&id).is_some_and(untried)
    }

    /// When it was last heard.
    pub(super) fn heard_at(&self, id: NodeId) -> Time {
        self.nodes.get(&id).map_or(Time::ZERO, |node| node.vigil.heard_at())
    }

    /// A piece of film came from it.
    pub(super) fn delivered(&mut self, now: Time, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.delivered = now;
        }
    }

    /// Whether no piece of film came from it since then.
    pub(super) fn withholds_since(&self, id: NodeId, since: Time) -> bool {
        self.nodes.get(&id).is_none_or(|node| node.delivered <= since)
    }

    /// Nodes that leave a question unanswered, and since when.
    pub(super) fn probed(&self) -> Vec<(NodeId, Time)> {
        let probed = |(id, node): (&NodeId, &Node)| Some((*id, node.vigil.probed_since()?));
        self.nodes.iter().filter_map(probed).collect()
    }

    /// Whether a node's answer may stand in a queue behind what others send.
    pub(super) fn set_crowded(&mut self, id: NodeId, crowded: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.vigil.set_lenience(if crowded { CROWDED } else { 1 });
        }
    }

    /// When a node that leaves a question unanswered is quiet.
    pub(super) fn quiet_at(&self, id: NodeId, hedge: &Hedge) -> Option<Time> {
        let node = self.nodes.get(&id)?;
        node.vigil.probed_since()?;
        Some(hedge.quiet_at(node.vigil.heard_at(), node.vigil.round_trip()))
    }

    /// The round trip.
    pub(super) fn round_trip(&self, id: NodeId) -> Span {
        self.nodes.get(&id).map_or(Span::ZERO, |node| node.vigil.round_trip())
    }

    /// The least round trip of late: without what stands in queues.
    pub(super) fn least_round_trip(&self, id: NodeId) -> Span {
        self.nodes.get(&id).map_or(Span::ZERO, |node| node.vigil.least_round_trip())
    }

    /// Asks a node whether it is there, out of turn.
    pub(super) fn probe_now(&mut self, now: Time, id: NodeId) -> Option<u32> {
        self.nodes.get_mut(&id).filter(|node| node.link == Link::Up).map(|node| node.vigil.probe(now))
    }

    /// Dials, probes and verdicts that are due about those who are needed.
    pub(super) fn poll(
        &mut self,
        now: Time,
        config: &ProxyConfig,
        is_needed: impl Fn(NodeId) -> bool,
    ) -> Vec<LineAction> {
        let mut actions = Vec::new();
        for (id, node) in self.nodes.iter_mut().filter(|(id, _)| is_needed(**id)) {
            if node.link == Link::Up {
                let silence = node.vigil.silence_at(config.silent_after, config.probe_every);
                if !node.silent && silence.is_some_and(|when| when <= now) {
                    node.silent = true;
                    node.failed = true;
                    node.redial_at = now;
                    actions.push(LineAction::Silent(*id));
                }
                if node.vigil.next_probe(config.probe_every) <= now {
                    actions.push(LineAction::Probe(*id, node.vigil.probe(now)));
                }
            }
            let dialable = match node.link {
                Link::Down => true,
                Link::Dialling => false,
                Link::Up => node.silent,
            };
            if dialable && node.redial_at <= now {
                node.redial_at = now + config.redial_every;
                if node.link != Link::Up {
                    node.link = Link::Dialling;
                }
                actions.push(LineAction::Dial(*id));
            }
        }
        actions
    }

    /// When `poll` has something to do.
    pub(super) fn poll_timeout(
        &self,
        config: &ProxyConfig,
        is_needed: impl Fn(NodeId) -> bool,
    ) -> Option<Time> {
        let due = |node: &Node| {
            let probe = node.vigil.next_probe(config.probe_every);
            match node.link {
                Link::Down => Some(node.redial_at),
                Link::Dialling => None,
                Link::Up if node.silent => Some(probe.min(node.redial_at)),
                Link::Up => {
                    let silence = node.vigil.silence_at(config.silent_after, config.probe_every);
                    Some(silence.map_or(probe, |when| when.min(probe)))
                }
            }
        };
        self.nodes.iter().filter(|(id, _)| is_needed(**id)).filter_map(|(_, node)| due(node)).min()
    }
}
