//! Who is backed up here: official rows, and tentative ones that several agents
//! of one search may hold.

use super::agent::{EntryKind, SearchId, Sla, UserId, UserInfo};
use crate::peer::PeerId;
use media::{Span, Time};
use std::collections::BTreeMap;

/// An official reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node that serves the user.
    pub primary: PeerId,
    /// `VipDual` or `NormalDual`.
    pub kind: EntryKind,
    /// The user as the primary last told.
    pub info: UserInfo,
    /// When the title will be at its end.
    pub ends: Time,
    /// When the primary last spoke of the user.
    pub heard: Time,
    /// Whether it stays only until another place is found.
    pub leaving: bool,
}

/// A reservation that is not official yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tentative {
    /// `VipDual` or `NormalDual`.
    pub kind: EntryKind,
    /// How many agents hold it.
    pub holds: u32,
    /// When it lapses, should every agent be lost.
    pub expires: Time,
}

/// The reservation table.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    rows: BTreeMap<UserId, Row>,
    tentative: BTreeMap<SearchId, Tentative>,
    slots: u32,
    shared: u32,
}

impl Reservations {
    /// Slots held by `vipdual` entries, tentative ones included.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Official and tentative rows.
    pub fn len(&self) -> usize {
        self.rows.len().saturating_add(self.tentative.len())
    }

    /// Whether nobody is backed up here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An agent holds a tentative row; the first one makes it.
    pub fn hold(&mut self, search: SearchId, kind: EntryKind, expires: Time) {
        if let Some(row) = self.tentative.get_mut(&search) {
            row.holds = row.holds.saturating_add(1);
            return;
        }
        self.count(kind, true);
        self.tentative.insert(search, Tentative { kind, holds: 1, expires });
    }

    /// One agent less holds it; the last one deletes it. Whether there was one.
    pub fn cancel(&mut self, search: SearchId) -> bool {
        let Some(row) = self.tentative.get_mut(&search) else { return false };
        row.holds = row.holds.saturating_sub(1);
        if row.holds == 0 {
            self.drop_tentative(search);
        }
        true
    }

    /// A tentative row.
    pub fn tentative(&self, search: SearchId) -> Option<Tentative> {
        self.tentative.get(&search).copied()
    }

    /// Deletes a tentative row, whoever holds it.
    pub fn drop_tentative(&mut self, search: SearchId) -> Option<Tentative> {
        let row = self.tentative.remove(&search)?;
        self.count(row.kind, false);
        Some(row)
    }

    /// Deletes tentative rows that lapsed or whose start node is `dead`.
    pub fn lapse(&mut self, now: Time, dead: Option<PeerId>) {
        let gone = |(id, row): (&SearchId, &Tentative)| {
            (row.expires <= now || dead == Some(id.start)).then_some(*id)
        };
        let gone: Vec<SearchId> = self.tentative.iter().filter_map(gone).collect();
        for search in gone {
            self.drop_tentative(search);
        }
    }

    /// When the next tentative row lapses.
    pub fn next_lapse(&self) -> Option<Time> {
        self.tentative.values().map(|row| row.expires).min()
    }

    /// Makes a row official, in place of one the user had here.
    pub fn insert(&mut self, row: Row) {
        self.remove(row.info.user);
        self.count(row.kind, true);
        self.rows.insert(row.info.user, row);
    }

    /// Deletes an official row.
    pub fn remove(&mut self, user: UserId) -> Option<Row> {
        let row = self.rows.remove(&user)?;
        self.count(row.kind, false);
        Some(row)
    }

    /// An official row.
    pub fn get(&self, user: UserId) -> Option<&Row> {
        self.rows.get(&user)
    }

    /// An official row, to be changed in anything but its kind.
    pub fn get_mut(&mut self, user: UserId) -> Option<&mut Row> {
        self.rows.get_mut(&user)
    }

    /// The official rows, by user.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// The users of whom their primary said nothing for `lease`.
    pub fn expired(&self, now: Time, lease: Span) -> Vec<UserId> {
        let late = |row: &&Row| row.heard + lease <= now;
        self.rows.values().filter(late).map(|row| row.info.user).collect()
    }

    /// The tentative rows, by search.
    pub fn tentative_rows(&self) -> impl Iterator<Item = (&SearchId, &Tentative)> {
        self.tentative.iter()
    }

    /// The lowest kind of entry, tentative ones included.
    pub fn lowest(&self) -> Option<EntryKind> {
        match (self.shared, self.slots) {
            (0, 0) => None,
            (0, _) => Some(EntryKind::VipDual),
            (_, _) => Some(EntryKind::NormalDual),
        }
    }

    /// The row of this kind that leaves first: the one with the least remaining
    /// playback. Rows that are leaving already do not count.
    pub fn least_remaining(&self, kind: EntryKind) -> Option<UserId> {
        let staying = self.rows.values().filter(|row| row.kind == kind && !row.leaving);
        staying.min_by_key(|row| (row.ends, row.info.user)).map(|row| row.info.user)
    }

    /// The users whose primary is `dead`, in the order of activation: vip rows
    /// before normal ones, with a slot before without, and inside a type the
    /// longest remaining playback first. Who has begun to watch comes before
    /// who has not.
    pub fn behind(&self, dead: PeerId) -> Vec<UserId> {
        let mut rows: Vec<&Row> = self.rows.values().filter(|row| row.primary == dead).collect();
        let rank = |row: &Row| (row.info.started, row.info.sla == Sla::Vip, row.kind, row.ends);
        rows.sort_by(|a, b| rank(b).cmp(&rank(a)).then(a.info.user.cmp(&b.info.user)));
        rows.into_iter().map(|row| row.info.user).collect()
    }

    fn count(&mut self, kind: EntryKind, more: bool) {
        let count = if kind.holds_slot() { &mut self.slots } else { &mut self.shared };
        *count = if more { count.saturating_add(1) } else { count.saturating_sub(1) };
    }
}
