//! The disks of the nodes of the rig: what a fetcher does, and what hands do.

use super::rig::{End, Happening, Rig, held, ms, peer};
use crate::message::NodeAddress;
use crate::node::*;

/// What a copy of a layer takes.
const COPY: Span = Span::from_millis(50);

/// A layer on its way.
#[derive(Clone, Copy)]
pub(super) struct Copying {
    from: NodeAddress,
    version: Hash,
    /// Which copy it is: one that was stopped does not end.
    number: u64,
}

impl Copying {
    pub(super) fn new(from: NodeAddress, version: Hash) -> Self {
        Self { from, version, number: 0 }
    }
}

impl Rig {
    /// The last word counts; a copy that goes on looks there for its source.
    pub(super) fn fetch(&mut self, at: End, order: (TitleName, Layer), mut copying: Copying) {
        let End::Node(name, _) = at else { return };
        let number = self.number();
        let copies = &mut self.hosts.get_mut(&name).unwrap().copies;
        let before = copies.get(&order).filter(|before| before.version == copying.version);
        let goes_on = before.map(|before| before.number);
        copying.number = goes_on.unwrap_or(number);
        copies.insert(order.clone(), copying);
        if goes_on.is_none() {
            self.later(COPY, Happening::Copied { at, order, number });
        }
    }

    pub(super) fn copied(&mut self, at: End, order: (TitleName, Layer), number: u64) {
        let End::Node(name, life) = at else { return };
        let Some(host) = self.hosts.get(&name).filter(|host| host.life == life) else { return };
        let copying = host.copies.get(&order).copied();
        let Some(copying) = copying.filter(|copying| copying.number == number) else { return };
        let (title, layer) = order.clone();
        let source = self.hosts.get(&copying.from.peer);
        let source = source.filter(|source| {
            let there = End::Node(copying.from.peer, source.life);
            source.config.address == copying.from.address && !self.apart([at, there])
        });
        let source = source.and_then(|source| source.disk.get(&title)).cloned();
        let right = |held: &Held| held.has(layer) && held.manifest_hash == copying.version;
        let Some(source) = source.filter(right) else {
            return self.later(ms(500), Happening::Copied { at, order, number });
        };
        let host = self.hosts.get_mut(&name).unwrap();
        host.copies.remove(&order);
        let same = host.disk.get(&title).filter(|mine| mine.manifest_hash == copying.version).cloned();
        let mut mine = same.unwrap_or_else(|| Held { layers: Vec::new(), ..source });
        mine.layers.push(layer);
        host.disk.insert(title, mine);
        self.look_through(name);
    }

    pub(super) fn removed(&mut self, at: End, title: &TitleName, layer: Layer) {
        let End::Node(name, life) = at else { return };
        let Some(host) = self.hosts.get_mut(&name).filter(|host| host.life == life) else { return };
        if let Some(held) = host.disk.get_mut(title) {
            held.layers.retain(|have| *have != layer);
            if held.layers.is_empty() {
                host.disk.remove(title);
            }
        }
        self.look_through(name);
    }

    /// Somebody deletes a title by hand; it is noticed at the next look.
    pub(super) fn delete_by_hand(&mut self, name: &str, title: &str) {
        self.hosts.get_mut(&peer(name)).unwrap().disk.remove(&title.parse::<TitleName>().unwrap());
        self.look_through(peer(name));
    }

    /// Puts another title of the same name in place of the origin's.
    pub(super) fn replace(&mut self, title: &str, manifest: &[u8]) -> Hash {
        let layers: Vec<Layer> = Layer::first(3).collect();
        let version = Hash::of(manifest);
        let other = Held { manifest_hash: version, blocks: 300, ..held(title, &layers) };
        self.hosts.get_mut(&peer("origin")).unwrap().disk.insert(title.parse().unwrap(), other);
        self.look_through(peer("origin"));
        version
    }

    /// The version of the layer that lies on this node's disk.
    pub(super) fn version_at(&self, name: &str, title: &str, layer: Layer) -> Option<Hash> {
        let held = self.hosts[&peer(name)].disk.get(&title.parse::<TitleName>().unwrap());
        held.filter(|held| held.has(layer)).map(|held| held.manifest_hash)
    }
}
