//! What is known of titles, repaired: which edition of a title is the last one,
//! and whether it was withdrawn.
//!
//! A Push-MA passes each node once, and a node that was cut off or not running
//! misses it. So every node keeps the last edition of each title it heard of,
//! a withdrawal as well as a publication, and the digest that travels with the
//! survival signals covers these too: a neighbour that knows others answers with
//! some of its own. Of two editions the higher number is right, so that an old
//! withdrawal never deletes what was published again, and an old copy never
//! comes back.

use super::Autonomy;
use super::agent::Level;
use super::io::{AutonomyEvent, Bound};
use super::talk::AgentMessage;
use crate::peer::PeerId;
use media::{Hash, TitleName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most editions in one message; the others follow at the next digests.
pub const MAX_EDITIONS: usize = 32;
/// Withdrawals are remembered beside the titles that are there.
const TITLES_AND_WITHDRAWALS: usize = 2;

/// The last that an origin ordered about a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edition {
    /// The title.
    pub title: TitleName,
    /// Who publishes it.
    pub origin: PeerId,
    /// Counts the orders about this title; the highest number is right.
    pub number: u64,
    /// BLAKE3 of the manifest; none: it was withdrawn.
    pub version: Option<Hash>,
}

impl Edition {
    /// Two origins may count alike: what the number leaves open is settled by
    /// the rest, everywhere in the same way.
    fn rank(&self) -> (u64, Option<Hash>, PeerId) {
        (self.number, self.version, self.origin)
    }
}

/// The editions that a node knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    titles: BTreeMap<TitleName, Edition>,
    /// The title spoken of last in an answer to a digest.
    spoken: Option<TitleName>,
}

/// What an edition told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Something newer than what was known.
    News,
    /// What was known.
    Known,
    /// Something older than what is known.
    Old,
    /// There is no room for it.
    NoRoom,
}

impl Ledger {
    pub(super) fn get(&self, title: &TitleName) -> Option<&Edition> {
        self.titles.get(title)
    }

    /// Takes an edition, if there is room for it among at most `max` titles: the
    /// oldest withdrawal makes room.
    pub(super) fn learn(&mut self, said: &Edition, max: usize) -> Told {
        match self.titles.get(&said.title).map(Edition::rank) {
            Some(known) if known == said.rank() => return Told::Known,
            Some(known) if known > said.rank() => return Told::Old,
            None if self.titles.len() >= max => {
                let withdrawn = self.titles.values().filter(|edition| edition.version.is_none());
                let oldest = withdrawn.min_by_key(|edition| edition.number).map(|old| old.title.clone());
                let Some(oldest) = oldest else { return Told::NoRoom };
                self.titles.remove(&oldest);
            }
            Some(_) | None => {}
        }
        self.titles.insert(said.title.clone(), said.clone());
        Told::News
    }

    /// A number that differs where editions do, whatever their order; 0 for none.
    pub(super) fn digest(&self) -> u64 {
        let of = |edition: &Edition| {
            let hash = edition.version.as_ref().map_or([0; 32], |version| *version.as_bytes());
            let (title, number) = (edition.title.as_str().bytes(), edition.number.to_le_bytes());
            // FNV-1a.
            title.chain([0]).chain(number).chain(hash).fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        self.titles.values().map(of).fold(0, u64::wrapping_add)
    }

    /// Some of the editions, each time those behind the ones before.
    pub(super) fn some(&mut self) -> Vec<Edition> {
        let behind = |title: &TitleName| self.spoken.as_ref().is_none_or(|spoken| title > spoken);
        let (next, first): (Vec<&Edition>, Vec<&Edition>) =
            self.titles.values().partition(|edition| behind(&edition.title));
        let some: Vec<Edition> = next.into_iter().chain(first).take(MAX_EDITIONS).cloned().collect();
        self.spoken = some.last().map(|edition| edition.title.clone());
        some
    }
}

impl Autonomy {
    /// The number of the next order about a title: by the clock, so that it is
    /// higher than those of an origin's earlier lives, and above what is known.
    pub(super) fn next_edition(&self, title: &TitleName) -> u64 {
        let clock = self.config.since.saturating_add((self.now - self.born).as_millis());
        let known = self.ledger.get(title).map_or(0, |known| known.number.saturating_add(1));
        clock.max(known)
    }

    pub(super) fn note_edition(&mut self, said: &Edition) -> Told {
        let max = self.config.max_titles.saturating_mul(TITLES_AND_WITHDRAWALS);
        let told = self.ledger.learn(said, max);
        if told == Told::NoRoom {
            self.event(AutonomyEvent::BoundReached { what: Bound::Titles });
        }
        told
    }

    /// A neighbour says what it knows of titles.
    pub(super) fn hear_editions(&mut self, from: PeerId, editions: &[Edition]) {
        if self.survival.neighbour(from).is_none() {
            return;
        }
        for said in editions.iter().take(MAX_EDITIONS) {
            if self.note_edition(said) == Told::News {
                self.follow(said);
                let others: Vec<PeerId> = self.survival.alive().map(|(peer, _)| peer).collect();
                for peer in others.into_iter().filter(|peer| *peer != from) {
                    self.send(peer, AgentMessage::Editions([said.clone()].into()));
                }
            }
        }
    }

    /// Does what follows from an edition that was missed.
    fn follow(&mut self, said: &Edition) {
        match (self.level, said.version) {
            // It is this origin's own order, of an earlier life that counted further.
            (Level::Origin, _) if said.origin == self.id => self.publish_above(said),
            (Level::Origin, _) => {}
            (Level::Layer(_), None) => self.withdraw(&said.title),
            (Level::Layer(layer), Some(version)) => self.renew(&said.title, layer, version, said.origin),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn edition(title: &str, number: u64, version: Option<u8>) -> Edition {
        let version = version.map(|byte| Hash::from([byte; 32]));
        Edition { title: title.parse().unwrap(), origin: "o".parse().unwrap(), number, version }
    }

    #[test]
    fn the_higher_number_is_right_whatever_came_first() {
        let (mut one, mut other) = (Ledger::default(), Ledger::default());
        let (old, gone, again) = (edition("a", 1, Some(1)), edition("a", 2, None), edition("a", 3, Some(1)));
        assert_eq!(one.learn(&old, 9), Told::News);
        assert_eq!((one.learn(&again, 9), one.learn(&gone, 9)), (Told::News, Told::Old));
        assert_eq!((one.learn(&again, 9), one.digest() == 0), (Told::Known, false));
        assert_eq!(other.learn(&gone, 9), Told::News);
        assert_ne!(one.digest(), other.digest());
        assert_eq!(other.learn(&again, 9), Told::News);
        assert_eq!(one.digest(), other.digest());
    }

    #[test]
    fn two_origins_that_count_alike_are_told_apart_in_the_same_way_everywhere() {
        let (a, b) = (edition("a", 1, Some(1)), edition("a", 1, Some(2)));
        let (mut one, mut other) = (Ledger::default(), Ledger::default());
        assert_eq!((one.learn(&a, 9), one.learn(&b, 9)), (Told::News, Told::News));
        assert_eq!((other.learn(&b, 9), other.learn(&a, 9)), (Told::News, Told::Old));
        assert_eq!(one.get(&a.title), other.get(&a.title));
    }

    #[test]
    fn the_oldest_withdrawal_makes_room_and_what_is_there_does_not() {
        let mut ledger = Ledger::default();
        for said in [edition("a", 5, None), edition("b", 4, None), edition("c", 1, Some(1))] {
            assert_eq!(ledger.learn(&said, 3), Told::News);
        }
        assert_eq!(ledger.learn(&edition("d", 9, Some(1)), 3), Told::News);
        assert!(ledger.get(&"b".parse().unwrap()).is_none());
        assert_eq!(ledger.learn(&edition("e", 9, Some(1)), 3), Told::News);
        assert_eq!(ledger.learn(&edition("f", 9, Some(1)), 3), Told::NoRoom);
    }

    #[test]
    fn editions_are_told_in_turn() {
        let mut ledger = Ledger::default();
        for n in 0..40 {
            ledger.learn(&edition(&format!("t{n:02}"), 1, None), 99);
        }
        let (one, other) = (ledger.some(), ledger.some());
        assert_eq!((one.len(), one[31].title.as_str()), (32, "t31"));
        assert_eq!((other[0].title.as_str(), other[8].title.as_str()), ("t32", "t00"));
    }
}
