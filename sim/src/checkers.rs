//! What must hold, whatever goes wrong. Checkers know nothing of faults: they
//! look at a world and say whether it may be so.
//!
//! Some things must hold at every moment; others only once every fault is put
//! right and no message is in the air any more.

mod capacity;
mod layers;
mod placement;
mod primaries;
mod reservation;
mod tentative;
mod unserved;
mod vip;

use crate::topology::SiteId;
use crate::world::World;
use media::{Layer, Time};
use protocol::node::autonomy::Autonomy;
use std::fmt;

/// Something that must never be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was seen.
    pub at: Time,
    /// Which rule is broken.
    pub rule: &'static str,
    /// By whom and how.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {:.3} s: {}: {}", (self.at - Time::ZERO).as_secs_f64(), self.rule, self.what)
    }
}

/// All checkers, with what they remember.
#[derive(Clone, Debug, Default)]
pub struct Checkers {
    primaries: primaries::Primaries,
    vip: vip::Vips,
}

impl Checkers {
    /// What must hold at every moment. To be called often, and with a world
    /// whose time does not go back.
    pub fn look(&mut self, world: &World) -> Result<(), Violation> {
        capacity::check(world)?;
        placement::check(world)?;
        self.primaries.check(world)?;
        self.vip.check(world)
    }

    /// What must hold of placed titles then, see [`World::publish`]; `told`:
    /// the layers of which the origin has said that copies are missing.
    pub fn look_at_copies(&self, world: &World, told: &[Layer]) -> Result<(), Violation> {
        placement::check_copies(world, told)
    }

    /// What must hold once everything was withdrawn.
    pub fn look_for_leftovers(&self, world: &World) -> Result<(), Violation> {
        placement::check_gone(world)
    }

    /// What must hold when every fault has been put right and the network has
    /// had time to settle.
    pub fn look_in_the_end(&mut self, world: &World) -> Result<(), Violation> {
        self.look(world)?;
        tentative::check(world)?;
        reservation::check(world)?;
        unserved::check(world)?;
        layers::check(world)
    }
}

fn broken(world: &World, rule: &'static str, what: String) -> Violation {
    Violation { at: world.now(), rule, what }
}

/// The machines of all nodes that are up.
fn machines(world: &World) -> impl Iterator<Item = (SiteId, &Autonomy)> {
    world.topology().sites().filter_map(|site| Some((site, world.machine_of(site)?)))
}
