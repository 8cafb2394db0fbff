//! Where nodes are: what each tells of itself, passed on once, kept by name.

use super::autonomy::Level;
use crate::message::{Contact, NodeAddress};
use crate::peer::PeerId;
use std::collections::BTreeMap;

/// All nodes heard of, this one excepted.
#[derive(Clone, Debug)]
pub(super) struct Book {
    own: PeerId,
    max: usize,
    contacts: BTreeMap<PeerId, Contact>,
}

/// What a contact told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing new.
    Known,
    /// A node not heard of before.
    Fresh,
    /// A node that has started anew since.
    Restarted,
}

impl Book {
    pub(super) fn new(own: PeerId, max: usize) -> Self {
        Self { own, max, contacts: BTreeMap::new() }
    }

    /// Takes what is said of a node. Of two contacts the later start is right.
    pub(super) fn learn(&mut self, contact: Contact) -> News {
        let peer = contact.node.peer;
        if peer == self.own {
            return News::Known;
        }
        let news = match self.contacts.get(&peer) {
            Some(known) if known.since >= contact.since => return News::Known,
            Some(_) => News::Restarted,
            None if self.contacts.len() >= self.max => return News::Known,
            None => News::Fresh,
        };
        self.contacts.insert(peer, contact);
        news
    }

    pub(super) fn address(&self, peer: PeerId) -> Option<NodeAddress> {
        self.contacts.get(&peer).map(|contact| contact.node)
    }

    /// The nodes of a level that `alive` accepts.
    pub(super) fn of_level(
        &self,
        level: Level,
        alive: impl Fn(PeerId) -> bool,
    ) -> impl Iterator<Item = NodeAddress> {
        let of = self.contacts.values().filter(move |contact| contact.level == level);
        of.map(|contact| contact.node).filter(move |node| alive(node.peer))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Contact> {
        self.contacts.values()
    }

    /// The nodes with which one of this level links itself, of those that
    /// `alive` accepts: so many of the nearest level further in and, where that
    /// is not the one next to the edge, so many of the edge itself, since
    /// backups are searched along these links. Each node draws its own by lot,
    /// always the same, so that links spread evenly (highest random weight).
    pub(super) fn chosen(&self, level: Level, links: usize, alive: impl Fn(PeerId) -> bool) -> Vec<PeerId> {
        let living = || self.contacts.values().filter(|contact| alive(contact.node.peer));
        let inner = living().map(|contact| contact.level).filter(|other| *other > level).min();
        let sideways = (level == Level::BASE && inner != Some(Level::ENH1)).then_some(Level::BASE);
        let mut chosen = Vec::new();
        for level in inner.into_iter().chain(sideways) {
            let peers = living().filter(|contact| contact.level == level).map(|contact| contact.node.peer);
            let mut drawn: Vec<(u64, PeerId)> = peers.map(|peer| (weight(self.own, peer), peer)).collect();
            drawn.sort_unstable();
            chosen.extend(drawn.into_iter().rev().take(links).map(|(_, peer)| peer));
        }
        chosen
    }

    /// Other nodes at the edge, at most `most`, beginning behind this one's name,
    /// so that each node names others.
    pub(super) fn doors(&self, most: usize, alive: impl Fn(PeerId) -> bool) -> Vec<NodeAddress> {
        let edge = |contact: &&Contact| contact.level == Level::BASE && alive(contact.node.peer);
        let behind = self.contacts.range(self.own..).chain(self.contacts.range(..self.own));
        behind.map(|(_, contact)| contact).filter(edge).take(most).map(|contact| contact.node).collect()
    }
}

/// FNV-1a over both names: the same everywhere, and even enough for drawing lots.
fn weight(one: PeerId, other: PeerId) -> u64 {
    let bytes = one.as_str().bytes().chain([b'/']).chain(other.as_str().bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The last bytes of the names weigh little in FNV's upper half without this.
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn peer(name: &str) -> PeerId {
        name.parse().unwrap()
    }

    fn contact(name: &str, level: Level, since: u64) -> Contact {
        let node = NodeAddress { peer: peer(name), address: ([127, 0, 0, 1], 1).into() };
        Contact { node, level, since }
    }

    fn network(own: &str) -> Book {
        let mut book = Book::new(peer(own), 100);
        for n in 0..8 {
            book.learn(contact(&format!("base-{n}"), Level::BASE, 1));
        }
        for n in 0..4 {
            book.learn(contact(&format!("enh1-{n}"), Level::ENH1, 1));
        }
        book.learn(contact("origin", Level::Origin, 1));
        book
    }

    #[test]
    fn a_later_start_is_news_and_an_earlier_one_is_not() {
        let mut book = Book::new(peer("me"), 1);
        assert_eq!(book.learn(contact("a", Level::BASE, 5)), News::Fresh);
        assert_eq!(book.learn(contact("a", Level::BASE, 5)), News::Known);
        assert_eq!(book.learn(contact("a", Level::BASE, 4)), News::Known);
        assert_eq!(book.learn(contact("a", Level::BASE, 6)), News::Restarted);
        assert_eq!(book.learn(contact("b", Level::BASE, 6)), News::Known, "bounded");
        assert_eq!(book.learn(contact("me", Level::BASE, 6)), News::Known);
    }

    #[test]
    fn base_nodes_link_with_three_of_the_level_above_each_with_its_own_and_always_the_same() {
        let mut sets = BTreeSet::new();
        for n in 0..8 {
            let book = network(&format!("base-{n}"));
            let chosen = book.chosen(Level::BASE, 3, |_| true);
            assert_eq!(chosen.len(), 3);
            assert!(chosen.iter().all(|peer| peer.as_str().starts_with("enh1")), "{chosen:?}");
            assert_eq!(chosen, book.chosen(Level::BASE, 3, |_| true));
            sets.insert(chosen.iter().copied().collect::<BTreeSet<PeerId>>());
        }
        assert!(sets.len() > 1, "not all the same");
    }

    #[test]
    fn where_a_level_is_missing_the_next_one_takes_its_place() {
        let book = network("base-0");
        assert_eq!(book.chosen(Level::ENH1, 2, |_| true), [peer("origin")]);
        let no_enh1 = |peer: PeerId| !peer.as_str().starts_with("enh1");
        let chosen = book.chosen(Level::BASE, 3, no_enh1);
        assert_eq!(chosen.iter().filter(|peer| peer.as_str().starts_with("base")).count(), 3);
        assert!(chosen.contains(&peer("origin")) && !chosen.contains(&peer("base-0")));
        assert!(book.chosen(Level::Origin, 3, |_| true).is_empty());
    }

    #[test]
    fn other_doors_are_named_in_turn() {
        let names = |own: &str| -> Vec<String> {
            network(own).doors(2, |_| true).iter().map(|door| door.peer.to_string()).collect()
        };
        assert_eq!(names("base-3"), ["base-4", "base-5"]);
        assert_eq!(names("base-7"), ["base-0", "base-1"]);
    }
}
