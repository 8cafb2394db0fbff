//! What the network says of this viewer's service: who backs its Base node up,
//! who takes over, and where its layers are. A source may speak only as what it
//! is, and what belongs to an older epoch is not heard.

use crate::player::Player;
use crate::player::event::{Event, MoveCause};
use crate::player::io::{Output, SourceId};
use crate::service::{Delivery, Home, Word};
use media::{Layer, Time};

impl Player {
    pub(super) fn hear_backup(&mut self, now: Time, from: SourceId, backup: SourceId, epoch: u64) {
        let standing = &mut self.network.standing;
        if standing.postpone(from, Word::Backup(backup, epoch)) || !standing.is_from_home(from, epoch) {
            return;
        }
        self.set_backup(now, Some(backup));
    }

    /// Another node takes over if this one dies: a quiet connection to it is
    /// made at once, and the one to its predecessor is given up.
    pub(super) fn set_backup(&mut self, now: Time, backup: Option<SourceId>) {
        let Some(former) = self.network.standing.set_backup(backup) else { return };
        if let Some(former) = former.filter(|former| self.network.guest == Some(*former)) {
            self.sources.take_out(Layer::BASE, former);
            self.network.guest = None;
        }
        if let Some(backup) = self.network.standing.backup() {
            self.sources.add(now, backup);
            if self.config.own.failover && !self.sources.offers(Layer::BASE, backup) {
                self.sources.put_behind(backup);
                self.network.guest = Some(backup);
            }
            self.emit(Output::Event(Event::BackupKnown { source: backup }));
        }
        self.keep_connected();
        if let Some(former) = former {
            self.retire(now, former);
        }
    }

    /// A backup says that it serves from now on. It is believed if the old node
    /// is gone; if that one may still deliver it is asked first.
    pub(super) fn hear_delivery_start(&mut self, now: Time, source: SourceId, epoch: u64) {
        let mut standing = std::mem::take(&mut self.network.standing);
        let delivery = standing.hear_delivery(now, source, epoch, |home| self.look_at(home));
        self.network.standing = standing;
        self.deliver(now, delivery);
    }

    /// Ends a doubt: the old node spoke, is gone, or said nothing in time.
    pub(super) fn settle_doubt(&mut self, now: Time) {
        let mut standing = std::mem::take(&mut self.network.standing);
        let delivery = standing.settle(now, |home| self.look_at(home));
        self.network.standing = standing;
        self.deliver(now, delivery);
    }

    fn look_at(&self, home: SourceId) -> Home {
        Home {
            usable: self.sources.is_usable(home),
            heard: self.sources.heard_at(home),
            patience: self.config.doubt.max(self.sources.round_trip(home).saturating_mul(2)),
        }
    }

    fn deliver(&mut self, now: Time, delivery: Delivery<SourceId>) {
        match delivery {
            Delivery::Ignored => {}
            Delivery::Accepted { source, epoch, words } => self.accept_delivery(now, source, epoch, words),
            Delivery::Refused { source, epoch } => self.refuse_delivery(source, epoch),
            Delivery::Doubted { home } => {
                if let Some(number) = self.sources.probe_now(now, home) {
                    self.emit(Output::Probe { source: home, number });
                }
            }
        }
    }

    fn refuse_delivery(&mut self, source: SourceId, epoch: u64) {
        self.emit(Output::StillServed { source, epoch });
        self.emit(Output::Event(Event::StillServed { source, epoch }));
    }

    fn accept_delivery(&mut self, now: Time, source: SourceId, epoch: u64, words: Vec<Word<SourceId>>) {
        self.move_home(now, source, epoch, MoveCause::DeliveryStart);
        for word in words {
            match word {
                Word::Backup(backup, epoch) => self.hear_backup(now, source, backup, epoch),
                Word::Layer(layer, node, epoch) => self.hear_layer_at(now, source, layer, node, epoch),
            }
        }
    }

    /// Another node serves Base and keeps the record from now on: what is open
    /// at the old one is asked there, and the old one is left.
    pub(super) fn move_home(&mut self, now: Time, to: SourceId, epoch: u64, cause: MoveCause) {
        self.network.guest = None;
        let moved = self.network.standing.move_to(to, epoch);
        self.sources.add(now, to);
        self.sources.serves(to);
        self.change_layer(now, Layer::BASE, Some(to), cause);
        if let Some(backup) = moved.backup {
            self.sources.take_out(Layer::BASE, backup);
            self.keep_connected();
            self.retire(now, backup);
        }
        self.keep_connected();
        if let Some(former) = moved.former {
            self.retire(now, former);
        }
        self.network.report_at = now;
        self.emit(Output::Event(Event::ServedBy { source: to, epoch }));
    }

    pub(super) fn hear_layer_at(
        &mut self,
        now: Time,
        from: SourceId,
        layer: Layer,
        node: Option<SourceId>,
        epoch: u64,
    ) {
        let standing = &mut self.network.standing;
        if standing.postpone(from, Word::Layer(layer, node, epoch)) || !standing.is_from_home(from, epoch) {
            return;
        }
        match node {
            Some(node) if layer == Layer::BASE => {
                if node != from {
                    self.move_home(now, node, epoch, MoveCause::Moved);
                }
            }
            // It will not serve any longer, and nobody else does yet.
            None if layer == Layer::BASE => self.sources.draining(from),
            node => {
                if let Some(node) = node {
                    self.sources.add(now, node);
                    self.sources.serves(node);
                }
                self.change_layer(now, layer, node, MoveCause::Moved);
            }
        }
    }

    /// A layer comes from `to` alone from now on; what is open elsewhere is
    /// taken back.
    pub(super) fn change_layer(&mut self, now: Time, layer: Layer, to: Option<SourceId>, cause: MoveCause) {
        let former = self.sources.first(layer);
        if former == to {
            self.rename_move(layer, cause);
        } else if let Some(from) = former.filter(|_| to.is_some()) {
            self.note_move(now, layer, from, self.sources.heard_at(from), cause);
        }
        let others = self.sources.order_of(layer);
        self.sources.set_order(layer, to.into_iter().collect());
        for id in self.requests.picked(|request| request.layer == layer && Some(request.source) != to) {
            self.give_back(now, id, true);
        }
        for other in others {
            self.retire(now, other);
        }
    }

    /// The viewer went there by itself, but it is the network that made it serve.
    fn rename_move(&mut self, layer: Layer, cause: MoveCause) {
        if let Some(failure) = self.failures.get_mut(layer.index()).and_then(Option::as_mut) {
            failure.cause = cause;
        }
    }

    /// Closes the session at a source that nothing is needed of any more.
    pub(super) fn retire(&mut self, now: Time, source: SourceId) {
        if self.sources.is_needed(source) {
            return;
        }
        for id in self.requests.picked(|request| request.source == source) {
            self.give_back(now, id, true);
        }
        self.sources.forget(source);
        self.emit(Output::Leave { source });
    }

    /// The Base node and its backup stay connected whatever layers are wanted.
    pub(super) fn keep_connected(&mut self) {
        self.sources.last_resort = self.network.guest;
        self.sources.keep =
            self.network.standing.home().into_iter().chain(self.network.standing.backup()).collect();
    }
}
