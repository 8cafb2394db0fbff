//! For which users something is to be done: those of whom there is news, those whose
//! time has come, and those in doubt when their node speaks; and which nodes the users
//! need. What happens to one of a thousand clients costs nothing for the others.

use super::lines::NodeId;
use crate::node::autonomy::UserId;
use media::Time;
use std::collections::{BTreeMap, BTreeSet};

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    changed: BTreeSet<UserId>,
    due: BTreeSet<(Time, UserId)>,
    /// Whose node is asked whether it is still there.
    doubts: BTreeSet<UserId>,
    entries: BTreeMap<UserId, Entry>,
    /// By how many users each node is needed.
    needed: BTreeMap<NodeId, u32>,
}

/// What was entered of a user last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// When something is due for it.
    pub(super) due: Option<Time>,
    /// Whether another node wants to take over while its own may still be there.
    pub(super) in_doubt: bool,
    /// The nodes that it needs, each once.
    pub(super) nodes: Vec<NodeId>,
}

impl Agenda {
    /// There is news of a user.
    pub(super) fn mark(&mut self, user: UserId) {
        self.changed.insert(user);
    }

    /// A node spoke: that may end doubts.
    pub(super) fn mark_doubts(&mut self) {
        self.changed.extend(&self.doubts);
    }

    /// Whether there is news of anybody.
    pub(super) fn has_news(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Everybody of whom there is news or whose time has come, in the order of their
    /// numbers.
    pub(super) fn take(&mut self, now: Time) -> BTreeSet<UserId> {
        while let Some((when, user)) = self.due.first().copied().filter(|(when, _)| *when <= now) {
            self.due.remove(&(when, user));
            if let Some(entry) = self.entries.get_mut(&user) {
                entry.due = None;
            }
            self.changed.insert(user);
        }
        std::mem::take(&mut self.changed)
    }

    /// A user was looked after: this is how it stands.
    pub(super) fn enter(&mut self, user: UserId, entry: Entry) {
        if self.entries.get(&user) == Some(&entry) {
            return;
        }
        self.strike(user);
        for node in &entry.nodes {
            let count = self.needed.entry(*node).or_default();
            *count = count.saturating_add(1);
        }
        self.due.extend(entry.due.map(|when| (when, user)));
        if entry.in_doubt {
            self.doubts.insert(user);
        }
        self.entries.insert(user, entry);
    }

    /// A user is gone.
    pub(super) fn forget(&mut self, user: UserId) {
        self.strike(user);
        self.changed.remove(&user);
    }

    fn strike(&mut self, user: UserId) {
        let Some(entry) = self.entries.remove(&user) else { return };
        for node in entry.nodes {
            if let Some(count) = self.needed.get_mut(&node) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.needed.remove(&node);
                }
            }
        }
        if let Some(when) = entry.due {
            self.due.remove(&(when, user));
        }
        self.doubts.remove(&user);
    }

    /// Whether any user needs this node.
    pub(super) fn needs(&self, node: NodeId) -> bool {
        self.needed.contains_key(&node)
    }

    /// When something is due for anybody.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(when, _)| *when)
    }
}
