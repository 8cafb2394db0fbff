//! Whether a node is there: while it says anything at all, it is; when it has
//! said nothing for a moment it is asked, again and again, and when it leaves
//! that unanswered for long enough it is silent.

use media::{Span, Time};
use std::collections::VecDeque;

/// Answers to older probes than this many tell nothing about the round trip.
const REMEMBERED_PROBES: usize = 50;
/// The least round trip is that of this long at least, and of twice as long at most: a
/// line may become a longer one.
const REMEMBERED_FOR: Span = Span::from_secs(15);
/// Nobody is silent who was not asked this often.
const LEAST_PROBES: u32 = 3;
/// No longer round trip is believed, or patience would outlast the buffer.
const LONGEST_ROUND_TRIP: Span = Span::from_secs(1);

/// What is known of one node's silence.
#[derive(Clone, Debug)]
pub struct Vigil {
    heard: Time,
    round_trip: Span,
    /// The least of late, and of the time before; and since when late is.
    least: (Option<Span>, Option<Span>, Time),
    number: u32,
    /// When the first and the last probe since it was heard were sent.
    probes: Option<(Time, Time)>,
    /// How many there were.
    unanswered: u32,
    /// When the last probes were sent, the newest last.
    sent: VecDeque<Time>,
    /// How many times longer than usual its silence is borne, because it may be
    /// that of a line busy with others.
    lenience: u64,
}

impl Vigil {
    /// Somebody of whom nothing is known. `phase` is the number of the probe
    /// before the first.
    pub fn new(now: Time, phase: u32) -> Self {
        Self {
            heard: now,
            round_trip: Span::ZERO,
            least: (None, None, now),
            number: phase,
            probes: None,
            unanswered: 0,
            sent: VecDeque::new(),
            lenience: 1,
        }
    }

    /// When it was last heard.
    pub fn heard_at(&self) -> Time {
        self.heard
    }

    /// The round trip, as last measured: with what stood in the line's queues.
    pub fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// The least round trip seen lately: that of the empty line, as far as it was empty.
    pub fn least_round_trip(&self) -> Span {
        let (late, before, _) = self.least;
        late.into_iter().chain(before).min().unwrap_or_default()
    }

    fn measure(&mut self, now: Time, round_trip: Span) {
        self.round_trip = round_trip;
        let (late, _, since) = self.least;
        if now - since >= REMEMBERED_FOR {
            self.least = (Some(round_trip), late, now);
        } else {
            self.least.0 = Some(late.map_or(round_trip, |late| late.min(round_trip)));
        }
    }

    /// Since when it leaves probes unanswered.
    pub fn probed_since(&self) -> Option<Time> {
        self.probes.map(|(first, _)| first)
    }

    /// It said something.
    pub fn heard(&mut self, now: Time) {
        self.heard = now;
        self.probes = None;
    }

    /// A connection to it stands.
    pub fn connected(&mut self, now: Time, round_trip: Span) {
        self.heard(now);
        // It may lead another way than the one before.
        self.least = (None, None, now);
        self.measure(now, round_trip);
    }

    /// The connection is over: nothing is asked any more.
    pub fn lost(&mut self) {
        self.probes = None;
    }

    /// It answered the probe of this number.
    pub fn answered(&mut self, now: Time, number: u32) {
        let since = usize::try_from(self.number.wrapping_sub(number)).ok();
        let sent = since.and_then(|since| self.sent.iter().rev().nth(since).copied());
        if let Some(sent) = sent {
            self.measure(now, (now - sent).min(LONGEST_ROUND_TRIP));
        }
    }

    /// Its silence is borne this many times longer than usual; tells whether that
    /// is news.
    pub fn set_lenience(&mut self, lenience: u64) -> bool {
        std::mem::replace(&mut self.lenience, lenience) != lenience
    }

    /// Sends a probe now and tells its number.
    pub fn probe(&mut self, now: Time) -> u32 {
        self.number = self.number.wrapping_add(1);
        let first = self.probes.map_or(now, |(first, _)| first);
        self.unanswered = if self.probes.is_some() { self.unanswered.saturating_add(1) } else { 1 };
        self.probes = Some((first, now));
        if self.sent.len() >= REMEMBERED_PROBES {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        self.number
    }

    /// When the next probe is due.
    pub fn next_probe(&self, probe_every: Span) -> Time {
        self.probes.map_or(self.heard, |(_, last)| last) + probe_every
    }

    /// When it becomes silent if nothing is heard. The clock starts with the
    /// first probe and counts only as far as more were sent, so that whoever was
    /// asleep or short of processor time does not blame others, and it waits for
    /// two round trips on a long line and longer on a crowded one, where the
    /// answer may stand in a queue.
    pub fn silence_at(&self, silent_after: Span, probe_every: Span) -> Option<Time> {
        let (first, _) = self.probes.filter(|_| self.unanswered >= LEAST_PROBES)?;
        let patience = silent_after.saturating_mul(self.lenience).saturating_sub(probe_every);
        Some(first + patience.max(self.round_trip.saturating_mul(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Span = Span::from_millis(100);
    const AFTER: Span = Span::from_millis(400);

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn four_hundred_milliseconds_without_an_answer_are_a_silence() {
        let mut vigil = Vigil::new(at(0), 7);
        assert_eq!(vigil.next_probe(EVERY), at(100));
        assert_eq!(vigil.probe(at(100)), 8);
        vigil.probe(at(200));
        assert_eq!(vigil.silence_at(AFTER, EVERY), None, "asked twice only");
        vigil.probe(at(300));
        assert_eq!(vigil.silence_at(AFTER, EVERY), Some(at(400)));
        assert!(vigil.set_lenience(3));
        assert_eq!(vigil.silence_at(AFTER, EVERY), Some(at(1_200)));
        vigil.heard(at(350));
        assert_eq!((vigil.silence_at(AFTER, EVERY), vigil.next_probe(EVERY)), (None, at(450)));
    }

    #[test]
    fn a_long_line_has_two_round_trips() {
        let mut vigil = Vigil::new(at(0), 0);
        let number = vigil.probe(at(100));
        vigil.answered(at(500), number);
        vigil.heard(at(500));
        assert_eq!(vigil.round_trip(), Span::from_millis(400));
        for probe in 6..9 {
            vigil.probe(at(probe * 100));
        }
        assert_eq!(vigil.silence_at(AFTER, EVERY), Some(at(600 + 800)));
    }

    #[test]
    fn a_queue_makes_the_last_round_trip_longer_and_the_least_one_not() {
        let mut vigil = Vigil::new(at(0), 0);
        vigil.connected(at(0), Span::from_millis(200));
        // One probe a second; what it meets in the queue grows, and goes again. Answers
        // come late and out of step with the probes.
        let mut numbers = VecDeque::new();
        for second in 1..=40_u64 {
            numbers.push_back((second, vigil.probe(at(second * 1_000))));
            if second % 3 == 0 {
                for (asked, number) in numbers.drain(..) {
                    let queue = if asked < 35 { 90 * (second % 2) } else { 0 };
                    vigil.answered(at(second * 1_000 + 300 + queue), number);
                }
            }
        }
        assert_eq!(vigil.round_trip(), Span::from_millis(300), "39 was asked at 39 s");
        assert_eq!(vigil.least_round_trip(), Span::from_millis(300));
        let mut vigil = Vigil::new(at(0), 0);
        vigil.connected(at(0), Span::from_millis(200));
        let mut answer = |after: u64, took: u64| {
            let number = vigil.probe(at(after));
            vigil.answered(at(after + took), number);
            (vigil.round_trip().as_millis(), vigil.least_round_trip().as_millis())
        };
        assert_eq!(answer(1_000, 700), (700, 200));
        assert_eq!(answer(14_000, 500), (500, 200));
        assert_eq!(answer(16_000, 400), (400, 200), "seen 16 s ago");
        assert_eq!(answer(32_000, 600), (600, 400), "longer ago than is remembered");
    }
}
