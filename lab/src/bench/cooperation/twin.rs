//! The same under virtual time: the title's own blocks, the same links, arrivals and
//! rules, without everything that a real network adds.

use super::audience::arrivals;
use super::links::{PROXIES, Rates};
use super::{Options, Scheme};
use media::{ByteCount, Manifest, Span, Time};
use protocol::proxy::BlockTable;
use protocol::proxy::cooperation::CooperationConfig;
use serde::Serialize;
use sim::eval::statistics::float;
use sim::proxies::{self, Ladder, Setting, Viewing};
use std::sync::Arc;

/// What a player keeps in its buffer.
const BUFFER: Span = Span::from_secs(4);
/// Blocks that it has before it plays.
const START_BLOCKS: u32 = 2;

/// What was seen under virtual time, of proxy 1 where nothing else is said.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Imagined {
    /// Seconds a client waited.
    pub frozen: f64,
    /// The share of clients that did not.
    pub freeze_free: f64,
    /// Layers received over layers asked for.
    pub quality: f64,
    /// MB of chunks from the nodes to all proxies.
    pub origin: f64,
    /// MB of chunks from the nodes to proxy 1.
    pub origin_first: f64,
    /// MB of chunks between proxies.
    pub peers: f64,
}

/// Runs it.
pub(super) fn run(
    options: &Options,
    manifest: &Manifest,
    rates: Rates,
    scheme: Scheme,
    seed: u64,
) -> Imagined {
    let table = Arc::new(BlockTable::of(manifest));
    let mut starts = vec![Vec::new(); PROXIES];
    for (proxy, _, after) in arrivals(options, seed) {
        if let Some(starts) = starts.get_mut(proxy) {
            starts.push(Time::ZERO + after);
        }
    }
    let blocks = table.blocks();
    let of = match scheme {
        Scheme::Off => proxies::Scheme::Independent,
        Scheme::On => proxies::Scheme::CooperativeAhead,
    };
    let outcome = proxies::run(&Setting {
        blocks,
        tau: Span::from_nanos(table.duration().as_nanos() / u64::from(blocks.max(1))),
        title: Some(table),
        viewing: Viewing::Given(starts),
        buffer: Some(BUFFER),
        start_blocks: START_BLOCKS,
        origin: rates.origin(),
        peers: rates.pairs(),
        client: rates.client(),
        rules: CooperationConfig::production(ByteCount(u64::MAX)),
        ..Setting::paper(seed, of, Ladder::Three)
    });
    let mb = |bytes: u64| float(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1e6;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / float(values.len().max(1));
    let all = |of: fn(&proxies::ProxyOutcome) -> u64| mb(outcome.proxies.iter().map(of).sum());
    let first = outcome.proxies.first().cloned().unwrap_or_default();
    let smooth = first.freeze.iter().map(|freeze| if *freeze == 0.0 { 1.0 } else { 0.0 });
    Imagined {
        frozen: mean(&first.freeze) * f64::from(blocks),
        freeze_free: mean(&smooth.collect::<Vec<f64>>()),
        quality: mean(&first.ratio),
        origin: all(|proxy| proxy.counts.from_origin),
        origin_first: mb(first.counts.from_origin),
        peers: all(|proxy| proxy.counts.from_peers),
    }
}
