//! What each input changes.

use crate::message::{Part, Refusal};
use crate::player::event::{Event, MoveCause};
use crate::player::failover::Sources;
use crate::player::io::{Command, FetchFailure, GiveUp, Input, Opening, Output, RequestId, SourceId};
use crate::player::playback::Playback;
use crate::player::requests::OpenRequest;
use crate::player::session::Session;
use crate::player::{Failure, Player};
use crate::quality::{Cause, Stepper};
use media::{Layer, Quality, Span, Time};

/// The most blocks that the pipeline can have asked for at once.
const MOST_WANTS: u32 = 4;

impl Player {
    pub(super) fn take(&mut self, now: Time, input: Input) {
        let serial = self.serial();
        match input {
            Input::Opened(opening) => self.open(now, opening),
            Input::Connected { source, round_trip } => {
                if self.sources.connected(now, source, round_trip) {
                    // What is open there hangs on a connection that is no more.
                    for id in self.requests.picked(|request| request.source == source) {
                        self.give_back(now, id, true);
                    }
                    self.emit(Output::Event(Event::SourceUp { source }));
                }
            }
            Input::Lost { source } => self.lose(now, source),
            Input::OtherVersion { source } => {
                self.lose(now, source);
                self.sources.useless(source);
                self.network.replaced = true;
                self.emit(Output::Event(Event::OtherVersion { source }));
            }
            Input::Heard { source, bytes } => {
                if self.sources.heard(now, source, bytes) {
                    self.emit(Output::Event(Event::SourceUp { source }));
                }
            }
            Input::Alive { source, number } => {
                if self.sources.alive(now, source, number) {
                    self.emit(Output::Event(Event::SourceUp { source }));
                }
            }
            Input::Draining { source } => self.sources.draining(source),
            Input::Filters { source } => self.sources.filters(now, source),
            Input::BackupIs { from, backup, epoch } => self.hear_backup(now, from, backup, epoch),
            Input::DeliveryStart { source, epoch } => self.hear_delivery_start(now, source, epoch),
            Input::LayerAt { from, layer, node, epoch } => self.hear_layer_at(now, from, layer, node, epoch),
            Input::Found(found) => self.take_found(now, found),
            Input::NotFound { door } => self.not_found(door),
            Input::Arrived { request } => self.arrive(now, request, Part::Whole),
            Input::ArrivedHalf { request } => self.arrive(now, request, Part::First),
            Input::Failed { request, why } => self.fail(now, request, why),
            Input::FeedWants { serial: of } if of == serial => {
                if let Some(playback) = &mut self.playback {
                    playback.wants = playback.wants.saturating_add(1).min(MOST_WANTS);
                }
            }
            Input::Position { serial: of, at } if of == serial => {
                if let Some(playback) = &mut self.playback {
                    playback.report(now, at);
                }
            }
            Input::Ended { serial: of } if of == serial => self.end(now),
            Input::User(command) => self.obey(now, command),
            Input::FeedWants { .. } | Input::Position { .. } | Input::Ended { .. } | Input::Timeout => {}
        }
    }

    fn open(&mut self, now: Time, opening: Opening) {
        if self.session.is_some() {
            return;
        }
        let Opening { shape, quality, mut sources, connected, service, from, until } = opening;
        let Some(session) = Session::new(shape, until).filter(|_| !sources.iter().all(Vec::is_empty)) else {
            self.over = true;
            self.emit(Output::GiveUp(GiveUp::Unplayable));
            return;
        };
        sources.truncate(usize::from(session.layers()));
        // Probe numbers of different viewers differ, so that a node's log tells them apart.
        let phase = u32::try_from(self.seed & 0xffff).unwrap_or(0);
        self.failures = vec![None; sources.len()];
        self.sources = Sources::new(now, sources, phase);
        for source in connected {
            self.sources.connected(now, source, Span::ZERO);
        }
        self.stepper =
            Stepper::new(self.config.step, quality.min(Quality(session.layers())).max(Quality::BRONZE));
        let mut playback = Playback::new(now, &session, Span::ZERO);
        if from > Span::ZERO {
            playback.pending = Some((from, 1));
        }
        self.playback = Some(playback);
        self.session = Some(session);
        self.target_since = now;
        self.join(now, service);
    }

    fn lose(&mut self, now: Time, source: SourceId) {
        let heard = self.sources.heard_at(source);
        if self.sources.lost(now, source) {
            self.emit(Output::Event(Event::SourceLost { source }));
            self.note_failure(now, source, heard, MoveCause::Lost);
        }
        for id in self.requests.picked(|request| request.source == source) {
            self.give_back(now, id, true);
        }
    }

    /// A source failed: remember it for each layer that it served.
    pub(super) fn note_failure(&mut self, now: Time, source: SourceId, heard: Time, cause: MoveCause) {
        for layer in Layer::first(u8::try_from(self.failures.len()).unwrap_or(u8::MAX)) {
            if self.sources.serving(layer) != Some(source) {
                continue;
            }
            self.note_move(now, layer, source, heard, cause);
        }
    }

    /// A layer is to come from somebody else. What is known already of the same
    /// source's failure stays known.
    pub(super) fn note_move(
        &mut self,
        now: Time,
        layer: Layer,
        from: SourceId,
        heard: Time,
        cause: MoveCause,
    ) {
        let open = self.requests.count(|request| request.source == from && request.layer == layer);
        let reasked = u32::try_from(open).unwrap_or(u32::MAX);
        let Some(failure) = self.failures.get_mut(layer.index()) else { return };
        *failure = Some(match *failure {
            Some(old) if old.from == from => {
                // A silence that ends in a broken connection is still the silence.
                let cause = if cause == MoveCause::Lost { old.cause } else { cause };
                Failure { reasked: old.reasked.max(reasked), cause, ..old }
            }
            _ => Failure { from, heard, verdict: now, reasked, cause },
        });
    }

    /// Requests open at a silent source are taken back as soon as somebody else
    /// can be asked.
    pub(super) fn reask(&mut self, now: Time) {
        let silent = |request: &OpenRequest| self.sources.is_silent(request.source);
        for id in self.requests.picked(silent) {
            let Some(request) = self.requests.get(id).copied() else { continue };
            if self.sources.choose(request.layer, &[request.source]).is_some() {
                self.give_back(now, id, true);
            }
        }
    }

    /// Cancels requests for layers that are no longer wanted.
    pub(super) fn trim(&mut self, now: Time) {
        let trick = self.playback.as_ref().is_some_and(Playback::is_trick);
        let wanted = if trick { Quality::BRONZE } else { self.stepper.wanted() };
        for id in self.requests.picked(|request| !wanted.includes(request.layer)) {
            self.cancel(now, id);
        }
    }

    /// Stops a request; its chunk may be asked for again.
    pub(super) fn cancel(&mut self, now: Time, id: RequestId) {
        self.give_back(now, id, false);
    }

    pub(super) fn give_back(&mut self, now: Time, id: RequestId, troubled: bool) {
        let Some(request) = self.close(now, id) else { return };
        self.emit(Output::Cancel { request: id });
        if let Some(slot) = self.buffer.existing_mut(request.block, request.layer) {
            slot.troubled |= troubled;
        }
    }

    /// Takes a request out of the books.
    fn close(&mut self, now: Time, id: RequestId) -> Option<OpenRequest> {
        let request = self.requests.remove(id)?;
        self.sources.count_request(now, request.source, false);
        let other = self.requests.other(request.block, request.layer);
        if let Some(other) = other {
            self.requests.promote(other);
        }
        if let Some(slot) = self.buffer.existing_mut(request.block, request.layer) {
            slot.open = other.is_some();
        }
        Some(request)
    }

    fn arrive(&mut self, now: Time, id: RequestId, part: Part) {
        let Some(request) = self.close(now, id) else { return };
        let OpenRequest { block, layer, source, asked, hedge } = request;
        if let Some(other) = self.requests.other(block, layer) {
            let loser = self.requests.get(other).map(|request| request.source);
            self.cancel(now, other);
            // A standby that was faster stands by again: it serves when it is told to.
            let switches = hedge && self.network.standing.backup() != Some(source);
            if let Some(from) = loser.filter(|_| switches && self.sources.serving(layer) != Some(source)) {
                self.note_failure(asked, from, self.sources.heard_at(from), MoveCause::Hedge);
                self.sources.outrun(from);
                self.sources.set_serving(layer, source);
            }
        }
        if let Some(slot) = self.buffer.existing_mut(block, layer) {
            slot.held = Some(now);
            slot.part = Some(if layer == Layer::BASE { Part::Whole } else { part });
            slot.open = false;
        }
        self.sources.serves(source);
        self.coming = None;
        self.emit(Output::Event(Event::Fetched { block, layer, source, took: now - asked }));
        if let Some(failure) = self.failures.get_mut(layer.index()).and_then(Option::take)
            && failure.from != source
        {
            let Failure { from, heard, verdict, reasked, cause } = failure;
            let to = source;
            self.emit(Output::Event(Event::FailedOver { layer, from, to, heard, verdict, reasked, cause }));
        }
    }

    fn fail(&mut self, now: Time, id: RequestId, why: FetchFailure) {
        let Some(OpenRequest { block, layer, source, .. }) = self.close(now, id) else { return };
        if why == FetchFailure::Refused(Refusal::NotServing) {
            // Not yet, or no more: no fault of the chunk, and no try of it.
            let again = now + self.config.ask_again;
            if self.sources.stands_by(source, layer, again) {
                self.emit(Output::Event(Event::FetchFailed { block, layer, source, why }));
            }
            return;
        }
        if why == FetchFailure::Refused(Refusal::Coming) {
            // Whoever says so is at it: nothing is wrong, and it is worth waiting for.
            if let Some(slot) = self.buffer.existing_mut(block, layer) {
                slot.retry_at = Some(now + self.config.retry_slowly);
                slot.troubled = true;
            }
            if self.coming.replace(now).is_none() {
                self.emit(Output::Event(Event::Coming { source }));
            }
            return;
        }
        if why == FetchFailure::Refused(Refusal::Filtered) && layer > Layer::BASE {
            // It does not come for this block, and is no fault of anybody.
            if let Some(slot) = self.buffer.existing_mut(block, layer) {
                slot.filtered = true;
            }
            return;
        }
        self.emit(Output::Event(Event::FetchFailed { block, layer, source, why }));
        let pause = now + self.config.retry_after;
        if let Some(slot) = self.buffer.existing_mut(block, layer) {
            slot.tries = slot.tries.saturating_add(1);
            slot.troubled = true;
            if why == FetchFailure::Refused(Refusal::TooManyRequests) {
                slot.retry_at = Some(pause);
            } else if !slot.failed_by.contains(&source) {
                slot.failed_by.push(source);
            }
        }
        match why {
            FetchFailure::Corrupt => self.sources.demote(source),
            FetchFailure::Refused(Refusal::LayerNotOffered | Refusal::AboveQuality) => {
                self.sources.refuses(source, layer);
            }
            FetchFailure::Refused(Refusal::Draining) => self.sources.draining(source),
            FetchFailure::Refused(
                Refusal::NoSession | Refusal::Version | Refusal::Malformed | Refusal::Identity,
            ) => {
                self.lose(now, source);
            }
            FetchFailure::Refused(_) | FetchFailure::Broken | FetchFailure::Late => {}
        }
    }

    fn end(&mut self, now: Time) {
        let Some(playback) = self.playback.as_ref().filter(|playback| playback.told_end) else { return };
        if playback.pending.is_some() {
            // The viewer has chosen already where to go.
        } else if playback.rate < 0 {
            // Running backwards into the start turns into playing from it.
            self.seek(now, Span::ZERO, 1);
        } else {
            self.over = true;
            self.emit(Output::Event(Event::Ended));
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        let Some(playback) = &mut self.playback else { return };
        match command {
            Command::Pause if !playback.paused => {
                playback.paused = true;
                playback.run(now, false);
                self.emit(Output::PipelinePause);
            }
            Command::Resume if playback.paused => {
                playback.paused = false;
                if !playback.starting {
                    playback.run(now, true);
                    self.emit(Output::PipelinePlay);
                }
            }
            Command::Seek(to) => {
                let rate = playback.pending.map_or(playback.rate, |(_, rate)| rate);
                playback.pending = Some((to, rate));
            }
            Command::Rate(rate) if rate != 0 => {
                let rate = if rate == -1 { -2 } else { rate };
                let rate = rate.clamp(-self.config.fastest, self.config.fastest);
                let (to, current) = playback.pending.unwrap_or((playback.at(now), playback.rate));
                if rate != current {
                    playback.pending = Some((to, rate));
                }
            }
            Command::Quality(wish) => {
                let layers = self.session.as_ref().map_or(1, Session::layers);
                self.stepper.set_wish(wish.min(Quality(layers)));
                self.dip = Cause::User;
                self.target_since = now;
            }
            Command::Pause | Command::Resume | Command::Rate(_) => {}
        }
    }

    /// Goes where the viewer last wanted, unless the seek before is too fresh.
    pub(super) fn seek_if_pending(&mut self, now: Time) {
        let Some(playback) = &mut self.playback else { return };
        if playback.serial > 0 && now < playback.started + self.config.seek_gap {
            return;
        }
        if let Some((to, rate)) = playback.pending.take() {
            self.seek(now, to, rate);
        }
    }

    fn seek(&mut self, now: Time, to: Span, rate: i8) {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_mut()) else { return };
        let last_instant = session.programme_end().saturating_sub(Span::from_nanos(1));
        let to = to.min(last_instant);
        playback.seek(now, session, to, rate);
        let serial = playback.serial;
        let window = self.window();
        for id in self.requests.picked(|request| !window.contains(&request.block)) {
            self.cancel(now, id);
        }
        for block in self.buffer.retain(|block| window.contains(&block)) {
            self.emit(Output::Evict { block });
        }
        self.emit(Output::PipelineSeek { serial, to, rate });
        self.network.report_at = now;
    }
}
