//! What nodes say to each other: agents on their way, and the short messages
//! about them.

use super::agent::{
    DiscoveryAgent, EntryKind, MAX_KNOWN, MAX_PATH, MAX_ROUTE, PlacementAgent, SearchAgent, SearchId, UserId,
    UserInfo,
};
use super::ledger::{Edition, MAX_EDITIONS};
use crate::node::classes::Reason;
use crate::peer::PeerId;
use media::{ByteCount, Hash, Layer, Span, TitleName};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a node says to the origin about a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlacementAnswer {
    /// "I would store it."
    Willing,
    /// "I have all of it."
    Whole,
    /// "I do not, because."
    Unwilling(PlacementRefusal),
    /// "I had it; it is deleted or damaged."
    Lost,
}

/// Why a node does not store a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PlacementRefusal {
    /// Its storage has no room for it.
    #[error("no storage left")]
    NoStorage,
    /// The title is wanted less than the node asks for.
    #[error("not popular enough")]
    NotPopular,
    /// It has as many titles as it may.
    #[error("too many titles")]
    TooManyTitles,
    /// It knows a later order about the title.
    #[error("a later order about the title is known")]
    Outdated,
}

/// Why a Base, Enh or origin node refuses an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionRefusal {
    /// No slot is free and the lowest entry ranks as high or higher.
    #[error("no slot is free and nothing ranks lower")]
    Full,
    /// The free slots are kept for entries of higher rank (bottom line).
    #[error("the last slots are kept for entries of higher rank")]
    BottomLine,
    /// Something ranks lower, but nothing that holds a slot may be moved.
    #[error("nothing that holds a slot may be moved")]
    NothingToDisplace,
    /// No slot could be claimed if the user's node died.
    #[error("no standby capacity is left")]
    NoHeadroom,
    /// The layer of this title is not stored here.
    #[error("the layer is not stored here")]
    NotStored,
    /// The node has as many users or rows as it may.
    #[error("the node's own bound is reached")]
    Bound,
    /// The node thinks that the user's node is dead.
    #[error("the user's node is thought dead")]
    Dead,
    /// This kind of node does not back users up.
    #[error("only Base nodes back users up")]
    NotBase,
    /// As many titles of the class are watched as may be.
    #[error("as many titles of this class are watched as may be")]
    Threshold,
    /// The link to the viewers has no room.
    #[error("the link to the viewers is full")]
    ViewerLink,
    /// The link to the origin has no room.
    #[error("the link to the origin is full")]
    OriginLink,
    /// The store has no room.
    #[error("the store is full")]
    Storage,
}

impl From<Reason> for AdmissionRefusal {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Threshold => Self::Threshold,
            Reason::BottomLine => Self::BottomLine,
            Reason::NothingToDisplace => Self::NothingToDisplace,
            Reason::Slots => Self::Full,
            Reason::ViewerLink => Self::ViewerLink,
            Reason::OriginLink => Self::OriginLink,
            Reason::Storage => Self::Storage,
            Reason::Bound => Self::Bound,
        }
    }
}

/// One message of the autonomous network. What is large travels in a box: most
/// messages are a few words, and each is moved many times on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentMessage {
    /// "I am alive" (ADVODS: Survival Signal).
    Signal,
    /// A node was declared dead (ADVODS: Failure-detected). Flooded once.
    FailureDetected(Standing),
    /// A node thought dead is alive. Flooded once.
    Returned(Standing),
    /// A Push-MA.
    Placement(PlacementAgent),
    /// A node to the origin about a layer.
    Placed {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// What it says.
        answer: PlacementAnswer,
        /// Of which version.
        version: Hash,
    },
    /// The origin to a willing node: store it.
    Take {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// What it takes on disk.
        size: ByteCount,
    },
    /// A Pull-MA.
    Search(Box<SearchAgent>),
    /// "I serve this layer to the user": to the Base node, and from there to
    /// the node to which the user came.
    Granted {
        /// The user.
        user: UserId,
        /// The layer.
        layer: Layer,
        /// Who serves it.
        node: PeerId,
        /// In which epoch.
        epoch: u64,
    },
    /// Nobody can serve this layer: as `Granted`.
    NotGranted {
        /// The user.
        user: UserId,
        /// The layer; for Base the user is not served at all.
        layer: Layer,
        /// Why the last node asked refused.
        why: AdmissionRefusal,
    },
    /// A Base node to the node that serves an enhancement of its user: "go on, it
    /// is mine to end". Said by a backup that has taken over, and now and then.
    Adopt {
        /// The user.
        user: UserId,
        /// The enhancement.
        layer: Layer,
        /// The Base node from now on.
        base: PeerId,
        /// Its epoch.
        epoch: u64,
    },
    /// The user needs this node no more, neither its slots nor its reservation.
    Release {
        /// The user.
        user: UserId,
        /// The epoch of whoever says so.
        epoch: u64,
    },
    /// A DISC-MA or Re-DISC MA.
    Discovery(Box<DiscoveryAgent>),
    /// One agent less holds the tentative reservation of this search.
    Cancel(SearchId),
    /// Make the reservation official, with all that is known of the user.
    Confirm {
        /// The search that found the node.
        search: SearchId,
        /// `VipDual` or `NormalDual`.
        kind: EntryKind,
        /// The user.
        info: Box<UserInfo>,
    },
    /// It is official.
    Confirmed(SearchId),
    /// It is not, because.
    Denied {
        /// The search.
        search: SearchId,
        /// The reason.
        why: AdmissionRefusal,
    },
    /// A backup node to the user's Base node: the entry must leave.
    Relocate {
        /// The user.
        user: UserId,
        /// Whether the entry is gone already; else it stays until the answer.
        at_once: bool,
    },
    /// The answer: the result of the Re-DISC MA, for the node that asked.
    Relocated {
        /// The user.
        user: UserId,
        /// The new backup node; none: nothing was found and the entry stays.
        to: Option<PeerId>,
    },
    /// A backup node to the user's Base node: the standby capacity was used,
    /// search again.
    SearchAgain(UserId),
    /// The Base node to the backup node: where the user is, and who else serves it.
    Position {
        /// The user.
        user: UserId,
        /// Played so far.
        position: Span,
        /// Yet to be played.
        remaining: Span,
        /// In the buffer.
        level: Span,
        /// Whether the user has begun to watch.
        started: bool,
        /// Who serves the enhancements.
        layers: Arc<[(Layer, PeerId)]>,
    },
    /// A backup to the node it took over from, should that one be alive.
    TookOver {
        /// The user.
        user: UserId,
        /// The backup's epoch.
        epoch: u64,
    },
    /// "I am alive", and a digest of the standings and editions that the sender
    /// knows.
    Digest(u64),
    /// Some standings that the sender knows, to a neighbour whose digest was
    /// another one: nodes and numbers, see [`Standing::seq`].
    Standings(Arc<[(PeerId, u32)]>),
    /// Some of the last orders about titles that the sender knows, likewise.
    Editions(Arc<[Edition]>),
    /// The answer to `Adopt` of a node that does not serve this.
    NotDelivered {
        /// The user.
        user: UserId,
        /// The enhancement.
        layer: Layer,
    },
    /// The user needs this enhancement from this node no more.
    ReleaseLayer {
        /// The user.
        user: UserId,
        /// The enhancement.
        layer: Layer,
        /// The epoch of whoever says so.
        epoch: u64,
    },
}

/// Whether a node is alive, as far as `detector` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The node spoken of.
    pub node: PeerId,
    /// Who noticed.
    pub detector: PeerId,
    /// Counts the node's deaths and returns, odd for a death; the highest number
    /// is right.
    pub seq: u32,
}

impl Standing {
    /// Whether it says that the node is dead.
    pub const fn is_death(&self) -> bool {
        self.seq % 2 == 1
    }
}

impl AgentMessage {
    /// Whether every list is within its bound.
    pub fn is_bounded(&self) -> bool {
        let info = |info: &UserInfo| info.layers.len() <= media::layer::MAX_LAYERS;
        match self {
            Self::Placement(agent) => agent.order.layers.len() <= media::layer::MAX_LAYERS,
            Self::Search(agent) => agent.known.len() <= MAX_KNOWN && info(&agent.info),
            Self::Discovery(agent) => agent.path.len() <= MAX_PATH && agent.route.len() <= MAX_ROUTE,
            Self::Confirm { info: user, .. } => info(user),
            Self::Position { layers, .. } => layers.len() <= media::layer::MAX_LAYERS,
            Self::Standings(standings) => standings.len() <= super::survival::MAX_STANDINGS,
            Self::Editions(editions) => editions.len() <= MAX_EDITIONS,
            Self::Signal
            | Self::Digest(_)
            | Self::FailureDetected(_)
            | Self::Returned(_)
            | Self::Placed { .. }
            | Self::Take { .. }
            | Self::Granted { .. }
            | Self::NotGranted { .. }
            | Self::Adopt { .. }
            | Self::Release { .. }
            | Self::NotDelivered { .. }
            | Self::ReleaseLayer { .. }
            | Self::Cancel(_)
            | Self::Confirmed(_)
            | Self::Denied { .. }
            | Self::Relocate { .. }
            | Self::Relocated { .. }
            | Self::SearchAgain(_)
            | Self::TookOver { .. } => true,
        }
    }
}
