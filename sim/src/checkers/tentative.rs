//! No tentative row is left once every search is over.

use super::{Violation, broken, machines};
use crate::world::World;

pub(super) fn check(world: &World) -> Result<(), Violation> {
    let left = machines(world).find_map(|(_, machine)| Some((machine.id(), *machine.tentative().next()?.0)));
    left.map_or(Ok(()), |(node, search)| {
        let what = format!("{node} still holds one for {} of {}", search.user, search.start);
        Err(broken(world, "no tentative row outlives its search", what))
    })
}
