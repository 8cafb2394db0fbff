//! One direction of a link: a drop-tail queue in front of a line of fixed rate or
//! of one that follows a trace, then a delay that may vary, then chance.
//!
//! A pipe sees lengths and times, no bytes and no clock: under virtual time it is
//! the link of a simulation, under real time that of a relay.

use super::trace::{Following, Trace};
use crate::rng::Rng;
use media::{BitRate, ByteCount, Span, Time};
use std::sync::Arc;

/// How one direction of a link behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PipeShape {
    /// Bits a second, headers included; nothing: as fast as one likes.
    pub rate: Option<BitRate>,
    /// From the end of sending to arrival.
    pub delay: Span,
    /// Up to so much more, uniform, for each datagram. None overtakes another.
    pub jitter: Span,
    /// The share of datagrams lost on the line, 0 to 1; they have used it.
    pub loss: f64,
    /// How much the queue holds, as time at the line's rate.
    pub queue: Span,
}

impl PipeShape {
    /// Nothing between both ends.
    pub const OPEN: Self =
        Self { rate: None, delay: Span::ZERO, jitter: Span::ZERO, loss: 0.0, queue: Span::MAX };
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives then.
    At(Time),
    /// It is lost on the line.
    Lost,
    /// It is dropped in front of a full queue.
    Full,
}

/// One direction of a link, as it stands.
#[derive(Clone, Debug)]
pub struct Pipe {
    shape: PipeShape,
    /// What the line follows in place of its rate.
    trace: Option<Following>,
    /// When the line has sent all that was accepted.
    free: Time,
    /// The last arrival.
    last: Time,
}

impl Pipe {
    /// An empty pipe.
    pub const fn new(shape: PipeShape) -> Self {
        Self { shape, trace: None, free: Time::ZERO, last: Time::ZERO }
    }

    /// How it behaves.
    pub const fn shape(&self) -> PipeShape {
        self.shape
    }

    /// It behaves like this from now on. What was accepted before arrives as it
    /// would have.
    pub const fn reshape(&mut self, shape: PipeShape) {
        self.shape = shape;
    }

    /// From `now` on the line has the rates of this trace, which begins then, and
    /// no other; or that of its shape again.
    pub fn follow(&mut self, now: Time, trace: Option<Arc<Trace>>) {
        self.trace = trace.map(|trace| Following::new(trace, now));
    }

    /// A datagram of `length`, headers included, comes to the pipe.
    pub fn pass(&mut self, now: Time, length: ByteCount, rng: &mut Rng) -> Passage {
        let start = self.free.max(now);
        if start.since(now) > self.shape.queue {
            return Passage::Full;
        }
        let sent = match &mut self.trace {
            Some(trace) => trace.sent(start, length),
            None => start + self.shape.rate.map_or(Span::ZERO, |rate| rate.time_for(length)),
        };
        self.free = sent;
        // Draws only where chance has a say: a run without loss is the same
        // whatever the generator would have said.
        if self.shape.loss > 0.0 && rng.chance(self.shape.loss) {
            return Passage::Lost;
        }
        let jitter = Span::from_nanos(rng.below_wide(self.shape.jitter.as_nanos()));
        self.last = self.last.max(sent + self.shape.delay + jitter);
        Passage::At(self.last)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    const MEGABIT: PipeShape = PipeShape {
        rate: Some(BitRate(1_000_000)),
        delay: Span::from_millis(20),
        queue: Span::from_millis(100),
        ..PipeShape::OPEN
    };

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn datagrams_wait_for_one_another_and_then_travel() {
        let (mut pipe, mut rng) = (Pipe::new(MEGABIT), Rng::new(1));
        let mut pass = |now| pipe.pass(at(now), ByteCount(1_250), &mut rng);
        assert_eq!(
            [pass(0), pass(0), pass(100)].map(Some),
            [30, 40, 130].map(|ms| Some(Passage::At(at(ms))))
        );
    }

    #[test]
    fn a_full_queue_drops_what_comes_last_and_takes_more_when_it_has_drained() {
        let (mut pipe, mut rng) = (Pipe::new(MEGABIT), Rng::new(1));
        let mut pass = |now| pipe.pass(at(now), ByteCount(1_250), &mut rng);
        let accepted = (0..50).filter(|_| pass(0) != Passage::Full).count();
        // Ten wait, one is on the line.
        assert_eq!(accepted, 11);
        assert_eq!((pass(9), pass(10)), (Passage::Full, Passage::At(at(140))));
    }

    #[test]
    fn jitter_is_bounded_and_nobody_overtakes() {
        let shape =
            PipeShape { jitter: Span::from_millis(10), delay: Span::from_millis(5), ..PipeShape::OPEN };
        let (mut pipe, mut rng) = (Pipe::new(shape), Rng::new(1));
        let mut last = Time::ZERO;
        let mut late = 0;
        for now in 0..1_000 {
            let Passage::At(arrival) = pipe.pass(at(now), ByteCount(100), &mut rng) else { unreachable!() };
            assert!(arrival >= at(now + 5) && arrival < at(now + 15), "{now}: {arrival:?}");
            assert!(arrival >= last);
            late += u32::from(arrival > at(now + 10));
            last = arrival;
        }
        assert!((400..900).contains(&late), "{late}");
    }

    #[test]
    fn what_is_lost_has_used_the_line() {
        let shape = PipeShape { loss: 0.05, queue: Span::MAX, ..MEGABIT };
        let (mut pipe, mut rng) = (Pipe::new(shape), Rng::new(7));
        let lost =
            (0..10_000).filter(|_| pipe.pass(at(0), ByteCount(125), &mut rng) == Passage::Lost).count();
        assert!((450..550).contains(&lost), "{lost}");
        pipe.reshape(PipeShape { loss: 0.0, ..shape });
        // Ten thousand milliseconds of line, the lost ones among them.
        assert_eq!(pipe.pass(at(0), ByteCount(125), &mut rng), Passage::At(at(10_001 + 20)));
    }

    #[test]
    fn a_trace_holds_in_place_of_the_rate_until_it_is_taken_away() {
        let (mut pipe, mut rng) = (Pipe::new(MEGABIT), Rng::new(1));
        pipe.follow(at(1_000), Some(Arc::new(Trace::read("5\n10\n").unwrap())));
        let mut pass = |pipe: &mut Pipe, now| pipe.pass(at(now), ByteCount(1_500), &mut rng);
        assert_eq!(
            [pass(&mut pipe, 1_000), pass(&mut pipe, 1_000)],
            [1_025, 1_030].map(|ms| Passage::At(at(ms)))
        );
        pipe.follow(at(1_000), None);
        assert_eq!(pass(&mut pipe, 1_100), Passage::At(at(1_132)));
        // A queue is measured in time, whatever the rate is.
        pipe.follow(at(2_000), Some(Arc::new(Trace::read("0,1200000\n").unwrap())));
        let accepted = (0..50).filter(|_| pass(&mut pipe, 2_000) != Passage::Full).count();
        assert_eq!(accepted, 11);
    }

    #[test]
    fn a_new_rate_holds_for_what_comes_next() {
        let (mut pipe, mut rng) = (Pipe::new(MEGABIT), Rng::new(1));
        assert_eq!(pipe.pass(at(0), ByteCount(1_250), &mut rng), Passage::At(at(30)));
        pipe.reshape(PipeShape { rate: Some(BitRate(10_000_000)), ..MEGABIT });
        assert_eq!(pipe.pass(at(0), ByteCount(1_250), &mut rng), Passage::At(at(31)));
    }
}
