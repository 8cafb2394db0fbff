//! Nobody is backed up twice, and a backup that a node believes in exists.

use super::{Violation, broken, machines};
use crate::world::World;
use protocol::PeerId;
use protocol::node::autonomy::UserId;
use std::collections::BTreeMap;

const RULE: &str = "no reservation twice, and none that is not there";

pub(super) fn check(world: &World) -> Result<(), Violation> {
    let mut rows: BTreeMap<(UserId, PeerId), PeerId> = BTreeMap::new();
    for (_, machine) in machines(world) {
        for row in machine.rows() {
            let (user, primary) = (row.info.user, row.primary);
            if let Some(other) = rows.insert((user, primary), machine.id()) {
                let what = format!("{user} of {primary} is backed up at {other} and at {}", machine.id());
                return Err(broken(world, RULE, what));
            }
        }
    }
    for (_, machine) in machines(world) {
        for record in machine.records() {
            let Some(backup) = record.backup else { continue };
            if rows.get(&(record.info.user, machine.id())) != Some(&backup.node) {
                let what =
                    format!("{} thinks {} backed up at {}", machine.id(), record.info.user, backup.node);
                return Err(broken(world, RULE, what));
            }
        }
    }
    Ok(())
}
