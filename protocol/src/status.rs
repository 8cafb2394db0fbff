//! How a node or a proxy stands, for whoever runs the network.

use crate::message::NodeAddress;
use crate::node::autonomy::Level;
use crate::node::classes::Reason;
use crate::peer::PeerId;
use crate::proxy::cooperation::{ClientId, Counts, Server};
use media::{BitRate, ByteCount, Layer, Quality, Span, Time, TitleClass, TitleName};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most lines of one list in a status.
pub const MAX_LINES: usize = 256;
/// The most events in a status.
pub const MAX_EVENTS: usize = 32;
/// The longest text of one event in bytes.
pub const MAX_EVENT_BYTES: usize = 512;

/// Everything a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub peer: PeerId,
    /// Its level.
    pub level: Level,
    /// For how long it has run.
    pub up: Span,
    /// Whether it is about to stop.
    pub draining: bool,
    /// Titles held, at most [`MAX_LINES`].
    pub titles: Vec<TitleLine>,
    /// Deliveries and reservations.
    pub slots: Slots,
    /// Who is let in, and who was refused why.
    pub admission: Admission,
    /// Open sessions, those of members that copy included.
    pub sessions: u32,
    /// Nodes linked with this one, at most [`MAX_LINES`].
    pub neighbours: Vec<NeighbourLine>,
    /// Nodes thought dead, at most [`MAX_LINES`].
    pub dead: Vec<PeerId>,
    /// An origin's titles that are published, at most [`MAX_LINES`].
    pub placements: Vec<PlacementLine>,
    /// What was sent to others, in bytes.
    pub traffic: Traffic,
    /// The last events, oldest first, at most [`MAX_EVENTS`].
    pub events: Vec<EventLine>,
}

/// A title that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleLine {
    /// The title.
    pub title: TitleName,
    /// The layers that are here.
    pub layers: Vec<Layer>,
    /// What they take on disk.
    pub size: ByteCount,
}

/// Deliveries and reservations of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Deliveries at once (C).
    pub capacity: u32,
    /// Slots in use.
    pub used: u32,
    /// What an activated normal can claim.
    pub headroom: u32,
    /// VIPs served here.
    pub vip: u32,
    /// Normal users served here.
    pub normal: u32,
    /// VIPs backed up here, each with a slot.
    pub vip_dual: u32,
    /// Normal users backed up here, without a slot.
    pub normal_dual: u32,
    /// Enhancements served here.
    pub enhancements: u32,
    /// Searches for backups of this node's users that are running.
    pub searching: u32,
}

/// Admission by class: what is taken, and who was refused since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// Viewings of each class, and how many there may be.
    pub classes: Vec<ClassLine>,
    /// What deliveries take of the link to the viewers, at their mean rates.
    pub to_viewers: BitRate,
    /// What they may take; none: no bound.
    pub link_rate: Option<BitRate>,
    /// How often a class was refused for a reason, if it was.
    pub refused: Vec<RefusedLine>,
    /// What copies from the origin's archive take of the link to it.
    pub to_origin: BitRate,
    /// What they may take; none: no bound.
    pub origin_rate: Option<BitRate>,
    /// What the store of such titles holds, and may hold.
    pub store: (ByteCount, ByteCount),
    /// The titles in it, at most [`MAX_LINES`].
    pub stored: Vec<StoredLine>,
}

/// A title that was not placed here and was fetched from the origin's archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLine {
    /// The title.
    pub title: TitleName,
    /// Its class: the least important leaves first.
    pub class: TitleClass,
    /// What it takes, all layers.
    pub size: ByteCount,
    /// Viewings that go on.
    pub viewings: u64,
    /// Whether it is here as a whole.
    pub whole: bool,
}

/// A class of titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassLine {
    /// The class.
    pub class: TitleClass,
    /// Viewings that go on.
    pub viewings: u64,
    /// How many there may be; none: no threshold.
    pub threshold: Option<u64>,
}

/// Requests for titles of a class that were refused for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLine {
    /// The class.
    pub class: TitleClass,
    /// The reason.
    pub reason: Reason,
    /// How many.
    pub count: u64,
}

/// A node linked with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourLine {
    /// Where it is.
    pub node: NodeAddress,
    /// Its level.
    pub level: Level,
    /// Since its last sign of life.
    pub silent: Span,
    /// Whether it is thought dead.
    pub dead: bool,
}

/// How far a title has spread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementLine {
    /// The title.
    pub title: TitleName,
    /// For each layer: whole copies, and those on their way.
    pub layers: Vec<(Layer, u16, u16)>,
    /// Copies wanted; 0: whoever is willing.
    pub wanted: u16,
}

/// Bytes sent since the start, before they were encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Chunks and manifests.
    pub media: u64,
    /// Survival signals.
    pub signals: u64,
    /// Agents and all other messages between nodes.
    pub agents: u64,
    /// What came from the origin's archive, in chunks.
    pub archive: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// How long ago.
    pub ago: Span,
    /// One object of JSON, at most [`MAX_EVENT_BYTES`].
    pub event: String,
}

/// The last events of a process, for its status.
#[derive(Clone, Debug, Default)]
pub struct LastEvents(VecDeque<(Time, String)>);

impl LastEvents {
    /// Notes one object of JSON; the oldest makes room, and what is too long is not kept.
    pub fn note(&mut self, now: Time, event: String) {
        if event.len() > MAX_EVENT_BYTES {
            return;
        }
        if self.0.len() >= MAX_EVENTS {
            self.0.pop_front();
        }
        self.0.push_back((now, event));
    }

    /// All of them, oldest first.
    pub fn lines(&self, now: Time) -> Vec<EventLine> {
        let line = |(at, event): &(Time, String)| EventLine { ago: now - *at, event: event.clone() };
        self.0.iter().map(line).collect()
    }
}

impl NodeStatus {
    /// Whether every list is within its bound.
    pub fn is_bounded(&self) -> bool {
        let network = [self.neighbours.len(), self.dead.len(), self.placements.len()];
        let lists = network.into_iter().chain([self.titles.len(), self.admission.stored.len()]);
        let most = media::layer::MAX_LAYERS;
        lists.into_iter().all(|length| length <= MAX_LINES)
            && self.titles.iter().all(|line| line.layers.len() <= most)
            && self.placements.iter().all(|line| line.layers.len() <= most)
            && self.admission.classes.len() <= TitleClass::ALL.len()
            && self.admission.refused.len() <= TitleClass::ALL.len() * Reason::ALL.len()
            && self.events.len() <= MAX_EVENTS
            && self.events.iter().all(|line| line.event.len() <= MAX_EVENT_BYTES)
    }
}

/// Everything a proxy says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyStatus {
    /// Its name.
    pub peer: PeerId,
    /// For how long it has run.
    pub up: Span,
    /// Whether it is about to stop.
    pub draining: bool,
    /// Open sessions.
    pub sessions: u32,
    /// What the cache may weigh.
    pub capacity: ByteCount,
    /// What it weighs.
    pub used: ByteCount,
    /// Chunks and bytes since the start.
    pub proxy: ProxyCounts,
    /// What its mind did since the start, in blocks.
    pub counts: Counts,
    /// The remote table, the origin first, at most [`MAX_LINES`].
    pub servers: Vec<ServerLine>,
    /// The cache table by titles, at most [`MAX_LINES`].
    pub titles: Vec<CachedLine>,
    /// The clients, at most [`MAX_LINES`].
    pub clients: Vec<ClientLine>,
    /// The last events, oldest first, at most [`MAX_EVENTS`].
    pub events: Vec<EventLine>,
}

/// What a proxy gave and fetched since it started, in chunks and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyCounts {
    /// Chunks that were kept when a client asked for them.
    pub hits: u64,
    /// Those that were not.
    pub misses: u64,
    /// Bytes given to clients from what was kept.
    pub bytes_from_cache: u64,
    /// Bytes fetched from other proxies.
    pub bytes_from_peers: u64,
    /// Bytes fetched from nodes.
    pub bytes_from_nodes: u64,
    /// Bytes given to other proxies.
    pub given_to_peers: u64,
}

impl ProxyCounts {
    /// A client is given a chunk of this length, which was kept or is fetched.
    pub(crate) fn asked(&mut self, held: bool, length: u64) {
        if held {
            self.hits = self.hits.saturating_add(1);
            self.bytes_from_cache = self.bytes_from_cache.saturating_add(length);
        } else {
            self.misses = self.misses.saturating_add(1);
        }
    }
}

/// A row of a remote table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLine {
    /// Who.
    pub server: Server,
    /// Whether it is lost at present.
    pub lost: bool,
    /// One way, as estimated.
    pub delay: Span,
    /// Its rate, as estimated.
    pub rate: BitRate,
    /// Fetches open there.
    pub open: u32,
    /// Blocks that it is known to offer, of all titles; none of the origin, which
    /// has everything.
    pub offers: Option<u32>,
}

/// A title in a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedLine {
    /// The title.
    pub title: TitleName,
    /// How many watch it here.
    pub clients: u32,
    /// Its blocks.
    pub blocks: u32,
    /// How many of them are held.
    pub held: u32,
    /// What these weigh.
    pub size: ByteCount,
    /// Peers that have marked some of them.
    pub marked_by: Vec<PeerId>,
}

/// A client of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLine {
    /// Which.
    pub client: ClientId,
    /// What it watches.
    pub title: TitleName,
    /// The block that it asked for last.
    pub position: Option<u32>,
    /// The quality that it asked for last.
    pub wanted: Quality,
    /// The least it accepts.
    pub acceptable: Quality,
    /// One way to it, as estimated.
    pub delay: Span,
    /// Its rate, as estimated.
    pub rate: BitRate,
}

impl ProxyStatus {
    /// Whether every list is within its bound.
    pub fn is_bounded(&self) -> bool {
        let lists = [self.servers.len(), self.titles.len(), self.clients.len()];
        lists.iter().all(|length| *length <= MAX_LINES)
            && self.titles.iter().all(|line| line.marked_by.len() <= MAX_LINES)
            && self.events.len() <= MAX_EVENTS
            && self.events.iter().all(|line| line.event.len() <= MAX_EVENT_BYTES)
    }
}
