//! What travels between nodes: users, entries and agents by name and number.
//!
//! Agents carry names and numbers, never payload. What they have gathered is in
//! small shared vectors, so that an agent forks at the price of a few counters.

use media::{ByteCount, Hash, Layer, Quality, Span, TitleName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::talk::AdmissionRefusal;
use crate::peer::PeerId;

/// The most nodes on the path of one agent, whatever the configuration says.
pub const MAX_PATH: usize = 64;
/// The most notes that one agent carries.
pub const MAX_ROUTE: usize = 64;
/// The most nodes that a [`SearchAgent`] remembers: those it was at and those
/// it may still go to.
pub const MAX_KNOWN: usize = 1024;

/// A user, numbered by whoever lets viewers in; unique in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub u64);

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0)
    }
}

/// How far from the viewers a node stands. Level and stored layer coincide:
/// Base nodes at the edge, then Enh1, Enh2, and the origin of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Stores this layer, and no other.
    Layer(Layer),
    /// The service provider: it has everything.
    Origin,
}

impl Level {
    /// The edge.
    pub const BASE: Self = Self::Layer(Layer::BASE);
    /// One step from the edge.
    pub const ENH1: Self = Self::Layer(Layer::ENH1);
    /// Two steps from the edge.
    pub const ENH2: Self = Self::Layer(Layer::ENH2);

    /// Whether backups are searched through nodes of this level: the graph of
    /// Base and Enh1 nodes.
    pub fn is_edge(self) -> bool {
        self == Self::BASE || self == Self::ENH1
    }
}

/// A text that names no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `origin`, `base`, `enh1`, `enh2` and so on")]
pub struct LevelError;

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        match text {
            "origin" => Ok(Self::Origin),
            _ => text.parse().map(Self::Layer).map_err(|_| LevelError),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(layer) => layer.fmt(f),
            Self::Origin => f.write_str("origin"),
        }
    }
}

/// What a user was promised (ADVODS: SLA class).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sla {
    /// Shares its backup with others (N+1).
    Normal,
    /// Has a backup of its own that is kept in step (1+1).
    Vip,
}

/// An entry on a Base node (ADVODS: SLA type), in rising priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Backs a user up without a slot of its own.
    NormalDual,
    /// Backs a VIP up with a slot held ready.
    VipDual,
    /// A normal user is served here.
    Normal,
    /// A VIP is served here.
    Vip,
}

impl EntryKind {
    /// All four, lowest first.
    pub const ALL: [Self; 4] = [Self::NormalDual, Self::VipDual, Self::Normal, Self::Vip];

    /// The entry that serves a user of this class.
    pub fn serving(sla: Sla) -> Self {
        match sla {
            Sla::Vip => Self::Vip,
            Sla::Normal => Self::Normal,
        }
    }

    /// The entry that backs up a user of this class.
    pub fn backing(sla: Sla) -> Self {
        match sla {
            Sla::Vip => Self::VipDual,
            Sla::Normal => Self::NormalDual,
        }
    }

    /// Whether it stands behind somebody who is served elsewhere.
    pub fn is_backup(self) -> bool {
        self <= Self::VipDual
    }

    /// Whether it holds a delivery slot.
    pub fn holds_slot(self) -> bool {
        self != Self::NormalDual
    }
}

/// One search for a backup: unique in the network as long as its start node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SearchId {
    /// The node that serves the user.
    pub start: PeerId,
    /// The user.
    pub user: UserId,
    /// Counts the searches of the start node.
    pub serial: u32,
}

/// Why a search is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiscoveryKind {
    /// The user needs a backup (ADVODS: DISC-MA).
    Fresh,
    /// The user's backup must leave this node (ADVODS: Re-DISC MA).
    Relocate {
        /// The node, which cannot be chosen again.
        leaving: PeerId,
    },
}

/// Where an agent is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentState {
    /// Looking for candidates.
    Search,
    /// On its way back.
    Reply {
        /// Whether somebody on the way had already answered without it.
        late: bool,
        /// For whom it speaks.
        speaks: Speaks,
    },
}

/// For whom a reply speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speaks {
    /// For everybody behind the node it comes from.
    All,
    /// For those who answered in time.
    Some,
    /// For nobody: the search had been at that node before.
    Nobody,
}

/// What an agent knows of a Base node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The node.
    pub node: PeerId,
    /// Links between it and the start node along the way it was found.
    pub hops: u8,
    /// Free slots: `C - used`.
    pub free: u32,
    /// What an activated normal can claim: `C - vip - normal`.
    pub headroom: u32,
    /// Its lowest entry.
    pub lowest: Option<EntryKind>,
    /// Whether the agent was there itself, or read of it on a board.
    pub passed: bool,
}

/// The best of a route, on the way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The node.
    pub note: Note,
    /// Whether a tentative reservation was made there.
    pub held: bool,
}

/// Looks for a node to back a user up (ADVODS: DISC-MA and Re-DISC MA).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryAgent {
    /// The search it belongs to.
    pub id: SearchId,
    /// What the user watches: only who stores it can stand behind.
    pub title: TitleName,
    /// Why it was sent.
    pub kind: DiscoveryKind,
    /// `VipDual` or `NormalDual`.
    pub wanted: EntryKind,
    /// Searching or on its way back.
    pub state: AgentState,
    /// The nodes it came through, the start node first, without the node it is
    /// sent to. At most [`MAX_PATH`].
    pub path: Arc<[PeerId]>,
    /// On the way back: the place in `path` of the node it is sent to.
    pub at: u8,
    /// Time spent on links so far, one way.
    pub travelled: Span,
    /// What is left of the time for going on and coming back (ADVODS eq. 2).
    pub timeout: Span,
    /// The user's buffer: no agent goes further.
    pub radius: Span,
    /// Whether it may spare itself ways whose result stands on a board; a
    /// repeated search may not.
    pub boards: bool,
    /// What it knows, at most [`MAX_ROUTE`] notes.
    pub route: Arc<[Note]>,
    /// On the way back: what it brings.
    pub candidate: Option<Offer>,
}

/// All that another node needs to serve a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// Who.
    pub user: UserId,
    /// What is watched.
    pub title: TitleName,
    /// In which quality at best.
    pub quality: Quality,
    /// What was promised.
    pub sla: Sla,
    /// Whether the user has begun to watch; who has ranks above who has not.
    pub started: bool,
    /// Counts the nodes that have served the user; the highest one is right.
    pub epoch: u64,
    /// Played so far.
    pub position: Span,
    /// Yet to be played.
    pub remaining: Span,
    /// The size of the user's buffer.
    pub buffer: Span,
    /// What it held when last heard of.
    pub level: Span,
    /// Who serves the enhancements, lowest first.
    pub layers: Arc<[(Layer, PeerId)]>,
}

/// Looks for nodes to serve a user (ADVODS: Pull-MA).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchAgent {
    /// The user and the request.
    pub info: UserInfo,
    /// The node to which the user came; it hears what was found.
    pub entry: PeerId,
    /// The node that serves Base, once there is one.
    pub base: Option<PeerId>,
    /// The layer that is looked for now.
    pub layer: Layer,
    /// Whether every node of that layer's level refused and the agent is on its
    /// way to the origin.
    pub ascending: bool,
    /// Nodes that have Base and refused it.
    pub refusals: u8,
    /// Why the first of them did.
    pub first: Option<AdmissionRefusal>,
    /// The nodes it knows of for this layer and those it has been to, by
    /// distance and name; at most [`MAX_KNOWN`].
    pub known: Arc<[Known]>,
}

/// A node on the map of a [`SearchAgent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Known {
    /// Links from where the search for this layer began.
    pub hops: u8,
    /// The node.
    pub node: PeerId,
    /// Whether the agent has been there.
    pub visited: bool,
}

/// A layer to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerOrder {
    /// The layer.
    pub layer: Layer,
    /// What it takes on disk.
    pub size: ByteCount,
    /// How much it matters, in percent; a node weighs popularity by it.
    pub importance: u16,
}

/// What the origin wants of a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementOrder {
    /// The title.
    pub title: TitleName,
    /// Its layers, highest first; at most `media::layer::MAX_LAYERS`.
    pub layers: Arc<[LayerOrder]>,
    /// How much it is wanted, in thousandths of the most wanted one.
    pub popularity: u16,
    /// How many copies each level must have (the reliability requirement);
    /// 0: as many as there are willing nodes, at least one.
    pub copies: u16,
    /// BLAKE3 of the manifest: which one of the titles of this name it is.
    pub version: Hash,
}

/// Spreads a title's layers over the levels (ADVODS: Push-MA): each level keeps
/// its layer, and the rest travels on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementAgent {
    /// Who published.
    pub origin: PeerId,
    /// Counts the pushes of the origin; a node sees each one once.
    pub serial: u32,
    /// The order; `layers` are those still carried.
    pub order: PlacementOrder,
    /// Whether the title is to be deleted instead.
    pub withdraw: bool,
    /// The number of the order, see [`Edition`](super::ledger::Edition).
    pub edition: u64,
}
