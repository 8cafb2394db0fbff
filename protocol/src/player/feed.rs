//! Which block goes to the pipeline, when, and with how many layers. What was
//! fed never changes any more.

use crate::message::Part;
use crate::player::event::Event;
use crate::player::io::{GiveUp, Output};
use crate::player::{Failure, Player};
use crate::quality::{Cause, Step};
use media::{ByteCount, Layer, Quality, Span, Time};

impl Player {
    /// Feeds every block that is due and for which there is room.
    pub(super) fn feed(&mut self, now: Time) {
        while self.feed_next(now) {}
        if let Some(playback) = &mut self.playback
            && playback.next.is_none()
            && !std::mem::replace(&mut playback.told_end, true)
        {
            let serial = playback.serial;
            self.emit(Output::EndOfFeed { serial });
        }
    }

    fn feed_next(&mut self, now: Time) -> bool {
        let Some(playback) = &self.playback else { return false };
        let (serial, trick, starting) = (playback.serial, playback.is_trick(), playback.starting);
        let Some(block) = playback.next.filter(|_| playback.wants > 0) else { return false };
        if !self.buffer.holds(block, Layer::BASE) || !(trick || self.is_due(now, block)) {
            return false;
        }
        let quality = if trick { Quality::BRONZE } else { self.choose_quality(now, block, starting) };
        for id in self.requests.picked(|request| request.block == block) {
            self.cancel(now, id);
        }
        let key_only = self.way_of_key(block);
        let step = self.buffer.step_of(block, quality);
        let half = step.part == Part::First;
        self.emit(Output::Feed { block, quality, half, serial, key_only });
        self.emit(Output::Evict { block });
        self.buffer.forget(block);
        if !trick {
            self.note_step(block, step, starting);
        }
        self.fed(now, block, quality);
        true
    }

    /// In trick play, for how much of the programme a block's key picture stands.
    fn way_of_key(&self, block: u32) -> Option<Span> {
        let playback = self.playback.as_ref().filter(|playback| playback.is_trick())?;
        Some(playback.way_to_next(self.session.as_ref()?, block, &self.config))
    }

    /// Moves the cursor and lets the clock run after a first block.
    fn fed(&mut self, now: Time, block: u32, quality: Quality) {
        let config = self.config;
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_mut()) else { return };
        playback.wants = playback.wants.saturating_sub(1);
        playback.advance(session, block, &config);
        let starved = playback.starved.take();
        let started = std::mem::replace(&mut playback.starting, false).then_some(now - playback.started);
        let runs = started.is_some() && !playback.paused;
        if runs {
            playback.run(now, true);
        }
        if let Some(since) = starved {
            self.emit(Output::Event(Event::Refilled { block, after: now - since }));
        }
        if let Some(waited) = started {
            self.emit(Output::Event(Event::Started { block, quality, waited }));
        }
        if runs {
            self.emit(Output::PipelinePlay);
        }
    }

    /// Whether a block with its Base held goes now: everything wanted is held,
    /// or there is no more time to wait for the rest.
    fn is_due(&self, now: Time, block: u32) -> bool {
        if self.waits_for_base(block) {
            return false;
        }
        self.buffer.settled(block) >= self.stepper.wanted().max(self.awaited(now))
            || self.due_at(block).is_some_and(|when| when <= now)
    }

    /// The quality for which a block waits as long as its time allows, since the source
    /// of a layer has failed only just now: whoever takes its place may bring it yet.
    fn awaited(&self, now: Time) -> Quality {
        let hoped = self.stepper.hoped();
        let recent = |failure: &Failure| now - failure.verdict < self.config.buffer;
        let failed = self.failures.iter().take(usize::from(hoped.layers())).flatten().any(recent);
        if failed { hoped } else { Quality::BRONZE }
    }

    /// Whether a start on a narrow link waits for more Base than one block.
    fn waits_for_base(&self, block: u32) -> bool {
        let Some((session, playback)) = self.session.as_ref().zip(self.playback.as_ref()) else {
            return false;
        };
        let Some(last) = self.window().last().copied().filter(|_| playback.starting) else {
            return false;
        };
        let held = (block..=last).take_while(|block| self.buffer.holds(*block, Layer::BASE)).last();
        let ahead = held.map_or(Span::ZERO, |held| session.end(held).saturating_sub(session.start(block)));
        held != Some(last) && ahead < playback.least_base
    }

    /// When the next block goes even without its enhancements.
    pub(super) fn due_at(&self, block: u32) -> Option<Time> {
        let (session, playback) = self.session.as_ref().zip(self.playback.as_ref())?;
        if playback.starting {
            return Some(self.buffer.base_held_at(block)? + self.config.start_patience);
        }
        playback.when(session.start(block).saturating_sub(self.config.feed_margin))
    }

    fn choose_quality(&mut self, now: Time, block: u32, starting: bool) -> Quality {
        let held = self.buffer.quality_of(block);
        if self.stepper.in_trial() {
            let tried = self.stepper.wanted();
            let layer = tried.top().unwrap_or(Layer::BASE);
            let asked = self.buffer.slot(block, layer).is_some_and(|slot| slot.asked.is_some());
            if held >= tried || asked {
                let headroom = self.has_headroom(block, tried);
                self.stepper.trial_block(now, held >= tried, headroom);
            }
        }
        let target = self.stepper.target();
        self.fault = held < self.stepper.wish() && self.was_troubled(block, held);
        if held < target && !self.fault {
            self.judge_late(now, block, held, starting);
        }
        let shown = self.playback.as_ref().and_then(|p| p.shown).filter(|_| !starting);
        let most = shown.map_or(target, |shown| shown.quality.max(target));
        let held = if starting { self.kept_up(block, held) } else { held };
        held.min(most).min(self.stepper.wish()).max(Quality::BRONZE)
    }

    /// The best quality of a first block that the second one will have too: until it
    /// is due the line brings the Base of the whole window, and then its layers.
    fn kept_up(&self, block: u32, held: Quality) -> Quality {
        let Some((session, rate)) = self.session.as_ref().zip(self.sources.total_rate()) else { return held };
        let next = block.saturating_add(1);
        if next > session.last() {
            return held;
        }
        let length = |block: u32, layer: Layer| {
            let here = self.buffer.holds(block, layer);
            if here { ByteCount(0) } else { session.length(block, layer) }
        };
        let base =
            self.window().into_iter().fold(ByteCount(0), |sum, block| sum + length(block, Layer::BASE));
        let time = session.duration(block).saturating_sub(self.config.feed_margin);
        let in_time = |quality: &Quality| {
            let layers = Layer::first(quality.layers()).skip(1);
            let bytes = layers.fold(base, |sum, layer| sum + length(next, layer));
            rate.time_for(bytes) <= time
        };
        (1..=held.layers()).rev().map(Quality).find(in_time).unwrap_or(Quality::BRONZE)
    }

    /// A block goes without a layer that was wanted, and no source is to blame.
    fn judge_late(&mut self, now: Time, block: u32, held: Quality, starting: bool) {
        if starting {
            // A short wait says little about a link; what came meanwhile says more.
            let carried = self.carried(block).max(held);
            self.step_down(now, carried);
            return;
        }
        let duration = self.session.as_ref().map_or(Span::ZERO, |session| session.duration(block));
        // A layer just come back into reach gets two blocks of time to settle.
        if now - self.target_since >= duration.saturating_mul(2) {
            self.step_down(now, held);
        }
    }

    /// The rate carries no more, unless it is a proxy that decides about it.
    pub(super) fn step_down(&mut self, now: Time, quality: Quality) {
        if !self.sources.is_filtered() {
            self.stepper.drop_to(now, quality);
        }
    }

    /// Whether the lowest missing layer of a block is missing through a fault.
    fn was_troubled(&self, block: u32, held: Quality) -> bool {
        self.buffer.slot(block, Layer(held.0)).is_some_and(|slot| slot.troubled)
            // Enhancements wait for the Base of the next blocks.
            || (block..=block.saturating_add(2))
                .any(|block| self.buffer.slot(block, Layer::BASE).is_some_and(|slot| slot.troubled))
            || self.sources.choose(Layer::BASE, &[]).is_none()
            || self.sources.choose(Layer(held.0), &[]).is_none()
    }

    /// Tells people when the step fed changes, and why.
    fn note_step(&mut self, block: u32, to: Step, starting: bool) {
        let wish = Step::whole(self.stepper.wish());
        let fallen = |player: &Self| {
            if wish <= to {
                Cause::User
            } else if Step::whole(player.stepper.reachable()) <= to || player.fault {
                Cause::Failure
            } else {
                Cause::Rate
            }
        };
        let Some(playback) = &mut self.playback else { return };
        let before = playback.shown.replace(to);
        let Some(from) = before.filter(|_| !starting) else {
            self.dip = if to < wish { fallen(self) } else { self.dip };
            return;
        };
        let cause = match to.cmp(&from) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => {
                self.dip = fallen(self);
                self.dip
            }
            std::cmp::Ordering::Greater => match self.dip {
                Cause::Failure | Cause::Recovered => Cause::Recovered,
                Cause::Rate | Cause::Headroom => Cause::Headroom,
                Cause::User => Cause::User,
            },
        };
        let position = self.session.as_ref().map_or(Span::ZERO, |session| session.start(block));
        self.emit(Output::Event(Event::Transition { block, position, from, to, cause }));
    }

    /// Asks for less when the Base of a first block is slow to come.
    pub(super) fn judge_start(&mut self, now: Time) {
        let Some(playback) = self.playback.as_ref().filter(|p| p.starting && !p.is_trick()) else { return };
        let Some(block) = playback.next.filter(|_| playback.started + self.config.start_judgement <= now)
        else {
            return;
        };
        let base = self.buffer.slot(block, Layer::BASE);
        let fair = base.is_some_and(|slot| slot.held.is_none() && slot.open && !slot.troubled);
        if fair && self.sources.busy_time() >= self.config.start_patience {
            let carried = self.carried(block);
            if carried < self.stepper.target() {
                self.step_down(now, carried);
                if let Some(playback) = &mut self.playback {
                    playback.least_base = self.config.narrow_start;
                }
            }
        }
    }

    /// Tells people when nothing is left to show, and ends when it lasts.
    pub(super) fn watch_supply(&mut self, now: Time) {
        let Some(playback) = &mut self.playback else { return };
        let Some(block) = playback.next.filter(|_| !self.over) else { return };
        if self.buffer.holds(block, Layer::BASE) {
            return;
        }
        let dry = !playback.starting && !playback.paused && playback.at(now) >= playback.fed_end;
        let news = dry && !playback.is_trick() && playback.starved.is_none();
        if news {
            playback.starved = Some(now);
        }
        let since = if playback.starting { Some(playback.started) } else { playback.starved };
        // As long as it is said to come, nobody is missing.
        let since = since.map(|since| since.max(self.coming.unwrap_or(since)));
        if news {
            self.emit(Output::Event(Event::Starved { block }));
        }
        if let Some(waited) = since.map(|since| now - since)
            && waited >= self.config.give_up_after
        {
            self.over = true;
            // Who has Base and does not deliver is a source that fails.
            let replaced = self.network.replaced && !self.sources.has_base();
            self.emit(Output::GiveUp(if replaced {
                GiveUp::Replaced { block, waited }
            } else {
                GiveUp::NoSource { block, waited }
            }));
        }
    }

    /// When `watch_supply` or the feed have something to do.
    pub(super) fn feed_timeouts(&self) -> [Option<Time>; 4] {
        let none = [None; 4];
        let Some(playback) = &self.playback else { return none };
        let Some(block) = playback.next else { return none };
        let due = self.due_at(block).filter(|_| playback.wants > 0);
        let judgement = playback.starting.then(|| playback.started + self.config.start_judgement);
        let dry = playback.when(playback.fed_end);
        let since = if playback.starting { Some(playback.started) } else { playback.starved };
        let since = since.map(|since| since.max(self.coming.unwrap_or(since)));
        [due, judgement, dry, since.map(|since| since + self.config.give_up_after)]
    }
}
