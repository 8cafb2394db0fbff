//! The links of the paper's figure, scaled to the film.

use crate::links::LinkShape;
use media::{BitRate, Layer, Manifest, Span};
use serde::Serialize;
use sim::PipeShape;
use std::fmt;

/// Proxies.
pub(super) const PROXIES: usize = 3;
/// Between the nodes and proxies 1, 2 and 3: 2 Mbit/s in the paper.
const NODES_MS: [u64; PROXIES] = [100, 150, 200];
/// Pairs of proxies, with the delay between them: 5 Mbit/s in the paper.
pub(super) const PAIRS: [(usize, usize, u64); 3] = [(0, 1, 20), (1, 2, 30), (0, 2, 50)];
/// Between a proxy and each of its clients: 8 Mbit/s in the paper.
const CLIENT_MS: u64 = 10;
/// How much every queue holds. The paper has none; this is what home routers have.
const QUEUE: Span = Span::from_millis(300);

/// Rates of the links. The lowest of the paper's qualities takes 1 Mbit/s, and Base
/// is ours: a megabit of the paper is the rate of Base here, headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Base alone.
    pub base: BitRate,
    /// All layers.
    pub gold: BitRate,
    /// From all nodes together to one proxy, and back.
    pub nodes: BitRate,
    /// Between two proxies, each way.
    pub peers: BitRate,
    /// Between a proxy and one client, each way.
    pub client: BitRate,
}

impl Rates {
    /// The rates for a title.
    pub fn of(manifest: &Manifest) -> Self {
        let rate = |layer| manifest.nominal_rate(layer).0;
        let base = rate(Layer::BASE);
        let gold = Layer::first(manifest.top_quality().layers()).map(rate).sum();
        let times = |times: u64| BitRate(base.saturating_mul(times));
        Self { base: BitRate(base), gold: BitRate(gold), nodes: times(2), peers: times(5), client: times(8) }
    }

    /// Rate and one-way delay from the nodes to each proxy.
    pub(super) fn origin(self) -> Vec<(BitRate, Span)> {
        NODES_MS.map(|delay| (self.nodes, Span::from_millis(delay))).to_vec()
    }

    /// Rate and one-way delay between the proxies of each pair.
    pub(super) fn pairs(self) -> [(BitRate, Span); 3] {
        PAIRS.map(|(_, _, delay)| (self.peers, Span::from_millis(delay)))
    }

    /// Rate and one-way delay to each client.
    pub(super) fn client(self) -> (BitRate, Span) {
        (self.client, Span::from_millis(CLIENT_MS))
    }

    pub(super) fn to_nodes(self, proxy: usize) -> LinkShape {
        shape(self.nodes, NODES_MS.get(proxy).copied().unwrap_or_default())
    }

    pub(super) fn between(self, delay_ms: u64) -> LinkShape {
        shape(self.peers, delay_ms)
    }

    pub(super) fn to_client(self) -> LinkShape {
        shape(self.client, CLIENT_MS)
    }
}

fn shape(rate: BitRate, delay_ms: u64) -> LinkShape {
    let delay = Span::from_millis(delay_ms);
    LinkShape::both(PipeShape { rate: Some(rate), delay, queue: QUEUE, ..PipeShape::OPEN })
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Base {}, gold {}; nodes to proxy 1, 2, 3: {} with 100, 150, 200 ms; proxies 1-2, 2-3, 1-3: {} \
             with 20, 30, 50 ms; each client: {} with 10 ms",
            self.base, self.gold, self.nodes, self.peers, self.client
        )
    }
}
