//! The start node's side of a search: it sends agents, makes the reservation
//! they bring official, tries three times, and takes what comes late.

use super::agent::{
    AgentState, DiscoveryAgent, DiscoveryKind, EntryKind, Note, Offer, SearchId, Sla, UserInfo,
};
use super::io::{AutonomyEvent, AutonomyOutput, RejectedWhy, SearchWhy, ViewerNotice};
use super::record::{Backup, SearchState};
use super::reservation::Row;
use super::talk::{AdmissionRefusal, AgentMessage};
use super::{Autonomy, UserId};
use crate::peer::PeerId;
use media::{Layer, Span, Time};

/// The search of one user of this node.
#[derive(Clone, Debug)]
pub(super) struct Quest {
    id: SearchId,
    kind: DiscoveryKind,
    wanted: EntryKind,
    attempt: u32,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Agents are under way.
    Collecting,
    /// A node was asked to make it official; these are the next best.
    Confirming { node: PeerId, rest: Vec<Note>, until: Time },
    /// Before the next attempt.
    Waiting { again: Time },
}

impl Autonomy {
    /// Begins to search for the backup of a user, unless that is being done.
    pub(super) fn start_search(&mut self, now: Time, user: UserId, kind: DiscoveryKind, why: SearchWhy) {
        if self.quests.contains_key(&user) {
            if let DiscoveryKind::Relocate { leaving } = kind {
                self.send(leaving, AgentMessage::Relocated { user, to: None });
            }
            return self.event(AutonomyEvent::SearchCoalesced { user, why });
        }
        // The origin is no part of the graph that is searched.
        let Some(sla) = self.records.get(user).map(|record| record.info.sla) else { return };
        if self.level == super::Level::BASE {
            self.attempt(now, user, kind, EntryKind::backing(sla), 1, why);
        }
    }

    fn attempt(
        &mut self,
        now: Time,
        user: UserId,
        kind: DiscoveryKind,
        wanted: EntryKind,
        attempt: u32,
        why: SearchWhy,
    ) {
        let Some(record) = self.records.get_mut(user) else { return };
        record.search = SearchState::Attempt(attempt);
        let (buffer, title) = (record.info.buffer, record.info.title.clone());
        let radius = if buffer == Span::ZERO { self.config.buffer } else { buffer.min(self.config.buffer) };
        self.serial = self.serial.wrapping_add(1);
        let id = SearchId { start: self.id, user, serial: self.serial };
        self.event(AutonomyEvent::SearchStarted { search: id, wanted, kind, attempt, why });
        self.quests.insert(user, Quest { id, kind, wanted, attempt, phase: Phase::Collecting });
        let agent = DiscoveryAgent {
            id,
            title,
            kind,
            wanted,
            state: AgentState::Search,
            path: [].into(),
            at: 0,
            travelled: Span::ZERO,
            // Eq. 1: a round trip to the end of the buffer.
            timeout: radius.saturating_mul(2),
            radius,
            boards: attempt == 1,
            route: [].into(),
            candidate: None,
        };
        if !self.send_agents(now, agent) {
            self.fruitless(now, user, false);
        }
    }

    /// The agents are back as one, or the timer fired.
    pub(super) fn search_answered(
        &mut self,
        now: Time,
        id: SearchId,
        best: Option<Offer>,
        route: Vec<Note>,
        timed_out: bool,
    ) {
        let current = self
            .quests
            .get(&id.user)
            .is_some_and(|quest| quest.id == id && matches!(quest.phase, Phase::Collecting));
        if !current {
            if let Some(offer) = best.filter(|offer| offer.held) {
                self.cancel(id, offer);
            }
            return;
        }
        let notes: Vec<Note> = best.iter().map(|offer| offer.note).chain(route).collect();
        self.confirm_next(now, id, &notes, timed_out);
    }

    /// A reply of a search that was answered: it counts if the user still has
    /// nobody; otherwise its reservation is cancelled.
    pub(super) fn late_reply(&mut self, now: Time, id: SearchId, offer: Option<Offer>, route: Vec<Note>) {
        let wanting = match self.quests.get(&id.user) {
            Some(quest) => matches!(quest.phase, Phase::Collecting | Phase::Waiting { .. }),
            None => self.records.get(id.user).is_some_and(|record| record.backup.is_none()),
        };
        let Some(offer) = offer else { return };
        let leaving = self.quests.get(&id.user).and_then(Quest::leaving);
        if !wanting || self.survival.is_dead(offer.note.node) || leaving == Some(offer.note.node) {
            if offer.held {
                self.cancel(id, offer);
            }
            return;
        }
        self.event(AutonomyEvent::LateReplyTaken { search: id });
        let sla = self.records.get(id.user).map_or(Sla::Normal, |record| record.info.sla);
        let old = self.quests.get(&id.user);
        let (kind, attempt) = old.map_or((DiscoveryKind::Fresh, 1), |quest| (quest.kind, quest.attempt));
        let wanted = old.map_or(EntryKind::backing(sla), |quest| quest.wanted);
        self.quests.insert(id.user, Quest { id, kind, wanted, attempt, phase: Phase::Collecting });
        let route = route.into_iter().filter(|note| leaving != Some(note.node));
        let notes: Vec<Note> = std::iter::once(offer.note).chain(route).collect();
        self.confirm_next(now, id, &notes, false);
    }

    /// Asks the best of what is left to make it official.
    fn confirm_next(&mut self, now: Time, id: SearchId, notes: &[Note], timed_out: bool) {
        let Some(info) = self.records.get(id.user).map(|record| record.info_at(now)) else {
            self.quests.remove(&id.user);
            return;
        };
        let usable = |note: &&Note| !self.survival.is_dead(note.node) && note.node != self.id;
        let Some(next) = notes.iter().find(usable).map(|note| note.node) else {
            return self.fruitless(now, id.user, timed_out);
        };
        let rest = super::route::without(notes, next);
        let until = now + self.config.confirm_wait;
        let Some(quest) = self.quests.get_mut(&id.user) else { return };
        quest.phase = Phase::Confirming { node: next, rest, until };
        let kind = quest.wanted;
        self.send(next, AgentMessage::Confirm { search: id, kind, info: Box::new(info) });
    }

    /// A node asked for a reservation: it makes it official or says why not.
    pub(super) fn hear_confirm(
        &mut self,
        now: Time,
        from: PeerId,
        search: SearchId,
        kind: EntryKind,
        info: UserInfo,
    ) {
        if search.start != from || search.user != info.user || !kind.is_backup() {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        }
        let own = self.own_entry(search);
        // A user served here needs nobody else; the asking node will hear of it.
        let test = if self.survival.is_dead(from) || self.records.get(info.user).is_some() {
            Err(AdmissionRefusal::Dead)
        } else if !self.stores(&info.title, Layer::BASE) {
            // Who stands behind must be able to step in front.
            Err(AdmissionRefusal::NotStored)
        } else {
            self.backup_test(kind, own)
        };
        self.reservations.drop_tentative(search);
        match test {
            Ok(()) => {
                let before = self.free();
                self.make_way_for_standby(kind);
                let (user, ends) = (info.user, now + info.remaining);
                self.reservations.insert(Row { primary: from, kind, info, ends, heard: now, leaving: false });
                self.event(AutonomyEvent::Reserved { user, primary: from, kind });
                self.send(from, AgentMessage::Confirmed(search));
                self.note_bottom_line(before);
            }
            Err(why) => self.send(from, AgentMessage::Denied { search, why }),
        }
    }

    /// The answer of the node that was asked.
    pub(super) fn hear_confirmed(&mut self, now: Time, from: PeerId, search: SearchId) {
        let user = search.user;
        let asked = self.quests.get(&user).is_some_and(
            |quest| matches!(quest.phase, Phase::Confirming { node, .. } if node == from && quest.id == search),
        );
        let has = |record: &super::record::Record| record.backup.is_some_and(|backup| backup.node == from);
        if !asked {
            // It came too late: the user is gone or has somebody else.
            if !self.records.get(user).is_some_and(has) {
                let epoch = self.records.get(user).map_or(0, |record| record.info.epoch);
                self.send(from, AgentMessage::Release { user, epoch });
            }
            return;
        }
        let Some(quest) = self.quests.remove(&user) else { return };
        let again = self.config.retry_given_up.map(|after| now + after);
        let Some(record) = self.records.get_mut(user) else { return };
        let before = record.backup.replace(Backup { node: from, kind: quest.wanted });
        let fallback = Self::is_fallback(record.info.sla, quest.wanted);
        record.search = if fallback { SearchState::GivenUp { again } } else { SearchState::Idle };
        record.told = now;
        let epoch = record.info.epoch;
        if let Some(old) = before.filter(|old| old.node != from && quest.leaving() != Some(old.node)) {
            self.send(old.node, AgentMessage::Release { user, epoch });
        }
        if let Some(leaving) = quest.leaving() {
            // A late reply may have brought the very node that was to be left.
            let to = (from != leaving).then_some(from);
            self.send(leaving, AgentMessage::Relocated { user, to });
        }
        self.event(AutonomyEvent::BackupOfficial { user, node: from, kind: quest.wanted });
        self.output(AutonomyOutput::TellViewer {
            user,
            notice: ViewerNotice::BackupIs { node: from, epoch },
        });
    }

    /// A node that was asked refuses, or (`why` is none) did not answer.
    pub(super) fn hear_denied(
        &mut self,
        now: Time,
        from: PeerId,
        search: SearchId,
        why: Option<AdmissionRefusal>,
    ) {
        let Some(quest) = self.quests.get_mut(&search.user) else { return };
        let Phase::Confirming { node, rest, .. } = &mut quest.phase else { return };
        if *node != from || quest.id != search {
            return;
        }
        let rest = std::mem::take(rest);
        self.event(AutonomyEvent::BackupDenied { user: search.user, node: from, why });
        // Something has changed since the agents were there: worth another attempt.
        self.confirm_next(now, search, &rest, true);
    }

    /// An attempt brought nothing: another one, the fallback, or giving up.
    fn fruitless(&mut self, now: Time, user: UserId, timed_out: bool) {
        let Some(quest) = self.quests.get_mut(&user) else { return };
        let (search, attempt) = (quest.id, quest.attempt);
        let more = attempt < self.config.tries;
        if more && !timed_out && self.config.retry_empty {
            quest.phase = Phase::Waiting { again: now + self.config.retry_wait };
            return self.event(AutonomyEvent::SearchFruitless { search, attempt, timed_out });
        }
        let Some(quest) = self.quests.remove(&user) else { return };
        self.event(AutonomyEvent::SearchFruitless { search, attempt, timed_out });
        if more && timed_out {
            return self.attempt(
                now,
                user,
                quest.kind,
                quest.wanted,
                attempt.saturating_add(1),
                SearchWhy::Again,
            );
        }
        self.give_up(now, user, &quest);
    }

    fn give_up(&mut self, now: Time, user: UserId, quest: &Quest) {
        let again = self.config.retry_given_up.map(|after| now + after);
        let Some(record) = self.records.get_mut(user) else { return };
        record.search = SearchState::GivenUp { again };
        // An entry that is asked to leave stays as long as there is nothing as good.
        let bare = record.backup.is_none();
        self.event(AutonomyEvent::GaveUp { user, wanted: quest.wanted });
        if quest.wanted == EntryKind::VipDual && bare && self.config.vip_fallback {
            return self.attempt(now, user, quest.kind, EntryKind::NormalDual, 1, SearchWhy::Fallback);
        }
        if let Some(leaving) = quest.leaving() {
            self.send(leaving, AgentMessage::Relocated { user, to: None });
        }
    }

    /// Waits and answers that are over.
    pub(super) fn quests_due(&mut self, now: Time) {
        let due = |(user, quest): (&UserId, &Quest)| quest.due().filter(|at| *at <= now).map(|_| *user);
        let due: Vec<UserId> = self.quests.iter().filter_map(due).collect();
        for user in due {
            let Some(quest) = self.quests.get(&user).cloned() else { continue };
            match quest.phase {
                Phase::Collecting => {}
                Phase::Confirming { node, .. } => {
                    // Its yes may have been lost: what it holds then is not wanted.
                    let record = self.records.get(user);
                    if record.is_none_or(|record| record.backup.is_none_or(|backup| backup.node != node)) {
                        let epoch = record.map_or(0, |record| record.info.epoch);
                        self.send(node, AgentMessage::Release { user, epoch });
                    }
                    self.hear_denied(now, node, quest.id, None);
                }
                Phase::Waiting { .. } => {
                    let attempt = quest.attempt.saturating_add(1);
                    self.attempt(now, user, quest.kind, quest.wanted, attempt, SearchWhy::Again);
                }
            }
        }
        self.retry_given_up(now);
    }

    /// Users without a backup of their own kind, after the configured time.
    fn retry_given_up(&mut self, now: Time) {
        if self.config.retry_given_up.is_none() {
            return;
        }
        let due =
            |search: SearchState| matches!(search, SearchState::GivenUp { again: Some(at) } if at <= now);
        let due = self.records.iter().filter(|record| due(record.search)).map(|record| record.info.user);
        // A late reply may have begun what was given up.
        let users: Vec<UserId> = due.filter(|user| !self.quests.contains_key(user)).collect();
        for user in users {
            self.start_search(now, user, DiscoveryKind::Fresh, SearchWhy::GivenUpLongAgo);
        }
    }

    /// When a quest, or a user given up, is to be looked at again.
    pub(super) fn quests_next(&self) -> Option<Time> {
        let quests = self.quests.values().filter_map(Quest::due);
        let given_up = self.config.retry_given_up.is_some().then(|| {
            let idle = self.records.iter().filter(|record| !self.quests.contains_key(&record.info.user));
            idle.filter_map(|record| match record.search {
                SearchState::GivenUp { again } => again,
                SearchState::Idle | SearchState::Attempt(_) => None,
            })
        });
        quests.chain(given_up.into_iter().flatten()).min()
    }

    /// A node that was asked to reserve died.
    pub(super) fn quests_without(&mut self, now: Time, dead: PeerId) {
        let asked = |quest: &&Quest| matches!(quest.phase, Phase::Confirming { node, .. } if node == dead);
        let asked: Vec<SearchId> = self.quests.values().filter(asked).map(|quest| quest.id).collect();
        for search in asked {
            self.hear_denied(now, dead, search, Some(AdmissionRefusal::Dead));
        }
    }
}

impl Quest {
    fn due(&self) -> Option<Time> {
        match self.phase {
            Phase::Collecting => None,
            Phase::Confirming { until, .. } => Some(until),
            Phase::Waiting { again } => Some(again),
        }
    }

    /// The node that the backup has to leave.
    fn leaving(&self) -> Option<PeerId> {
        match self.kind {
            DiscoveryKind::Fresh => None,
            DiscoveryKind::Relocate { leaving } => Some(leaving),
        }
    }
}
