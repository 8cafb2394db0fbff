//! What the network says of this viewer's service: who backs its Base node up,
//! who takes over, and where its layers are. A source may speak only as what it
//! is, and what belongs to an older epoch is not heard.

use crate::player::Player;
use crate::player::event::{Event, MoveCause};
use crate::player::io::{Output, SourceId};
use crate::player::network::{Doubt, MOST_NAMED, MOST_WORDS, Word};
use media::{Layer, Time};

impl Player {
    pub(super) fn hear_backup(&mut self, now: Time, from: SourceId, backup: SourceId, epoch: u64) {
        if self.postpone(from, Word::Backup(backup, epoch)) || !self.is_from_home(from, epoch) {
            return;
        }
        self.set_backup(now, Some(backup));
    }

    /// Another node takes over if this one dies: a quiet connection to it is
    /// made at once, and the one to its predecessor is given up.
    pub(super) fn set_backup(&mut self, now: Time, backup: Option<SourceId>) {
        let backup = backup.filter(|backup| Some(*backup) != self.network.home);
        if self.network.backup == backup {
            return;
        }
        let former = std::mem::replace(&mut self.network.backup, backup);
        if let Some(former) = former.filter(|former| self.network.guest == Some(*former)) {
            self.sources.take_out(Layer::BASE, former);
            self.network.guest = None;
        }
        if let Some(backup) = backup {
            self.sources.add(now, backup);
            if !self.network.named.contains(&backup) {
                if self.network.named.len() >= MOST_NAMED {
                    self.network.named.remove(0);
                }
                self.network.named.push(backup);
            }
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
        if !self.network.named.contains(&source) || epoch < self.network.epoch {
            return;
        }
        let Some(home) = self.network.home.filter(|home| *home != source) else {
            // It serves already: only its epoch can be news.
            self.network.epoch = self.network.epoch.max(epoch);
            return;
        };
        if self.network.doubt.as_ref().is_some_and(|doubt| doubt.epoch >= epoch) {
            return;
        }
        self.network.doubt = None;
        if !self.sources.is_usable(home) {
            self.accept_delivery(now, source, epoch, Vec::new());
        } else if now - self.sources.heard_at(home) <= self.config.heard_lately {
            self.refuse_delivery(source, epoch);
        } else {
            let patience = self.config.doubt.max(self.sources.round_trip(home).saturating_mul(2));
            if let Some(number) = self.sources.probe_now(now, home) {
                self.emit(Output::Probe { source: home, number });
            }
            let doubt = Doubt { source, epoch, since: now, until: now + patience, words: Vec::new() };
            self.network.doubt = Some(doubt);
        }
    }

    /// Ends a doubt: the old node spoke, is gone, or said nothing in time.
    pub(super) fn settle_doubt(&mut self, now: Time) {
        let Some(doubt) = self.network.doubt.take() else { return };
        let home = self.network.home.filter(|home| self.sources.is_usable(*home));
        if home.is_some_and(|home| self.sources.heard_at(home) > doubt.since) {
            self.refuse_delivery(doubt.source, doubt.epoch);
        } else if home.is_none() || now >= doubt.until {
            self.accept_delivery(now, doubt.source, doubt.epoch, doubt.words);
        } else {
            self.network.doubt = Some(doubt);
        }
    }

    fn refuse_delivery(&mut self, source: SourceId, epoch: u64) {
        self.emit(Output::StillServed { source, epoch });
        self.emit(Output::Event(Event::StillServed { source, epoch }));
    }

    fn accept_delivery(&mut self, now: Time, source: SourceId, epoch: u64, words: Vec<Word>) {
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
        let former = self.network.home.replace(to);
        self.network.epoch = epoch;
        self.network.doubt = None;
        self.sources.add(now, to);
        self.sources.serves(to);
        self.change_layer(now, Layer::BASE, Some(to), cause);
        if self.network.backup == Some(to) {
            self.network.backup = None;
            self.network.guest = None;
        } else if let Some(backup) = self.network.backup.take() {
            // It stood behind the old node.
            self.sources.take_out(Layer::BASE, backup);
            self.network.guest = None;
            self.keep_connected();
            self.retire(now, backup);
        }
        self.keep_connected();
        if let Some(former) = former.filter(|former| *former != to) {
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
        if self.postpone(from, Word::Layer(layer, node, epoch)) || !self.is_from_home(from, epoch) {
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

    /// Whether these are words of the Base node that hold; a higher epoch holds
    /// from now on.
    fn is_from_home(&mut self, from: SourceId, epoch: u64) -> bool {
        if self.network.home != Some(from) || epoch < self.network.epoch {
            return false;
        }
        self.network.epoch = epoch;
        true
    }

    /// Keeps what a backup says that may be about to serve, until that is known.
    fn postpone(&mut self, from: SourceId, word: Word) -> bool {
        let Some(doubt) = self.network.doubt.as_mut().filter(|doubt| doubt.source == from) else {
            return false;
        };
        if doubt.words.len() < MOST_WORDS {
            doubt.words.push(word);
        }
        true
    }

    /// The Base node and its backup stay connected whatever layers are wanted.
    pub(super) fn keep_connected(&mut self) {
        self.sources.last_resort = self.network.guest;
        self.sources.keep = self.network.home.into_iter().chain(self.network.backup).collect();
    }
}
