//! No node carries more than it can.

use super::{Violation, broken, machines};
use crate::world::World;
use protocol::node::autonomy::Level;

pub(super) fn check(world: &World) -> Result<(), Violation> {
    let over = machines(world)
        .filter(|(_, machine)| machine.level() != Level::Origin)
        .find(|(_, machine)| machine.used() > machine.config().capacity);
    over.map_or(Ok(()), |(_, machine)| {
        let (used, capacity) = (machine.used(), machine.config().capacity);
        Err(broken(
            world,
            "capacity is never exceeded",
            format!("{} uses {used} of {capacity}", machine.id()),
        ))
    })
}
