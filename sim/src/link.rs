//! What lies between two nodes: how long a message takes, and whether it
//! arrives at all.
//!
//! Neighbours speak over their link. Any other two speak over the same network,
//! so that a direct message takes the time of all links on the shortest way.

mod pipe;
mod trace;

pub use pipe::{Passage, Pipe, PipeShape};
pub use trace::{Trace, TraceError};

use crate::rng::Rng;
use crate::topology::{SiteId, Topology};
use media::Span;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How links behave when nothing is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkModel {
    /// `T_trans`: what a message takes over one link.
    pub trans: Span,
    /// Up to so much more, uniform, for each message.
    pub jitter: Span,
    /// The share of messages that are lost, 0 to 1.
    pub loss: f64,
}

impl LinkModel {
    /// Table 1 of ADVODS: 0.1 s, always, and nothing is lost.
    pub const PAPER: Self = Self { trans: Span::from_millis(100), jitter: Span::ZERO, loss: 0.0 };
}

/// The links of a network, with what is wrong with them.
#[derive(Clone, Debug)]
pub struct Links {
    model: LinkModel,
    hops: Arc<Vec<Vec<u32>>>,
    slow: BTreeMap<SiteId, Span>,
    deaf: BTreeSet<(SiteId, SiteId)>,
    apart: BTreeSet<SiteId>,
}

impl Links {
    /// The links of this network, all well.
    pub fn new(topology: &Topology, model: LinkModel) -> Self {
        let hops = topology.sites().map(|site| hops_from(topology, site)).collect();
        let (slow, deaf, apart) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { model, hops: Arc::new(hops), slow, deaf, apart }
    }

    /// What a message between two nodes takes without jitter.
    pub fn delay(&self, from: SiteId, to: SiteId) -> Span {
        let hops = self.hops.get(from.index()).and_then(|row| row.get(to.index())).copied().unwrap_or(1);
        let slow = |site| self.slow.get(&site).copied().unwrap_or_default();
        self.model.trans.saturating_mul(u64::from(hops)) + slow(from) + slow(to)
    }

    /// What this message takes; nothing if it does not arrive.
    pub fn passage(&self, from: SiteId, to: SiteId, rng: &mut Rng) -> Option<Span> {
        let parted = self.apart.contains(&from) != self.apart.contains(&to);
        if parted || self.deaf.contains(&(from, to)) {
            return None;
        }
        // Draws only where chance has a say: a run without loss is the same
        // whatever the generator would have said.
        if self.model.loss > 0.0 && rng.chance(self.model.loss) {
            return None;
        }
        let jitter = Span::from_nanos(rng.below_wide(self.model.jitter.as_nanos()));
        Some(self.delay(from, to) + jitter)
    }

    /// Messages from and to this node take so much longer.
    pub fn slow_down(&mut self, site: SiteId, more: Span) {
        self.slow.insert(site, more);
    }

    /// `to` hears nothing from `from` any more; the other direction still works.
    pub fn deafen(&mut self, from: SiteId, to: SiteId) {
        self.deaf.insert((from, to));
    }

    /// These nodes can speak with one another, and with nobody else.
    pub fn part(&mut self, sites: &[SiteId]) {
        self.apart = sites.iter().copied().collect();
    }

    /// All is well again.
    pub fn heal(&mut self) {
        self.slow.clear();
        self.deaf.clear();
        self.apart.clear();
    }
}

fn hops_from(topology: &Topology, from: SiteId) -> Vec<u32> {
    let mut hops: Vec<Option<u32>> = vec![None; topology.len()];
    let mut next = VecDeque::from([(from, 0)]);
    while let Some((site, hop)) = next.pop_front() {
        let Some(seen) = hops.get_mut(site.index()).filter(|seen| seen.is_none()) else { continue };
        *seen = Some(hop);
        next.extend(topology.links(site).iter().map(|near| (*near, hop + 1)));
    }
    hops.into_iter().map(|hop| hop.unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Shape;

    fn links() -> (Topology, Links) {
        let topology = Topology::generate(Shape::DEMO, &mut Rng::new(1)).unwrap();
        let links = Links::new(&topology, LinkModel::PAPER);
        (topology, links)
    }

    #[test]
    fn a_direct_message_takes_all_links_on_its_way() {
        let (topology, links) = links();
        let (base, origin) = (SiteId(0), SiteId(14));
        let near = topology.links(base)[0];
        assert_eq!(links.delay(base, near), Span::from_millis(100));
        assert_eq!(links.delay(base, origin), Span::from_millis(300));
    }

    #[test]
    fn what_is_wrong_with_a_link_ends_when_it_heals() {
        let (topology, mut links) = links();
        let mut rng = Rng::new(1);
        let (a, b) = (SiteId(0), topology.links(SiteId(0))[0]);
        links.deafen(a, b);
        assert_eq!((links.passage(a, b, &mut rng), links.passage(b, a, &mut rng).is_some()), (None, true));
        links.part(&[a]);
        assert_eq!(links.passage(b, a, &mut rng), None);
        links.slow_down(b, Span::from_secs(1));
        links.heal();
        assert_eq!(links.passage(a, b, &mut rng), Some(Span::from_millis(100)));
    }

    #[test]
    fn loss_is_as_frequent_as_stated() {
        let (topology, _) = links();
        let links = Links::new(&topology, LinkModel { loss: 0.3, ..LinkModel::PAPER });
        let mut rng = Rng::new(9);
        let lost = (0..10_000).filter(|_| links.passage(SiteId(0), SiteId(1), &mut rng).is_none()).count();
        assert!((2_800..3_200).contains(&lost), "{lost}");
    }
}
