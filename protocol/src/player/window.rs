//! Which blocks may be held or asked for now, and what is to be asked next.

use crate::player::Player;
use crate::player::event::Event;
use crate::player::failover::earliest;
use crate::player::io::{Output, RequestId, SourceId};
use crate::player::requests::OpenRequest;
use media::{BitRate, Layer, Quality, Span, Time};

impl Player {
    /// The blocks that may be held or asked for, in the order they are needed:
    /// those that end within the buffer's seconds, and always the next one.
    pub(super) fn window(&self) -> Vec<u32> {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_ref()) else {
            return Vec::new();
        };
        let mut blocks = Vec::new();
        let mut sum = Span::ZERO;
        let mut next = playback.next;
        while let Some(block) = next {
            sum += session.duration(block);
            let fits = if playback.is_trick() {
                // What is left of a slot's burst is for the return to normal play.
                sum.saturating_mul(2) <= self.config.buffer
            } else {
                session.end(block) <= playback.reported() + self.config.buffer
            };
            if !fits && !blocks.is_empty() {
                break;
            }
            blocks.push(block);
            next = playback.after(session, block, &self.config);
        }
        blocks
    }

    /// End of the Base that is held without a gap, fed or not.
    pub(super) fn base_end(&self) -> Span {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_ref()) else {
            return Span::ZERO;
        };
        let held = self.window().into_iter().take_while(|block| self.buffer.holds(*block, Layer::BASE));
        held.last().map_or(playback.fed_end, |block| session.end(block).max(playback.fed_end))
    }

    /// How much programme can be shown from now on without anything arriving.
    pub(super) fn base_level(&self, now: Time) -> Span {
        let Some(playback) = &self.playback else { return Span::ZERO };
        self.base_end().saturating_sub(playback.at(now))
    }

    /// Asks for everything that may and should be asked for now: Base first.
    pub(super) fn fetch(&mut self, now: Time) {
        let Some(playback) = &self.playback else { return };
        let (starting, trick) = (playback.starting, playback.is_trick());
        let window = self.window();
        if starting
            && !trick
            && let Some(first) = window.first()
        {
            self.fetch_base(now, *first);
            self.fetch_enhancements(now, *first);
            if self.alone_until(now).is_some_and(|when| now < when) {
                return self.hedge(now);
            }
        }
        for block in &window {
            self.fetch_base(now, *block);
        }
        if let Some(last) = window.last().copied().filter(|_| !trick) {
            for block in &window {
                // While nobody can be asked for Base nothing stands in its way.
                let idle =
                    self.buffer.holds(*block, Layer::BASE) && self.sources.choose(Layer::BASE, &[]).is_none();
                if !idle && !self.base_is_ahead_of(*block, last) {
                    break;
                }
                self.fetch_enhancements(now, *block);
            }
        }
        self.hedge(now);
    }

    fn fetch_base(&mut self, now: Time, block: u32) {
        if self.requests.count(|r| r.layer == Layer::BASE && !r.hedge) < self.config.base_window {
            self.ask(now, block, Layer::BASE);
        }
    }

    fn fetch_enhancements(&mut self, now: Time, block: u32) {
        let window = if self.is_roomy() { self.config.enhancement_window } else { 1 };
        for layer in Layer::first(self.stepper.wanted().layers()).skip(1) {
            if self.requests.count(|r| r.layer != Layer::BASE && !r.hedge) >= window {
                return;
            }
            self.ask(now, block, layer);
        }
    }

    /// Until when nothing is to share the line with the first block, since all of it
    /// is awaited: at first, and when its Base is there until it goes. A start that is
    /// judged to be on a narrow link needs Base more than anything, and one near the
    /// end of a block needs the next one as soon.
    pub(super) fn alone_until(&self, now: Time) -> Option<Time> {
        let (session, playback) = self.session.as_ref().zip(self.playback.as_ref())?;
        let block = playback.next.filter(|_| playback.starting && !playback.is_trick())?;
        if block < session.last() {
            let next = session.length(block.saturating_add(1), Layer::BASE);
            let comes = self.sources.total_rate().map_or(Span::ZERO, |rate| rate.time_for(next));
            let way = self.base_round_trip().saturating_mul(2) + comes;
            if session.end(block).saturating_sub(playback.at(now)) < self.config.feed_margin + way {
                return None;
            }
        }
        let Some(due) = self.due_at(block) else {
            return Some(playback.started + self.config.start_judgement);
        };
        let whole = self.buffer.settled(block) >= self.stepper.wanted();
        (!whole && playback.least_base == Span::ZERO).then_some(due)
    }

    pub(super) fn base_round_trip(&self) -> Span {
        self.sources.serving(Layer::BASE).map_or(Span::ZERO, |id| self.sources.round_trip(id))
    }

    /// Base is held two blocks beyond `block`, or as far as any may be asked for: a
    /// line that has nothing else to do carries enhancements meanwhile, whose time
    /// comes sooner than that of the Base to come.
    fn base_is_ahead_of(&self, block: u32, last: u32) -> bool {
        self.buffer.base_held_through(block, block.saturating_add(2).min(last))
    }

    /// Whether the rate seen leaves room beside what is wanted. At the start
    /// nothing is known against it.
    pub(super) fn is_roomy(&self) -> bool {
        let next = self.playback.as_ref().and_then(|playback| playback.next);
        let Some((session, block)) = self.session.as_ref().zip(next) else { return true };
        let need = session.rate_of(block, self.stepper.wanted());
        self.sources.total_rate().is_none_or(|rate| rate >= percent(need, self.config.roomy_percent))
    }

    /// A source is not blamed for a slow line: one that barely carries what is
    /// wanted, or on which somebody asked earlier is still delivering. Tells
    /// whether that changed anything.
    pub(super) fn excuse_crowded(&mut self) -> bool {
        let narrow = !self.is_roomy();
        let mut changed = false;
        for (id, since) in self.sources.probed() {
            let slow = |request: &OpenRequest| {
                let other = request.source != id && request.asked <= since;
                other && self.sources.heard_at(request.source) > since
            };
            let crowded = narrow || self.requests.count(slow) > 0;
            changed |= self.sources.set_crowded(id, crowded);
        }
        changed
    }

    /// Whether the link was seen to carry `quality` with room to spare, over
    /// all connections and over the one of its topmost layer.
    pub(super) fn has_headroom(&self, block: u32, quality: Quality) -> bool {
        let Some(session) = &self.session else { return false };
        let spare = self.config.step.headroom_percent;
        let all = percent(session.rate_of(block, quality), spare);
        // Too little busy time for an estimate is room enough.
        let enough = self.sources.total_rate().is_none_or(|rate| rate >= all);
        let Some(top) = quality.top() else { return enough };
        let below = session.rate_of(block, Quality(top.0));
        let one = percent(BitRate(session.rate_of(block, quality).0.saturating_sub(below.0)), spare);
        let source = self.sources.serving(top);
        enough && source.and_then(|id| self.sources.rate(id)).is_none_or(|rate| rate >= one)
    }

    /// A link that is busy most of the time with less than the next quality needs
    /// will not carry it; that it is idle most of the time says nothing.
    pub(super) fn postpone_hopeless_trial(&mut self, now: Time) {
        let due = self.stepper.poll_timeout().is_some_and(|when| when <= now);
        let Some(block) = self.playback.as_ref().and_then(|p| p.next).filter(|_| due) else { return };
        let Some((session, rate)) = self.session.as_ref().zip(self.sources.total_rate()) else { return };
        let current = self.stepper.target();
        let next = Quality(current.layers().saturating_add(1));
        let busy = rate < percent(session.rate_of(block, current), self.config.roomy_percent);
        if busy && rate < session.rate_of(block, next) {
            self.stepper.postpone_trial(now);
        }
    }

    /// Asks for a chunk unless it is held, asked for, not to be asked for yet,
    /// or nobody has it.
    fn ask(&mut self, now: Time, block: u32, layer: Layer) {
        let layers = self.session.as_ref().map_or(0, super::session::Session::layers);
        let most = self.config.most_tries;
        let Some(slot) = self.buffer.slot_mut(block, layer, layers) else { return };
        let given_up = layer != Layer::BASE && slot.tries >= most;
        if slot.held.is_some()
            || slot.filtered
            || slot.open
            || given_up
            || slot.retry_at.is_some_and(|when| now < when)
        {
            return;
        }
        let Some(source) = self.sources.choose(layer, &slot.failed_by) else {
            if !slot.failed_by.is_empty() && self.sources.choose(layer, &[]).is_some() {
                // Everybody failed this chunk: a pause, then a new round.
                slot.failed_by.clear();
                let pause =
                    if slot.tries >= most { self.config.retry_slowly } else { self.config.retry_after };
                slot.retry_at = Some(now + pause);
            }
            return;
        };
        if self.is_out_of_reach(now, block, layer, source) {
            return;
        }
        if let Some(slot) = self.buffer.existing_mut(block, layer) {
            slot.open = true;
            slot.retry_at = None;
            slot.asked.get_or_insert(now);
        }
        self.sources.set_serving(layer, source);
        self.send_request(now, OpenRequest { block, layer, source, asked: now, hedge: false });
    }

    /// Whether an enhancement's time is over before a source so far away, or behind
    /// so deep a queue, can have answered: what is sent in vain only delays Base.
    fn is_out_of_reach(&self, now: Time, block: u32, layer: Layer, source: SourceId) -> bool {
        layer != Layer::BASE && self.deadline(now, block, layer) < self.sources.round_trip(source)
    }

    fn send_request(&mut self, now: Time, request: OpenRequest) {
        let OpenRequest { block, layer, source, .. } = request;
        let deadline = self.deadline(now, block, layer);
        let id = self.requests.add(request);
        self.sources.count_request(now, source, true);
        self.emit(Output::Request { request: id, source, block, layer, deadline });
    }

    /// In how long a chunk is no longer of use. A Base chunk is of use beyond
    /// its time, since without it nothing can be shown at all.
    fn deadline(&self, now: Time, block: u32, layer: Layer) -> Span {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_ref()) else {
            return Span::ZERO;
        };
        let due = session.start(block).saturating_sub(playback.at(now));
        if layer == Layer::BASE {
            due + self.config.base_grace
        } else if playback.starting {
            due + session.duration(block) + self.config.start_patience
        } else {
            due
        }
    }

    /// Doubles requests that are due soon and whose source is quiet, unless the
    /// line is what delays them.
    fn hedge(&mut self, now: Time) {
        if !self.config.own.hedge {
            return;
        }
        let roomy = self.is_roomy();
        let due = |request: &OpenRequest| {
            self.is_backed_up(request.layer) || self.deadline_is_near(now, request.block)
        };
        let quiet = |id: SourceId| self.sources.quiet_at(id, &self.config).is_some_and(|when| when <= now);
        let late = |request: &OpenRequest| {
            (roomy && quiet(request.source) && due(request))
                || self.overdue_at(request).is_some_and(|when| when <= now)
        };
        let slow = self.requests.picked(|request| !request.hedge && late(request));
        for id in slow {
            let Some(request) = self.requests.get(id).copied() else { continue };
            let same = |other: &OpenRequest| other.block == request.block && other.layer == request.layer;
            if self.requests.count(same) > 1 {
                continue;
            }
            let hot = self.network.standing.backup().filter(|backup| {
                self.is_backed_up(request.layer)
                    && *backup != request.source
                    && self.sources.is_usable(*backup)
                    && !self.sources.is_standing_by(*backup)
            });
            let other = hot.or_else(|| self.sources.choose(request.layer, &[request.source]));
            if let Some(source) = other.filter(|other| !self.sources.is_standing_by(*other))
                && self.sources.quiet_at(source, &self.config).is_none_or(|when| now < when)
            {
                self.send_request(now, OpenRequest { source, asked: now, hedge: true, ..request });
            }
        }
    }

    /// Whether a standby keeps a slot ready for this layer: what is late by
    /// `hedge_after` is asked of it at once, however deep the buffer.
    fn is_backed_up(&self, layer: Layer) -> bool {
        layer == Layer::BASE && self.config.hot_standby && self.network.standing.backup().is_some()
    }

    /// When a chunk for which a slot is kept ready elsewhere passes its own
    /// deadline, although its source may be heard all the time: nothing of it
    /// came, so that the line is not what delays it.
    fn overdue_at(&self, request: &OpenRequest) -> Option<Time> {
        let (session, playback) = self.session.as_ref().zip(self.playback.as_ref())?;
        let withheld = self.sources.withholds_since(request.source, request.asked);
        if playback.starting || !withheld || !self.is_backed_up(request.layer) {
            return None;
        }
        let due = playback.when(session.start(request.block))?;
        Some(self.config.hedging().overdue_at(request.asked, due))
    }

    fn deadline_is_near(&self, now: Time, block: u32) -> bool {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_ref()) else {
            return false;
        };
        playback.starting
            || session.start(block).saturating_sub(playback.at(now)) <= self.config.hedge_when_due
    }

    /// When `hedge` may have something to do.
    pub(super) fn hedge_timeout(&self) -> Option<Time> {
        if !self.config.own.hedge {
            return None;
        }
        let quiet = |(_, request): (RequestId, &OpenRequest)| {
            let quiet = self.sources.quiet_at(request.source, &self.config)?;
            let (session, playback) = self.session.as_ref().zip(self.playback.as_ref())?;
            let near = session.start(request.block).saturating_sub(self.config.hedge_when_due);
            if playback.starting || self.is_backed_up(request.layer) {
                Some(quiet)
            } else {
                Some(quiet.max(playback.when(near)?))
            }
        };
        let late = |(id, request)| earliest(quiet((id, request)), self.overdue_at(request));
        self.requests.iter().filter(|(_, request)| !request.hedge).filter_map(late).min()
    }

    /// Stops enhancement requests when Base falls under one block and a round
    /// trip, so that Base never waits for them.
    pub(super) fn base_first(&mut self, now: Time) {
        if self.starvation_at().is_none_or(|when| when > now) {
            return;
        }
        let stopped = self.requests.picked(|request| request.layer != Layer::BASE);
        let Some(next) = self.playback.as_ref().and_then(|p| p.next) else { return };
        let lowest = stopped.iter().filter_map(|id| self.requests.get(*id)).map(|r| r.layer).min();
        let Some(lowest) = lowest else { return };
        for id in &stopped {
            self.cancel(now, *id);
        }
        let level = self.base_level(now);
        let count = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
        self.emit(Output::Event(Event::BaseFirst { level, stopped: count }));
        let base = self.buffer.slot(next, Layer::BASE);
        let troubled =
            base.is_some_and(|slot| slot.troubled) || self.sources.choose(Layer::BASE, &[]).is_none();
        if !troubled {
            let carried = self.carried(next);
            self.step_down(now, carried.min(Quality(lowest.0)));
        }
    }

    /// The best quality that the rate seen carries.
    pub(super) fn carried(&self, block: u32) -> Quality {
        let top = self.stepper.target();
        let Some((session, rate)) = self.session.as_ref().zip(self.sources.total_rate()) else { return top };
        session.carried_by(block, rate, top)
    }

    /// When Base will be under one block and a round trip, if enhancements are
    /// asked for meanwhile.
    pub(super) fn starvation_at(&self) -> Option<Time> {
        let (session, playback) = self.session.as_ref().zip(self.playback.as_ref())?;
        let next = playback.next.filter(|_| !playback.starting && !playback.is_trick())?;
        let end = self.base_end();
        if end >= session.programme_end() || self.requests.count(|r| r.layer != Layer::BASE) == 0 {
            return None;
        }
        let reserve = session.duration(next) + self.base_round_trip();
        playback.when(end.saturating_sub(reserve))
    }
}

/// `part` hundredths of a rate.
pub(super) fn percent(rate: BitRate, part: u64) -> BitRate {
    BitRate(rate.0.saturating_mul(part) / 100)
}
