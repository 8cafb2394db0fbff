//! Who is let in, and who has to leave for it: the nine cells of ADVODS 3.2.1,
//! and what they need to be carried out.
//!
//! Only backups are ever sent away. Who is served stays served.

use super::agent::{EntryKind, Level, Sla, UserInfo};
use super::config::Moves;
use super::io::{AutonomyEvent, AutonomyOutput, Bound};
use super::record::{Record, SearchState, TakenFrom};
use super::reservation::Row;
use super::talk::{AdmissionRefusal, AgentMessage};
use super::{Autonomy, UserId};
use crate::node::classes::Reason;
use crate::peer::PeerId;
use media::{Layer, Quality, Time};
use std::collections::BTreeMap;

/// A request or an entry in the order of priority: who has begun to watch ranks
/// above who has not, then the kind of entry decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Whether the user has begun to watch.
    pub started: bool,
    /// The entry.
    pub kind: EntryKind,
}

/// What the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is room.
    Accept,
    /// There is room, but the lowest entry has to leave once it has found
    /// another place.
    AcceptAndMove,
    /// There is room once the lowest entry is deleted, at once.
    AcceptAndReplace,
    /// There is no room for this kind.
    Refuse,
}

/// The admission table: `free` slots against the bottom line, the kind that is
/// asked for against the lowest kind present.
pub fn decide(free: u32, bottom_line: u32, request: EntryKind, low: Option<EntryKind>) -> Verdict {
    let Some(low) = low else { return if free > 0 { Verdict::Accept } else { Verdict::Refuse } };
    let above = request > low;
    if free > bottom_line {
        Verdict::Accept
    } else if free > 0 {
        match (above, request == low) {
            (true, _) => Verdict::AcceptAndMove,
            (false, true) => Verdict::Accept,
            (false, false) => Verdict::Refuse,
        }
    } else if above {
        Verdict::AcceptAndReplace
    } else {
        Verdict::Refuse
    }
}

impl Autonomy {
    /// The lowest kind of entry present, reservations without a slot included.
    pub fn lowest(&self) -> Option<EntryKind> {
        let serving = match (self.records.normal(), self.records.vip()) {
            (0, 0) => None,
            (0, _) => Some(EntryKind::Vip),
            (_, _) => Some(EntryKind::Normal),
        };
        self.reservations.lowest().or(serving)
    }

    /// Lets a user in to be served, or says why not.
    pub(super) fn admit_user(
        &mut self,
        now: Time,
        info: &UserInfo,
        entry: PeerId,
    ) -> Result<(), AdmissionRefusal> {
        let kind = EntryKind::serving(info.sla);
        if self.records.len() >= self.config.max_users {
            self.event(AutonomyEvent::BoundReached { what: Bound::Users });
            return Err(AdmissionRefusal::Bound);
        }
        if !self.stores(&info.title, Layer::BASE) {
            return Err(AdmissionRefusal::NotStored);
        }
        // A backup that its own user asks to serve keeps nothing behind it.
        let own_row = self.reservations.remove(info.user);
        let rank = Rank { started: info.started, kind };
        if let Err(why) = self.let_in(now, rank, info) {
            if let Some(row) = own_row {
                self.reservations.insert(row);
            }
            return Err(why);
        }
        let free = self.free();
        let took_over = own_row.map(|row| TakenFrom { node: row.primary, kind: row.kind, told: false });
        self.serve(now, info.clone(), entry, took_over);
        self.event(AutonomyEvent::Admitted { user: info.user, kind });
        self.note_bottom_line(free);
        Ok(())
    }

    /// Tests everything in order, the class of the title first, then takes
    /// everything: a slot, for which a backup may have to leave, and what the
    /// delivery needs of the links; or nothing.
    fn let_in(&mut self, now: Time, rank: Rank, info: &UserInfo) -> Result<(), AdmissionRefusal> {
        let delivery = (info.user, Layer::BASE);
        let verdict = self.standing(rank);
        let standing = verdict.map(|_| ());
        let moved = self.grants.admit(delivery, &info.title, (info.sla, info.epoch), standing)?;
        self.moved(&info.title, moved);
        let way = verdict.map_err(AdmissionRefusal::from).and_then(|verdict| self.make_way(now, verdict));
        if way.is_err() && self.records.get(info.user).is_none() {
            self.grants.back(delivery);
        }
        way
    }

    /// What the rules about users and the free slots say; nothing is moved.
    fn standing(&self, rank: Rank) -> Result<Verdict, Reason> {
        let free = self.free();
        if self.level == Level::Origin {
            return if free > 0 { Ok(Verdict::Accept) } else { Err(Reason::Slots) };
        }
        let may_move = rank.started || self.config.new_may_displace_backups;
        let standby = || self.standby_to_leave().is_some() || self.tentative_standby().is_some();
        match decide(free, self.config.bottom_line, rank.kind, self.lowest()) {
            Verdict::AcceptAndMove if may_move => Ok(Verdict::AcceptAndMove),
            Verdict::AcceptAndReplace if may_move && standby() => Ok(Verdict::AcceptAndReplace),
            Verdict::AcceptAndReplace => Err(Reason::NothingToDisplace),
            Verdict::Refuse if free == 0 => Err(Reason::Slots),
            Verdict::Refuse if self.config.bottom_line_for_primaries => Err(Reason::BottomLine),
            Verdict::Accept | Verdict::AcceptAndMove | Verdict::Refuse => Ok(Verdict::Accept),
        }
    }

    /// Makes room for somebody to be served, as the table says.
    fn make_way(&mut self, now: Time, verdict: Verdict) -> Result<(), AdmissionRefusal> {
        match verdict {
            Verdict::AcceptAndMove => self.move_one(),
            Verdict::AcceptAndReplace if self.claim_slot(now) => self.trim_rows(),
            Verdict::AcceptAndReplace => return Err(AdmissionRefusal::NothingToDisplace),
            Verdict::Accept | Verdict::Refuse => {}
        }
        Ok(())
    }

    /// Opens the record of a user and begins to serve Base.
    pub(super) fn serve(&mut self, now: Time, info: UserInfo, entry: PeerId, took_over: Option<TakenFrom>) {
        self.output(AutonomyOutput::StartDelivery {
            user: info.user,
            title: info.title.clone(),
            layer: Layer::BASE,
            position: info.position,
            epoch: info.epoch,
        });
        if info.quality > Quality::BRONZE {
            self.look_again(now);
        }
        self.records.insert(Record {
            kind: EntryKind::serving(info.sla),
            entry,
            ends: now + info.remaining,
            heard: now,
            told: now,
            asked: now,
            backup: None,
            search: SearchState::Idle,
            took_over,
            info,
        });
    }

    /// Whether, and if not why not, a user could be backed up here. A row or
    /// tentative row of the same user that would be replaced is `own`.
    pub(super) fn backup_test(
        &self,
        kind: EntryKind,
        own: Option<EntryKind>,
    ) -> Result<(), AdmissionRefusal> {
        if self.level != Level::BASE {
            return Err(AdmissionRefusal::NotBase);
        }
        if own.is_none() && self.reservations.len() >= self.config.max_rows {
            return Err(AdmissionRefusal::Bound);
        }
        let has_slot = own == Some(EntryKind::VipDual);
        let slot = has_slot || self.free() >= 1;
        match kind {
            EntryKind::VipDual if !slot => return Err(AdmissionRefusal::Full),
            EntryKind::NormalDual if self.headroom() == 0 => return Err(AdmissionRefusal::NoHeadroom),
            EntryKind::NormalDual if self.config.strict && !slot => return Err(AdmissionRefusal::Full),
            _ => {}
        }
        if self.config.bottom_line_for_backups && own.is_none() {
            let verdict = decide(self.free(), self.config.bottom_line, kind, self.lowest());
            if verdict == Verdict::Refuse {
                let full = self.free() == 0;
                return Err(if full { AdmissionRefusal::Full } else { AdmissionRefusal::BottomLine });
            }
        }
        Ok(())
    }

    /// A standby enters: at the bottom line, one row below it has to leave.
    pub(super) fn make_way_for_standby(&mut self, kind: EntryKind) {
        let free = self.free();
        let below = self.lowest().is_some_and(|low| kind > low);
        if kind.holds_slot() && free <= self.config.bottom_line && below {
            self.move_one();
        }
    }

    /// Asks the lowest backup, or row, to find another place; it stays until then.
    fn move_one(&mut self) {
        let row = self.reservations.least_remaining(EntryKind::NormalDual);
        let leaves = match (row, self.config.bottom_line_moves) {
            (None, Moves::LowestBackup) if self.reservations.lowest() == Some(EntryKind::VipDual) => {
                self.reservations.least_remaining(EntryKind::VipDual)
            }
            (row, _) => row,
        };
        if let Some(user) = leaves {
            self.ask_to_leave(user);
        }
    }

    fn ask_to_leave(&mut self, user: UserId) {
        if let Some(row) = self.reservations.get_mut(user) {
            row.leaving = true;
            let (primary, kind) = (row.primary, row.kind);
            self.send(primary, AgentMessage::Relocate { user, at_once: false });
            self.event(AutonomyEvent::Displaced { user, kind, at_once: false });
        }
    }

    /// Makes sure that a slot is free, by deleting the standby with the least
    /// remaining playback if need be. Whether one is.
    pub(super) fn claim_slot(&mut self, _now: Time) -> bool {
        if self.free() > 0 {
            return true;
        }
        if let Some(user) = self.standby_to_leave() {
            if let Some(row) = self.reservations.remove(user) {
                self.send(row.primary, AgentMessage::Relocate { user, at_once: true });
                self.event(AutonomyEvent::Displaced { user, kind: row.kind, at_once: true });
            }
        } else if let Some(search) = self.tentative_standby() {
            // Nobody relies on it yet; its search will be told when it asks.
            self.reservations.drop_tentative(search);
        }
        self.free() > 0
    }

    /// The standby that leaves first; one that is leaving anyway goes before.
    fn standby_to_leave(&self) -> Option<UserId> {
        let leaving = |row: &&Row| row.kind == EntryKind::VipDual && row.leaving;
        let gone = self.reservations.rows().filter(leaving).min_by_key(|row| (row.ends, row.info.user));
        gone.map(|row| row.info.user).or_else(|| self.reservations.least_remaining(EntryKind::VipDual))
    }

    fn tentative_standby(&self) -> Option<super::SearchId> {
        let mut rows = self.reservations.tentative_rows();
        rows.find(|(_, row)| row.kind == EntryKind::VipDual).map(|(search, _)| *search)
    }

    /// Rows of one primary that could not all be honoured are asked to leave.
    fn trim_rows(&mut self) {
        if !self.config.trim_rows {
            return;
        }
        // The slot that was just claimed will be taken.
        let headroom = usize::try_from(self.headroom().saturating_sub(1)).unwrap_or(usize::MAX);
        let mut by_primary: BTreeMap<PeerId, Vec<(Time, UserId)>> = BTreeMap::new();
        let staying = |row: &&Row| row.kind == EntryKind::NormalDual && !row.leaving;
        for row in self.reservations.rows().filter(staying) {
            by_primary.entry(row.primary).or_default().push((row.ends, row.info.user));
        }
        for mut rows in by_primary.into_values() {
            rows.sort_unstable();
            let surplus = rows.len().saturating_sub(headroom);
            for (_, user) in rows.into_iter().take(surplus) {
                self.ask_to_leave(user);
            }
        }
    }

    /// Tells people when the free slots cross the bottom line, from `before` to now.
    pub(super) fn note_bottom_line(&mut self, before: u32) {
        let free = self.free();
        if before > self.config.bottom_line && free <= self.config.bottom_line {
            self.event(AutonomyEvent::BelowBottomLine { free });
        }
    }

    /// Whether a row of a VIP stands in for a standby that could not be found.
    pub(super) fn is_fallback(sla: Sla, kind: EntryKind) -> bool {
        sla == Sla::Vip && kind == EntryKind::NormalDual
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_nine_cells_hold_for_every_kind_against_every_lowest_kind() {
        use Verdict::{Accept, AcceptAndMove, AcceptAndReplace, Refuse};
        // Rows: plenty, at the bottom line, full. Columns: lower, equal, higher.
        let cells = [
            (4, [Accept, Accept, Accept]),
            (3, [Refuse, Accept, AcceptAndMove]),
            (1, [Refuse, Accept, AcceptAndMove]),
            (0, [Refuse, Refuse, AcceptAndReplace]),
        ];
        let mut seen = 0;
        for (free, row) in cells {
            for request in EntryKind::ALL {
                for low in EntryKind::ALL {
                    let [lower, equal, higher] = row;
                    let expected = match request.cmp(&low) {
                        std::cmp::Ordering::Less => lower,
                        std::cmp::Ordering::Equal => equal,
                        std::cmp::Ordering::Greater => higher,
                    };
                    assert_eq!(decide(free, 3, request, Some(low)), expected, "{free} {request:?} {low:?}");
                    seen += 1;
                }
                assert_eq!(decide(free, 3, request, None), if free > 0 { Accept } else { Refuse });
            }
        }
        assert_eq!(seen, 64);
    }

    #[test]
    fn priorities_are_a_total_order_with_the_started_above_the_new() {
        let ranks: Vec<Rank> = [false, true]
            .into_iter()
            .flat_map(|started| EntryKind::ALL.map(|kind| Rank { started, kind }))
            .collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        let (new_vip, started_row) = (
            Rank { started: false, kind: EntryKind::Vip },
            Rank { started: true, kind: EntryKind::NormalDual },
        );
        assert!(started_row > new_vip);
        let kinds = [EntryKind::Vip, EntryKind::Normal, EntryKind::VipDual, EntryKind::NormalDual];
        assert!(kinds.is_sorted_by(|a, b| a > b), "vip > normal > vipdual > normaldual");
    }

    proptest! {
        #[test]
        fn more_room_never_turns_an_acceptance_into_a_refusal(free in 0_u32..10, bottom in 0_u32..5, r in 0..4_usize, l in 0..4_usize) {
            let kind = |n: usize| EntryKind::ALL.into_iter().nth(n).unwrap_or(EntryKind::Vip);
            let verdict = |free| decide(free, bottom, kind(r), Some(kind(l)));
            prop_assert!(verdict(free) == Verdict::Refuse || verdict(free + 1) != Verdict::Refuse);
        }
    }
}
