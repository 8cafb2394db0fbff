//! What one client gets of what it asks for: a layer more or less by what its
//! line was seen to take. When to step down and up is [`crate::quality`]'s; here
//! is what a proxy can see of a line from its upper end.
//!
//! Base is always given. An enhancement is left out if it cannot arrive before
//! its time, or when one before it did not although it lay ready here; then
//! quality is lower at once. After the hold, the next layer is given on trial:
//! real chunks, which the client takes and does not show. Of a title in halves the
//! topmost layer may be given by its first half only, or wholly with its second half
//! on trial.

use super::io::Output;
use super::titles::Shape;
use crate::guests::StreamId;
use crate::message::{Part, Refusal};
use crate::quality::{RateMeter, Step, StepConfig, Stepper};
use media::{BitRate, ByteCount, ChunkId, Layer, Quality, Span, Time};
use std::collections::BTreeMap;

/// What arrives later than this before its picture comes too late to be shown.
const MARGIN: Span = Span::from_millis(350);
/// Less busy time than this says nothing about what a line carries.
const LEAST_SEEN: Span = Span::from_millis(700);
/// Hundredths of what a quality needs at which a line carries it for certain.
const SURE: u64 = 105;
/// Busy time after which the start of a connection does not count any more.
const STEADY: Span = Span::from_secs(2);
/// Hundredths of what a step needs below which it comes late sooner or later.
const TIGHT: u64 = 103;
/// A client with less than this in its buffer is in need.
const LOW: Span = Span::from_millis(1_500);
/// Hundredths of what is given at which a line counts as busy all the time.
const ROOMY: u64 = 150;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// So much of it is given.
    Given(Part),
    /// So much of it is given, and not to be shown.
    OnTrial(Part),
    /// It is given, and only its first half is to be shown.
    RestOnTrial,
    /// It is left out.
    LeftOut,
}

impl Ruling {
    /// How much goes to the client.
    pub(super) fn part(self) -> Option<Part> {
        match self {
            Self::Given(part) | Self::OnTrial(part) => Some(part),
            Self::RestOnTrial => Some(Part::Whole),
            Self::LeftOut => None,
        }
    }

    /// What the driver does about it, unless it is left out.
    pub(super) fn output(self, stream: StreamId) -> Output {
        match self {
            Self::OnTrial(Part::First) => Output::TryHalf { stream },
            Self::OnTrial(Part::Whole) => Output::Try { stream },
            Self::RestOnTrial => Output::TryRest { stream },
            Self::Given(Part::First) => Output::ServeHalf { stream },
            Self::Given(Part::Whole) => Output::Serve { stream },
            Self::LeftOut => Output::Refuse { stream, why: Refusal::Filtered },
        }
    }

    /// What is given to somebody who asked for no more than `most`.
    pub(super) fn at_most(self, most: Part) -> Self {
        match (most, self) {
            (Part::Whole, ruling) => ruling,
            (Part::First, Self::Given(_) | Self::RestOnTrial) => Self::Given(Part::First),
            (Part::First, Self::OnTrial(_)) => Self::OnTrial(Part::First),
            (Part::First, Self::LeftOut) => Self::LeftOut,
        }
    }
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
    ruling: Ruling,
}

impl Transfer {
    /// The step that it belongs to.
    fn step(&self) -> Step {
        let part = self.ruling.part().unwrap_or(Part::Whole);
        Step { quality: Quality(self.chunk.layer.0.saturating_add(1)), part }
    }

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

    /// The step given now.
    pub(super) fn target(&self) -> Step {
        self.stepper.target_step()
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
            return Ruling::Given(Part::Whole);
        }
        self.step_aside(now, block, shape);
        let next = self.next_step(block, shape);
        self.postpone_hopeless_trial(now, block, next, shape);
        self.stepper.try_step(now, next);
        let Some(wanted) = self.stepper.wanted_step().part_of(layer) else { return Ruling::LeftOut };
        let Some(given) = self.stepper.target_step().part_of(layer) else { return Ruling::OnTrial(wanted) };
        if !self.comes_in_time(now, chunk, (length, given), within, shape) {
            return self.half_at_least(chunk, within, shape);
        }
        if given < wanted { Ruling::RestOnTrial } else { Ruling::Given(given) }
    }

    /// A step that a line carries only just is late sooner or later, and then a block
    /// goes without its layer: in halves there is a step in between that is taken first.
    fn step_aside(&mut self, now: Time, block: u32, shape: &Shape) {
        let steady = shape.is_in_halves() && self.meter.busy_time() >= STEADY;
        let Some(rate) = self.meter.rate().filter(|_| steady) else { return };
        let carries = |step: &Step| rate >= percent(shape.rate_of_step(block, *step), TIGHT);
        let lower = self.stepper.target_step().downwards(true).find(carries);
        self.stepper.drop_to_step(now, lower.unwrap_or(Step::whole(Quality::BRONZE)));
    }

    /// What still comes in time of a chunk that does not: its first half, if that is
    /// what is given from now on.
    fn half_at_least(&self, chunk: &ChunkId, within: Span, shape: &Shape) -> Ruling {
        let given = self.stepper.target_step().part_of(chunk.layer);
        let half = shape.half_of(chunk).filter(|_| given == Some(Part::First));
        match half.zip(self.measured()) {
            Some((half, rate)) if self.needs(rate, half) <= within => Ruling::Given(Part::First),
            Some(_) | None => Ruling::LeftOut,
        }
    }

    fn needs(&self, rate: BitRate, length: u64) -> Span {
        rate.time_for(ByteCount(self.backlog.saturating_add(length))) + MARGIN
    }

    /// Whether what is given of an enhancement comes in time, as far as it is known.
    fn comes_in_time(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        (length, given): (u64, Part),
        within: Span,
        shape: &Shape,
    ) -> bool {
        let Some(rate) = self.measured() else { return true };
        let half = shape.half_of(chunk).filter(|_| given == Part::First);
        let needs = self.needs(rate, half.unwrap_or(length));
        if let Start::Filling(most) = self.start {
            if needs <= within {
                self.start = Start::Over;
            } else if !most.includes(chunk.layer) {
                return false;
            }
        }
        if needs > within {
            let step = Step { quality: Quality(chunk.layer.0.saturating_add(1)), part: given };
            self.too_late(now, chunk.block, step, shape);
            return false;
        }
        true
    }

    /// The step above the one given: a whole layer more where the line was seen to
    /// carry it, and otherwise half of one, if there are halves.
    fn next_step(&self, block: u32, shape: &Shape) -> Step {
        let current = self.stepper.target_step();
        if current.part == Part::First {
            return Step::whole(current.quality);
        }
        let next = Quality(current.quality.layers().saturating_add(1));
        let carried = !self.stepper.has_failed_trial() && self.has_headroom(block, Step::whole(next), shape);
        if carried || !shape.is_in_halves() { Step::whole(next) } else { Step::half(next) }
    }

    /// A line that is busy most of the time with less than the next quality needs
    /// will not carry it.
    fn postpone_hopeless_trial(&mut self, now: Time, block: u32, next: Step, shape: &Shape) {
        if self.stepper.poll_timeout().is_none_or(|when| when > now) {
            return;
        }
        let Some(rate) = self.meter.rate() else { return };
        let current = self.stepper.target_step();
        let busy = rate < percent(shape.rate_of_step(block, current), ROOMY);
        if busy && rate < shape.rate_of_step(block, next) {
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
        (held, ruling): (bool, Ruling),
    ) {
        let ready = held.then_some(now);
        let (chunk, deadline) = (chunk.clone(), now + within);
        self.transfers.insert(stream, Transfer { chunk, length, asked: now, deadline, ready, ruling });
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
        if matches!(transfer.ruling, Ruling::OnTrial(_) | Ruling::RestOnTrial) {
            // Who turned to another part of the film says nothing about its line.
            if whole || late {
                let headroom = self.has_headroom(block, transfer.step(), shape);
                self.stepper.trial_block(now, whole && !late, headroom);
            }
        } else if late && transfer.lay_ready(now) {
            self.too_late(now, block, transfer.step(), shape);
        } else if !whole && self.start == Start::Over && self.is_in_need(now) {
            let carried = self.carried(block, shape);
            self.stepper.drop_to_step(now, carried);
        }
    }

    /// The topmost layer of a step does not come in time: the line does not carry it,
    /// or the client has only just begun.
    fn too_late(&mut self, now: Time, block: u32, step: Step, shape: &Shape) {
        let without = Quality(step.quality.layers().saturating_sub(1));
        let carries = |step| {
            let need = percent(shape.rate_of_step(block, step), SURE);
            self.meter.rate().is_some_and(|rate| rate >= need)
        };
        let half = Step::half(step.quality);
        let lower =
            if shape.is_in_halves() && half < step && carries(half) { half } else { Step::whole(without) };
        if carries(step) && self.start != Start::Over {
            let most = match self.start {
                Start::Filling(most) => most.min(without),
                Start::Fresh | Start::Over => without,
            };
            self.start = Start::Filling(most);
        } else {
            self.stepper.drop_to_step(now, lower);
        }
    }

    /// Whether the client's buffer runs low, as far as it is known.
    fn is_in_need(&self, now: Time) -> bool {
        self.buffer.is_some_and(|(level, at)| level.saturating_sub(now - at) < LOW)
    }

    fn has_headroom(&self, block: u32, step: Step, shape: &Shape) -> bool {
        let wanted = percent(shape.rate_of_step(block, step), self.config.headroom_percent);
        self.meter.rate().is_none_or(|rate| rate >= wanted)
    }

    fn carried(&self, block: u32, shape: &Shape) -> Step {
        let top = self.stepper.target_step();
        let Some(rate) = self.meter.rate() else { return top };
        let fits = |step: &Step| shape.rate_of_step(block, *step) <= rate;
        top.downwards(shape.is_in_halves()).find(fits).unwrap_or(Step::whole(Quality::BRONZE))
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
