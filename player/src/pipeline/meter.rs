//! What is measured at the sink: freezes, pictures, seconds at each quality.

use media::{Quality, Span, Time};
use std::collections::VecDeque;

/// How many gaps between pictures the average is taken over.
const AVERAGED_GAPS: usize = 30;
/// What a gap must exceed the average by, at least.
const MARGIN: Span = Span::from_millis(150);
/// The most freezes that are listed one by one; all are counted.
const MAX_LISTED: usize = 1_000;

/// One picture that stood too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// When the picture was shown, counted from the first picture.
    pub start: Span,
    /// How long it stood.
    pub length: Span,
    /// Its time in the title.
    pub position: Span,
}

/// Finds freezes as WebRTC's statistics define them (W3C `freezeCount`): the
/// gap between two shown pictures is at least the greater of three times the
/// average gap and the average plus 150 ms, the average being that of the last
/// 30 gaps, the one in question included. Before there are gaps the nominal
/// one stands in.
#[derive(Clone, Debug)]
pub struct FreezeMeter {
    nominal: Span,
    gaps: VecDeque<Span>,
    first: Option<Time>,
    last: Option<(Time, Span)>,
    list: Vec<Freeze>,
    count: u64,
    total: Span,
    longest: Span,
}

impl FreezeMeter {
    /// A meter for pictures that are nominally `nominal` apart.
    pub fn new(nominal: Span) -> Self {
        Self {
            nominal,
            gaps: VecDeque::with_capacity(AVERAGED_GAPS),
            first: None,
            last: None,
            list: Vec::new(),
            count: 0,
            total: Span::ZERO,
            longest: Span::ZERO,
        }
    }

    /// A picture was shown at `now`; `position` is its time in the title. Tells
    /// whether the one before stood frozen until then.
    pub fn shown(&mut self, now: Time, position: Span) -> Option<Freeze> {
        let first = *self.first.get_or_insert(now);
        let (before, before_position) = self.last.replace((now, position))?;
        let gap = now - before;
        if self.gaps.is_empty() {
            self.gaps.extend(std::iter::repeat_n(self.nominal, AVERAGED_GAPS - 1));
        }
        if self.gaps.len() >= AVERAGED_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
        let frozen = gap >= threshold(self.average());
        frozen.then(|| self.note(Freeze { start: before - first, length: gap, position: before_position }))
    }

    /// The film stands, or jumps, because it was asked to: the gap to the next
    /// picture says nothing.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// The end of the measurement at `now`, without the film having ended: a
    /// picture that still stands counts as well.
    pub fn finish(&mut self, now: Time) -> Option<Freeze> {
        let first = self.first?;
        let (before, position) = self.last.take()?;
        let gap = now - before;
        let frozen = gap >= threshold(self.average());
        frozen.then(|| self.note(Freeze { start: before - first, length: gap, position }))
    }

    /// When the first picture was shown.
    pub fn first(&self) -> Option<Time> {
        self.first
    }

    /// How many freezes there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The length of all freezes together.
    pub fn total(&self) -> Span {
        self.total
    }

    /// The longest freeze.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// The freezes one by one, at most the first thousand.
    pub fn list(&self) -> &[Freeze] {
        &self.list
    }

    fn average(&self) -> Span {
        let count = u64::try_from(self.gaps.len()).unwrap_or(u64::MAX);
        let total = self.gaps.iter().fold(Span::ZERO, |total, gap| total + *gap);
        total.as_nanos().checked_div(count).map_or(self.nominal, Span::from_nanos)
    }

    fn note(&mut self, freeze: Freeze) -> Freeze {
        self.count += 1;
        self.total += freeze.length;
        self.longest = self.longest.max(freeze.length);
        if self.list.len() < MAX_LISTED {
            self.list.push(freeze);
        }
        freeze
    }
}

fn threshold(average: Span) -> Span {
    average.saturating_mul(3).max(average + MARGIN)
}

/// Everything that was measured at the sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterReport {
    /// How many freezes there were.
    pub freeze_count: u64,
    /// The length of all freezes together.
    pub freeze_total: Span,
    /// The longest freeze.
    pub freeze_longest: Span,
    /// The freezes one by one, at most the first thousand.
    pub freezes: Vec<Freeze>,
    /// Pictures that were shown.
    pub frames_shown: u64,
    /// Pictures that should have been shown from where playback started, and
    /// started anew after each seek, to where it ended or was left.
    pub frames_expected: u64,
    /// Pictures that were skipped.
    pub frames_dropped: u64,
    /// Programme time shown at each quality, bronze first.
    pub at_quality: Vec<Span>,
    /// Of that, shown without the second half of the topmost layer: every other picture
    /// is that of the quality below.
    pub in_halves: Span,
    /// Blocks compared with the manifest's hashes.
    pub blocks_checked: u64,
    /// Blocks that were not what the encoder made, at most the first thousand.
    pub mismatches: Vec<(u32, Quality)>,
    /// Blocks that could not be compared: entered in the middle, left early, or
    /// shown at more than one quality.
    pub blocks_unchecked: u64,
    /// How much sound was played.
    pub sound: Span,
    /// Whether the film was shown to its end.
    pub ended: bool,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Shows a picture each 40 ms from `from` on; returns when the last one was.
    fn steady(meter: &mut FreezeMeter, from: u64, pictures: u64) -> u64 {
        for n in 0..pictures {
            let now = from + n * 40;
            assert_eq!(meter.shown(at(now), Span::from_millis(now)), None, "picture {n}");
        }
        from + (pictures - 1) * 40
    }

    #[test]
    fn a_steady_film_never_freezes() {
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        steady(&mut meter, 1_000, 500);
        assert_eq!((meter.count(), meter.total()), (0, Span::ZERO));
        assert_eq!(meter.first(), Some(at(1_000)));
    }

    #[test]
    fn a_gap_is_a_freeze_from_the_average_and_150_ms_on() {
        // With 29 gaps of 40 ms the average of 30 is (1160 + g) / 30, so the
        // bound g >= average + 150 is met from 29 g >= 5660, g >= 195.17 ms.
        for (gap, frozen) in [(195, false), (196, true)] {
            let mut meter = FreezeMeter::new(Span::from_millis(40));
            let last = steady(&mut meter, 0, 100);
            let freeze = meter.shown(at(last + gap), Span::from_millis(last + gap));
            let expected = Freeze {
                start: Span::from_millis(last),
                length: Span::from_millis(gap),
                position: Span::from_millis(last),
            };
            assert_eq!(freeze, frozen.then_some(expected), "gap of {gap} ms");
        }
    }

    #[test]
    fn slow_films_need_three_average_gaps() {
        // 200 ms apart: three times the average is more than 150 ms above it.
        for (gap, frozen) in [(644, false), (645, true)] {
            let mut meter = FreezeMeter::new(Span::from_millis(200));
            (0..60).for_each(|n| assert_eq!(meter.shown(at(n * 200), Span::ZERO), None));
            let freeze = meter.shown(at(59 * 200 + gap), Span::ZERO);
            assert_eq!(freeze.is_some(), frozen, "gap of {gap} ms");
        }
    }

    #[test]
    fn the_second_picture_can_already_be_late() {
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        assert_eq!(meter.shown(at(0), Span::ZERO), None);
        assert!(meter.shown(at(500), Span::from_millis(40)).is_some());
    }

    #[test]
    fn a_pause_is_no_freeze() {
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        let last = steady(&mut meter, 0, 50);
        meter.interrupt();
        steady(&mut meter, last + 10_000, 50);
        assert_eq!(meter.count(), 0);
    }

    #[test]
    fn freezes_are_counted_summed_and_listed() {
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        let last = steady(&mut meter, 0, 50);
        meter.shown(at(last + 300), Span::ZERO);
        let last = steady(&mut meter, last + 340, 100);
        meter.shown(at(last + 1_000), Span::ZERO);
        assert_eq!(meter.count(), 2);
        assert_eq!(meter.total(), Span::from_millis(1_300));
        assert_eq!(meter.longest(), Span::from_millis(1_000));
        assert_eq!(meter.list().len(), 2);
    }

    #[test]
    fn a_picture_that_still_stands_when_the_viewer_leaves_counts() {
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        let last = steady(&mut meter, 0, 50);
        assert!(meter.clone().finish(at(last + 100)).is_none());
        let freeze = meter.finish(at(last + 2_000)).unwrap();
        assert_eq!(freeze.length, Span::from_millis(2_000));
        assert_eq!(meter.finish(at(last + 9_000)), None);
    }
}
