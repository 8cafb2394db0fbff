//! How soon a death is noticed, against what the signals cost (ADVODS 4.2.1).

use super::continuity::{Plan, stable};
use super::statistics::{Estimate, float};
use super::verdict::Verdict;
use crate::faults::Fault;
use crate::rng::Rng;
use crate::topology::TopologyError;
use crate::world::{Line, WorldConfig};
use media::{Span, Time};
use protocol::node::autonomy::AutonomyEvent;

/// What one Td gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Td: a neighbour that is silent for so long is dead.
    pub dead_after: Span,
    /// Ts: between two signals.
    pub signal_every: Span,
    /// Seconds from the death to the first neighbour's verdict.
    pub detected: Estimate,
    /// The soonest and the latest of them.
    pub range: (f64, f64),
    /// Seconds from the death until data came again, over all who lost it.
    pub recovered: Estimate,
    /// Signals a second in the whole network.
    pub signals: f64,
}

/// Kills every Base node in turn, with this Td and a third of it as Ts.
pub fn measure(dead_after: Span, users: u32, seeds: &[u64]) -> Result<Point, TopologyError> {
    let mut config = WorldConfig::paper();
    config.keep_log = true;
    config.autonomy.dead_after = dead_after;
    config.autonomy.signal_every = Span::from_nanos(dead_after.as_nanos() / 3);
    let (mut detected, mut recovered) = (Vec::new(), Vec::new());
    let mut signals = 0.0;
    for seed in seeds {
        let mut world = stable(&Plan::paper(users, 200, *seed), config.clone())?;
        world.clear_log();
        world.signals(true);
        let (from, before) = (world.now(), world.stats().signals);
        world.run(dead_after + Span::from_secs(2));
        let sent = float(usize::try_from(world.stats().signals - before).unwrap_or(usize::MAX));
        signals = sent / (world.now() - from).as_secs_f64();
        let mut rng = Rng::stream(*seed, 5);
        for site in world.topology().base().collect::<Vec<_>>() {
            let mut fork = world.clone();
            fork.run(Span::from_nanos(rng.below_wide(config.autonomy.signal_every.as_nanos())));
            fork.strike(Fault::Kill(site));
            let killed = fork.now();
            fork.run(dead_after + Span::from_secs(8));
            detected.extend(first_verdict(fork.log(), killed));
            let outages = fork.viewers().iter().filter_map(|viewer| viewer.outages.last());
            recovered.extend(outages.filter_map(|outage| Some((outage.resumed?.0 - killed).as_secs_f64())));
        }
    }
    let lowest = detected.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = detected.iter().copied().fold(0.0, f64::max);
    Ok(Point {
        dead_after,
        signal_every: config.autonomy.signal_every,
        detected: Estimate::of(&detected),
        range: (lowest, highest),
        recovered: Estimate::of(&recovered),
        signals,
    })
}

fn first_verdict(log: &[Line], killed: Time) -> Option<f64> {
    let found = log.iter().find(|line| matches!(line.event, AutonomyEvent::Detected { .. }));
    found.map(|line| (line.at - killed).as_secs_f64())
}

/// The claims about Td; `points` ascend in it.
pub fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let rising = points.windows(2).all(|pair| match pair {
        [one, other] => one.recovered.mean < other.recovered.mean && one.signals > other.signals,
        _ => true,
    });
    let ends = points.first().zip(points.last()).map_or_else(String::new, |(first, last)| {
        format!(
            "{} s and {:.0} signals/s at Td {}, {} s and {:.0} signals/s at Td {}",
            first.recovered, first.signals, first.dead_after, last.recovered, last.signals, last.dead_after
        )
    });
    let inside = points.iter().all(|point| {
        let (td, ts) = (point.dead_after.as_secs_f64(), point.signal_every.as_secs_f64());
        point.range.0 > td - ts - 1e-9 && point.range.1 <= td + 0.1 + 1e-9
    });
    let worst =
        points.iter().map(|point| point.range.1 - point.dead_after.as_secs_f64()).fold(-9.9, f64::max);
    vec![
        Verdict::new("a smaller Td recovers sooner and costs more signals", ends, "so stated", rising),
        Verdict::new(
            "a death is noticed within (Td - Ts, Td + one link]",
            format!("latest {worst:+.2} s against Td"),
            "Td",
            inside,
        ),
    ]
}
