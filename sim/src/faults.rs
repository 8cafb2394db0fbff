//! What goes wrong, and when.

use crate::rng::Rng;
use crate::topology::{SiteId, Topology};
use media::{Span, Time};
use std::fmt;

/// One thing that goes wrong, or is put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node is gone at once, with all it knew.
    Kill(SiteId),
    /// A node that was killed starts again, empty.
    Revive(SiteId),
    /// The node stands still, as a stopped process does: it hears and says
    /// nothing, but forgets nothing.
    Hang(SiteId),
    /// A node that stood still goes on, and finds what has come meanwhile.
    Resume(SiteId),
    /// These nodes are cut off from all others.
    Part(Vec<SiteId>),
    /// Messages from and to the node take so much longer.
    Slow(SiteId, Span),
    /// The second node does not hear the first one any more.
    Deafen(SiteId, SiteId),
    /// The links are well again.
    Heal,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(site) => write!(f, "kill {}", site.0),
            Self::Revive(site) => write!(f, "revive {}", site.0),
            Self::Hang(site) => write!(f, "hang {}", site.0),
            Self::Resume(site) => write!(f, "resume {}", site.0),
            Self::Part(sites) => {
                let sites: Vec<String> = sites.iter().map(|site| site.0.to_string()).collect();
                write!(f, "part {}", sites.join(","))
            }
            Self::Slow(site, more) => write!(f, "slow {} by {more}", site.0),
            Self::Deafen(from, to) => write!(f, "deafen {} to {}", to.0, from.0),
            Self::Heal => f.write_str("heal"),
        }
    }
}

/// A random number of faults between `from` and `until`, in order. Every one of
/// them is put right by `until`, so that what must hold in the end can be asked
/// for. The origin is never touched: a network without its provider is over.
pub fn random(topology: &Topology, rng: &mut Rng, from: Time, until: Time) -> Vec<(Time, Fault)> {
    let window = (until - from).as_nanos();
    let mut plan: Vec<(Time, Fault)> = Vec::new();
    let mut touched: Vec<SiteId> = Vec::new();
    let nodes = topology.len().saturating_sub(1);
    for _ in 0..=rng.below(4) {
        let start = from + Span::from_nanos(rng.below_wide(window / 2));
        let end = start + Span::from_nanos(rng.below_wide((until - start).as_nanos()));
        let site = SiteId::at(rng.below(nodes));
        let kind = rng.below(6);
        // One node has one fault: a node is not revived from a hang.
        if touched.contains(&site) {
            continue;
        }
        touched.push(site);
        let (wrong, right) = match kind {
            0 | 1 => (Fault::Kill(site), Fault::Revive(site)),
            2 => (Fault::Hang(site), Fault::Resume(site)),
            3 => (Fault::Part(vec![site]), Fault::Heal),
            4 => (Fault::Slow(site, Span::from_nanos(rng.below_wide(2_000_000_000))), Fault::Heal),
            _ => match rng.pick(topology.links(site)) {
                Some(near) => (Fault::Deafen(*near, site), Fault::Heal),
                None => continue,
            },
        };
        plan.extend([(start, wrong), (end, right)]);
    }
    plan.push((until, Fault::Heal));
    plan.sort_by_key(|(at, _)| *at);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Shape;

    #[test]
    fn whatever_goes_wrong_is_put_right() {
        let topology = Topology::generate(Shape::DEMO, &mut Rng::new(1)).unwrap();
        let (from, until) = (Time::from_nanos(5), Time::from_nanos(60_000_000_000));
        for seed in 0..500 {
            let plan = random(&topology, &mut Rng::new(seed), from, until);
            assert!(plan.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            assert!(plan.iter().all(|(at, _)| (from..=until).contains(at)));
            for (at, fault) in &plan {
                let cure = match fault {
                    Fault::Kill(site) => Fault::Revive(*site),
                    Fault::Hang(site) => Fault::Resume(*site),
                    Fault::Part(_) | Fault::Slow(..) | Fault::Deafen(..) => Fault::Heal,
                    Fault::Revive(_) | Fault::Resume(_) | Fault::Heal => continue,
                };
                assert!(plan.iter().any(|(later, other)| later >= at && *other == cure), "{seed}: {plan:?}");
            }
        }
    }
}
