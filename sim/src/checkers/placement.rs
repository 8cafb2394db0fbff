//! A layer lives at exactly one level (ADVODS, section 2.2).

use super::{Violation, broken, machines};
use crate::world::World;
use media::Layer;
use media::layer::MAX_LAYERS;
use protocol::node::autonomy::Level;

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
