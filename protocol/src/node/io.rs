//! What goes into a node and what comes out of it.

use super::autonomy::{AgentMessage, AutonomyEvent, UserId};
use super::mesh::Door;
use super::shelf::Held;
use crate::guests::{LinkId, StreamId};
use crate::message::{Contact, Hello, Message, NodeAddress, Open, Refusal, Role, SessionId, StreamRequest};
use crate::peer::PeerId;
use crate::status::NodeStatus;
use crate::token::Claims;
use media::{Hash, Layer, Quality, Span, TitleName};
use serde::Serialize;
use std::net::SocketAddr;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A peer connected and introduced itself; its name is checked against its
    /// certificate.
    Linked {
        /// The connection's number.
        link: LinkId,
        /// What it said.
        hello: Hello,
        /// This node's address as the peer sees it.
        here: SocketAddr,
    },
    /// A dial that was asked for succeeded.
    Reached {
        /// The connection's number.
        link: LinkId,
        /// The address that was dialled.
        address: std::net::SocketAddr,
        /// What the peer said, checked against its certificate.
        hello: Hello,
    },
    /// A dial that was asked for failed.
    Unreached {
        /// The address that was dialled.
        address: std::net::SocketAddr,
    },
    /// A message on a control stream; an `Open` comes as [`Input::Opens`].
    Heard {
        /// From whom.
        link: LinkId,
        /// What.
        message: Message,
        /// What a message takes one way on this connection, as measured.
        travel: Span,
    },
    /// Somebody wants to open a title.
    Opens {
        /// By which connection.
        link: LinkId,
        /// The request.
        open: Open,
        /// What its token says, checked, or that it is not valid.
        claims: Result<Claims, Refusal>,
    },
    /// A connection is over; its streams need not be answered any more.
    Gone {
        /// Which.
        link: LinkId,
        /// Whether the peer ended it by itself; if not it may have died, or the
        /// network failed.
        parted: bool,
    },
    /// The library was looked through: this is all that is held now.
    Shelf(Vec<Held>),
    /// A request on a stream of its own.
    Asked {
        /// From whom.
        link: LinkId,
        /// The stream's number.
        stream: StreamId,
        /// What for.
        request: StreamRequest,
    },
    /// A granted stream is over.
    Answered {
        /// Which.
        stream: StreamId,
        /// How.
        outcome: Outcome,
    },
    /// A stored copy of a layer turned out to be damaged.
    Damaged {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// BLAKE3 of its manifest.
        version: Hash,
    },
    /// What the archive says of a title it was asked about ([`Output::Look`]).
    Looked {
        /// The title.
        title: TitleName,
        /// What it is, as [`Held::archived`] and with all of its layers.
        found: Box<Result<Held, Refusal>>,
    },
    /// A download has ended ([`Output::Download`]).
    Downloaded {
        /// The title.
        title: TitleName,
        /// Whether it is in the store as a whole; if not, nothing of it remains.
        whole: bool,
    },
    /// The order to stop.
    Drain,
    /// The time told by `poll_timeout` has come; harmless at any other time.
    Timeout,
}

/// How a granted stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was sent.
    Sent {
        /// Length of the payload.
        bytes: u64,
    },
    /// The peer wants no more of it, is too slow, or is gone.
    GivenUp,
    /// The stored copy is damaged; the peer was told so.
    Damaged,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message.
    Send {
        /// To whom.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// Say no more to this peer and let it close the connection.
    Part {
        /// Which.
        link: LinkId,
    },
    /// Send what is asked for on this stream, then say how it went.
    Grant {
        /// The stream.
        stream: StreamId,
        /// What was asked for.
        request: StreamRequest,
        /// Of the version of the title with this manifest (BLAKE3).
        version: Hash,
        /// Whether it has a slot; what has none is sent after all that has.
        slot: bool,
    },
    /// Keep this stream: its viewer has used up its slot for now, and a grant or
    /// a refusal follows. If the peer wants no more of it, say
    /// [`Outcome::GivenUp`].
    Hold {
        /// The stream.
        stream: StreamId,
    },
    /// Refuse what is asked for on this stream.
    Refuse {
        /// The stream.
        stream: StreamId,
        /// The reason.
        why: Refusal,
    },
    /// Dial a node; say [`Input::Reached`] or [`Input::Unreached`].
    Dial(Door),
    /// Copy a layer from another node until it is held, then say
    /// [`Input::Shelf`]. Said again when the node is elsewhere or another version
    /// is wanted: the last word counts.
    Fetch {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
        /// Who has it.
        from: NodeAddress,
        /// BLAKE3 of the manifest.
        version: Hash,
    },
    /// Nobody watches this version of a title any more, which was replaced.
    Release {
        /// The title.
        title: TitleName,
        /// BLAKE3 of its manifest.
        version: Hash,
    },
    /// Keep for the node's next life what is withdrawn by order now: its
    /// [`NodeConfig::withdrawn`].
    ///
    /// [`NodeConfig::withdrawn`]: super::NodeConfig::withdrawn
    Withdrawn {
        /// All of it.
        titles: Vec<TitleName>,
    },
    /// Delete a layer, or stop to copy it; then say [`Input::Shelf`].
    Remove {
        /// The title.
        title: TitleName,
        /// The layer.
        layer: Layer,
    },
    /// Ask the origin's archive what a title is, then say [`Input::Looked`]; always,
    /// and soon, for somebody waits.
    Look {
        /// The title.
        title: TitleName,
        /// Where to ask.
        from: Door,
    },
    /// Copy the title that was found last into the store, and give its chunks to
    /// whoever they are granted to as they come; then say [`Input::Downloaded`],
    /// and [`Input::Shelf`] if it is whole.
    Download {
        /// The title.
        title: TitleName,
        /// Where from.
        from: Door,
    },
    /// Delete a title from the store; then say [`Input::Shelf`].
    Evict {
        /// The title.
        title: TitleName,
    },
    /// Add what the driver alone knows, and send it.
    TellStatus {
        /// To whom.
        link: LinkId,
        /// How the node stands.
        status: Box<NodeStatus>,
    },
    /// The node has stopped: nothing is open, or it took too long.
    Drained,
    /// For people and figures; dropping it changes nothing.
    Event(Event),
}

/// What people and figures are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the inputs and messages they come from")]
pub enum Event {
    /// A peer connected.
    Joined { link: LinkId, peer: PeerId, role: Role },
    /// A peer was not let in.
    TurnedAway { link: LinkId, peer: PeerId, why: Refusal },
    /// A connection ended, and so many sessions with it.
    Left { link: LinkId, sessions: usize },
    /// A session was opened; so many are open now.
    Opened { link: LinkId, session: SessionId, title: TitleName, quality: Quality, sessions: usize },
    /// A viewer has paused for so long that others may have its slot.
    SlotGivenBack { user: UserId },
    /// A session was refused.
    SessionRefused { link: LinkId, title: TitleName, why: Refusal },
    /// A viewer looks for nodes, beginning here.
    Seeks { link: LinkId, user: UserId, title: TitleName, quality: Quality },
    /// A viewer is served elsewhere and was told so.
    SentOn { user: UserId, to: PeerId },
    /// A viewer was told where its backup is.
    BackupTold { user: UserId, backup: PeerId, epoch: u64 },
    /// A viewer whose node died was told that this node serves it now.
    DeliveryStarted { user: UserId, epoch: u64, told: bool },
    /// A node was heard of for the first time, or has started anew.
    Met { node: Contact },
    /// A node is a neighbour from now on.
    Linked { peer: PeerId },
    /// A layer is being copied.
    Copying { title: TitleName, layer: Layer, from: PeerId },
    /// What was to be said to a node cannot be: nobody knows where it is.
    Unsaid { to: PeerId },
    /// The origin's archive is asked for a title.
    Looking { title: TitleName },
    /// The archive does not have it, or does not answer.
    NotInArchive { title: TitleName, why: Refusal },
    /// A title is fetched from the archive while it is watched.
    Downloading { title: TitleName },
    /// That has ended; the title is in the store as a whole, or it is not.
    Downloaded { title: TitleName, whole: bool },
    /// A title has left the store.
    Evicted { title: TitleName },
    /// An agent goes on to a node from here, or news of a node does.
    Went { to: PeerId, agent: Traveller },
    /// A title is published.
    Published { title: TitleName, copies: u16 },
    /// A published title was replaced in the library, and is spread anew.
    Replaced { title: TitleName },
    /// A title is withdrawn.
    Unpublished { title: TitleName },
    /// A session was closed by its viewer.
    Closed { link: LinkId, session: SessionId },
    /// A request was refused.
    RequestRefused { link: LinkId, request: StreamRequest, why: Refusal },
    /// A request was granted, but has to wait for its viewer's slot.
    Paced { link: LinkId, stream: StreamId, request: StreamRequest },
    /// A payload was sent.
    Sent { link: LinkId, stream: StreamId, bytes: u64 },
    /// A payload was given up by the peer.
    GivenUp { link: LinkId, stream: StreamId },
    /// A stored copy is damaged.
    Damaged { link: LinkId, stream: StreamId },
    /// A peer said something that makes no sense here.
    Rejected { link: LinkId, why: Refusal },
    /// The order to stop was heard; so many peers and open requests there are.
    Draining { links: usize, open: usize },
    /// The node has stopped, so many requests unanswered.
    Drained { unanswered: usize },
    /// Something happened in the autonomous network.
    #[serde(untagged)]
    Network(AutonomyEvent),
}

/// What goes from node to node by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Traveller {
    /// A Push-MA.
    Placement,
    /// A Pull-MA.
    Search,
    /// A DISC-MA or Re-DISC MA.
    Discovery,
    /// The news that a node is dead.
    Failure,
    /// The news that it is not.
    Return,
}

impl Traveller {
    /// What travels in this message; none if it is between two nodes only.
    pub(crate) fn of(message: &AgentMessage) -> Option<Self> {
        let kinds = [
            (matches!(message, AgentMessage::Placement(_)), Self::Placement),
            (matches!(message, AgentMessage::Search(_)), Self::Search),
            (matches!(message, AgentMessage::Discovery(_)), Self::Discovery),
            (matches!(message, AgentMessage::FailureDetected(_)), Self::Failure),
            (matches!(message, AgentMessage::Returned(_)), Self::Return),
        ];
        kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
    }
}
