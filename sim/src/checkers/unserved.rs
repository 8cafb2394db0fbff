//! Nobody waits while a place is free.

use super::{Violation, broken, machines};
use crate::world::World;
use protocol::node::autonomy::Level;

pub(super) fn check(world: &World) -> Result<(), Violation> {
    let waits = |viewer: &crate::world::Viewer| {
        viewer.come
            && !viewer.gone
            && !viewer.senders.iter().any(|(site, _)| world.machine_of(*site).is_some())
    };
    let Some(user) = world.viewers().iter().position(waits) else { return Ok(()) };
    let free = machines(world).find(|(_, machine)| machine.level() == Level::BASE && machine.headroom() > 0);
    free.map_or(Ok(()), |(_, machine)| {
        let what = format!("user {user} waits while {} has {} places", machine.id(), machine.headroom());
        Err(broken(world, "nobody waits while a place is free", what))
    })
}
