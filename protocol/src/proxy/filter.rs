//! What one client gets of what it asks for: a layer more or less by what its
//! line was seen to take. When to step down and up is [`crate::quality`]'s; here
//! is what a proxy can see of a line from its upper end.
//!
//! Base is always given. An enhancement is left out if it cannot arrive before
//! its time, or when one before it did not although it lay ready here; then
//! quality is lower at once. After the hold, the next layer is given on trial:
//! real chunks, which the client takes and does not show.

use super::titles::Shape;
use crate::guests::StreamId;
use crate::quality::{RateMeter, StepConfig, Stepper};
use media::{BitRate, ByteCount, ChunkId, Layer, Quality, Span, Time};
use std::collections::BTreeMap;

/// What arrives later than this before its picture comes too late to be shown.
const MARGIN: Span = Span::from_millis(350);
/// Less busy time than this says nothing about what a line carries.
const LEAST_SEEN: Span = Span::from_millis(700);
/// Hundredths of what a quality needs at which a line carries it for certain.
const SURE: u64 = 105;
/// A client with less than this in its buffer is in need.
const LOW: Span = Span::from_millis(1_500);
/// Hundredths of what is given at which a line counts as busy all the time.
const ROOMY: u64 = 150;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is given.
    Given,
    /// It is given, and not to be shown.
    OnTrial,
    /// It is left out.
    LeftOut,
}

/// A chunk on its way to the client.
#[derive(Clone, Debug)]
struct Transfer {
    chunk: ChunkId,
    length: u64,
    asked: Time,
    /// When it is of no use any more.
    deadline: Time,
    /// Since when all of it lies ready here.
    ready: Option<Time>,
    trial: bool,
}

impl Transfer {
    /// Whether the chunk lay ready here for most of its time: if it is late, the
    /// client's line is to blame.
    fn lay_ready(&self, now: Time) -> bool {
        let waited = (now - self.asked).as_nanos();
        self.ready.is_some_and(|ready| (now - ready).as_nanos() >= waited / 2)
    }
}

/// What is known of one client's line.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    config: StepConfig,
    stepper: Stepper,
    meter: RateMeter,
    /// Taken by the client since its connection began, as last seen.
    taken: Option<u64>,
    /// Given and not taken yet, as far as it can be told.
    backlog: u64,
    transfers: BTreeMap<StreamId, Transfer>,
    /// What was in the client's buffer, and when it said so.
    buffer: Option<(Span, Time)>,
    start: Start,
}

/// A client that begins has nothing in its buffer yet: everything is late, although
/// its line may carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Nothing was late so far.
    Fresh,
    /// No more than this is given until the next layer can come in time.
    Filling(Quality),
    /// It has begun: what is late now is late for lack of rate.
    Over,
}

impl Filter {
    /// Nothing is known against the best quality wished for.
    pub(super) fn new(now: Time, config: StepConfig, wish: Quality) -> Self {
        Self {
            config,
            stepper: Stepper::new(config, wish),
            meter: RateMeter::new(now),
            taken: None,
            backlog: 0,
            transfers: BTreeMap::new(),
            buffer: None,
            start: Start::Fresh,
        }
    }

    /// The best quality that may be given.
    pub(super) fn set_wish(&mut self, wish: Quality) {
        self.stepper.set_wish(wish);
    }

    /// The quality given now.
    pub(super) fn target(&self) -> Quality {
        self.stepper.target()
    }

    /// The client came back by another connection.
    pub(super) fn reconnected(&mut self, now: Time) {
        self.meter = RateMeter::new(now);
        (self.taken, self.backlog, self.buffer) = (None, 0, None);
        self.transfers.clear();
        self.start = Start::Fresh;
    }

    /// What the line was seen to carry, once that says anything.
    pub(super) fn measured(&self) -> Option<BitRate> {
        self.meter.rate().filter(|_| self.meter.busy_time() >= LEAST_SEEN)
    }

    /// Whether anything is on its way.
    pub(super) fn is_busy(&self) -> bool {
        !self.transfers.is_empty()
    }

    /// The client has so much in its buffer.
    pub(super) fn told(&mut self, now: Time, buffer: Span) {
        self.buffer = Some((buffer, now));
    }

    /// What is to be given of a chunk of this length that is of use for so long.
    pub(super) fn rule(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        length: u64,
        within: Span,
        shape: &Shape,
    ) -> Ruling {
        let (block, layer) = (chunk.block, chunk.layer);
        if layer == Layer::BASE {
            return Ruling::Given;
        }
        self.postpone_hopeless_trial(now, block, shape);
        self.stepper.handle_timeout(now);
        if !self.stepper.wanted().includes(layer) {
            return Ruling::LeftOut;
        }
        if !self.stepper.target().includes(layer) {
            return Ruling::OnTrial;
        }
        if let Some(rate) = self.meter.rate().filter(|_| self.meter.busy_time() >= LEAST_SEEN) {
            let bytes = ByteCount(self.backlog.saturating_add(length));
            let needs = rate.time_for(bytes) + MARGIN;
            if let Start::Filling(most) = self.start {
                if needs <= within {
                    self.start = Start::Over;
                } else if !most.includes(layer) {
                    return Ruling::LeftOut;
                }
            }
            if needs > within {
                self.too_late(now, chunk, shape);
                return Ruling::LeftOut;
            }
        }
        Ruling::Given
    }

    /// A line that is busy most of the time with less than the next quality needs
    /// will not carry it.
    fn postpone_hopeless_trial(&mut self, now: Time, block: u32, shape: &Shape) {
        if self.stepper.poll_timeout().is_none_or(|when| when > now) {
            return;
        }
        let Some(rate) = self.meter.rate() else { return };
        let current = self.stepper.target();
        let busy = rate < percent(shape.rate_of(block, current), ROOMY);
        if busy && rate < shape.rate_of(block, Quality(current.layers().saturating_add(1))) {
            self.stepper.postpone_trial(now);
        }
    }

    /// A chunk is on its way to the client, from here or from afar.
    pub(super) fn given(
        &mut self,
        now: Time,
        stream: StreamId,
        chunk: &ChunkId,
        (length, within): (u64, Span),
        (held, trial): (bool, bool),
    ) {
        let ready = held.then_some(now);
        let (chunk, deadline) = (chunk.clone(), now + within);
        self.transfers.insert(stream, Transfer { chunk, length, asked: now, deadline, ready, trial });
        self.backlog = self.backlog.saturating_add(length);
        self.note_busy(now);
    }

    /// A chunk lies here, whole: from now on it is the client's line that counts.
    pub(super) fn ready(&mut self, now: Time, chunk: &ChunkId) {
        for transfer in self.transfers.values_mut().filter(|transfer| transfer.chunk == *chunk) {
            transfer.ready.get_or_insert(now);
        }
        self.note_busy(now);
    }

    /// The client took so much since its connection began.
    pub(super) fn taken(&mut self, now: Time, total: u64) {
        let before = self.taken.replace(total).unwrap_or(total);
        let fresh = total.saturating_sub(before);
        self.meter.add(now, ByteCount(fresh));
        self.backlog = self.backlog.saturating_sub(fresh);
    }

    /// A transfer is over: all of it was taken, or the client wanted no more of it.
    pub(super) fn ended(&mut self, now: Time, stream: StreamId, whole: bool, shape: Option<&Shape>) {
        let Some(transfer) = self.transfers.remove(&stream) else { return };
        let left = self.transfers.values().fold(0_u64, |sum, transfer| sum.saturating_add(transfer.length));
        self.backlog = self.backlog.min(left);
        self.note_busy(now);
        let Some(shape) = shape.filter(|_| transfer.chunk.layer != Layer::BASE) else { return };
        let late = now + MARGIN > transfer.deadline;
        let block = transfer.chunk.block;
        if transfer.trial {
            // Who turned to another part of the film says nothing about its line.
            if whole || late {
                let tried = Quality(transfer.chunk.layer.0.saturating_add(1));
                let headroom = self.has_headroom(block, tried, shape);
                self.stepper.trial_block(now, whole && !late, headroom);
            }
        } else if late && transfer.lay_ready(now) {
            self.too_late(now, &transfer.chunk, shape);
        } else if !whole && self.start == Start::Over && self.is_in_need(now) {
            let carried = self.carried(block, shape);
            self.stepper.drop_to(now, carried);
        }
    }

    /// A layer does not come in time: the line does not carry it, or the client has
    /// only just begun.
    fn too_late(&mut self, now: Time, chunk: &ChunkId, shape: &Shape) {
        let (without, with) = (Quality(chunk.layer.0), Quality(chunk.layer.0.saturating_add(1)));
        let need = percent(shape.rate_of(chunk.block, with), SURE);
        let sure = self.meter.rate().is_some_and(|rate| rate >= need);
        if sure && self.start != Start::Over {
            let most = match self.start {
                Start::Filling(most) => most.min(without),
                Start::Fresh | Start::Over => without,
            };
            self.start = Start::Filling(most);
        } else {
            self.stepper.drop_to(now, without);
        }
    }

    /// Whether the client's buffer runs low, as far as it is known.
    fn is_in_need(&self, now: Time) -> bool {
        self.buffer.is_some_and(|(level, at)| level.saturating_sub(now - at) < LOW)
    }

    fn has_headroom(&self, block: u32, quality: Quality, shape: &Shape) -> bool {
        let wanted = percent(shape.rate_of(block, quality), self.config.headroom_percent);
        self.meter.rate().is_none_or(|rate| rate >= wanted)
    }

    fn carried(&self, block: u32, shape: &Shape) -> Quality {
        let top = self.stepper.target();
        let Some(rate) = self.meter.rate() else { return top };
        let fits = |quality: &Quality| shape.rate_of(block, *quality) <= rate;
        (1..=top.layers()).rev().map(Quality).find(fits).unwrap_or(Quality::BRONZE)
    }

    /// The line is busy while something that lies here is on its way.
    fn note_busy(&mut self, now: Time) {
        let busy = self.transfers.values().any(|transfer| transfer.ready.is_some());
        self.meter.set_busy(now, busy);
    }
}

fn percent(rate: BitRate, hundredths: u64) -> BitRate {
    BitRate(rate.0.saturating_mul(hundredths) / 100)
}
