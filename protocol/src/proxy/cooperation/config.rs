//! What the mind of a proxy is told when it starts: every option of the method.

use media::{ByteCount, Span};

/// How a proxy forwards what it fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// While it comes: the time is the longer of both transfers (the inner max
    /// of equation 4).
    CutThrough,
    /// When all of it is there: the time is the sum of both transfers.
    StoreForward,
}

/// What moves when a block is fetched of which something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The missing layers only.
    Delta,
    /// The whole block, as in the evaluation of Wakamiya et al.
    Whole,
}

/// How far replacement lowers a block before it discards it: the most that any
/// client still on its way to it ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// ... asks for (Q, the paper's text).
    Requested,
    /// ... accepts (A = beta Q): frees more, and makes no misses either.
    Acceptable,
}

/// Which of the servers that are in time is asked for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The one that could deliver the highest quality, wanted or not; of equal
    /// ones the soonest (the paper's text).
    Offer,
    /// The one that delivers most of what is asked for; of equal ones a peer before
    /// the origin, even if the origin were sooner, and of peers the soonest. More
    /// than is asked for counts no more.
    Useful,
}

/// The settings of [`super::Cooperation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own, set by name")]
pub struct CooperationConfig {
    /// What the cached blocks may weigh together.
    pub capacity: ByteCount,
    /// Whether other proxies are asked and their blocks fetched. Without it
    /// every miss goes to the origin: "independent" in the paper.
    pub cooperate: bool,
    /// Whether blocks are fetched ahead of their requests.
    pub prefetch: bool,
    /// Default `CutThrough`.
    pub relay: Relay,
    /// Default `Delta`; `Whole` in the paper.
    pub transfer: Transfer,
    /// Default `Requested`.
    pub floor: Floor,
    /// Default `Useful`; `Offer` in the paper.
    pub rank: Rank,
    /// Whether a peer that has asked about a block is told when it is kept here, and
    /// peers are asked when a client comes, before it asks for anything. Without it a peer knows what was held when it asked last, and asks again
    /// only I - P blocks later. Default true; false in the paper.
    pub news: bool,
    /// I, the inquiry window in blocks: what a query asks about from where each
    /// client is, and at the head of the title. At least 1. Default 20.
    pub inquiry: u32,
    /// P, the prefetch window in blocks, below I. Default 10.
    pub ahead: u32,
    /// Delta, the margin against jitter and errors of the estimates. Default
    /// 300 ms, 2 s in the paper (reconstructed), whose buffers are deep.
    pub margin: Span,
    /// What counts as buffered of a client that has not begun to play: the
    /// paper's 4 s of prefetch before playback.
    pub start_buffer: Span,
    /// How many prefetches may wait at a server; a newer one overwrites the
    /// oldest. 1 in the paper.
    pub prefetch_queue: usize,
    /// Whether a waiting prefetch is withdrawn when the same block is fetched
    /// as a miss from another server at the same or a higher quality. Default
    /// true (reconstructed).
    pub withdraw: bool,
    /// The share of a new measurement in the estimates of delay and rate: one in
    /// so many. Default 8.
    pub smoothing: u64,
    /// What is assumed of a peer proxy's rate before anything was measured.
    /// Default 20 Mbit/s.
    pub first_rate: media::BitRate,
    /// What is assumed of a delay before anything was measured. Default 20 ms.
    pub first_delay: Span,
    /// The most clients at once. Default 4096.
    pub max_clients: usize,
    /// The most fetches open at one server. Default 256.
    pub max_fetches: usize,
    /// The most titles known at once. Default 64.
    pub max_titles: usize,
    /// The most other proxies; at most 31. Default 16.
    pub max_peers: usize,
}

impl CooperationConfig {
    /// What a proxy uses: missing layers only, and as little from the origin as
    /// serves.
    pub const fn production(capacity: ByteCount) -> Self {
        Self {
            capacity,
            cooperate: true,
            prefetch: true,
            relay: Relay::CutThrough,
            transfer: Transfer::Delta,
            floor: Floor::Requested,
            rank: Rank::Useful,
            news: true,
            inquiry: 20,
            ahead: 10,
            margin: Span::from_millis(300),
            start_buffer: Span::from_secs(4),
            prefetch_queue: 1,
            withdraw: true,
            smoothing: 8,
            first_rate: media::BitRate(20_000_000),
            first_delay: Span::from_millis(20),
            max_clients: 4096,
            max_fetches: 256,
            max_titles: 64,
            max_peers: 16,
        }
    }

    /// The parameters of the evaluation of Wakamiya et al., section 4: whole
    /// blocks, I = 20, P = 10, delta = 2 s (all three reconstructed).
    pub const fn paper(capacity: ByteCount) -> Self {
        Self {
            transfer: Transfer::Whole,
            rank: Rank::Offer,
            news: false,
            margin: Span::from_secs(2),
            ..Self::production(capacity)
        }
    }
}
