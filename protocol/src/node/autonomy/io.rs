//! What goes into the autonomous part of a node and what comes out of it.

use super::agent::{DiscoveryKind, EntryKind, Level, PlacementOrder, SearchId, Sla, UserId};
use super::talk::{AdmissionRefusal, AgentMessage, PlacementRefusal};
use crate::node::classes::TitleFacts;
use crate::peer::PeerId;
use media::{ByteCount, Hash, Layer, Quality, Span, TitleName};
use serde::Serialize;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutonomyInput {
    /// There is a link to this node, or its travel time has changed.
    NeighbourIs {
        /// The node.
        peer: PeerId,
        /// Its level.
        level: Level,
        /// What a message takes one way.
        travel: Span,
    },
    /// The link is no more, by order; no verdict about the node.
    NeighbourGone {
        /// The node.
        peer: PeerId,
    },
    /// A node has joined the network, somewhere: an origin offers it its titles,
    /// and layers that nobody could serve are looked for again.
    Joined,
    /// A neighbour has died and started anew, faster than its silence told.
    Restarted {
        /// The node.
        peer: PeerId,
    },
    /// This node stops, in order: its backups take over now, and it says no more.
    Leave,
    /// Whether survival signals are sent and awaited; at first they are.
    Signals(bool),
    /// A message came.
    Heard {
        /// From whom.
        from: PeerId,
        /// What.
        message: AgentMessage,
        /// How long it took, as measured.
        travel: Span,
    },
    /// A viewer asks to be served: a Pull-MA begins here.
    Arrive {
        /// The request.
        request: UserRequest,
    },
    /// A viewer came over to this node, which serves it: what it is to be told
    /// is told here from now on.
    Attached {
        /// The user.
        user: UserId,
    },
    /// A viewer reports; this renews its lease.
    Position {
        /// The user.
        user: UserId,
        /// Played so far.
        position: Span,
        /// In the buffer.
        buffer: Span,
    },
    /// A viewer asked to come over by a delivery start says that its old node
    /// still delivers.
    StillServed {
        /// The user.
        user: UserId,
    },
    /// A viewer is done.
    Depart {
        /// The user.
        user: UserId,
    },
    /// Origin only: spread this title.
    Publish(PlacementOrder),
    /// Origin only: delete this title everywhere.
    Unpublish {
        /// The title.
        title: TitleName,
    },
    /// A layer is stored here, whole: fetched, or found on the disk.
    Stored {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// What it takes on disk.
        size: ByteCount,
        /// BLAKE3 of the title's manifest.
        version: Hash,
    },
    /// A layer that was stored here is gone or damaged, and not by order.
    Lost {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
    },
    /// What admission has to know of the titles that are held here: all of them.
    Titles(Vec<TitleFacts>),
    /// The time told by `poll_timeout` has come; harmless at any other time.
    Timeout,
}

/// A viewer's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRequest {
    /// Who.
    pub user: UserId,
    /// What is to be watched.
    pub title: TitleName,
    /// The best quality wanted; at least bronze.
    pub quality: Quality,
    /// What was promised; checked by the caller.
    pub sla: Sla,
    /// Whether the user has begun to watch already, with another node.
    pub started: bool,
    /// The highest epoch the user has heard of; 0 for none.
    pub epoch: u64,
    /// Played so far.
    pub position: Span,
    /// Yet to be played.
    pub remaining: Span,
    /// The size of the buffer; nothing: the configured one.
    pub buffer: Span,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutonomyOutput {
    /// Send a message, to a neighbour or to any other node.
    Send {
        /// To whom.
        to: PeerId,
        /// What.
        message: AgentMessage,
    },
    /// Serve a layer to a user from here on.
    StartDelivery {
        /// The user.
        user: UserId,
        /// What is watched.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// From which position.
        position: Span,
        /// In which epoch.
        epoch: u64,
    },
    /// Serve a layer to a user no more.
    StopDelivery {
        /// The user.
        user: UserId,
        /// The layer.
        layer: Layer,
        /// The reason.
        why: StopWhy,
    },
    /// Tell the viewer, over the connection it has here.
    TellViewer {
        /// The user.
        user: UserId,
        /// What.
        notice: ViewerNotice,
    },
    /// Get this layer from `origin`, then say [`AutonomyInput::Stored`].
    Fetch {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// Who has it.
        origin: PeerId,
        /// BLAKE3 of the title's manifest.
        version: Hash,
    },
    /// Copy this title from the origin's archive into the store; it is described
    /// as whole when it is ([`AutonomyInput::Titles`]), and not at all if it will
    /// not be.
    Copy {
        /// The title.
        title: TitleName,
    },
    /// Delete this title from the store.
    Evict {
        /// The title.
        title: TitleName,
    },
    /// Delete this layer.
    Drop {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
    },
    /// For people and figures; dropping it changes nothing.
    Event(AutonomyEvent),
}

/// Why a delivery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// The user is done.
    Departed,
    /// The user said nothing for a lease.
    LeaseExpired,
    /// Another node has taken over in a later epoch.
    Superseded,
    /// The user's old node still delivers.
    StillServed,
    /// The Base node died and nobody took over within a lease.
    Orphaned,
}

/// What a viewer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerNotice {
    /// Who takes over if this node dies.
    BackupIs {
        /// The node.
        node: PeerId,
        /// The user's epoch now.
        epoch: u64,
    },
    /// "I serve you from now on, from this position."
    DeliveryStart {
        /// Played so far, as last reported.
        position: Span,
        /// The new epoch.
        epoch: u64,
    },
    /// A node was found for a layer.
    ServedBy {
        /// The layer.
        layer: Layer,
        /// The node.
        node: PeerId,
        /// In which epoch.
        epoch: u64,
    },
    /// Nobody can serve this layer; for Base the user is not served at all.
    Refused {
        /// The layer.
        layer: Layer,
        /// Why the last node asked refused.
        why: AdmissionRefusal,
    },
}

/// Why a search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchWhy {
    /// The user has just been admitted.
    Admitted,
    /// The user's backup became its primary (second trigger).
    TookOver,
    /// The user's backup node died (third trigger).
    BackupDied,
    /// The standby capacity of the backup node was used (fourth trigger).
    StandbyUsed,
    /// The backup node moves the entry (first trigger and admission).
    Relocated,
    /// An earlier search was fruitless.
    Again,
    /// No `vipdual` was found: the fallback of a VIP.
    Fallback,
    /// The configured time after giving up has passed.
    GivenUpLongAgo,
}

/// What people and figures are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the inputs and messages they come from")]
pub enum AutonomyEvent {
    /// A neighbour said nothing for Td.
    Detected { node: PeerId, silent: Span },
    /// This node itself was still for so long: nobody is judged by that time.
    Slept { span: Span },
    /// The news of a death arrived.
    BelievedDead { node: PeerId, detector: PeerId },
    /// The news of a return arrived.
    BelievedAlive { node: PeerId },
    /// A user is served here.
    Admitted { user: UserId, kind: EntryKind },
    /// A user was refused here and sent on.
    Refused { user: UserId, kind: EntryKind, why: AdmissionRefusal },
    /// Nobody serves this layer to the user.
    NotServed { user: UserId, layer: Layer },
    /// An enhancement is served from here.
    LayerAdmitted { user: UserId, layer: Layer },
    /// A user's enhancement came from a node that died; another one is asked.
    LayerLost { user: UserId, layer: Layer, node: PeerId },
    /// A user's enhancement comes from this node.
    LayerFound { user: UserId, layer: Layer, node: PeerId },
    /// The free slots fell to the bottom line (first trigger).
    BelowBottomLine { free: u32 },
    /// A backup entry was sent away; `at_once`: deleted before another was found.
    Displaced { user: UserId, kind: EntryKind, at_once: bool },
    /// A displaced entry is gone, or stays because there is no other place.
    DisplacedDone { user: UserId, to: Option<PeerId> },
    /// A search began.
    SearchStarted { search: SearchId, wanted: EntryKind, kind: DiscoveryKind, attempt: u32, why: SearchWhy },
    /// A search for a user who is being searched for already was not made.
    SearchCoalesced { user: UserId, why: SearchWhy },
    /// A search brought nothing.
    SearchFruitless { search: SearchId, attempt: u32, timed_out: bool },
    /// A reply came after its time and was taken.
    LateReplyTaken { search: SearchId },
    /// No search will be made until the next trigger.
    GaveUp { user: UserId, wanted: EntryKind },
    /// A user's backup is official.
    BackupOfficial { user: UserId, node: PeerId, kind: EntryKind },
    /// A node asked to make a reservation official did not.
    BackupDenied { user: UserId, node: PeerId, why: Option<AdmissionRefusal> },
    /// A user's backup is lost.
    BackupLost { user: UserId, node: PeerId },
    /// A reservation was made here.
    Reserved { user: UserId, primary: PeerId, kind: EntryKind },
    /// A reservation here ended.
    Unreserved { user: UserId, kind: EntryKind },
    /// This node serves a user whose node died.
    TakenOver { user: UserId, from: PeerId, kind: EntryKind, epoch: u64 },
    /// This node could not serve a user whose node died.
    TakeOverFailed { user: UserId, from: PeerId, why: AdmissionRefusal },
    /// A user taken over is served by its old node; the reservation is back.
    TakeOverUndone { user: UserId },
    /// Another node serves this user in a later epoch.
    Superseded { user: UserId, epoch: u64 },
    /// A user is served no more.
    Ended { user: UserId, why: StopWhy },
    /// A layer will be stored here.
    Storing { title: TitleName, layer: Layer },
    /// A layer is not stored here.
    NotStoring { title: TitleName, layer: Layer, why: PlacementRefusal },
    /// A copy here is of an older version than the network's; it is replaced.
    CopyOutdated { title: TitleName, layer: Layer },
    /// A copy here is gone or damaged; its origin hears so.
    CopyLost { title: TitleName, layer: Layer },
    /// Origin: a layer has fewer copies than wanted.
    PlacementShort { title: TitleName, layer: Layer, copies: usize, wanted: u16 },
    /// Origin: every layer of a title has its copies.
    PlacementWhole { title: TitleName },
    /// Something a peer said makes no sense here.
    Rejected { from: PeerId, why: RejectedWhy },
    /// A bound of the configuration was reached and something was not kept.
    BoundReached { what: Bound },
}

/// Why something a peer said was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectedWhy {
    /// It did not come from a neighbour.
    NotANeighbour,
    /// An agent whose path does not lead here.
    BadPath,
    /// An agent longer or later than it may be.
    TooLong,
    /// It is for nodes of another level.
    WrongLevel,
    /// The speaker does not speak for this user, title or search.
    NotTheirs,
    /// It is of an epoch that has passed.
    OldEpoch,
    /// It is about no kind of backup.
    NotABackup,
}

/// What a bound is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// `max_neighbours`.
    Neighbours,
    /// `max_searches`.
    Searches,
    /// `max_rows`.
    Rows,
    /// `max_users`.
    Users,
    /// `max_titles`.
    Titles,
    /// `max_nodes`.
    Nodes,
    /// `max_asked`.
    Asked,
}
