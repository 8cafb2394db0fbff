//! What agents leave for one another on a node: notes of agents that are still
//! under way behind it, and results of those that came back.
//!
//! Distances on a board are counted from the board's own node.

use super::agent::{EntryKind, Note, SearchId};
use super::route::Wanted;
use crate::peer::PeerId;
use media::{Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The board of one node.
#[derive(Clone, Debug, Default)]
pub struct Board {
    under_way: BTreeMap<SearchId, UnderWay>,
    results: BTreeMap<(PeerId, EntryKind), Found>,
}

/// What an agent knew when it passed.
#[derive(Clone, Debug)]
struct UnderWay {
    until: Time,
    hops: u8,
    route: Arc<[Note]>,
}

/// What came back through one neighbour.
#[derive(Clone, Debug)]
struct Found {
    at: Time,
    hops: u8,
    route: Arc<[Note]>,
}

impl Board {
    /// An agent passes, `hops` from its start: its notes stay until it returns
    /// or its timer fires.
    pub fn leave(&mut self, search: SearchId, hops: u8, route: &Arc<[Note]>, until: Time) {
        if route.iter().any(|note| note.passed) {
            self.under_way.insert(search, UnderWay { until, hops, route: Arc::clone(route) });
        }
    }

    /// The agent has returned, or will not any more.
    pub fn wipe(&mut self, search: SearchId) {
        self.under_way.remove(&search);
    }

    /// All that lies behind `neighbour` for those who want `wanted`; `hops` is
    /// the distance of this node from the start of the search that found it.
    pub fn result(&mut self, now: Time, neighbour: PeerId, wanted: EntryKind, hops: u8, route: &Arc<[Note]>) {
        self.results.insert((neighbour, wanted), Found { at: now, hops, route: Arc::clone(route) });
    }

    /// Whether there is a result through `neighbour` no older than `age`.
    pub fn knows(&self, now: Time, neighbour: PeerId, wanted: EntryKind, age: Span) -> bool {
        self.results.get(&(neighbour, wanted)).is_some_and(|found| now - found.at <= age)
    }

    /// The best `max` of what a passing agent may read, with distances from here,
    /// each node once: notes of other searches, and results through those
    /// neighbours it will not be sent to. Nodes that are `dead` are left out.
    pub fn read(
        &self,
        now: Time,
        wanted: &Wanted,
        skipped: &[PeerId],
        max: usize,
        dead: impl Fn(PeerId) -> bool,
    ) -> Vec<Note> {
        let mut best: Vec<Note> = Vec::new();
        // Of hundreds of notes few are among the best: the others are seen once.
        let mut offer = |note: Note| {
            let place = |have: &Note| wanted.compare(&note, have).is_lt();
            let late = best.len() >= max && best.last().is_none_or(|last| !place(last));
            if late || !wanted.accepts(&note) || dead(note.node) {
                return;
            }
            match best.iter().position(|have| have.node == note.node) {
                Some(same) if best.get(same).is_some_and(place) => {
                    best.remove(same);
                }
                Some(_) => return,
                None => {}
            }
            let at = best.partition_point(|have| !place(have));
            best.insert(at, note);
            best.truncate(max);
        };
        let others = self.under_way.iter().filter(|(id, way)| **id != wanted.search && way.until > now);
        for (_, way) in others {
            for note in way.route.iter().filter(|note| note.passed) {
                offer(Note { hops: way.hops.abs_diff(note.hops), passed: false, ..*note });
            }
        }
        let found = skipped.iter().filter_map(|neighbour| self.results.get(&(*neighbour, wanted.kind)));
        for found in found {
            // What the agent knew before it came here does not lie behind.
            for note in found.route.iter().filter(|note| note.hops > found.hops) {
                offer(Note { hops: note.hops.abs_diff(found.hops), passed: false, ..*note });
            }
        }
        best
    }

    /// The number of notes that are still valid.
    pub fn notes(&self, now: Time) -> usize {
        let ways = self.under_way.values().filter(|way| way.until > now);
        ways.map(|way| way.route.iter().filter(|note| note.passed).count()).sum()
    }

    /// Forgets what speaks of a node, or came through it.
    pub fn forget(&mut self, node: PeerId) {
        self.results.retain(|(neighbour, _), found| {
            *neighbour != node && found.route.iter().all(|note| note.node != node)
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::node::autonomy::{DiscoveryKind, Policy, UserId};

    fn peer(name: &str) -> PeerId {
        name.parse().unwrap()
    }

    fn search(serial: u32) -> SearchId {
        SearchId { start: peer("s"), user: UserId(1), serial }
    }

    fn note(name: &str, hops: u8) -> Note {
        Note { node: peer(name), hops, free: 1, headroom: 1, lowest: None, passed: true }
    }

    fn read(board: &Board, secs: u64, serial: u32, kind: EntryKind, skipped: &[PeerId]) -> Vec<Note> {
        let (why, policy) = (DiscoveryKind::Fresh, Policy::Nearest);
        let wanted = Wanted { kind, search: search(serial), why, strict: false, policy };
        board.read(at(secs), &wanted, skipped, 2, |node| node == peer("dead"))
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn notes_are_read_by_others_until_the_agent_returns_or_its_timer_fires() {
        let mut board = Board::default();
        board.leave(search(1), 3, &vec![note("b", 2)].into(), at(10));
        assert_eq!(read(&board, 0, 1, EntryKind::NormalDual, &[]), [], "not its own");
        let seen = read(&board, 9, 2, EntryKind::NormalDual, &[]);
        assert_eq!(seen, [Note { hops: 1, passed: false, ..note("b", 2) }]);
        assert_eq!((board.notes(at(9)), board.notes(at(10))), (1, 0));
        assert_eq!(read(&board, 10, 2, EntryKind::NormalDual, &[]), []);
        board.wipe(search(1));
        assert_eq!(read(&board, 0, 2, EntryKind::NormalDual, &[]), []);
    }

    #[test]
    fn what_is_read_is_what_sorting_all_of_it_would_give() {
        let mut board = Board::default();
        let notes = [("c", 5), ("dead", 1), ("b", 4), ("c", 3), ("d", 6), ("b", 2), ("a", 6)];
        for (serial, (name, hops)) in (2_u32..).zip(notes) {
            board.leave(search(serial), 0, &vec![note(name, hops)].into(), at(9));
        }
        let read = read(&board, 0, 1, EntryKind::NormalDual, &[]);
        let read: Vec<(&str, u8)> = read.iter().map(|note| (note.node.as_str(), note.hops)).collect();
        assert_eq!(read, [("b", 2), ("c", 3)]);
    }

    #[test]
    fn a_result_counts_for_its_kind_its_age_and_what_lies_behind() {
        let mut board = Board::default();
        board.result(at(0), peer("e"), EntryKind::VipDual, 2, &vec![note("b", 4), note("here", 2)].into());
        let knows = |secs, kind| board.knows(at(secs), peer("e"), kind, Span::from_secs(30));
        assert!(knows(30, EntryKind::VipDual));
        assert!(!knows(31, EntryKind::VipDual) && !knows(0, EntryKind::NormalDual));
        let read = read(&board, 1, 1, EntryKind::VipDual, &[peer("e")]);
        assert_eq!(read, [Note { hops: 2, passed: false, ..note("b", 4) }]);
        board.forget(peer("b"));
        assert!(!board.knows(at(1), peer("e"), EntryKind::VipDual, Span::from_secs(30)));
    }
}
