//! The whole system under one clock: nodes that stand behind one another, proxies
//! that cooperate, viewers of many titles, and Base nodes that die.
//!
//! Every node is the machine that runs in production ([`Autonomy`]) with its
//! admission by class, and so is the mind of every proxy ([`Cooperation`]). What
//! lies between them is modelled: a slot is a token bucket for each viewer and
//! layer, as nodes keep them; each proxy has one link to the nodes and one to each
//! other proxy, of constant rate (Wakamiya et al., section 4); whoever watches a
//! title behind a proxy lends its slots to the others of that title there, as
//! proxies do.
//!
//! [`Autonomy`]: protocol::node::autonomy::Autonomy
//! [`Cooperation`]: protocol::proxy::cooperation::Cooperation

mod audience;
mod front;
mod measures;
mod model;
mod people;
mod seat;

pub use measures::Measures;
pub use model::run;

use crate::topology::Shape;
use crate::world::WorldConfig;
use media::{BitRate, ByClass, ByteCount, Span};
use protocol::proxy::cooperation::CooperationConfig;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Without {
    /// Nothing: everything is on.
    Nothing,
    /// The threshold on ad-hoc titles (Simon et al.).
    Thresholds,
    /// Node allocation (ANAT): nobody has a backup, and whoever loses its node pulls
    /// anew once it has noticed.
    Allocation,
    /// Cooperation of proxies (Wakamiya et al.): every miss goes to the nodes.
    Cooperation,
    /// Prefetching: a block is fetched when it is asked for.
    Prefetch,
}

impl Without {
    /// All of them, the complete system first.
    pub const ALL: [Self; 5] =
        [Self::Nothing, Self::Thresholds, Self::Allocation, Self::Cooperation, Self::Prefetch];

    /// The name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "all-on",
            Self::Thresholds => "no-thresholds",
            Self::Allocation => "no-anat",
            Self::Cooperation => "no-cooperation",
            Self::Prefetch => "no-prefetch",
        }
    }
}

/// How large the network is; all else follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// 60, 30 and 15 nodes, 12 proxies, 1800 slots of Base.
    Whole,
    /// A third of everything, and of the failures: each node dies as often.
    Third,
}

/// Base nodes in front of which one proxy stands.
pub const NODES_OF_A_PROXY: u16 = 5;
/// C: slots of a node.
pub const SLOTS: u32 = 30;
/// `T_3` at each Base node.
pub const THRESHOLD: u64 = 6;
/// The duration of a block.
pub const TAU: Span = Span::from_secs(1);
/// A layer's rate: 1 Mbit/s for each level, as in Wakamiya et al. (reconstructed).
pub const LAYER: BitRate = BitRate(1_000_000);

impl Size {
    /// The nodes.
    pub const fn shape(self) -> Shape {
        match self {
            Self::Whole => Shape::PAPER,
            Self::Third => Shape { base: 20, enh1: 10, enh2: 5, ..Shape::PAPER },
        }
    }

    /// The proxies.
    pub const fn proxies(self) -> u16 {
        self.shape().base / NODES_OF_A_PROXY
    }

    /// All slots of Base nodes: what a load of 1 offers.
    pub fn slots(self) -> u32 {
        u32::from(self.shape().base) * SLOTS
    }

    /// From one death of a Base node to the next.
    pub const fn failure_every(self) -> Span {
        match self {
            Self::Whole => Span::from_secs(600),
            Self::Third => Span::from_secs(1800),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The network.
    pub size: Size,
    /// What is left out.
    pub without: Without,
    /// Offered viewings over the slots of all Base nodes, in hundredths.
    pub load: u32,
    /// Decides the network, who comes when for what, and who dies: the same for
    /// whatever is left out.
    pub seed: u64,
    /// From one death of a Base node to the next, once it counts.
    pub failure_every: Span,
    /// In which the audience comes and caches begin to fill; not counted.
    pub warm: Span,
    /// What is counted.
    pub counted: Span,
    /// What the link from the nodes to a proxy carries, in hundredths of what its
    /// viewers watch at a load of 1. 60, since the complete system needs 55 there.
    pub share: u64,
}

impl Plan {
    /// A run of this size: 15 minutes to warm up, and 30 that count.
    pub const fn new(size: Size, without: Without, load: u32, seed: u64) -> Self {
        let (warm, counted) = (Span::from_secs(900), Span::from_secs(1800));
        Self { size, without, load, seed, failure_every: size.failure_every(), warm, counted, share: 60 }
    }

    /// The settings of the nodes: the profile of ADVODS, whose users pull again when
    /// neither backup nor node is left, and at most two redirects for who has not
    /// begun. The origin serves no viewer (Simon et al., section 2.1): one that
    /// served whoever is left over would make both admission and backups needless.
    pub fn world(&self) -> WorldConfig {
        let mut config = WorldConfig::paper();
        let autonomy = &mut config.autonomy;
        autonomy.capacity = SLOTS;
        autonomy.origin_capacity = 0;
        autonomy.assume_stored = false;
        autonomy.repull = true;
        autonomy.layer_retry = Some(Span::from_secs(1));
        autonomy.redirects = Some(2);
        config.process_agents = config.process;
        config.repull_after = Some(autonomy.dead_after);
        if self.without != Without::Thresholds {
            autonomy.thresholds = ByClass { ad_hoc: THRESHOLD, ..ByClass::of(|_| u64::MAX) };
        }
        config.backups = self.without != Without::Allocation;
        config
    }

    /// The settings of the proxies: those of production, with a cache for a quarter
    /// of all titles.
    pub fn mind(&self, capacity: ByteCount) -> CooperationConfig {
        CooperationConfig {
            cooperate: self.without != Without::Cooperation,
            prefetch: self.without != Without::Prefetch,
            ..CooperationConfig::production(capacity)
        }
    }
}

/// Links of a proxy as rates and one-way delays. The delays are the middle ones of the
/// figure of Wakamiya et al.; the link from the nodes carries [`Plan::share`] of what its
/// viewers watch at a load of 1, those from peers 5/2 of that, as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wires {
    /// From the nodes.
    pub nodes: (BitRate, Span),
    /// From each other proxy.
    pub peer: (BitRate, Span),
    /// To each viewer.
    pub viewer: (BitRate, Span),
}

/// Mean layers of a viewer in tenths: gold, silver and bronze as 10, 30 and 60.
const MEAN_LAYERS: u64 = 15;

impl Wires {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        let watched = u64::from(NODES_OF_A_PROXY) * u64::from(SLOTS) * LAYER.0 * MEAN_LAYERS / 10;
        let nodes = watched * plan.share / 100;
        Self {
            nodes: (BitRate(nodes), Span::from_millis(150)),
            peer: (BitRate(nodes * 5 / 2), Span::from_millis(30)),
            viewer: (BitRate(8_000_000), Span::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests;
