//! Never two primaries beyond one lease.

use super::{Violation, broken};
use crate::world::World;
use media::{Span, Time};
use std::collections::BTreeMap;

/// Since when which viewers have had two senders.
#[derive(Clone, Debug, Default)]
pub(super) struct Primaries {
    since: BTreeMap<usize, Time>,
}

/// The lease where the settings have none.
const DEFAULT_LEASE: Span = Span::from_secs(10);
/// For the words that end the older delivery to travel.
const GRACE: Span = Span::from_secs(2);

impl Primaries {
    pub(super) fn check(&mut self, world: &World) -> Result<(), Violation> {
        let limit = world.config().autonomy.lease.unwrap_or(DEFAULT_LEASE) + GRACE;
        for (user, viewer) in world.viewers().iter().enumerate() {
            let up = |site| world.host(site).is_some_and(crate::world::Host::is_up);
            let senders: Vec<_> = viewer.senders.iter().filter(|(site, _)| up(*site)).collect();
            if senders.len() < 2 {
                self.since.remove(&user);
                continue;
            }
            let since = *self.since.entry(user).or_insert(world.now());
            if world.now() - since > limit {
                let names: Vec<String> = senders
                    .iter()
                    .filter_map(|(site, _)| world.topology().peer(*site))
                    .map(|p| p.to_string())
                    .collect();
                let what = format!("user {user} has been served by {} for longer", names.join(" and "));
                return Err(broken(world, "never two primaries beyond one lease", what));
            }
        }
        Ok(())
    }
}
