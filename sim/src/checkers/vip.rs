//! A VIP is never made worse off by somebody who comes later: as long as its
//! node works, it is served, there or elsewhere.

use super::{Violation, broken};
use crate::topology::SiteId;
use crate::workload::Sla;
use crate::world::World;
use media::{Span, Time};
use std::collections::BTreeMap;

/// Where which VIPs were served, in which life of the node, and since when they
/// are not.
#[derive(Clone, Debug, Default)]
pub(super) struct Vips {
    at: BTreeMap<usize, (SiteId, u32)>,
    missing: BTreeMap<usize, Time>,
}

/// A VIP may be between two nodes for so long: one word travels.
const GRACE: Span = Span::from_secs(2);

impl Vips {
    pub(super) fn check(&mut self, world: &World) -> Result<(), Violation> {
        let vips = world.viewers().iter().enumerate();
        for (user, viewer) in vips.filter(|(_, viewer)| viewer.arrival.sla == Sla::Vip) {
            let served = viewer.senders.iter().find(|(site, _)| world.machine_of(*site).is_some());
            let life = |site: SiteId| world.host(site).map_or(0, crate::world::Host::life);
            if let Some((site, _)) = served {
                self.at.insert(user, (*site, life(*site)));
                self.missing.remove(&user);
                continue;
            }
            let Some((site, before)) = self.at.get(&user).copied() else { continue };
            // Its node died or stands still, or it is done: nobody's later coming did that.
            if viewer.gone || world.machine_of(site).is_none() || life(site) != before {
                self.at.remove(&user);
                self.missing.remove(&user);
                continue;
            }
            let since = *self.missing.entry(user).or_insert(world.now());
            if world.now() - since > GRACE {
                let what = format!("VIP {user} lost its place at node {} that works", site.0);
                return Err(broken(world, "a VIP keeps its place", what));
            }
        }
        Ok(())
    }
}
