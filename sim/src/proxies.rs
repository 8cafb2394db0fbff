//! Cooperating proxies under virtual time: the model of Wakamiya et al., section
//! 4. One origin, three proxies, ten clients each, sessions of constant rate;
//! every proxy is the very machine that runs in production
//! ([`protocol::proxy::cooperation`]).

mod audience;
mod client;
mod model;
mod session;

pub use audience::{Audience, Viewing, Watcher};
pub use model::{Outcome, ProxyOutcome, Waits, run};
pub use session::Session;

use media::{BitRate, ByteCount, Quality, Span};
use protocol::proxy::BlockTable;
use protocol::proxy::cooperation::{Beta, CooperationConfig, Transfer};
use std::sync::Arc;

/// Levels of quality of the paper's clients: what they ask for walks from 1 to 10.
pub const LEVELS: u8 = 10;
/// What a block weighs for each level: a(q, i) = q x 10^6 bits (reconstructed).
pub const LEVEL_BYTES: u64 = 125_000;

/// The four schemes that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Every miss goes to the origin.
    Independent,
    /// The same, and blocks are fetched ahead.
    IndependentAhead,
    /// Misses go to whoever serves them best.
    Cooperative,
    /// The proposal: both.
    CooperativeAhead,
}

impl Scheme {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 4] =
        [Self::Independent, Self::IndependentAhead, Self::Cooperative, Self::CooperativeAhead];

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::IndependentAhead => "independent-prefetch",
            Self::Cooperative => "cooperative",
            Self::CooperativeAhead => "cooperative-prefetch",
        }
    }

    /// Whether proxies cooperate, and whether they fetch ahead.
    const fn parts(self) -> (bool, bool) {
        match self {
            Self::Independent => (false, false),
            Self::IndependentAhead => (false, true),
            Self::Cooperative => (true, false),
            Self::CooperativeAhead => (true, true),
        }
    }
}

/// What blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ladder {
    /// Ten levels; a block moves whole whatever is held: the paper.
    TenWhole,
    /// Ten levels; only what is missing moves.
    Ten,
    /// Three layers, as in production, each a third of the highest level.
    Three,
    /// Three layers in halves of equal size: six steps.
    Halves,
}

impl Ladder {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::TenWhole, Self::Ten, Self::Three, Self::Halves];

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TenWhole => "10-whole",
            Self::Ten => "10-delta",
            Self::Three => "3-delta",
            Self::Halves => "3-halves-delta",
        }
    }

    /// The number of layers.
    pub const fn layers(self) -> u8 {
        match self {
            Self::TenWhole | Self::Ten => LEVELS,
            Self::Three => 3,
            Self::Halves => 6,
        }
    }

    /// What moves when some of a block is held.
    pub const fn transfer(self) -> Transfer {
        match self {
            Self::TenWhole => Transfer::Whole,
            Self::Ten | Self::Three | Self::Halves => Transfer::Delta,
        }
    }

    /// The fewest layers that are at least this level: who asks for a level
    /// wants no less.
    pub fn wanted(self, level: u8) -> Quality {
        let layers = (u32::from(level) * u32::from(self.layers())).div_ceil(u32::from(LEVELS));
        Quality(u8::try_from(layers).unwrap_or(u8::MAX))
    }

    /// What a client that asked for a level got of it, 0 to 1.
    pub fn ratio(self, got: Quality, level: u8) -> f64 {
        let reached = f64::from(got.layers()) * f64::from(LEVELS) / f64::from(self.layers());
        (reached / f64::from(level.max(1))).min(1.0)
    }

    fn table(self, blocks: u32, tau: Span) -> BlockTable {
        let layers = u64::from(self.layers());
        let whole = LEVEL_BYTES * u64::from(LEVELS);
        let sizes: Vec<u64> =
            (0..layers).map(|layer| whole * (layer + 1) / layers - whole * layer / layers).collect();
        BlockTable::uniform(blocks, tau, &sizes)
    }
}

/// Everything about a run. [`Setting::paper`] is C.7 of our reading of the paper:
/// values that its text has lost are reconstructed, and said so here.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// What decides chance: starts and walks depend on it alone.
    pub seed: u64,
    /// Who shares and who fetches ahead.
    pub scheme: Scheme,
    /// What blocks are made of.
    pub ladder: Ladder,
    /// L: 5400.
    pub blocks: u32,
    /// tau: 1 s.
    pub tau: Span,
    /// Clients of each proxy: 10.
    pub clients: u32,
    /// Mean of the exponential gaps between starts at one proxy: 60 min
    /// (reconstructed).
    pub gap: Span,
    /// 0.6 (reconstructed from the axis of the quality figure).
    pub beta: Beta,
    /// Blocks that a client has before it plays, asked for at level 1: 4.
    pub start_blocks: u32,
    /// Who comes when.
    pub viewing: Viewing,
    /// Blocks and sizes of a real title instead of equal ones.
    pub title: Option<Arc<BlockTable>>,
    /// The most that a client has before it; none: anything (reconstructed).
    pub buffer: Option<Span>,
    /// What a cache may weigh; none: anything.
    pub capacity: Option<ByteCount>,
    /// Origin to each proxy: rate and one-way delay; as many proxies as entries.
    pub origin: Vec<(BitRate, Span)>,
    /// Proxy to proxy, by pairs (0, 1), (1, 2), (0, 2).
    pub peers: [(BitRate, Span); 3],
    /// Proxy to client.
    pub client: (BitRate, Span),
    /// The rules; capacity, cooperation, prefetch and transfer are set from the
    /// fields above.
    pub rules: CooperationConfig,
}

impl Setting {
    /// The evaluation of the paper.
    pub fn paper(seed: u64, scheme: Scheme, ladder: Ladder) -> Self {
        let link = |mbits: u64, millis| (BitRate(mbits * 1_000_000), Span::from_millis(millis));
        Self {
            seed,
            scheme,
            ladder,
            blocks: 5400,
            tau: Span::from_secs(1),
            clients: 10,
            gap: Span::from_secs(3600),
            beta: Beta(600),
            start_blocks: 4,
            viewing: Viewing::Drawn,
            title: None,
            buffer: None,
            capacity: None,
            origin: vec![link(2, 100), link(2, 150), link(2, 200)],
            peers: [link(5, 20), link(5, 30), link(5, 50)],
            client: link(8, 10),
            rules: CooperationConfig::paper(ByteCount(u64::MAX)),
        }
    }

    fn rules(&self) -> CooperationConfig {
        let (cooperate, prefetch) = self.scheme.parts();
        CooperationConfig {
            capacity: self.capacity.unwrap_or(ByteCount(u64::MAX)),
            cooperate,
            prefetch,
            transfer: self.ladder.transfer(),
            start_buffer: self.tau.saturating_mul(u64::from(self.start_blocks)),
            ..self.rules
        }
    }

    fn proxies(&self) -> usize {
        self.origin.len()
    }

    /// Rate and delay of a session; server 0 is the origin, then the proxies.
    fn link(&self, server: usize, proxy: usize) -> (BitRate, Span) {
        let pair = match server.checked_sub(1) {
            None => return self.origin.get(proxy).copied().unwrap_or_default(),
            Some(peer) => (peer.min(proxy), peer.max(proxy)),
        };
        let [near, far, around] = self.peers;
        match pair {
            (0, 1) => near,
            (1, 2) => far,
            _ => around,
        }
    }
}

#[cfg(test)]
mod tests;
