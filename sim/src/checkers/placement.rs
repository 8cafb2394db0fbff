//! A layer lives at exactly one level (ADVODS, section 2.2).

use super::{Violation, broken, machines};
use crate::world::World;
use media::Layer;
use media::layer::MAX_LAYERS;
use protocol::node::autonomy::{Autonomy, Level};

pub(super) fn check(world: &World) -> Result<(), Violation> {
    let most = u8::try_from(MAX_LAYERS).unwrap_or(u8::MAX);
    for (_, machine) in machines(world) {
        let Level::Layer(own) = machine.level() else { continue };
        let foreign = Layer::first(most)
            .find(|layer| *layer != own && world.titles().iter().any(|title| machine.stores(title, *layer)));
        if let Some(layer) = foreign {
            let what = format!("{} of level {own} stores {layer}", machine.id());
            return Err(broken(world, "a layer lives at one level", what));
        }
    }
    Ok(())
}

/// Once all is well: each level holds what its title asks for, or the origin has
/// said that it does not (the layers `told`).
pub(super) fn check_copies(world: &World, told: &[Layer]) -> Result<(), Violation> {
    let Some(origin) = world.origin().and_then(|site| world.machine_of(site)) else { return Ok(()) };
    for (title, wanted, layers) in origin.published() {
        for (layer, ..) in layers {
            let holds = |machine: &Autonomy| machine.stored().any(|(of, held)| of == title && held == layer);
            let copies = machines(world).filter(|(_, machine)| holds(machine)).count();
            if copies < usize::from(wanted.max(1)) && !told.contains(&layer) {
                let what = format!("{layer} of {title} has {copies} copies and not {wanted}");
                return Err(broken(world, "each level has its copies, or the origin says so", what));
            }
        }
    }
    Ok(())
}

/// What was withdrawn is nowhere.
pub(super) fn check_gone(world: &World) -> Result<(), Violation> {
    let holder = machines(world).find(|(_, machine)| machine.stored().next().is_some());
    holder.map_or(Ok(()), |(_, machine)| {
        Err(broken(world, "nothing is left of what was withdrawn", format!("{} stores", machine.id())))
    })
}
