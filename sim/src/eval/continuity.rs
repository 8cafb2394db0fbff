//! Evaluation II of ADVODS: who plays on when a Base node fails, agent by agent
//! through the machines.
//!
//! One stable state is built, user after user; then every Base node fails in
//! turn, each in a fork of that state. The quotient runs over the normal users
//! **whose node failed** ([`Continuity::normal`]); the other readings of
//! equation 11 are reported beside it.

use super::dedicated;
use super::tally::{Continuity, FailureTally};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::topology::{Shape, SiteId, Topology, TopologyError};
use crate::workload::{Arrival, Sla, Workload};
use crate::world::{Stats, World, WorldConfig};
use media::{Span, Time};
use protocol::node::autonomy::{EntryKind, Policy};
use std::sync::Arc;

/// What stands behind the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The paper's technology: the machines with the profile of the paper.
    With,
    /// A dedicated standby for everybody, chosen once ([`dedicated`]): the
    /// paper's "without".
    Without,
    /// As `With`, but the best candidate is the emptiest, not the nearest.
    MostHeadroom,
    /// As `With`, but a reservation needs a free slot, when it is made and when
    /// it is used.
    Strict,
    /// VIPs as `With`; normal users have nothing behind them and search once
    /// their node has failed.
    Reactive,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::With, Self::Without, Self::MostHeadroom, Self::Strict, Self::Reactive];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::Without => "without",
            Self::MostHeadroom => "most-headroom",
            Self::Strict => "strict",
            Self::Reactive => "reactive",
        }
    }

    /// The settings of a world of this variant.
    pub const fn config(self) -> WorldConfig {
        let mut config = WorldConfig::paper();
        match self {
            Self::With | Self::Without => {}
            Self::MostHeadroom => config.autonomy.policy = Policy::MostHeadroom,
            Self::Strict => config.autonomy.strict = true,
            Self::Reactive => config.normals_search = false,
        }
        config
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The network.
    pub shape: Shape,
    /// How many users.
    pub users: u32,
    /// How many of a thousand are VIPs.
    pub vip_permille: u32,
    /// Decides the network, the users and the moments of failure.
    pub seed: u64,
}

impl Plan {
    /// A run on the network of Table 1.
    pub const fn paper(users: u32, vip_permille: u32, seed: u64) -> Self {
        Self { shape: Shape::PAPER, users, vip_permille, seed }
    }

    /// The network and the users of this run, the same for every variant.
    pub fn draw(&self) -> Result<(Arc<Topology>, Workload, Vec<Arrival>), TopologyError> {
        let topology = Topology::generate(self.shape, &mut Rng::stream(self.seed, 1))?;
        let workload = Workload::new(self.users, self.vip_permille);
        let arrivals = workload.arrivals(&topology, &mut Rng::stream(self.seed, 2));
        Ok((Arc::new(topology), workload, arrivals))
    }
}

/// What one run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Who played on.
    pub continuity: Continuity,
    /// The time without data of everybody who got data again, as long as that
    /// was no longer than the buffer.
    pub recoveries: Vec<Span>,
    /// VIPs that have a hot standby, a reservation, or nothing in the stable state.
    pub vip_backups: [usize; 3],
    /// What was sent until the state was stable.
    pub stats: Stats,
    /// What happened in all, in the stable state and its forks.
    pub happened: u64,
}

/// The world once all users have come and every search is over. Survival
/// signals are silent while it fills: nothing fails then.
pub fn stable(plan: &Plan, config: WorldConfig) -> Result<World, TopologyError> {
    let (topology, workload, arrivals) = plan.draw()?;
    let mut world = World::new(topology, config, plan.seed);
    world.signals(false);
    world.expect(&arrivals);
    world.run_until(workload.full_at());
    // Three searches that time out, one after another.
    let longest = world.config().buffer.saturating_mul(2 * 3 + 1);
    let limit = world.now() + longest;
    while world.now() < limit && world.in_flight() > 0 {
        world.run(Span::from_secs(1));
    }
    Ok(world)
}

/// Runs one variant of a plan.
pub fn run(plan: &Plan, variant: Variant) -> Result<Outcome, TopologyError> {
    if variant == Variant::Without {
        return dedicated::run(plan);
    }
    let world = stable(plan, variant.config())?;
    Ok(fail_each(world, variant, plan.seed))
}

/// Fails every Base node in turn, each in a fork of this world.
pub fn fail_each(mut world: World, variant: Variant, seed: u64) -> Outcome {
    let mut outcome = Outcome {
        continuity: Continuity { failures: Vec::new(), ..served(&world) },
        vip_backups: vip_backups(&world),
        stats: *world.stats(),
        happened: world.happened(),
        ..Outcome::default()
    };
    world.signals(true);
    world.run(world.config().autonomy.dead_after);
    let mut rng = Rng::stream(seed, 3);
    for site in world.topology().base().collect::<Vec<_>>() {
        let mut fork = world.clone();
        // The signals go on all the time; a failure does not wait for one.
        let phase = rng.below_wide(fork.config().autonomy.signal_every.as_nanos());
        fork.run(Span::from_nanos(phase));
        let before = fork.happened();
        fail(&mut fork, site, variant, &mut rng);
        outcome.happened += fork.happened() - before;
        let tally = tally(&fork, site, &mut outcome.recoveries);
        outcome.continuity.failures.push(tally);
    }
    outcome
}

/// Kills a node and waits until everybody who can be helped has been.
fn fail(world: &mut World, site: SiteId, variant: Variant, rng: &mut Rng) {
    let Some(peer) = world.topology().peer(site) else { return };
    // Only a node that backs up users of the dead one can help anybody.
    let backs_up = |base: &SiteId| {
        world.machine_of(*base).is_some_and(|machine| machine.rows().any(|row| row.primary == peer))
    };
    let helpers: Vec<SiteId> = world.topology().base().filter(backs_up).collect();
    world.strike(Fault::Kill(site));
    let killed = world.now();
    let config = world.config().clone();
    if variant == Variant::Reactive {
        // A viewer notices the silence as a neighbour does; its request travels and
        // is handled like any other message.
        let request = config.links.trans + config.process_agents;
        pull_again(world, site, killed + config.autonomy.dead_after + request, rng);
        world.run_until(killed + config.buffer);
        return;
    }
    let know = |world: &World| {
        let helpers = helpers.iter().filter_map(|base| world.machine_of(*base));
        helpers.into_iter().all(|machine| machine.believed_dead().any(|dead| dead == peer))
    };
    let helped = |world: &World| world.viewers().iter().all(|viewer| viewer.outage().is_none());
    // Once all have data again, or all helpers know, nothing that is counted can change.
    while world.now() < killed + config.buffer && !know(world) {
        if helped(world) {
            return;
        }
        world.run(Span::from_millis(20));
    }
    // A node activates its reservations as soon as it knows, and nobody who is
    // served is sent away: the data of all who can be helped are on their way.
    world.hear_out(config.process + config.links.trans);
}

/// The normal users of a dead node search by themselves, from anywhere.
fn pull_again(world: &mut World, site: SiteId, at: Time, rng: &mut Rng) {
    let lost = |viewer: &crate::world::Viewer| viewer.primary == Some(site);
    let normal = |viewer: &crate::world::Viewer| viewer.arrival.sla == Sla::Normal;
    let users: Vec<usize> = (0_usize..)
        .zip(world.viewers())
        .filter(|(_, viewer)| lost(viewer) && normal(viewer))
        .map(|(user, _)| user)
        .collect();
    let others: Vec<SiteId> = world.topology().base().filter(|base| *base != site).collect();
    for user in users {
        if let Some(base) = rng.pick(&others) {
            world.pull_again(user, *base, at);
        }
    }
}

/// Who lost its node to this failure, and who played on.
fn tally(world: &World, site: SiteId, recoveries: &mut Vec<Span>) -> FailureTally {
    let mut tally = FailureTally::default();
    for viewer in world.viewers() {
        let Some(outage) = viewer.outages.last().filter(|outage| outage.lost == site) else { continue };
        let took = outage.resumed.map(|(at, _)| at - outage.lost_at);
        let nonstop = took.is_some_and(|took| took <= world.config().buffer);
        recoveries.extend(took.filter(|_| nonstop));
        let (all, played_on) = match viewer.arrival.sla {
            Sla::Normal => (&mut tally.normals, &mut tally.normals_nonstop),
            Sla::Vip => (&mut tally.vips, &mut tally.vips_nonstop),
        };
        *all += 1;
        *played_on += usize::from(nonstop);
    }
    tally
}

fn served(world: &World) -> Continuity {
    let mut continuity = Continuity::default();
    for viewer in world.viewers() {
        match (viewer.primary, viewer.arrival.sla) {
            (None, _) => continuity.unserved += 1,
            (Some(_), Sla::Normal) => continuity.normals += 1,
            (Some(_), Sla::Vip) => continuity.vips += 1,
        }
    }
    continuity
}

fn vip_backups(world: &World) -> [usize; 3] {
    let [mut slot, mut row, mut none] = [0; 3];
    for machine in world.topology().base().filter_map(|base| world.machine_of(base)) {
        for record in machine.records().filter(|record| record.kind == EntryKind::Vip) {
            match record.backup.map(|backup| backup.kind) {
                Some(EntryKind::VipDual) => slot += 1,
                Some(EntryKind::NormalDual | EntryKind::Normal | EntryKind::Vip) => row += 1,
                None => none += 1,
            }
        }
    }
    [slot, row, none]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_played_to_the_end_gives_what_was_certain_long_before() {
        let plan = Plan::paper(1400, 200, 1);
        let mut world = stable(&plan, Variant::With.config()).unwrap();
        world.signals(true);
        world.run(world.config().autonomy.dead_after);
        let mut all = FailureTally::default();
        for site in world.topology().base().step_by(13).collect::<Vec<_>>() {
            let (mut short, mut long) = (world.clone(), world.clone());
            fail(&mut short, site, Variant::With, &mut Rng::new(1));
            long.strike(Fault::Kill(site));
            long.run(long.config().buffer);
            let (mut soon, mut late) = (Vec::new(), Vec::new());
            let tally = tally(&short, site, &mut soon);
            assert_eq!((tally, soon), (super::tally(&long, site, &mut late), late));
            assert!(short.happened() < long.happened());
            all.normals += tally.normals;
            all.normals_nonstop += tally.normals_nonstop;
        }
        // Some could be helped and some could not, so that there was something to decide.
        assert!(0 < all.normals_nonstop && all.normals_nonstop < all.normals, "{all:?}");
    }
}
