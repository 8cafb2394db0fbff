//! What goes into a proxy and what comes out of it.

use super::config::Upstream;
use super::titles::Shape;
use crate::guests::{LinkId, StreamId};
use crate::message::{Hello, Message, Refusal, Role, SessionId, StreamRequest};
use crate::node::autonomy::UserId;
use crate::peer::PeerId;
use crate::quality::Step;
use crate::status::ProxyStatus;
use media::{ChunkId, Quality, Span, TitleName, TitleSummary};
use serde::Serialize;
use std::net::SocketAddr;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client connected and introduced itself.
    Linked {
        /// The connection's number.
        link: LinkId,
        /// What it said.
        hello: Hello,
        /// The proxy's address as the client sees it.
        here: SocketAddr,
    },
    /// A message on a client's control stream.
    Heard {
        /// From whom.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// A client's connection is over; its streams need not be answered.
    Gone {
        /// Which.
        link: LinkId,
        /// Whether the client ended it by itself.
        parted: bool,
    },
    /// A client's connection has taken so much since it began.
    Taken {
        /// Which.
        link: LinkId,
        /// Bytes sent less those lost on the way.
        bytes: u64,
    },
    /// A connection to a node upstream stands.
    Reached {
        /// Where it was dialled.
        address: SocketAddr,
        /// The node's name, as its certificate says.
        peer: PeerId,
        /// Round trip as the transport measured it.
        round_trip: Span,
    },
    /// A connection to a node upstream is over, or could not be made.
    Unreached {
        /// Where.
        address: SocketAddr,
    },
    /// A message of a node upstream that answers none of the driver's questions.
    Told {
        /// From whom.
        address: SocketAddr,
        /// What.
        message: Message,
    },
    /// Bytes came from a node upstream, whatever they were.
    HeardFrom {
        /// From whom.
        address: SocketAddr,
    },
    /// A request on a stream of its own.
    Asked {
        /// From whom.
        link: LinkId,
        /// The stream's number.
        stream: StreamId,
        /// What for.
        request: StreamRequest,
        /// Whether the chunk is in memory, and will be until the next input.
        held: bool,
        /// Length of the chunk by the manifest in bytes; 0 if unknown.
        length: u64,
    },
    /// A stream that was to be served is over.
    Answered {
        /// Which.
        stream: StreamId,
        /// How.
        outcome: Outcome,
    },
    /// What [`Output::Learn`] brought.
    Learnt {
        /// The title.
        title: TitleName,
        /// What it is, or why nobody says.
        shape: Result<Shape, Refusal>,
        /// Blocks of which an earlier life left something, with the layers that are
        /// there without a gap.
        kept: Vec<(u32, Quality)>,
    },
    /// What an earlier life left of a title; nobody has asked for it yet.
    Restored {
        /// The title.
        title: TitleName,
        /// What it is.
        shape: Shape,
        /// What is kept of it.
        kept: Vec<(u32, Quality)>,
    },
    /// What [`Output::List`] brought.
    Listed(Result<Vec<TitleSummary>, Refusal>),
    /// More of a chunk is here; the first time, its first bytes are.
    Came {
        /// Which.
        chunk: ChunkId,
        /// How much more than was told before.
        bytes: u64,
    },
    /// A chunk cannot be kept, or is not any more.
    NotKept {
        /// Which.
        chunk: ChunkId,
    },
    /// A chunk is here, whole and checked.
    Filled {
        /// Which.
        chunk: ChunkId,
    },
    /// The source did not deliver.
    FillFailed {
        /// Which chunk.
        chunk: ChunkId,
        /// Which source.
        from: Upstream,
        /// Why.
        why: FillFailure,
    },
    /// The order to stop.
    Drain,
    /// The time told by `poll_timeout` has come; harmless at any other time.
    Timeout,
}

/// Why a source did not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FillFailure {
    /// It said no.
    Refused(Refusal),
    /// It cannot be reached, broke off or made no progress.
    Silent,
    /// What it sent was not what the manifest states.
    Lie,
}

/// Why a chunk that is here is not kept; it is fetched again when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotKept {
    /// No title known has such a chunk, or not any more.
    Unknown,
    /// There is no room for it.
    NoRoom,
    /// The disk did not keep up.
    Busy,
    /// The disk is full or does not take it.
    Disk,
    /// What is on the disk is not what was written.
    Damaged,
}

/// How a served stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of it was sent.
    Sent {
        /// Length of the payload.
        bytes: u64,
    },
    /// The client wants no more of it, is too slow, or is gone.
    GivenUp,
    /// No source delivered; the client was told so.
    Unavailable,
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
    /// Say no more to this client and let it close the connection.
    Part {
        /// Which.
        link: LinkId,
    },
    /// Connect to a node upstream; a connection that stands is given up once the
    /// new one does.
    Dial {
        /// Whom.
        to: Upstream,
    },
    /// Send a message to a node upstream.
    Tell {
        /// To whom.
        to: Upstream,
        /// What.
        message: Message,
    },
    /// Ask what there is, of each in turn until one answers.
    List {
        /// Whom.
        upstream: Vec<Upstream>,
    },
    /// Ask for a title and its manifest, of each in turn until one answers.
    Learn {
        /// Which.
        title: TitleName,
        /// Whom.
        upstream: Vec<Upstream>,
    },
    /// Nothing more is known about a title; what was kept of it can go.
    Forget {
        /// Which.
        title: TitleName,
    },
    /// Fetch a chunk from this source; if another one was asked before, it is
    /// left, and what came of it is kept.
    Fill {
        /// Which.
        chunk: ChunkId,
        /// From whom.
        from: Upstream,
    },
    /// Keep a chunk that is here, or say that it cannot be kept.
    Keep {
        /// Which.
        chunk: ChunkId,
    },
    /// Keep a chunk that is here no longer than those take who wait for it.
    Discard {
        /// Which.
        chunk: ChunkId,
    },
    /// Delete a chunk that is kept, if it is.
    Remove {
        /// Which.
        chunk: ChunkId,
    },
    /// Tell this client how the proxy stands.
    TellStatus {
        /// Whom.
        link: LinkId,
        /// How, as far as the machine knows.
        status: Box<ProxyStatus>,
    },
    /// Nobody delivers this chunk: tell those who wait for it.
    GiveUp {
        /// Which.
        chunk: ChunkId,
        /// What they are told.
        why: Refusal,
    },
    /// Send what is asked for on this stream, as it comes or from memory, then
    /// say how it went.
    Serve {
        /// The stream.
        stream: StreamId,
    },
    /// The same, but only the first half of the chunk.
    ServeHalf {
        /// The stream.
        stream: StreamId,
    },
    /// As `Serve`, but the client is told not to show it: its line is on trial.
    Try {
        /// The stream.
        stream: StreamId,
    },
    /// As `ServeHalf`, but on trial.
    TryHalf {
        /// The stream.
        stream: StreamId,
    },
    /// As `Serve`, but the client is told to show only the first half: the rest is on
    /// trial.
    TryRest {
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
    /// The proxy has stopped.
    Drained,
    /// For people and figures; dropping it changes nothing.
    Event(Event),
}

/// What people and figures are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the inputs and messages they come from")]
pub enum Event {
    /// A client connected.
    Joined { link: LinkId, peer: PeerId, role: Role },
    /// A client was not let in.
    TurnedAway { link: LinkId, peer: PeerId, why: Refusal },
    /// A connection ended, and so many sessions with it.
    Left { link: LinkId, sessions: usize },
    /// A session was opened; so many are open now.
    Opened { link: LinkId, session: SessionId, title: TitleName, quality: Quality, sessions: usize },
    /// A session was refused.
    SessionRefused { link: LinkId, title: TitleName, why: Refusal },
    /// A session was closed by its viewer.
    Closed { link: LinkId, session: SessionId },
    /// A request was refused.
    RequestRefused { link: LinkId, request: StreamRequest, why: Refusal },
    /// A stream is over.
    Answered { link: LinkId, stream: StreamId, outcome: Outcome },
    /// A chunk is being fetched.
    Filling { chunk: ChunkId, from: Upstream },
    /// A chunk was fetched.
    Filled { chunk: ChunkId },
    /// A source did not deliver a chunk.
    FillFailed { chunk: ChunkId, from: Upstream, why: FillFailure },
    /// A VIP's chunk was late at its source: its standby is asked.
    Hedged { chunk: ChunkId, from: Upstream, to: Upstream },
    /// A client's Base node, from here on.
    ServedBy { user: UserId, node: Upstream, epoch: u64 },
    /// Who takes over if it dies.
    BackupKnown { user: UserId, node: Upstream },
    /// A node upstream answered nothing for too long.
    Silent { node: Upstream },
    /// A client's quality is another one from here on.
    Stepped { link: LinkId, from: Step, to: Step },
    /// A client said something that makes no sense here.
    Rejected { link: LinkId, why: Refusal },
    /// The order to stop was heard; so many clients and open requests there are.
    Draining { links: usize, open: usize },
    /// The proxy has stopped, so many requests unanswered.
    Drained { unanswered: usize },
    /// A chunk was not kept, or is not any more.
    NotKept { chunk: ChunkId, why: NotKept },
}
