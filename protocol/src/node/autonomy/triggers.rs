//! What makes a user search again (ADVODS 3.2.2), and the short messages between
//! a user's Base node and its backup.
//!
//! Four triggers: a node at its bottom line moves its lowest entries; a backup
//! has become the primary; a backup node has died; a normal backup was
//! activated, so that the standby capacity it shared is used.

use super::Autonomy;
use super::agent::{DiscoveryKind, EntryKind, UserId};
use super::io::{AutonomyEvent, AutonomyOutput, RejectedWhy, SearchWhy, StopWhy};
use super::record::SearchState;
use super::talk::AgentMessage;
use crate::peer::PeerId;
use media::{Layer, Span, Time};

impl Autonomy {
    /// First trigger, at the user's Base node: the backup node moves the entry.
    pub(super) fn hear_relocate(&mut self, now: Time, from: PeerId, user: UserId, at_once: bool) {
        let Some(record) = self.records.get_mut(user) else {
            return self.send(from, AgentMessage::Release { user, epoch: 0 });
        };
        let epoch = record.info.epoch;
        if record.backup.is_none_or(|backup| backup.node != from) {
            if !at_once {
                self.send(from, AgentMessage::Release { user, epoch });
            }
            return;
        }
        if at_once {
            record.backup = None;
            self.event(AutonomyEvent::BackupLost { user, node: from });
        }
        self.start_search(now, user, DiscoveryKind::Relocate { leaving: from }, SearchWhy::Relocated);
        self.wake_unprotected(now, user);
    }

    /// The result of a Re-DISC MA, at the node the entry had to leave.
    pub(super) fn hear_relocated(&mut self, from: PeerId, user: UserId, to: Option<PeerId>) {
        match self.reservations.get_mut(user) {
            Some(row) if row.primary != from => {
                return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
            }
            Some(row) if to.is_none() => row.leaving = false,
            Some(_) => self.unreserve(user),
            None => {}
        }
        self.event(AutonomyEvent::DisplacedDone { user, to });
    }

    pub(super) fn unreserve(&mut self, user: UserId) {
        if let Some(row) = self.reservations.remove(user) {
            self.event(AutonomyEvent::Unreserved { user, kind: row.kind });
        }
    }

    /// Fourth trigger, at the user's Base node.
    pub(super) fn hear_search_again(&mut self, now: Time, from: PeerId, user: UserId) {
        let Some(record) = self.records.get(user) else {
            return self.send(from, AgentMessage::Release { user, epoch: 0 });
        };
        if record.backup.is_none_or(|backup| backup.node != from) {
            let epoch = record.info.epoch;
            return self.send(from, AgentMessage::Release { user, epoch });
        }
        self.start_search(now, user, DiscoveryKind::Fresh, SearchWhy::StandbyUsed);
        self.wake_unprotected(now, user);
    }

    /// Fourth trigger, at the backup node: of the rows that share the standby
    /// capacity, one was activated. Users of the dead node itself are dealt with
    /// already.
    pub(super) fn standby_used(&mut self) {
        let sharing = self.reservations.rows().filter(|row| row.kind == EntryKind::NormalDual);
        let sharing: Vec<(UserId, PeerId)> = sharing.map(|row| (row.info.user, row.primary)).collect();
        for (user, primary) in sharing {
            self.send(primary, AgentMessage::SearchAgain(user));
        }
    }

    /// Third trigger: a node that backed users of this one up died.
    pub(super) fn backups_died(&mut self, now: Time, dead: PeerId) {
        let lost =
            self.records.iter().filter(|record| record.backup.is_some_and(|backup| backup.node == dead));
        let lost: Vec<UserId> = lost.map(|record| record.info.user).collect();
        for user in &lost {
            if let Some(record) = self.records.get_mut(*user) {
                record.backup = None;
            }
            if self.former.len() < self.config.max_rows {
                self.former.insert((dead, *user));
            }
            self.event(AutonomyEvent::BackupLost { user: *user, node: dead });
            self.start_search(now, *user, DiscoveryKind::Fresh, SearchWhy::BackupDied);
        }
        if let Some(user) = lost.first() {
            self.wake_unprotected(now, *user);
        }
    }

    /// A backup node thought dead is alive: what it still holds for users who
    /// have another one by now, it may forget.
    pub(super) fn release_former(&mut self, node: PeerId) {
        let held: Vec<UserId> =
            self.former.iter().filter(|(at, _)| *at == node).map(|(_, user)| *user).collect();
        for user in held {
            self.former.remove(&(node, user));
            let record = self.records.get(user);
            if record.is_none_or(|record| record.backup.is_none_or(|backup| backup.node != node)) {
                let epoch = record.map_or(0, |record| record.info.epoch);
                self.send(node, AgentMessage::Release { user, epoch });
            }
        }
    }

    /// At a trigger of one user, those of this node search too who had given up
    /// with nobody behind them.
    pub(super) fn wake_unprotected(&mut self, now: Time, but: UserId) {
        let bare = self.records.iter().filter(|record| {
            record.backup.is_none()
                && matches!(record.search, SearchState::GivenUp { .. })
                && record.info.user != but
        });
        let bare: Vec<UserId> = bare.map(|record| record.info.user).collect();
        for user in bare {
            self.start_search(now, user, DiscoveryKind::Fresh, SearchWhy::Again);
        }
    }

    /// A viewer reports; a standby hears all of it, a reservation now and then.
    pub(super) fn viewer_at(&mut self, now: Time, user: UserId, position: Span, buffer: Span) {
        let lazy = self.config.lazy_position;
        let Some(record) = self.records.get_mut(user) else { return };
        record.heard = now;
        record.info.started = true;
        record.info.position = position;
        record.info.level = buffer;
        let told = record.told;
        if record.backup.is_some_and(|backup| backup.kind == EntryKind::VipDual || now - told >= lazy) {
            self.tell_backup(now, user);
        }
        self.keep_layers(now, user);
    }

    /// The backup hears what has changed about a user.
    pub(super) fn tell_backup(&mut self, now: Time, user: UserId) {
        let Some(record) = self.records.get_mut(user) else { return };
        let Some(backup) = record.backup else { return };
        record.told = now;
        let info = record.info_at(now);
        let (position, remaining, level) = (info.position, info.remaining, info.level);
        let (layers, started) = (info.layers, info.started);
        let message = AgentMessage::Position { user, position, remaining, level, started, layers };
        self.send(backup.node, message);
    }

    /// A Base node reports of a user that is backed up here.
    pub(super) fn hear_position(&mut self, now: Time, from: PeerId, news: AgentMessage) {
        let AgentMessage::Position { user, position, remaining, level, started, layers } = news else {
            return;
        };
        match self.reservations.get_mut(user) {
            Some(row) if row.primary == from => {
                (row.ends, row.heard) = (now + remaining, now);
                let info = &mut row.info;
                (info.position, info.remaining, info.level) = (position, remaining, level);
                (info.started, info.layers) = (started, layers);
            }
            Some(_) => self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs }),
            // The speaker relies on an entry that is not here.
            None => self.send(from, AgentMessage::Relocate { user, at_once: true }),
        }
    }

    /// A user needs this node no more, says its Base node.
    pub(super) fn hear_release(&mut self, from: PeerId, user: UserId, epoch: u64) {
        if self.reservations.get(user).is_some_and(|row| row.primary == from) {
            self.unreserve(user);
        }
        self.release_layers(from, user, None, epoch);
    }

    /// A user is served here no more; who served or backed it up with this node
    /// hears of it, unless another node has them now.
    pub(super) fn end_user(&mut self, user: UserId, why: StopWhy) {
        let Some(record) = self.records.remove(user) else { return };
        self.quests.remove(&user);
        self.output(AutonomyOutput::StopDelivery { user, layer: Layer::BASE, why });
        self.event(AutonomyEvent::Ended { user, why });
        let epoch = record.info.epoch;
        if let Some(backup) = record.backup {
            self.send(backup.node, AgentMessage::Release { user, epoch });
        }
        if matches!(why, StopWhy::Departed | StopWhy::LeaseExpired) {
            for (_, node) in record.info.layers.iter() {
                self.send_or_hear(*node, AgentMessage::Release { user, epoch });
            }
        }
    }

    /// Users who said nothing for a lease, here and at their primaries.
    pub(super) fn leases_due(&mut self, now: Time) {
        if let Some(lease) = self.config.lease {
            for user in self.records.expired(now, lease) {
                self.end_user(user, StopWhy::LeaseExpired);
            }
            // Rows are kept up by position reports, as sessions are.
            for user in self.reservations.expired(now, lease) {
                if let Some(row) = self.reservations.remove(user) {
                    self.event(AutonomyEvent::Unreserved { user, kind: row.kind });
                    self.send(row.primary, AgentMessage::Relocate { user, at_once: true });
                }
            }
        }
    }
}
