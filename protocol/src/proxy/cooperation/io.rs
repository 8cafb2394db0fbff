//! What goes into the mind of a proxy and what comes out of it.
//!
//! The life of a request: `Asked` comes in; at once, in the same round of
//! outputs, comes `Serve` (it is held), `Wait` (it is on its way, or a `Fetch`
//! was just ordered for it) or `Refuse`. After a `Wait` comes another `Wait`
//! (that fetch failed, this one is better), or a `Serve`, or a `Refuse`. A
//! driver that cuts through forwards from `Wait` on what is held and what the
//! fetch brings, and takes `Serve` as the word that it was all right.

use super::super::block_table::BlockTable;
use super::super::talk::{Query, Reply};
use crate::peer::PeerId;
use media::{BitRate, ByteCount, Quality, Span, TitleName};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A client of this proxy: one viewing of one title, by the driver's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub u64);

/// A fetch, numbered by the machine; no number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FetchId(pub u64);

/// Where blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Server {
    /// The network of nodes, which has everything; one row, whichever node it is.
    Origin,
    /// Another proxy.
    Peer(PeerId),
}

/// How much a client insists on what it asks for, in thousandths: 1000 takes
/// nothing less and may wait for it, near 0 takes anything (beta).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Beta(pub u16);

impl Beta {
    /// `A = ceil(beta Q)`, at least one layer and never more than `wanted`.
    pub fn acceptable(self, wanted: Quality) -> Quality {
        let layers = (u32::from(wanted.layers()) * u32::from(self.0.min(1000))).div_ceil(1000);
        Quality(u8::try_from(layers).unwrap_or(u8::MAX)).clamp(Quality(1), wanted.max(Quality(1)))
    }
}

/// Why a block is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchKind {
    /// A client waits for it.
    Miss,
    /// A client will want it; served when no miss is waiting.
    Prefetch,
}

/// A fetch that is ordered: layers above `have` up to `want` of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Its number.
    pub id: FetchId,
    /// From whom.
    pub server: Server,
    /// Of which title.
    pub title: TitleName,
    /// Which block.
    pub block: u32,
    /// What is held already and does not move; nothing if whole blocks move.
    pub have: Quality,
    /// Up to which quality.
    pub want: Quality,
    /// What moves, in bytes.
    pub bytes: ByteCount,
    /// Why.
    pub kind: FetchKind,
}

/// Why a fetch brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchFailure {
    /// The server no longer has the block; its row is corrected.
    Absent,
    /// A prefetch that waited was overwritten by a newer one, or cancelled by a
    /// miss for the same block. The server is well.
    Overwritten,
    /// Too late, broken off, or wrong bytes. The block is asked elsewhere, or of
    /// the same server if there is no other.
    Failed,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A title's sizes and times are known; needed before anything else is said
    /// of it. Known already: nothing happens.
    Title {
        /// Which.
        title: TitleName,
        /// Its blocks.
        blocks: Arc<BlockTable>,
    },
    /// A title is forgotten: its blocks count no more, its clients are gone, and
    /// its fetches are forgotten. The driver deletes what it kept of it.
    Forgotten {
        /// Which.
        title: TitleName,
    },
    /// A block was found on disk when the proxy started. Answered by
    /// [`Output::Drop`] if there is no room for it.
    Restored {
        /// The title.
        title: TitleName,
        /// The block.
        block: u32,
        /// Layers held without a gap.
        quality: Quality,
    },
    /// What is kept of a block turned out to be only this much.
    Damaged {
        /// The title.
        title: TitleName,
        /// The block.
        block: u32,
        /// What is left.
        quality: Quality,
    },
    /// A client begins to watch.
    Arrived {
        /// Its number; a number in use begins anew.
        client: ClientId,
        /// What it watches.
        title: TitleName,
        /// How much it insists on what it asks for.
        beta: Beta,
        /// One way to it.
        delay: Span,
        /// What its link carries.
        rate: BitRate,
    },
    /// A client insists more or less from now on: its service fails over, or does not
    /// any more.
    Insists {
        /// Which.
        client: ClientId,
        /// How much.
        beta: Beta,
    },
    /// Delay and rate of a client as measured now; each new value counts 1/8.
    ClientMeasured {
        /// Which.
        client: ClientId,
        /// One way to it, if measured.
        delay: Option<Span>,
        /// Its rate, if measured.
        rate: Option<BitRate>,
    },
    /// A client is done, or lost.
    Left {
        /// Which.
        client: ClientId,
    },
    /// A client asks for a block: (j, i) of the paper. Asked again while it is
    /// being served: answered again, with what holds now.
    Asked {
        /// Which client.
        client: ClientId,
        /// Which block.
        block: u32,
        /// `Q_j(i)`: what it asks for, at least one layer.
        quality: Quality,
        /// `p_j tau`: what it has buffered.
        buffered: Span,
        /// Whether it has not begun to play; then `start_buffer` counts.
        starting: bool,
    },
    /// Another proxy is linked, or linked again. Asked at once for what this
    /// proxy's clients want.
    PeerFound {
        /// Which.
        peer: PeerId,
    },
    /// A server is lost: nothing more is expected of it, and what was fetched
    /// from it is fetched elsewhere. A peer's markers go.
    Lost {
        /// Which.
        server: Server,
    },
    /// The origin can be asked again. It can from the start.
    OriginFound,
    /// A server's delay or rate as measured now; the first value counts whole,
    /// each later one 1/8.
    Measured {
        /// Which.
        server: Server,
        /// One way to it, such as half a round trip.
        delay: Option<Span>,
        /// Its rate in this session.
        rate: Option<BitRate>,
    },
    /// Another proxy asks what is held.
    Queried {
        /// Who.
        from: PeerId,
        /// What.
        query: Query,
    },
    /// Another proxy says what it holds.
    Replied {
        /// Who.
        from: PeerId,
        /// What.
        reply: Reply,
    },
    /// The first bytes of a fetch are here. May be left out; times are then
    /// known less well.
    Begun {
        /// Which fetch.
        fetch: FetchId,
    },
    /// The lower layers of what a fetch brings are here, whole and checked, and can be
    /// kept. May be left out; others then hear of them later.
    Partly {
        /// Which fetch.
        fetch: FetchId,
        /// Layers of the block that are here without a gap.
        quality: Quality,
    },
    /// A fetch is over: this much is here now, whole and checked.
    Fetched {
        /// Which fetch.
        fetch: FetchId,
        /// Quality of the block with what came: usually `want`, less if the
        /// server had less. No more than `have` counts as `Absent`.
        quality: Quality,
        /// Bytes that came.
        bytes: ByteCount,
        /// From the first byte to the last; zero if it was not measured.
        took: Span,
    },
    /// A fetch brought nothing.
    FetchFailed {
        /// Which fetch.
        fetch: FetchId,
        /// Why.
        why: FetchFailure,
    },
    /// The time told by `poll_timeout` has come; harmless at any other time.
    Timeout,
}

/// Something to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask another proxy.
    Query {
        /// Whom.
        to: PeerId,
        /// What.
        query: Query,
    },
    /// Answer another proxy.
    Reply {
        /// Whom.
        to: PeerId,
        /// What.
        reply: Reply,
    },
    /// Fetch a block. Misses before prefetches; at most `prefetch_queue`
    /// prefetches wait at one server, and an overwritten one is reported as
    /// [`FetchFailure::Overwritten`] (see [`super::super::SessionQueue`]).
    Fetch(Fetch),
    /// A fetch is of no use any more: if it has not begun, it need not be done,
    /// and is reported as [`FetchFailure::Overwritten`]. If it has, it goes on.
    Cancel {
        /// Which.
        fetch: FetchId,
        /// At whom.
        server: Server,
    },
    /// Send a block to a client from what is held, at this quality.
    Serve {
        /// To whom.
        client: ClientId,
        /// The block.
        block: u32,
        /// The layers it gets, never more than it asked for.
        quality: Quality,
        /// The fetch that it waited for; none if it was held when asked.
        fetch: Option<FetchId>,
    },
    /// A client's block comes with this fetch.
    Wait {
        /// Which client.
        client: ClientId,
        /// The block.
        block: u32,
        /// The layers it will get if the fetch brings what it should.
        quality: Quality,
        /// The fetch.
        fetch: FetchId,
        /// `w_j(i)` by equation 5: how long playback is expected to wait.
        freeze: Span,
    },
    /// Nobody can deliver this block now.
    Refuse {
        /// To whom.
        client: ClientId,
        /// The block.
        block: u32,
        /// Why.
        why: Reason,
    },
    /// Keep a block at this quality; it was just fetched. What was fetched and
    /// is not followed by this is forwarded to those who wait, then forgotten.
    Keep {
        /// The title.
        title: TitleName,
        /// The block.
        block: u32,
        /// The layers.
        quality: Quality,
    },
    /// Delete the layers of a block above this quality; nothing is left of it at
    /// [`Quality::NONE`].
    Drop {
        /// The title.
        title: TitleName,
        /// The block.
        block: u32,
        /// What stays.
        quality: Quality,
    },
    /// For people and figures; dropping it changes nothing.
    Event(Event),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// No such client, or no such block in its title.
    Unknown,
    /// Too much is being fetched already.
    Full,
    /// Neither the origin nor a peer that has it can be reached.
    Nobody,
}

/// How a request was answered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Held.
    Hit,
    /// On its way already.
    Pending,
    /// Fetched from a server that is in time.
    Miss,
    /// Nobody is in time; fetched from the soonest.
    Late,
}

/// What people and figures are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the inputs they come from")]
pub enum Event {
    /// A request was answered.
    Answered { client: ClientId, block: u32, answer: Answer },
    /// A block was fetched and not kept: there is no room for it.
    NotKept { title: TitleName, block: u32, quality: Quality },
    /// A peer said something that makes no sense here, or is one too many.
    Rejected { peer: PeerId },
    /// A client or a title is one too many.
    Full { title: TitleName },
    /// A peer was not heard for so long that its markers were removed.
    MarkersLapsed { peer: PeerId, title: TitleName },
}

/// What a mind has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests answered from the cache.
    pub hits: u64,
    /// Requests that waited for something on its way.
    pub pending: u64,
    /// Requests fetched in time.
    pub misses: u64,
    /// Requests that nobody could serve in time.
    pub late: u64,
    /// Prefetches ordered.
    pub prefetches: u64,
    /// Queries sent.
    pub queries: u64,
    /// Bytes that came from the origin.
    pub from_origin: u64,
    /// Bytes that came from other proxies.
    pub from_peers: u64,
    /// Bytes of blocks that clients got without a fetch.
    pub from_cache: u64,
}
