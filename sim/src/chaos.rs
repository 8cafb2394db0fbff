//! Random faults with every checker on. One seed decides all, and a seed that
//! fails is a command that replays it.

use crate::checkers::{Checkers, Violation};
use crate::faults::{self, Fault};
use crate::rng::Rng;
use crate::topology::SiteId;
use crate::topology::{Shape, Topology, TopologyError};
use crate::workload::Workload;
use crate::world::{World, WorldConfig};
use media::{Layer, Quality, Span, Time};
use protocol::node::autonomy::AutonomyEvent;
use std::fmt;
use std::sync::Arc;

/// What a seed gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chaos {
    /// The seed.
    pub seed: u64,
    /// What went wrong, and when.
    pub faults: Vec<(Time, Fault)>,
    /// How many things happened.
    pub happened: u64,
}

/// A seed in which something was that must never be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChaosError {
    /// A checker objected.
    #[error("seed {seed}: {violation}\n{faults}replay with: lamina simulate chaos --seed {seed}")]
    Violation {
        /// The seed.
        seed: u64,
        /// What was seen.
        violation: Violation,
        /// What went wrong before.
        faults: FaultList,
    },
    /// There is no such network.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Faults, one to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultList(pub Vec<(Time, Fault)>);

impl fmt::Display for FaultList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in &self.0 {
            writeln!(f, "  {:7.3} s  {fault}", (*at - Time::ZERO).as_secs_f64())?;
        }
        Ok(())
    }
}

/// How often the checkers look.
const LOOK_EVERY: Span = Span::from_millis(250);
/// Until when users come and things go wrong.
const TROUBLE: Time = Time::from_nanos(40_000_000_000);
/// How long the network has to settle then.
const SETTLE: Span = Span::from_secs(45);
/// How long to wait for a moment in which nobody searches.
const REST: Span = Span::from_secs(30);
/// Deliveries of a node: few, so that nodes are full.
const CAPACITY: u32 = 6;

/// The world of a seed, with all that will happen to it.
pub fn prepare(seed: u64, keep_log: bool) -> Result<(World, Vec<(Time, Fault)>), TopologyError> {
    let mut rng = Rng::stream(seed, 11);
    let topology = Arc::new(Topology::generate(Shape::DEMO, &mut rng)?);
    let mut config = WorldConfig::production();
    config.keep_log = keep_log;
    config.autonomy.assume_stored = true;
    config.autonomy.capacity = CAPACITY;
    config.autonomy.bottom_line = 1;
    config.quality = Quality(u8::try_from(1 + seed % 3).unwrap_or(1));
    config.agent_loss = f64::from(u32::try_from(rng.below(3)).unwrap_or(0)) * 0.05;
    let users = u32::try_from(8 + rng.below(28)).unwrap_or(8);
    let workload = Workload {
        spacing: Span::from_millis(100 + rng.below_wide(700)),
        longest_left: Span::from_secs(7_200),
        ..Workload::new(users, u32::try_from(rng.below(6)).unwrap_or(0) * 100)
    };
    let arrivals = workload.arrivals(&topology, &mut rng);
    let plan = faults::random(&topology, &mut rng, Time::ZERO + Span::from_secs(2), TROUBLE);
    let mut world = World::new(topology, config, seed);
    world.expect(&arrivals);
    world.suffer(&plan);
    for user in 0..arrivals.len() {
        if rng.below(4) == 0 {
            let at = Time::ZERO + Span::from_nanos(rng.below_wide((TROUBLE - Time::ZERO).as_nanos()));
            world.depart(user, at.max(Time::ZERO + Span::from_secs(31)));
        }
    }
    Ok((world, plan))
}

/// Runs one seed.
pub fn run(seed: u64) -> Result<Chaos, ChaosError> {
    let (mut world, faults) = prepare(seed, false)?;
    place(seed)?;
    let mut checkers = Checkers::default();
    let objection = |violation| ChaosError::Violation { seed, violation, faults: FaultList(faults.clone()) };
    while world.now() < TROUBLE + SETTLE {
        world.run(LOOK_EVERY);
        checkers.look(&world).map_err(objection)?;
    }
    // What is tried again now and then leaves no row behind once it is over.
    let rest = world.now() + REST;
    while !at_rest(&world) && world.now() < rest {
        world.run(Span::from_millis(10));
    }
    checkers.look_in_the_end(&world).map_err(objection)?;
    Ok(Chaos { seed, faults, happened: world.happened() })
}

/// The second part of a seed: a title is really placed, nodes die, return and are
/// cut off, one joins late, and in the end each level has its copies; withdrawn,
/// none has any.
fn place(seed: u64) -> Result<(), ChaosError> {
    let mut rng = Rng::stream(seed, 13);
    let topology = Arc::new(Topology::generate(Shape::DEMO, &mut rng)?);
    let mut config = WorldConfig::production();
    config.keep_log = true;
    config.autonomy.capacity = CAPACITY;
    let copies = u16::try_from(rng.below(4)).unwrap_or(0);
    let joins = SiteId::at(rng.below(topology.len() - 1));
    let plan = faults::random(&topology, &mut rng, Time::ZERO + Span::from_secs(2), TROUBLE);
    let workload = Workload { spacing: Span::from_millis(700), ..Workload::new(8, 200) };
    let arrivals = workload.arrivals(&topology, &mut rng);
    let mut world = World::new(topology, config, seed);
    world.strike(Fault::Kill(joins));
    world.run(Span::from_nanos(rng.below_wide(1_000_000_000)));
    world.publish(3, copies);
    world.expect(&arrivals);
    world.suffer(&plan);
    world.suffer(&[(Time::ZERO + Span::from_nanos(rng.below_wide(20_000_000_000)), Fault::Revive(joins))]);
    let mut checkers = Checkers::default();
    let objection = |violation| ChaosError::Violation { seed, violation, faults: FaultList(plan.clone()) };
    while world.now() < TROUBLE + SETTLE {
        world.run(LOOK_EVERY);
        checkers.look(&world).map_err(objection)?;
    }
    // Said lately: what was short while nodes were dead does not count.
    let lately = TROUBLE + Span::from_secs(20);
    #[allow(clippy::wildcard_enum_match_arm, reason = "one event of many is looked for")]
    let short = world.log().iter().filter(|line| line.at > lately).filter_map(|line| match line.event {
        AutonomyEvent::PlacementShort { layer, .. } => Some(layer),
        _ => None,
    });
    let told: Vec<Layer> = short.collect();
    checkers.look_at_copies(&world, &told).map_err(objection)?;
    world.unpublish();
    world.run(Span::from_secs(5));
    checkers.look_for_leftovers(&world).map_err(objection)
}

/// Whether no message is in the air and no search is under way. A tentative row
/// whose agents were lost lapses by itself, within twice the buffer.
fn at_rest(world: &World) -> bool {
    let mut machines = world.topology().sites().filter_map(|site| world.machine_of(site));
    let idle = |machine: &protocol::node::autonomy::Autonomy| {
        machine.searching() == 0 && machine.open_searches() == 0 && machine.tentative().next().is_none()
    };
    world.in_flight() == 0 && machines.all(idle)
}
