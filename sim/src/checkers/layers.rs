//! Nobody goes without a layer while a node of its level has room, and what a Base
//! node believes of the layers above is so.

use super::{Violation, broken, machines};
use crate::world::World;
use media::Layer;
use protocol::node::autonomy::record::Record;
use protocol::node::autonomy::{Autonomy, Level};

pub(super) fn check(world: &World) -> Result<(), Violation> {
    for (_, base) in machines(world) {
        for record in base.records() {
            for layer in Layer::first(record.info.quality.layers()).skip(1) {
                served(world, base, record, layer).map_err(|(rule, what)| broken(world, rule, what))?;
            }
        }
    }
    Ok(())
}

fn served(
    world: &World,
    base: &Autonomy,
    record: &Record,
    layer: Layer,
) -> Result<(), (&'static str, String)> {
    let user = record.info.user;
    let who = || format!("user {} at {}", user.0, base.id());
    let believed = record.info.layers.iter().find(|(of, _)| *of == layer).map(|(_, node)| *node);
    if let Some(node) = believed {
        let so = machines(world).any(|(_, machine)| machine.id() == node && machine.serves(user, layer));
        let what = || format!("{} is said to have {layer} from {node}, which knows nothing of it", who());
        return if so { Ok(()) } else { Err(("a layer comes from where it is said to", what())) };
    }
    let free = machines(world).find(|(_, machine)| {
        machine.level() == Level::Layer(layer)
            && machine.free() > 0
            && machine.stores(&record.info.title, layer)
    });
    free.map_or(Ok(()), |(_, node)| {
        let what = format!("{} has no {layer} while {} has {} places", who(), node.id(), node.free());
        Err(("nobody goes without a layer while there is room", what))
    })
}
