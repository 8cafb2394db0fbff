//! When a node dies: its users go on with their backups, those whose backup it
//! was search another one, and when it returns, the later epoch is right.

use super::AdmissionRefusal;
use super::Autonomy;
use super::agent::{DiscoveryKind, EntryKind, Sla, UserId};
use super::io::{AutonomyEvent, AutonomyOutput, SearchWhy, StopWhy, ViewerNotice};
use super::record::TakenFrom;
use super::reservation::Row;
use super::talk::{AgentMessage, Standing};
use crate::peer::PeerId;
use media::{Layer, Span, Time};

impl Autonomy {
    /// Neighbours that fell silent.
    pub(super) fn silences_due(&mut self, now: Time) {
        for (node, silent) in self.survival.overdue(now) {
            if let Some(standing) = self.survival.judge(node, self.id, true) {
                self.survival.mute(node);
                self.event(AutonomyEvent::Detected { node, silent });
                self.flood(&AgentMessage::FailureDetected(standing), None);
                self.node_died(now, standing);
            }
        }
    }

    /// Tells every living neighbour but the one it came from, heard or not.
    fn flood(&mut self, message: &AgentMessage, but: Option<PeerId>) {
        let to = self.survival.everybody().filter(|peer| Some(*peer) != but && !self.survival.is_dead(*peer));
        for peer in to.collect::<Vec<PeerId>>() {
            self.send(peer, message.clone());
        }
    }

    /// Any message of a neighbour that is thought dead brings it back.
    pub(super) fn sign_of_life(&mut self, now: Time, from: PeerId) {
        self.survival.heard(now, from);
        if self.survival.is_dead(from)
            && self.survival.neighbour(from).is_some()
            && let Some(standing) = self.survival.judge(from, self.id, false)
        {
            self.flood(&AgentMessage::Returned(standing), None);
            self.node_returned(now, from);
        }
    }

    /// News of a death; each is passed on once.
    pub(super) fn hear_failure(&mut self, now: Time, from: PeerId, said: Standing) {
        if said.node == self.id {
            // The verdict is about this node: it lives, and says so.
            if self.survival.learn(said, true)
                && let Some(standing) = self.survival.judge(self.id, self.id, false)
            {
                self.flood(&AgentMessage::Returned(standing), None);
            }
        } else if self.survival.learn(said, true) {
            self.flood(&AgentMessage::FailureDetected(said), Some(from));
            self.node_died(now, said);
        }
    }

    /// News of a return; each is passed on once.
    pub(super) fn hear_returned(&mut self, now: Time, from: PeerId, said: Standing) {
        let was_dead = self.survival.is_dead(said.node);
        if self.survival.learn(said, false) {
            self.flood(&AgentMessage::Returned(said), Some(from));
            if said.node == self.id {
                return;
            }
            if was_dead {
                self.node_returned(now, said.node);
            } else {
                // News may overtake news, or be lost: whoever returned had died, and
                // what it stored is to be counted again. Leases see to the users.
                self.holder_died(now, said.node);
                self.holder_returned(now);
            }
        }
    }

    /// A neighbour began anew before its silence told of its end: what it knew is
    /// gone, as after any other death.
    pub(super) fn restarted(&mut self, now: Time, node: PeerId) {
        if self.survival.is_dead(node) {
            return;
        }
        if let Some(standing) = self.survival.judge(node, self.id, true) {
            self.event(AutonomyEvent::Detected { node, silent: Span::ZERO });
            self.flood(&AgentMessage::FailureDetected(standing), None);
            self.node_died(now, standing);
        }
        self.sign_of_life(now, node);
    }

    /// This node stops. It tells its neighbours so in the words of its death, so
    /// that whoever backs its users up takes over before they miss it.
    pub(super) fn leave(&mut self, now: Time) {
        if let Some(standing) = self.survival.judge(self.id, self.id, true) {
            self.flood(&AgentMessage::FailureDetected(standing), None);
        }
        self.survival.switch(now, false);
        self.left = true;
    }

    fn node_died(&mut self, now: Time, said: Standing) {
        let dead = said.node;
        self.event(AutonomyEvent::BelievedDead { node: dead, detector: said.detector });
        self.board.forget(dead);
        self.reservations.lapse(now, Some(dead));
        self.walks_without(now, dead);
        self.take_over(now, dead);
        self.quests_without(now, dead);
        self.backups_died(now, dead);
        self.layers_died(now, dead);
        self.look_again(now);
        self.streams.orphan(dead, now + self.config.lease.unwrap_or(self.config.dead_after));
        self.holder_died(now, dead);
    }

    /// Activates the rows of a dead node: vip rows first, then normal ones, the
    /// longest remaining playback first.
    fn take_over(&mut self, now: Time, dead: PeerId) {
        let before = self.free();
        let mut activated = Vec::new();
        let mut shared = false;
        for user in self.reservations.behind(dead) {
            let Some(row) = self.reservations.remove(user) else { continue };
            match self.activation_test(now, row.kind) {
                Ok(()) => {
                    shared |= row.kind == EntryKind::NormalDual;
                    self.activate(now, row);
                    activated.push(user);
                }
                Err(why) => self.cannot_activate(now, row, why),
            }
        }
        if shared {
            self.standby_used();
        }
        for user in &activated {
            self.start_search(now, *user, DiscoveryKind::Fresh, SearchWhy::TookOver);
        }
        if let Some(user) = activated.first() {
            self.wake_unprotected(now, *user);
            self.note_bottom_line(before);
        }
    }

    /// Whether an activated row finds a slot; a standby brings its own, which was
    /// freed when its row was taken out.
    fn activation_test(&mut self, now: Time, kind: EntryKind) -> Result<(), AdmissionRefusal> {
        if self.headroom() == 0 {
            return Err(AdmissionRefusal::NoHeadroom);
        }
        if self.config.strict && self.free() == 0 {
            return Err(AdmissionRefusal::Full);
        }
        if kind == EntryKind::NormalDual && !self.claim_slot(now) {
            return Err(AdmissionRefusal::NothingToDisplace);
        }
        Ok(())
    }

    fn activate(&mut self, now: Time, row: Row) {
        let Row { primary, kind, mut info, ends, .. } = row;
        info.epoch = info.epoch.saturating_add(1);
        info.remaining = ends - now;
        let (user, epoch, position) = (info.user, info.epoch, info.position);
        let layers = std::sync::Arc::clone(&info.layers);
        self.serve(now, info, self.id, Some(TakenFrom { node: primary, kind, told: false }));
        self.event(AutonomyEvent::TakenOver { user, from: primary, kind, epoch });
        self.output(AutonomyOutput::TellViewer {
            user,
            notice: ViewerNotice::DeliveryStart { position, epoch },
        });
        for (layer, node) in layers.iter() {
            if self.survival.is_dead(*node) {
                self.layer_lost(now, user, *layer, *node);
            } else {
                self.send_or_hear(*node, AgentMessage::Adopt { user, layer: *layer, base: self.id, epoch });
            }
        }
    }

    fn cannot_activate(&mut self, now: Time, row: Row, why: AdmissionRefusal) {
        let user = row.info.user;
        self.event(AutonomyEvent::TakeOverFailed { user, from: row.primary, why });
        if self.config.repull {
            let mut info = row.info;
            info.started = true;
            info.epoch = info.epoch.saturating_add(1);
            info.remaining = row.ends - now;
            info.layers = [].into();
            self.pull(now, info, self.id);
        }
    }

    fn node_returned(&mut self, now: Time, node: PeerId) {
        self.survival.grace(now, node);
        self.event(AutonomyEvent::BelievedAlive { node });
        if self.config.epochs {
            let taken =
                self.records.iter().filter(|record| record.took_over.is_some_and(|from| from.node == node));
            let taken: Vec<(UserId, u64)> =
                taken.map(|record| (record.info.user, record.info.epoch)).collect();
            for (user, epoch) in taken {
                if let Some(from) = self.records.get_mut(user).and_then(|record| record.took_over.as_mut()) {
                    from.told = true;
                }
                self.send(node, AgentMessage::TookOver { user, epoch });
            }
        }
        self.release_former(node);
        self.streams.comfort(node);
        self.missing_layers_again(now);
        self.look_again(now);
        self.holder_returned(now);
        self.somebody_joined(now);
    }

    /// A user is served elsewhere in a later epoch. It is served here no more, nor
    /// is anybody stood behind who served it before.
    pub(super) fn hear_took_over(&mut self, user: UserId, epoch: u64) {
        let stale = self.reservations.get(user).is_some_and(|row| row.info.epoch < epoch);
        if self.config.epochs && stale {
            self.unreserve(user);
        }
        let older = self.records.get(user).is_some_and(|record| record.info.epoch < epoch);
        if self.config.epochs && older {
            self.event(AutonomyEvent::Superseded { user, epoch });
            self.end_user(user, StopWhy::Superseded);
        }
    }

    /// The viewer's old node still delivers: the user goes back, and the entry
    /// becomes what it was. Not once the old node was told to stop.
    pub(super) fn still_served(&mut self, now: Time, user: UserId) {
        let from = self.records.get(user).and_then(|record| record.took_over);
        let Some(from) = from.filter(|from| self.config.epochs && !from.told) else { return };
        let Some(record) = self.records.get(user).cloned() else { return };
        self.end_user(user, StopWhy::StillServed);
        let info = record.info_at(now);
        for (layer, node) in info.layers.iter() {
            let adopt = AgentMessage::Adopt { user, layer: *layer, base: from.node, epoch: info.epoch };
            self.send_or_hear(*node, adopt);
        }
        let (ends, leaving) = (record.ends, false);
        let row = Row { primary: from.node, kind: from.kind, info, ends, heard: now, leaving };
        self.reservations.insert(row);
        self.event(AutonomyEvent::TakeOverUndone { user });
        // By now it may have found another one.
        self.send(from.node, AgentMessage::SearchAgain(user));
    }

    /// Enhancements of this node's users came from a node that died.
    fn layers_died(&mut self, now: Time, dead: PeerId) {
        let mut lost: Vec<(UserId, Layer)> = Vec::new();
        for record in self.records.iter() {
            let of = record.info.layers.iter().filter(|(_, node)| *node == dead);
            lost.extend(of.map(|(layer, _)| (record.info.user, *layer)));
        }
        // Who is promised more is asked for first.
        lost.sort_by_key(|(user, layer)| {
            let vip = self.records.get(*user).is_some_and(|record| record.info.sla == Sla::Vip);
            (!vip, *user, *layer)
        });
        for (user, layer) in lost {
            self.layer_lost(now, user, layer, dead);
        }
    }
}
