//! What a search for a backup costs: messages and time, for one user and for
//! many at once, with boards and without, and with agents that get lost.

use super::continuity::Plan;
use super::statistics::{Estimate, float};
use super::verdict::Verdict;
use crate::rng::Rng;
use crate::topology::{SiteId, TopologyError};
use crate::workload::{Arrival, Sla};
use crate::world::{World, WorldConfig};
use media::{Span, Time};
use protocol::node::autonomy::AutonomyEvent;

/// What searches that began together cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// How many users searched at once.
    pub users: u32,
    /// Whether boards spare agents ways.
    pub boards: bool,
    /// Messages for each search.
    pub messages: Estimate,
    /// Seconds from admission to an official backup.
    pub response: Estimate,
    /// The share of users who got a backup.
    pub found: Estimate,
}

/// `users` normal users come at the same moment to random nodes of an empty
/// network.
pub fn measure(users: u32, boards: bool, seeds: &[u64]) -> Result<Cost, TopologyError> {
    let mut config = WorldConfig::paper();
    config.autonomy.board_stop = boards;
    measure_with(users, boards, &config, seeds)
}

fn measure_with(
    users: u32,
    boards: bool,
    config: &WorldConfig,
    seeds: &[u64],
) -> Result<Cost, TopologyError> {
    let (mut messages, mut response, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let (sent, waits, share) = one(users, config, *seed)?;
        messages.push(sent);
        found.push(share);
        if !waits.is_empty() {
            response.push(waits.iter().sum::<f64>() / float(waits.len()));
        }
    }
    Ok(Cost {
        users,
        boards,
        messages: Estimate::of(&messages),
        response: Estimate::of(&response),
        found: Estimate::of(&found),
    })
}

/// Messages for each search, the seconds of each user, and the share who found.
fn one(users: u32, config: &WorldConfig, seed: u64) -> Result<(f64, Vec<f64>, f64), TopologyError> {
    let (topology, _, _) = Plan::paper(0, 0, seed).draw()?;
    let mut rng = Rng::stream(seed, 4);
    let begin = Time::ZERO + Span::from_secs(1);
    let arrivals: Vec<Arrival> = (0..users)
        .map(|user| Arrival {
            at: begin,
            user,
            sla: Sla::Normal,
            target: SiteId::at(rng.below(topology.base_count())),
            ends_at: begin + Span::from_secs(7_200),
        })
        .collect();
    let mut world = World::new(topology, WorldConfig { keep_log: true, ..config.clone() }, seed);
    world.signals(false);
    world.expect(&arrivals);
    world.run(config.buffer.saturating_mul(2 * 4));
    let official = |line: &&crate::world::Line| matches!(line.event, AutonomyEvent::BackupOfficial { .. });
    let waits: Vec<f64> =
        world.log().iter().filter(official).map(|line| (line.at - begin).as_secs_f64()).collect();
    let served = world.viewers().iter().filter(|viewer| viewer.primary.is_some()).count();
    let sent = world.stats().discovery + world.stats().words;
    let sent = float(usize::try_from(sent).unwrap_or(usize::MAX)) / float(served.max(1));
    let share = float(waits.len()) / float(served.max(1));
    Ok((sent, waits, share))
}

/// How many of the searches succeed when agents get lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    /// The share of agents that are lost, in thousandths.
    pub loss_permille: u32,
    /// The share of users with a backup when a node tries three times.
    pub three_tries: Estimate,
    /// The same when it tries once.
    pub one_try: Estimate,
}

/// The success of searches against the loss of agents, `users` at once.
pub fn loss(users: u32, loss_permille: u32, seeds: &[u64]) -> Result<LossPoint, TopologyError> {
    let share = |tries| -> Result<Estimate, TopologyError> {
        let mut config = WorldConfig::paper();
        config.autonomy.tries = tries;
        config.agent_loss = f64::from(loss_permille) / 1000.0;
        Ok(measure_with(users, true, &config, seeds)?.found)
    };
    Ok(LossPoint { loss_permille, three_tries: share(3)?, one_try: share(1)? })
}

/// The claims about searches: `costs` by number of users, with and without boards.
pub fn verdicts(costs: &[Cost], losses: &[LossPoint]) -> Vec<Verdict> {
    let mean = |users: u32, boards: bool| {
        let cost = costs.iter().find(|cost| cost.users == users && cost.boards == boards);
        cost.map_or(f64::NAN, |cost| cost.messages.mean)
    };
    let most = costs.iter().map(|cost| cost.users).max().unwrap_or(1);
    let (alone, together) = (mean(1, true), mean(most, true));
    let (with, without) = (mean(most, true), mean(most, false));
    let kept = losses.iter().all(|point| point.three_tries.mean >= point.one_try.mean);
    let worst = losses.iter().max_by_key(|point| point.loss_permille);
    let worst = worst.map_or_else(String::new, |point| {
        format!(
            "{} with three tries, {} with one, at {} % lost",
            point.three_tries,
            point.one_try,
            f64::from(point.loss_permille) / 10.0
        )
    });
    vec![
        Verdict::new(
            format!("a search costs less when {most} search at once than alone"),
            format!("{together:.0} against {alone:.0} messages"),
            "falls",
            together < alone,
        ),
        Verdict::new(
            "boards save messages when many search at once",
            format!("{with:.0} against {without:.0} messages"),
            "saves",
            with < without,
        ),
        Verdict::new("three tries find more than one when agents get lost", worst, "not stated", kept),
    ]
}
