//! Where the viewer stands in the network: its epoch, its reports, and the
//! search for service when nobody serves it any more.

use crate::message::Progress;
use crate::player::Player;
use crate::player::config::PlayerConfig;
use crate::player::event::{Event, MoveCause};
use crate::player::failover::earliest;
use crate::player::io::{Found, Output, Service, SourceId};
use crate::service::{Doors, Patience, Standing};
use media::{Layer, Time};
use std::collections::VecDeque;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Who serves Base and keeps the viewer's record, and who stands behind.
    pub(super) standing: Standing<SourceId>,
    /// The backup, if it stands among the sources of Base as such alone.
    pub(super) guest: Option<SourceId>,
    /// When the next report is due.
    pub(super) report_at: Time,
    doors: Doors<SourceId>,
    /// Whether somebody has another version of the title.
    pub(super) replaced: bool,
}

impl Player {
    /// The session is granted: who serves, who stands behind.
    pub(super) fn join(&mut self, now: Time, service: Service) {
        if !self.config.own.failover {
            self.sources.only_the_first();
        }
        let home = service.home.or_else(|| self.sources.first(Layer::BASE));
        self.network.standing = Standing::new(home, service.epoch);
        self.network.report_at = now;
        self.network.doors.know(service.doors);
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
        if let Some(source) = self.network.standing.home().filter(|home| self.sources.is_up(*home)) {
            self.network.report_at = now + self.config.report_every;
            let (position, buffer) = (self.position(), self.buffer_level());
            let paused = self.playback.as_ref().is_some_and(|playback| playback.paused);
            self.emit(Output::Report { source, position, buffer, paused });
        }
    }

    /// Seeks service at one door after the other once nobody serves Base and
    /// the backup had its time.
    pub(super) fn seek_service(&mut self, now: Time) {
        if !self.config.own.repull {
            return;
        }
        if self.sources.has_base() {
            self.network.doors.served();
            return;
        }
        let patience = self.patience();
        let mut doors = std::mem::take(&mut self.network.doors);
        let door = doors.next(now, &patience, |known| self.round(known));
        self.network.doors = doors;
        let Some(door) = door else { return };
        let progress = Progress {
            started: true,
            epoch: self.network.standing.epoch(),
            position: self.position(),
            buffer: self.config.buffer,
        };
        let former = [self.network.standing.home(), self.network.standing.last_named()];
        self.emit(Output::Event(Event::Repull { door }));
        self.emit(Output::Seek { door, progress, former });
    }

    fn patience(&self) -> Patience {
        let PlayerConfig { repull_after: first, seek_patience: door, seek_pause: pause, .. } = self.config;
        Patience { first, door, pause }
    }

    /// The doors of a round: the backup first, then as they were told; but who is
    /// connected goes before who is not, and who is known to be gone comes last.
    fn round(&self, known: &[SourceId]) -> VecDeque<SourceId> {
        let mut doors: Vec<SourceId> = Vec::new();
        for door in self.network.standing.backup().iter().chain(known) {
            if !doors.contains(door) {
                doors.push(*door);
            }
        }
        doors.sort_by_key(|door| (!self.sources.is_usable(*door), self.sources.is_gone(*door)));
        doors.into()
    }

    pub(super) fn not_found(&mut self, door: SourceId) {
        let patience = self.patience();
        self.network.doors.not_found(self.now, door, &patience);
    }

    /// Service was found. It is taken if its epoch is the highest heard of, or
    /// if nobody else serves.
    pub(super) fn take_found(&mut self, now: Time, found: Found) {
        let patience = self.patience();
        self.network.doors.found(now, &patience);
        let Found { mut sources, service } = found;
        let Service { home, backup, epoch, doors } = service;
        let Some(home) = home.or_else(|| sources.first()?.first().copied()) else { return };
        if !self.network.standing.takes(epoch, self.sources.has_base()) {
            return;
        }
        if !self.config.own.failover {
            for layer in &mut sources {
                layer.truncate(1);
            }
        }
        self.sources.useful(home);
        self.move_home(now, home, epoch, MoveCause::Repull);
        self.network.doors.served();
        self.network.doors.know(doors);
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
        let doubt = self.network.standing.doubt_until();
        let report = self.network.standing.home().filter(|home| self.sources.is_up(*home));
        let report = report.map(|_| self.network.report_at);
        let repull = self.config.own.repull;
        let seek = repull.then(|| self.network.doors.poll_timeout(&self.patience())).flatten();
        [report, seek, self.sources.asked_again_at()].into_iter().fold(doubt, earliest)
    }
}
