//! Where the viewer stands in the network: its epoch, its reports, and the
//! search for service when nobody serves it any more.

use crate::message::Progress;
use crate::player::Player;
use crate::player::event::{Event, MoveCause};
use crate::player::failover::earliest;
use crate::player::io::{Found, Output, Service, SourceId};
use media::{Layer, Time};
use std::collections::VecDeque;

/// The most backups whose delivery start is still believed.
pub(super) const MOST_NAMED: usize = 16;
/// The most words kept of a backup that may be about to serve.
pub(super) const MOST_WORDS: usize = 8;
/// The most doors remembered.
const MOST_DOORS: usize = 32;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Who keeps the viewer's record and serves Base.
    pub(super) home: Option<SourceId>,
    pub(super) backup: Option<SourceId>,
    /// The backup, if it stands among the sources of Base as such alone.
    pub(super) guest: Option<SourceId>,
    pub(super) epoch: u64,
    /// Everybody who was named as backup: they may start to deliver.
    pub(super) named: Vec<SourceId>,
    pub(super) doubt: Option<Doubt>,
    /// When the next report is due.
    pub(super) report_at: Time,
    doors: Vec<SourceId>,
    /// Since when nobody serves Base.
    lost_since: Option<Time>,
    /// The door at which service is being sought, and since when.
    seeking: Option<(SourceId, Time)>,
    /// Doors not tried yet in this round.
    round: VecDeque<SourceId>,
    /// When the next round may begin.
    next_round: Time,
}

/// A backup wants to take over, and the old node may still be there.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub(super) source: SourceId,
    pub(super) epoch: u64,
    pub(super) since: Time,
    pub(super) until: Time,
    /// What it said meanwhile.
    pub(super) words: Vec<Word>,
}

/// What a node says of the viewer's service.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Backup(SourceId, u64),
    Layer(Layer, Option<SourceId>, u64),
}

impl Player {
    /// The session is granted: who serves, who stands behind.
    pub(super) fn join(&mut self, now: Time, service: Service) {
        if !self.config.own.failover {
            self.sources.only_the_first();
        }
        let home = service.home.or_else(|| self.sources.first(Layer::BASE));
        self.network.home = home;
        self.network.epoch = service.epoch;
        self.network.report_at = now;
        self.know_doors(service.doors);
        if let Some(source) = home {
            self.sources.add(now, source);
            self.emit(Output::Event(Event::ServedBy { source, epoch: service.epoch }));
        }
        self.keep_connected();
        self.set_backup(now, service.backup);
    }

    /// Tells the Base node how the viewer stands, once a second and after each
    /// move, also while paused.
    pub(super) fn report_position(&mut self, now: Time) {
        if now < self.network.report_at || self.over {
            return;
        }
        if let Some(source) = self.network.home.filter(|home| self.sources.is_up(*home)) {
            self.network.report_at = now + self.config.report_every;
            let (position, buffer) = (self.position(), self.buffer_level());
            self.emit(Output::Report { source, position, buffer });
        }
    }

    /// Seeks service at one door after the other once nobody serves Base and
    /// the backup had its time.
    pub(super) fn seek_service(&mut self, now: Time) {
        if !self.config.own.repull {
            return;
        }
        if self.sources.has_base() {
            self.network.lost_since = None;
            return;
        }
        let since = *self.network.lost_since.get_or_insert(now);
        if self.network.seeking.is_some_and(|(_, asked)| now < asked + self.config.seek_patience) {
            return;
        }
        self.network.seeking = None;
        if now < self.seek_at(since) {
            return;
        }
        if self.network.round.is_empty() {
            self.network.round = self.doors();
        }
        let Some(door) = self.network.round.pop_front() else { return };
        if self.network.round.is_empty() {
            self.network.next_round = now + self.config.seek_pause;
        }
        self.network.seeking = Some((door, now));
        let progress = Progress {
            started: true,
            epoch: self.network.epoch,
            position: self.position(),
            buffer: self.config.buffer,
        };
        self.emit(Output::Event(Event::Repull { door }));
        self.emit(Output::Seek { door, progress });
    }

    fn seek_at(&self, since: Time) -> Time {
        let first = since + self.config.repull_after;
        if self.network.round.is_empty() { first.max(self.network.next_round) } else { first }
    }

    /// The doors of a round: the backup first, then as they were told; but who is
    /// connected goes before who is not, and who is known to be gone comes last.
    fn doors(&self) -> VecDeque<SourceId> {
        let mut doors: Vec<SourceId> = Vec::new();
        for door in self.network.backup.iter().chain(&self.network.doors) {
            if !doors.contains(door) {
                doors.push(*door);
            }
        }
        doors.sort_by_key(|door| (!self.sources.is_usable(*door), self.sources.is_gone(*door)));
        doors.into()
    }

    fn know_doors(&mut self, doors: Vec<SourceId>) {
        // The last ones told are those of the node that knows best.
        let mut all = doors;
        all.extend(std::mem::take(&mut self.network.doors));
        for door in all {
            if !self.network.doors.contains(&door) && self.network.doors.len() < MOST_DOORS {
                self.network.doors.push(door);
            }
        }
    }

    pub(super) fn not_found(&mut self, door: SourceId) {
        if self.network.seeking.is_some_and(|(asked, _)| asked == door) {
            self.network.seeking = None;
            if self.network.round.is_empty() {
                self.network.next_round = self.now + self.config.seek_pause;
            }
        }
    }

    /// Service was found. It is taken if its epoch is the highest heard of, or
    /// if nobody else serves.
    pub(super) fn take_found(&mut self, now: Time, found: Found) {
        self.network.seeking = None;
        self.network.round.clear();
        self.network.next_round = now + self.config.seek_pause;
        let Found { mut sources, service } = found;
        let Service { home, backup, epoch, doors } = service;
        let Some(home) = home.or_else(|| sources.first()?.first().copied()) else { return };
        let taken = epoch > self.network.epoch || (epoch == self.network.epoch && !self.sources.has_base());
        if !taken {
            return;
        }
        if !self.config.own.failover {
            for layer in &mut sources {
                layer.truncate(1);
            }
        }
        self.move_home(now, home, epoch, MoveCause::Repull);
        self.network.lost_since = None;
        self.know_doors(doors);
        let layers = self.sources.layers();
        for (layer, nodes) in Layer::first(layers).zip(sources) {
            for node in &nodes {
                self.sources.add(now, *node);
            }
            if layer != Layer::BASE {
                self.change_layer(now, layer, nodes.first().copied(), MoveCause::Repull);
            }
            self.sources.set_order(layer, nodes);
        }
        self.set_backup(now, backup);
    }

    /// When a doubt, a report, a search or another question is due.
    pub(super) fn network_timeout(&self) -> Option<Time> {
        let doubt = self.network.doubt.as_ref().map(|doubt| doubt.until);
        let report = self.network.home.filter(|home| self.sources.is_up(*home));
        let report = report.map(|_| self.network.report_at);
        let seek = self.network.lost_since.filter(|_| self.config.own.repull).map(|since| {
            let patience = |(_, asked): (SourceId, Time)| asked + self.config.seek_patience;
            self.network.seeking.map_or_else(|| self.seek_at(since), patience)
        });
        [report, seek, self.sources.asked_again_at()].into_iter().fold(doubt, earliest)
    }
}
