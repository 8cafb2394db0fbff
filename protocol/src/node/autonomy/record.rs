//! The per-user record: only the Base node that serves a user, and through it
//! the backup, knows anything of that user.

use super::agent::{EntryKind, UserId, UserInfo};
use crate::peer::PeerId;
use media::{Layer, Span, Time};
use std::collections::BTreeMap;

/// One served user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What travels to a backup.
    pub info: UserInfo,
    /// `Vip` or `Normal`.
    pub kind: EntryKind,
    /// The node to which the user came.
    pub entry: PeerId,
    /// When the title will be at its end, if it is played through.
    pub ends: Time,
    /// When the user was last heard of.
    pub heard: Time,
    /// When the backup was last told the position.
    pub told: Time,
    /// When the nodes that serve enhancements were last asked to go on.
    pub asked: Time,
    /// Who stands behind.
    pub backup: Option<Backup>,
    /// The search for a backup.
    pub search: SearchState,
    /// From whom this node took the user over, and as what it had been here.
    pub took_over: Option<TakenFrom>,
}

/// Who stands behind a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The node.
    pub node: PeerId,
    /// `VipDual` or `NormalDual`.
    pub kind: EntryKind,
}

/// The node that served a user before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenFrom {
    /// The node.
    pub node: PeerId,
    /// The entry that was activated.
    pub kind: EntryKind,
    /// Whether that node was told to stop, having returned.
    pub told: bool,
}

/// Where the search for a backup stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchState {
    /// There is none.
    #[default]
    Idle,
    /// The so-manieth attempt is running.
    Attempt(u32),
    /// Every attempt was fruitless.
    GivenUp {
        /// When to search all the same.
        again: Option<Time>,
    },
}

impl Record {
    /// The user as it is now, for others.
    pub fn info_at(&self, now: Time) -> UserInfo {
        UserInfo { remaining: self.ends - now, ..self.info.clone() }
    }

    /// Who serves an enhancement.
    pub fn layer_node(&self, layer: Layer) -> Option<PeerId> {
        self.info.layers.iter().find(|(have, _)| *have == layer).map(|(_, node)| *node)
    }

    /// Sets or clears who serves an enhancement.
    pub fn set_layer(&mut self, layer: Layer, node: Option<PeerId>) {
        let mut layers: Vec<_> =
            self.info.layers.iter().filter(|(have, _)| *have != layer).copied().collect();
        layers.extend(node.map(|node| (layer, node)));
        layers.sort_unstable();
        self.info.layers = layers.into();
    }
}

/// Every user served here.
#[derive(Clone, Debug, Default)]
pub struct Records {
    users: BTreeMap<UserId, Record>,
    vip: u32,
    normal: u32,
    changes: u64,
}

impl Records {
    /// The number of VIPs served.
    pub fn vip(&self) -> u32 {
        self.vip
    }

    /// The number of normal users served.
    pub fn normal(&self) -> u32 {
        self.normal
    }

    /// Counts who came and went.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a user, or replaces its record.
    pub fn insert(&mut self, record: Record) {
        self.remove(record.info.user);
        *self.count(record.kind) = self.count(record.kind).saturating_add(1);
        self.users.insert(record.info.user, record);
        self.changes = self.changes.wrapping_add(1);
    }

    /// Takes a user out.
    pub fn remove(&mut self, user: UserId) -> Option<Record> {
        let record = self.users.remove(&user)?;
        *self.count(record.kind) = self.count(record.kind).saturating_sub(1);
        self.changes = self.changes.wrapping_add(1);
        Some(record)
    }

    /// A user.
    pub fn get(&self, user: UserId) -> Option<&Record> {
        self.users.get(&user)
    }

    /// A user, to be changed in anything but its kind.
    pub fn get_mut(&mut self, user: UserId) -> Option<&mut Record> {
        self.users.get_mut(&user)
    }

    /// Everybody, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.users.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether nobody is served.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Those who said nothing for `lease`.
    pub fn expired(&self, now: Time, lease: Span) -> Vec<UserId> {
        let late = |record: &&Record| record.heard + lease <= now;
        self.users.values().filter(late).map(|record| record.info.user).collect()
    }

    fn count(&mut self, kind: EntryKind) -> &mut u32 {
        if kind == EntryKind::Vip { &mut self.vip } else { &mut self.normal }
    }
}
