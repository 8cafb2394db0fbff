//! Who is linked with whom: Base nodes at the edge, two levels of enhancement
//! nodes behind them, and the origin (ADVODS, section 2).

use crate::rng::Rng;
use media::Layer;
use protocol::PeerId;
use protocol::node::autonomy::Level;
use std::collections::VecDeque;

/// A node's place in its topology, counted from 0: Base first, then Enh1, Enh2,
/// and the origin last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteId(pub u16);

impl SiteId {
    /// The place as an index into vectors with one entry for each node.
    pub const fn index(self) -> usize {
        #[allow(clippy::as_conversions, reason = "widening; `From` is not const")]
        {
            self.0 as usize
        }
    }

    pub(crate) fn at(index: usize) -> Self {
        Self(u16::try_from(index).unwrap_or(u16::MAX))
    }
}

/// How many nodes and links a generated network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Base nodes.
    pub base: u16,
    /// Enh1 nodes.
    pub enh1: u16,
    /// Enh2 nodes.
    pub enh2: u16,
    /// Links from each Base node to Enh1 nodes.
    pub base_links: u16,
    /// Links from each Enh1 node to Enh2 nodes.
    pub enh1_links: u16,
}

impl Shape {
    /// Table 1 of ADVODS, with three links for each Base node and two for each
    /// Enh1 node; the paper gives no number of links.
    pub const PAPER: Self = Self { base: 60, enh1: 30, enh2: 15, base_links: 3, enh1_links: 2 };
    /// The network of the demo: 8, 4 and 2 nodes.
    pub const DEMO: Self = Self { base: 8, enh1: 4, enh2: 2, base_links: 2, enh1_links: 1 };
}

/// A network of nodes that are linked with one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    sites: Vec<Site>,
    base: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Site {
    peer: PeerId,
    level: Level,
    links: Vec<SiteId>,
}

/// A network that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// More links than there are nodes to link with, or no node at all.
    #[error("{0} links for each node do not fit {1} nodes on the next level")]
    TooManyLinks(u16, u16),
    /// No arrangement was found in which every Base node reaches every other.
    #[error("no connected network was found for this shape; give each node more links")]
    NotConnected,
    /// A link names a node that is not there.
    #[error("a link names node {0}, which is not there")]
    NoSuchSite(u16),
}

/// How often a network that falls apart is drawn anew.
const DRAWS: u32 = 100;

impl Topology {
    /// A random network of this shape. Every node of a level has the same
    /// number of links inwards, and the nodes of the next level share them as
    /// evenly as the numbers allow.
    pub fn generate(shape: Shape, rng: &mut Rng) -> Result<Self, TopologyError> {
        for _ in 0..DRAWS {
            let drawn = Self::draw(shape, rng)?;
            if drawn.is_connected() {
                return Ok(drawn);
            }
        }
        Err(TopologyError::NotConnected)
    }

    fn draw(shape: Shape, rng: &mut Rng) -> Result<Self, TopologyError> {
        let lower = bipartite(shape.base, shape.enh1, shape.base_links, rng)?;
        let upper = bipartite(shape.enh1, shape.enh2, shape.enh1_links, rng)?;
        let (enh1, enh2) = (shape.base, shape.base + shape.enh1);
        let origin = enh2 + shape.enh2;
        let lower = lower.into_iter().map(|(out, inner)| (SiteId(out), SiteId(enh1 + inner)));
        let upper = upper.into_iter().map(|(out, inner)| (SiteId(enh1 + out), SiteId(enh2 + inner)));
        let last = (enh2..origin).map(|site| (SiteId(site), SiteId(origin)));
        let links: Vec<(SiteId, SiteId)> = lower.chain(upper).chain(last).collect();
        Self::from_links(shape.base, shape.enh1, shape.enh2, &links)
    }

    /// The network with exactly these links, each named once.
    pub fn from_links(
        base: u16,
        enh1: u16,
        enh2: u16,
        links: &[(SiteId, SiteId)],
    ) -> Result<Self, TopologyError> {
        let levels = [
            (base, "base", Level::Layer(Layer::BASE)),
            (enh1, "enh1", Level::Layer(Layer::ENH1)),
            (enh2, "enh2", Level::Layer(Layer::ENH2)),
        ];
        let mut sites: Vec<Site> = Vec::new();
        for (count, name, level) in levels {
            sites.extend((0..count).filter_map(|number| {
                let peer = format!("{name}-{number:03}").parse().ok()?;
                Some(Site { peer, level, links: Vec::new() })
            }));
        }
        sites.extend("origin".parse().ok().map(|peer| Site {
            peer,
            level: Level::Origin,
            links: Vec::new(),
        }));
        for (one, other) in links {
            for (here, there) in [(one, other), (other, one)] {
                let site = sites.get_mut(here.index()).ok_or(TopologyError::NoSuchSite(here.0))?;
                site.links.push(*there);
            }
        }
        for site in &mut sites {
            site.links.sort_unstable();
            site.links.dedup();
        }
        Ok(Self { sites, base: usize::from(base) })
    }

    /// How many nodes there are, with the origin.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Every node.
    pub fn sites(&self) -> impl DoubleEndedIterator<Item = SiteId> + use<> {
        (0..self.sites.len()).map(SiteId::at)
    }

    /// The Base nodes.
    pub fn base(&self) -> impl DoubleEndedIterator<Item = SiteId> + use<> {
        (0..self.base).map(SiteId::at)
    }

    /// How many Base nodes there are.
    pub const fn base_count(&self) -> usize {
        self.base
    }

    /// The nodes of a level.
    pub fn of_level(&self, level: Level) -> impl DoubleEndedIterator<Item = SiteId> {
        self.sites().filter(move |site| self.level(*site) == Some(level))
    }

    /// A node's name.
    pub fn peer(&self, site: SiteId) -> Option<PeerId> {
        self.sites.get(site.index()).map(|site| site.peer)
    }

    /// A node's level.
    pub fn level(&self, site: SiteId) -> Option<Level> {
        self.sites.get(site.index()).map(|site| site.level)
    }

    /// The node of this name.
    pub fn site(&self, peer: PeerId) -> Option<SiteId> {
        // Names are given out in their own order, so that this can be a search by halves.
        let found = self.sites.binary_search_by(|site| site.peer.cmp(&peer)).ok();
        found.map(SiteId::at)
    }

    /// The nodes linked with this one, in order.
    pub fn links(&self, site: SiteId) -> &[SiteId] {
        self.sites.get(site.index()).map_or(&[], |site| &site.links)
    }

    /// Every link once, the outer node first.
    pub fn all_links(&self) -> Vec<(SiteId, SiteId)> {
        let pairs = self.sites().flat_map(|one| self.links(one).iter().map(move |other| (one, *other)));
        pairs.filter(|(one, other)| one < other).collect()
    }

    /// Steps from one Base node to each other, along Base and Enh1 nodes alone;
    /// nothing where there is no way. A step leads from a Base node over one
    /// Enh1 node to the next Base node.
    pub fn base_steps(&self, from: SiteId) -> Vec<Option<u32>> {
        let mut hops: Vec<Option<u32>> = vec![None; self.sites.len()];
        let mut next = VecDeque::from([(from, 0)]);
        while let Some((site, hop)) = next.pop_front() {
            let Some(seen) = hops.get_mut(site.index()).filter(|seen| seen.is_none()) else { continue };
            *seen = Some(hop);
            let near = self.links(site).iter().filter(
                |near| matches!(self.level(**near), Some(Level::Layer(layer)) if layer <= Layer::ENH1),
            );
            next.extend(near.map(|near| (*near, hop + 1)));
        }
        hops.truncate(self.base);
        hops.into_iter().map(|hop| hop.map(|hop| hop / 2)).collect()
    }

    fn is_connected(&self) -> bool {
        let mut base = self.base();
        base.next().is_some_and(|first| self.base_steps(first).iter().all(Option::is_some))
    }
}

/// Links each of `outer` nodes with `each` of `inner` nodes: stubs are dealt,
/// shuffled, and a doubled link is repaired by a swap with a random other one.
fn bipartite(outer: u16, inner: u16, each: u16, rng: &mut Rng) -> Result<Vec<(u16, u16)>, TopologyError> {
    if each > inner || outer == 0 || each == 0 {
        return Err(TopologyError::TooManyLinks(each, inner));
    }
    let mut stubs: Vec<u16> = (0..inner).cycle().take(usize::from(outer) * usize::from(each)).collect();
    rng.shuffle(&mut stubs);
    let each = usize::from(each);
    let of = |stubs: &[u16], owner: usize| -> Vec<u16> {
        stubs.chunks(each).nth(owner).map(<[u16]>::to_vec).unwrap_or_default()
    };
    let doubled = |stubs: &[u16]| {
        (0..stubs.len()).find(|place| {
            let owner = of(stubs, place / each);
            owner.iter().take(place % each).any(|earlier| stubs.get(*place) == Some(earlier))
        })
    };
    while let Some(place) = doubled(&stubs) {
        let other = rng.below(stubs.len());
        stubs.swap(place, other);
    }
    let pairs = stubs.chunks(each).zip(0..outer);
    Ok(pairs.flat_map(|(links, owner)| links.iter().map(move |inner| (owner, *inner))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_network_has_equal_degrees_and_no_doubled_link() {
        for seed in 0..50 {
            let topology = Topology::generate(Shape::PAPER, &mut Rng::new(seed)).unwrap();
            assert_eq!((topology.len(), topology.base_count()), (106, 60));
            let degree = |level| -> Vec<usize> {
                topology.of_level(level).map(|site| topology.links(site).len()).collect()
            };
            assert_eq!(degree(Level::Layer(Layer::BASE)), vec![3; 60]);
            assert_eq!(degree(Level::Layer(Layer::ENH1)), vec![6 + 2; 30]);
            assert_eq!(degree(Level::Layer(Layer::ENH2)), vec![4 + 1; 15]);
            assert_eq!(degree(Level::Origin), [15]);
            assert_eq!(topology.all_links().len(), 180 + 60 + 15);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_network() {
        let draw = |seed| Topology::generate(Shape::PAPER, &mut Rng::new(seed)).unwrap();
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
    }

    #[test]
    fn steps_are_counted_over_enh1_nodes_alone() {
        // base 0 and 1 share an Enh1 node, 2 hangs on the other, and only Enh2 joins the two.
        let s = SiteId;
        let links = [(s(0), s(3)), (s(1), s(3)), (s(2), s(4)), (s(3), s(5)), (s(4), s(5)), (s(5), s(6))];
        let topology = Topology::from_links(3, 2, 1, &links).unwrap();
        assert_eq!(topology.base_steps(s(0)), [Some(0), Some(1), None]);
        assert!(!topology.is_connected());
    }

    #[test]
    fn names_lead_back_to_their_nodes() {
        let topology = Topology::generate(Shape::DEMO, &mut Rng::new(1)).unwrap();
        for site in topology.sites() {
            assert_eq!(topology.site(topology.peer(site).unwrap()), Some(site));
        }
        assert_eq!(topology.site("nobody".parse().unwrap()), None);
    }

    #[test]
    fn a_shape_that_cannot_be_linked_is_refused() {
        let shape = Shape { base_links: 5, ..Shape::DEMO };
        assert_eq!(Topology::generate(shape, &mut Rng::new(1)), Err(TopologyError::TooManyLinks(5, 4)));
        let none = Topology::from_links(1, 1, 1, &[(SiteId(0), SiteId(9))]);
        assert_eq!(none, Err(TopologyError::NoSuchSite(9)));
    }
}
