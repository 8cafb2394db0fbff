//! How a node stands, for whoever runs the network.

use crate::message::NodeAddress;
use crate::node::autonomy::Level;
use crate::peer::PeerId;
use media::{ByteCount, Layer, Span, TitleName};
use serde::{Deserialize, Serialize};

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
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// How long ago.
    pub ago: Span,
    /// One object of JSON, at most [`MAX_EVENT_BYTES`].
    pub event: String,
}

impl NodeStatus {
    /// Whether every list is within its bound.
    pub fn is_bounded(&self) -> bool {
        let lists = [self.titles.len(), self.neighbours.len(), self.dead.len(), self.placements.len()];
        let most = media::layer::MAX_LAYERS;
        lists.iter().all(|length| *length <= MAX_LINES)
            && self.titles.iter().all(|line| line.layers.len() <= most)
            && self.placements.iter().all(|line| line.layers.len() <= most)
            && self.events.len() <= MAX_EVENTS
            && self.events.iter().all(|line| line.event.len() <= MAX_EVENT_BYTES)
    }
}
