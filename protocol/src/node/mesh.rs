//! Connections to other nodes: which stand, which are to be dialled and when,
//! and what waits to be said until one stands.

use crate::guests::LinkId;
use crate::message::{Message, NodeAddress};
use crate::peer::PeerId;
use media::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// The most messages that wait for a connection to one node.
const MAX_WAITING: usize = 256;
/// The most nodes that are dialled or written to at once.
const MAX_DIALS: usize = 256;

/// The most nodes that are remembered as neighbours.
const MAX_NEIGHBOURS: usize = 1024;

/// Where to dial; the name is checked if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Door {
    /// The address.
    pub address: SocketAddr,
    /// Whose it is.
    pub peer: Option<PeerId>,
}

impl From<NodeAddress> for Door {
    fn from(node: NodeAddress) -> Self {
        Self { address: node.address, peer: Some(node.peer) }
    }
}

/// All connections to nodes.
#[derive(Clone, Debug)]
pub(super) struct Mesh {
    redial: Span,
    /// The connections of each node, the newest last.
    links: BTreeMap<PeerId, Vec<LinkId>>,
    /// Who said, or was told, that we are neighbours.
    neighbours: BTreeSet<PeerId>,
    /// Who was told so on which connection.
    told: BTreeSet<LinkId>,
    dials: BTreeMap<SocketAddr, Dial>,
    waiting: BTreeMap<PeerId, VecDeque<Message>>,
}

#[derive(Clone, Copy, Debug)]
struct Dial {
    peer: Option<PeerId>,
    /// Nothing: it is being dialled.
    next: Option<Time>,
}

impl Mesh {
    pub(super) fn new(redial: Span) -> Self {
        Self {
            redial,
            links: BTreeMap::new(),
            neighbours: BTreeSet::new(),
            told: BTreeSet::new(),
            dials: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// A connection to a node stands; what waited for it.
    pub(super) fn linked(&mut self, peer: PeerId, link: LinkId) -> VecDeque<Message> {
        self.links.entry(peer).or_default().push(link);
        self.waiting.remove(&peer).unwrap_or_default()
    }

    /// A connection is over.
    pub(super) fn gone(&mut self, peer: PeerId, link: LinkId) {
        self.told.remove(&link);
        if let Some(links) = self.links.get_mut(&peer) {
            links.retain(|other| *other != link);
            if links.is_empty() {
                self.links.remove(&peer);
            }
        }
    }

    /// A node has started anew: its connections that are over, all but `own`.
    pub(super) fn restarted(&mut self, peer: PeerId, own: Option<LinkId>) -> Vec<LinkId> {
        let links = self.links.remove(&peer).unwrap_or_default();
        let (alive, over): (Vec<LinkId>, _) = links.into_iter().partition(|link| Some(*link) == own);
        if !alive.is_empty() {
            self.links.insert(peer, alive);
        }
        over
    }

    /// The newest connection to a node.
    pub(super) fn link(&self, peer: PeerId) -> Option<LinkId> {
        self.links.get(&peer)?.last().copied()
    }

    /// Whether there is no connection to any node.
    pub(super) fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn neighbours(&self) -> impl Iterator<Item = PeerId> {
        self.neighbours.iter().copied()
    }

    /// We are neighbours from now on. Whether this node has not said so on the
    /// newest connection.
    pub(super) fn befriend(&mut self, peer: PeerId) -> Option<LinkId> {
        if self.neighbours.len() < MAX_NEIGHBOURS {
            self.neighbours.insert(peer);
        }
        let link = self.link(peer)?;
        self.told.insert(link).then_some(link)
    }

    /// Keeps a message until a connection to the node stands. Whether there was
    /// room for it.
    pub(super) fn wait(&mut self, peer: PeerId, message: Message) -> bool {
        let room = self.waiting.len() < MAX_DIALS || self.waiting.contains_key(&peer);
        if !room {
            return false;
        }
        let queue = self.waiting.entry(peer).or_default();
        let room = queue.len() < MAX_WAITING;
        if room {
            queue.push_back(message);
        }
        room
    }

    /// A connection to `door` is wanted as soon as may be.
    pub(super) fn want(&mut self, now: Time, door: Door) {
        if self.dials.len() < MAX_DIALS {
            self.dials.entry(door.address).or_insert(Dial { peer: door.peer, next: Some(now) });
        }
    }

    /// Dials that are due; each is counted as under way.
    pub(super) fn due(&mut self, now: Time) -> Vec<Door> {
        let due = self.dials.iter_mut().filter(|(_, dial)| dial.next.is_some_and(|next| next <= now));
        due.map(|(address, dial)| {
            dial.next = None;
            Door { address: *address, peer: dial.peer }
        })
        .collect()
    }

    /// When the next dial is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.dials.values().filter_map(|dial| dial.next).min()
    }

    /// A dial succeeded.
    pub(super) fn reached(&mut self, address: SocketAddr) {
        self.dials.remove(&address);
    }

    /// A dial failed: it is tried again while it is `wanted`, and what waited for
    /// it is dropped.
    pub(super) fn unreached(&mut self, now: Time, address: SocketAddr, wanted: bool) {
        let again = now + self.redial;
        if let Some(dial) = self.dials.get_mut(&address) {
            dial.next = Some(again);
            if let Some(peer) = dial.peer {
                self.waiting.remove(&peer);
            }
        }
        if !wanted {
            self.dials.remove(&address);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn door(port: u16) -> Door {
        NodeAddress { peer: "a".parse().unwrap(), address: ([127, 0, 0, 1], port).into() }.into()
    }

    #[test]
    fn a_node_is_dialled_once_at_a_time_and_again_after_a_moment() {
        let mut mesh = Mesh::new(Span::from_secs(1));
        mesh.want(at(0), door(1));
        mesh.want(at(0), door(1));
        assert_eq!(mesh.due(at(0)), [door(1)]);
        assert_eq!((mesh.due(at(5_000)), mesh.next()), (vec![], None));
        mesh.unreached(at(5_000), door(1).address, true);
        assert_eq!((mesh.due(at(5_999)), mesh.next()), (vec![], Some(at(6_000))));
        assert_eq!(mesh.due(at(6_000)), [door(1)]);
        mesh.unreached(at(7_000), door(1).address, false);
        assert_eq!(mesh.next(), None);
    }

    #[test]
    fn what_is_said_before_a_connection_stands_is_said_then_or_dropped() {
        let (mut mesh, a) = (Mesh::new(Span::from_secs(1)), door(1).peer.unwrap());
        for number in 0..300 {
            assert_eq!(mesh.wait(a, Message::Probe(number)), number < 256);
        }
        assert_eq!(mesh.clone().linked(a, LinkId(1)).len(), 256);
        mesh.want(at(0), door(1));
        mesh.unreached(at(0), door(1).address, true);
        assert!(mesh.linked(a, LinkId(1)).is_empty());
    }

    #[test]
    fn the_newest_connection_is_used_and_neighbours_are_told_once_on_each() {
        let (mut mesh, a) = (Mesh::new(Span::from_secs(1)), door(1).peer.unwrap());
        mesh.linked(a, LinkId(1));
        assert_eq!(mesh.befriend(a), Some(LinkId(1)));
        assert_eq!(mesh.befriend(a), None);
        mesh.linked(a, LinkId(2));
        assert_eq!((mesh.link(a), mesh.befriend(a)), (Some(LinkId(2)), Some(LinkId(2))));
        mesh.gone(a, LinkId(2));
        assert_eq!((mesh.link(a), mesh.is_alone()), (Some(LinkId(1)), false));
        mesh.gone(a, LinkId(1));
        assert!(mesh.is_alone() && mesh.neighbours().eq([a]));
    }
}
