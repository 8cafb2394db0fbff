//! What agents leave for one another on a node: notes of agents that are still
//! under way behind it, and results of those that came back.
//!
//! Distances on a board are counted from the board's own node. What is read far
//! more often than written is put in order when it is written: of hundreds of
//! notes only the few best are looked at.

use super::agent::{EntryKind, Note, SearchId};
use super::route::{Merit, Wanted};
use crate::peer::PeerId;
use media::{Span, Time};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The board of one node.
#[derive(Clone, Debug, Default)]
pub struct Board {
    under_way: BTreeMap<SearchId, UnderWay>,
    /// What `under_way` holds, the best first.
    by_merit: BTreeMap<Merit, Alike>,
    results: BTreeMap<(PeerId, EntryKind), Found>,
}

/// What an agent knew when it passed.
#[derive(Clone, Debug)]
struct UnderWay {
    until: Time,
    merits: Box<[Merit]>,
}

/// Notes of one merit: whether one will do, all with a free slot will, and so will
/// all without.
#[derive(Clone, Debug, Default)]
struct Alike {
    free: BTreeMap<SearchId, (Time, Note)>,
    full: BTreeMap<SearchId, (Time, Note)>,
}

impl Alike {
    fn of(&mut self, note: &Note) -> &mut BTreeMap<SearchId, (Time, Note)> {
        if note.free > 0 { &mut self.free } else { &mut self.full }
    }

    /// The note of the first other search that will do.
    fn first(&self, now: Time, wanted: &Wanted, dead: impl Fn(PeerId) -> bool) -> Option<Note> {
        let will_do = |of: &BTreeMap<SearchId, (Time, Note)>| {
            let (_, (_, any)) = of.first_key_value()?;
            if !wanted.accepts(any) || dead(any.node) {
                return None;
            }
            let mut others = of.iter().filter(|(id, (until, _))| **id != wanted.search && *until > now);
            others.next().map(|(id, (_, note))| (*id, *note))
        };
        let found = will_do(&self.free).into_iter().chain(will_do(&self.full));
        found.min_by_key(|(id, _)| *id).map(|(_, note)| note)
    }
}

/// What came back through one neighbour.
#[derive(Clone, Debug)]
struct Found {
    at: Time,
    /// All that the agent knew.
    route: Arc<[Note]>,
    /// What lies behind the neighbour, the best first.
    behind: Arc<[Note]>,
}

impl Board {
    /// An agent passes, `hops` from its start: its notes stay until it returns
    /// or its timer fires.
    pub fn leave(&mut self, wanted: &Wanted, hops: u8, route: &[Note], until: Time) {
        let search = wanted.search;
        self.wipe(search);
        let notes = route.iter().filter(|note| note.passed).map(|note| seen_from(hops, note));
        let merits: Box<[Merit]> = notes
            .map(|note| {
                let merit = wanted.merit(&note);
                self.by_merit.entry(merit).or_default().of(&note).insert(search, (until, note));
                merit
            })
            .collect();
        if !merits.is_empty() {
            self.under_way.insert(search, UnderWay { until, merits });
        }
    }

    /// The agent has returned, or will not any more.
    pub fn wipe(&mut self, search: SearchId) {
        let Some(way) = self.under_way.remove(&search) else { return };
        for merit in way.merits {
            if let Entry::Occupied(mut alike) = self.by_merit.entry(merit) {
                alike.get_mut().free.remove(&search);
                alike.get_mut().full.remove(&search);
                if alike.get().free.is_empty() && alike.get().full.is_empty() {
                    alike.remove();
                }
            }
        }
    }

    /// All that lies behind `neighbour` for those who want what `wanted` does;
    /// `hops` is the distance of this node from the start of that search.
    pub fn result(&mut self, now: Time, neighbour: PeerId, wanted: &Wanted, hops: u8, route: &Arc<[Note]>) {
        // What the agent knew before it came here does not lie behind.
        let mut behind: Vec<Note> =
            route.iter().filter(|note| note.hops > hops).map(|note| seen_from(hops, note)).collect();
        behind.sort_by(|a, b| wanted.compare(a, b));
        let found = Found { at: now, route: Arc::clone(route), behind: behind.into() };
        self.results.insert((neighbour, wanted.kind), found);
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
        for ((_, node), alike) in &self.by_merit {
            if best.len() >= max {
                break;
            }
            if best.iter().all(|have| have.node != *node) {
                best.extend(alike.first(now, wanted, &dead));
            }
        }
        let found = skipped.iter().filter_map(|neighbour| self.results.get(&(*neighbour, wanted.kind)));
        for found in found {
            for note in found.behind.iter() {
                let place = |have: &Note| wanted.compare(note, have).is_lt();
                if best.len() >= max && best.last().is_none_or(|last| !place(last)) {
                    break;
                }
                if !wanted.accepts(note) || dead(note.node) {
                    continue;
                }
                match best.iter().position(|have| have.node == note.node) {
                    Some(same) if best.get(same).is_some_and(place) => {
                        best.remove(same);
                    }
                    Some(_) => continue,
                    None => {}
                }
                let at = best.partition_point(|have| !place(have));
                best.insert(at, *note);
                best.truncate(max);
            }
        }
        best
    }

    /// The number of notes that are still valid.
    pub fn notes(&self, now: Time) -> usize {
        let ways = self.under_way.values().filter(|way| way.until > now);
        ways.map(|way| way.merits.len()).sum()
    }

    /// Forgets what speaks of a node, or came through it.
    pub fn forget(&mut self, node: PeerId) {
        self.results.retain(|(neighbour, _), found| {
            *neighbour != node && found.route.iter().all(|note| note.node != node)
        });
    }
}

/// A note as a node sees it that lies `hops` from the start.
fn seen_from(hops: u8, note: &Note) -> Note {
    Note { hops: hops.abs_diff(note.hops), passed: false, ..*note }
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

    fn wanted(serial: u32, kind: EntryKind) -> Wanted {
        let (why, policy) = (DiscoveryKind::Fresh, Policy::Nearest);
        Wanted { kind, search: search(serial), why, strict: false, policy }
    }

    fn read(board: &Board, secs: u64, serial: u32, kind: EntryKind, skipped: &[PeerId]) -> Vec<Note> {
        board.read(at(secs), &wanted(serial, kind), skipped, 2, |node| node == peer("dead"))
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn notes_are_read_by_others_until_the_agent_returns_or_its_timer_fires() {
        let mut board = Board::default();
        board.leave(&wanted(1, EntryKind::NormalDual), 3, &[note("b", 2)], at(10));
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
            board.leave(&wanted(serial, EntryKind::NormalDual), 0, &[note(name, hops)], at(9));
        }
        let read = read(&board, 0, 1, EntryKind::NormalDual, &[]);
        let read: Vec<(&str, u8)> = read.iter().map(|note| (note.node.as_str(), note.hops)).collect();
        assert_eq!(read, [("b", 2), ("c", 3)]);
    }

    #[test]
    fn a_result_counts_for_its_kind_its_age_and_what_lies_behind() {
        let mut board = Board::default();
        let route = vec![note("b", 4), note("here", 2)].into();
        board.result(at(0), peer("e"), &wanted(1, EntryKind::VipDual), 2, &route);
        let knows = |secs, kind| board.knows(at(secs), peer("e"), kind, Span::from_secs(30));
        assert!(knows(30, EntryKind::VipDual));
        assert!(!knows(31, EntryKind::VipDual) && !knows(0, EntryKind::NormalDual));
        let read = read(&board, 1, 1, EntryKind::VipDual, &[peer("e")]);
        assert_eq!(read, [Note { hops: 2, passed: false, ..note("b", 4) }]);
        board.forget(peer("b"));
        assert!(!board.knows(at(1), peer("e"), EntryKind::VipDual, Span::from_secs(30)));
    }
}
