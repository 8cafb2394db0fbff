//! The sources of a title: numbers for the machine, names and addresses for the
//! network and for people.

use crate::report::SourceReport;
use media::{Layer, Quality};
use protocol::message::MAX_SOURCES as MOST_SOURCES_TOLD;
use protocol::player::{Service, SourceId};
use protocol::{NodeAddress, Opened, PeerId};
use std::net::SocketAddr;

/// The most sources of one title; more are not looked at.
const MOST_SOURCES: usize = 256;

/// One place that may serve chunks.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) peer: Option<PeerId>,
    pub(crate) address: SocketAddr,
    chunks: u64,
    bytes: u64,
    failed: u64,
}

/// All of them, numbered.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceTable(Vec<Source>);

impl SourceTable {
    /// Numbers a place, once.
    pub(crate) fn number(&mut self, peer: Option<PeerId>, address: SocketAddr) -> Option<SourceId> {
        let place = self.0.iter().position(|source| source.address == address);
        let place = match place {
            Some(place) => {
                if let Some(source) = self.0.get_mut(place) {
                    source.peer = source.peer.or(peer);
                }
                place
            }
            None if self.0.len() < MOST_SOURCES => {
                self.0.push(Source { peer, address, chunks: 0, bytes: 0, failed: 0 });
                self.0.len().checked_sub(1)?
            }
            None => return None,
        };
        u16::try_from(place).ok().map(SourceId)
    }

    /// For each layer, whom to ask, in order: for Base the granting node if it
    /// is named at all, then its backup, then the others as they are told; a
    /// layer of which nothing is said is asked of the granting node.
    pub(crate) fn order(&mut self, opened: &Opened, granting: NodeAddress) -> Vec<Vec<SourceId>> {
        let layers = Layer::first(opened.quality.layers());
        layers
            .map(|layer| {
                let told = opened.sources.iter().find(|sources| sources.layer == layer);
                let mut nodes = told.map_or_else(|| vec![granting], |sources| sources.nodes.clone());
                // The way by which we came is known to work; its own word for it may not.
                for node in &mut nodes {
                    if node.peer == granting.peer {
                        node.address = granting.address;
                    }
                }
                if layer == Layer::BASE {
                    nodes.extend(opened.backup.filter(|backup| !nodes.contains(backup)));
                    // A stable sort: the others keep the order in which they are told.
                    nodes.sort_by_key(|node| (*node != granting, Some(*node) != opened.backup));
                }
                nodes.into_iter().filter_map(|node| self.number(Some(node.peer), node.address)).collect()
            })
            .collect()
    }

    /// Who serves and who stands behind, as the granting node says.
    pub(crate) fn service(&mut self, opened: &Opened, granting: NodeAddress) -> Service {
        let mut number = |node: &NodeAddress| self.number(Some(node.peer), node.address);
        // Who is not among the sources of Base, such as a proxy that names
        // others, is not the one that keeps the record.
        let base = opened.sources.iter().find(|sources| sources.layer == Layer::BASE);
        let serves = base.is_none_or(|base| base.nodes.iter().any(|node| node.peer == granting.peer));
        Service {
            home: serves.then(|| number(&granting)).flatten(),
            backup: opened.backup.as_ref().and_then(&mut number),
            epoch: opened.epoch,
            doors: opened.doors.iter().take(MOST_SOURCES_TOLD).filter_map(number).collect(),
        }
    }

    pub(crate) fn get(&self, id: SourceId) -> Option<&Source> {
        self.0.get(usize::from(id.0))
    }

    fn get_mut(&mut self, id: SourceId) -> Option<&mut Source> {
        self.0.get_mut(usize::from(id.0))
    }

    /// What people call it.
    pub(crate) fn name(&self, id: SourceId) -> String {
        self.get(id).map_or_else(|| format!("source {}", id.0), Source::name)
    }

    pub(crate) fn delivered(&mut self, id: SourceId, bytes: u64) {
        if let Some(source) = self.get_mut(id) {
            source.chunks = source.chunks.saturating_add(1);
            source.bytes = source.bytes.saturating_add(bytes);
        }
    }

    pub(crate) fn failed(&mut self, id: SourceId) {
        if let Some(source) = self.get_mut(id) {
            source.failed = source.failed.saturating_add(1);
        }
    }

    pub(crate) fn report(&self) -> Vec<SourceReport> {
        let line = |source: &Source| SourceReport {
            node: source.name(),
            address: source.address.to_string(),
            chunks: source.chunks,
            bytes: source.bytes,
            failed: source.failed,
        };
        self.0.iter().map(line).collect()
    }
}

impl Source {
    fn name(&self) -> String {
        self.peer.map_or_else(|| self.address.to_string(), |peer| peer.to_string())
    }
}

/// The first sources of each layer that are worth dialling before the machine
/// asks for it, so that the first block finds them connected.
pub(crate) fn soon(order: &[Vec<SourceId>], quality: Quality) -> Vec<SourceId> {
    let mut early = Vec::new();
    for source in order.iter().take(usize::from(quality.layers())).flat_map(|layer| layer.iter().take(2)) {
        if !early.contains(source) {
            early.push(*source);
        }
    }
    early
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Hash;
    use protocol::{LayerSources, SessionId};

    fn node(name: &str, port: u16) -> NodeAddress {
        NodeAddress { peer: name.parse().unwrap(), address: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    fn opened(sources: Vec<LayerSources>, backup: Option<NodeAddress>) -> Opened {
        Opened {
            request: 1,
            session: SessionId(1),
            quality: Quality::SILVER,
            manifest_length: 1,
            manifest_hash: Hash::of(b""),
            sources,
            backup,
            epoch: 0,
            doors: Vec::new(),
        }
    }

    #[test]
    fn base_comes_from_the_granting_node_then_its_backup_then_the_others() {
        let mut table = SourceTable::default();
        let base = vec![node("origin", 1), node("base-1", 9), node("base-2", 3)];
        let enh1 = vec![node("enh1", 4), node("origin", 1)];
        let told = opened(
            vec![
                LayerSources { layer: Layer::BASE, nodes: base },
                LayerSources { layer: Layer::ENH1, nodes: enh1 },
            ],
            Some(node("base-2", 3)),
        );
        let order = table.order(&told, node("base-1", 2));
        let names: Vec<Vec<String>> =
            order.iter().map(|layer| layer.iter().map(|id| table.name(*id)).collect()).collect();
        assert_eq!(names, [vec!["base-1", "base-2", "origin"], vec!["enh1", "origin"]]);
        assert_eq!(table.get(order[0][0]).unwrap().address.port(), 2, "the way we came");
        assert_eq!(soon(&order, Quality::BRONZE).len(), 2);
    }

    #[test]
    fn who_names_nobody_serves_by_itself() {
        let mut table = SourceTable::default();
        let order = table.order(&opened(Vec::new(), None), node("proxy", 7));
        assert_eq!(order, [vec![SourceId(0)], vec![SourceId(0)]]);
    }
}
