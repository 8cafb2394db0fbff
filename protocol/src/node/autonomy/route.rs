//! What an agent knows of the nodes on its way: which of them would do, and
//! which is best.

use super::agent::{DiscoveryKind, EntryKind, Note, SearchId};
use super::config::Policy;
use crate::peer::PeerId;
use std::cmp::Ordering;

/// The place of a note among others: its merits in one number, then its node.
pub type Merit = (u64, PeerId);

/// What makes a node a candidate.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// `VipDual` or `NormalDual`.
    pub kind: EntryKind,
    /// The search; its start node is no candidate.
    pub search: SearchId,
    /// The reason; a node to be left is no candidate.
    pub why: DiscoveryKind,
    /// Whether a `normaldual` needs a free slot.
    pub strict: bool,
    /// Which one is best.
    pub policy: Policy,
}

impl Wanted {
    /// Whether a node would do, by what is known of it.
    pub fn accepts(&self, note: &Note) -> bool {
        let left = match self.why {
            DiscoveryKind::Fresh => false,
            DiscoveryKind::Relocate { leaving } => leaving == note.node,
        };
        let room = match self.kind {
            EntryKind::NormalDual if !self.strict => note.headroom >= 1,
            EntryKind::NormalDual | EntryKind::VipDual | EntryKind::Normal | EntryKind::Vip => note.free >= 1,
        };
        room && !left && note.node != self.search.start
    }

    /// The better one first.
    pub fn compare(&self, a: &Note, b: &Note) -> Ordering {
        self.merit(a).cmp(&self.merit(b))
    }

    /// How good a note is, the best lowest: two notes of one merit speak of one node.
    pub fn merit(&self, note: &Note) -> Merit {
        let (hops, spent) = (u64::from(note.hops), u64::from(u32::MAX - note.headroom));
        match self.policy {
            Policy::Nearest => ((hops << 32) | spent, note.node),
            Policy::MostHeadroom => ((spent << 8) | hops, note.node),
        }
    }

    /// The candidates among `notes`, the best first, each node once, at most `max`.
    pub fn best(&self, notes: impl IntoIterator<Item = Note>, max: usize) -> Vec<Note> {
        let mut candidates: Vec<Note> = notes.into_iter().filter(|note| self.accepts(note)).collect();
        candidates.sort_by(|a, b| self.compare(a, b));
        let mut best: Vec<Note> = Vec::with_capacity(max.min(candidates.len()));
        for note in candidates {
            if best.len() >= max {
                break;
            }
            if !best.iter().any(|have| have.node == note.node) {
                best.push(note);
            }
        }
        best
    }
}

/// Takes a node out of a list of candidates.
pub fn without(notes: &[Note], node: PeerId) -> Vec<Note> {
    notes.iter().filter(|note| note.node != node).copied().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::node::autonomy::UserId;

    fn peer(name: &str) -> PeerId {
        name.parse().unwrap()
    }

    fn note(name: &str, hops: u8, free: u32, headroom: u32) -> Note {
        Note { node: peer(name), hops, free, headroom, lowest: None, passed: true }
    }

    fn wanted(kind: EntryKind, policy: Policy) -> Wanted {
        let search = SearchId { start: peer("s"), user: UserId(1), serial: 1 };
        Wanted { kind, search, why: DiscoveryKind::Relocate { leaving: peer("old") }, strict: false, policy }
    }

    fn names(notes: &[Note]) -> Vec<&str> {
        notes.iter().map(|note| note.node.as_str()).collect()
    }

    #[test]
    fn fewest_steps_then_headroom_then_name() {
        let notes = [
            note("d", 4, 9, 9),
            note("c", 2, 1, 5),
            note("b", 2, 1, 6),
            note("a", 2, 1, 5),
            note("a", 4, 9, 9),
        ];
        let nearest = wanted(EntryKind::NormalDual, Policy::Nearest).best(notes, 9);
        assert_eq!(names(&nearest), ["b", "a", "c", "d"]);
        let roomiest = wanted(EntryKind::NormalDual, Policy::MostHeadroom).best(notes, 2);
        assert_eq!(names(&roomiest), ["a", "d"]);
    }

    #[test]
    fn a_standby_needs_a_slot_a_reservation_only_headroom_and_some_are_never_chosen() {
        let notes = [note("full", 2, 0, 3), note("none", 2, 0, 0), note("s", 0, 9, 9), note("old", 2, 9, 9)];
        assert_eq!(names(&wanted(EntryKind::NormalDual, Policy::Nearest).best(notes, 9)), ["full"]);
        assert!(wanted(EntryKind::VipDual, Policy::Nearest).best(notes, 9).is_empty());
        let strict = Wanted { strict: true, ..wanted(EntryKind::NormalDual, Policy::Nearest) };
        assert!(strict.best(notes, 9).is_empty());
    }
}
