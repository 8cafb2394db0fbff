//! From the film's times to ticks of the title.

/// Ticks a second at least.
const MIN_TIMESCALE: u32 = 12_000;
/// Ticks a second of films whose rate is unknown or absurd.
const ODD_TIMESCALE: u32 = 90_000;
/// How far a time may lie from the even grid to be taken for it: containers
/// that count milliseconds round by half of one.
const SNAP_NANOS: u64 = 1_000_000;

/// Places pictures on the title's clock, which starts with the first one. The
/// ticks divide a picture at the nominal rate, so that an even film has even
/// times; uneven ones stay as they are.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    timescale: u32,
    frame: u64,
    origin: i64,
    last: Option<u64>,
}

impl Timeline {
    /// For `rate` pictures a second; `origin` is the time of the first one in
    /// nanoseconds.
    pub(crate) fn new(rate: (u32, u32), origin: i64) -> Self {
        let (num, den) = (rate.0.max(1), rate.1.max(1));
        let factor = MIN_TIMESCALE.div_ceil(num);
        let (timescale, frame) = match num.checked_mul(factor).filter(|scale| *scale <= 1_000_000) {
            Some(timescale) => (timescale, u64::from(den) * u64::from(factor)),
            None => (ODD_TIMESCALE, u64::from(ODD_TIMESCALE) * u64::from(den) / u64::from(num)),
        };
        Self { timescale, frame: frame.max(1), origin, last: None }
    }

    /// Ticks a second.
    pub(crate) fn timescale(&self) -> u32 {
        self.timescale
    }

    /// Ticks of one picture.
    pub(crate) fn frame_ticks(&self) -> u64 {
        self.frame
    }

    /// The time of the last picture placed, in ticks.
    pub(crate) fn last(&self) -> u64 {
        self.last.unwrap_or(0)
    }

    /// The time of the next picture and how long it is displayed at most, in
    /// ticks. Times never stand still or run back: a picture that the film puts
    /// at the last one or before it follows a millisecond later, so that those
    /// behind it keep their times.
    pub(crate) fn place(&mut self, nanos: i64, duration: Option<u64>) -> (u64, u64) {
        let since = u64::try_from(nanos.saturating_sub(self.origin)).unwrap_or(0);
        let mut ticks = self.snap(since);
        if let Some(last) = self.last
            && ticks < last + (self.frame / 2).max(1)
        {
            // Where pictures are denser than the even grid it does not hold.
            ticks = self.ticks(since);
            if ticks <= last {
                ticks = last + self.ticks(SNAP_NANOS).clamp(1, self.frame);
            }
        }
        self.last = Some(ticks);
        let duration = duration.map_or(self.frame, |nanos| self.ticks(nanos)).max(1);
        // A duration within a tick or two of the nominal one is the nominal one.
        let duration = if duration.abs_diff(self.frame) <= self.frame / 16 { self.frame } else { duration };
        (ticks, duration)
    }

    fn snap(&self, nanos: u64) -> u64 {
        let ticks = self.ticks(nanos);
        let even = (ticks + self.frame / 2) / self.frame * self.frame;
        if even.abs_diff(ticks) <= self.ticks(SNAP_NANOS).min(self.frame / 4) { even } else { ticks }
    }

    fn ticks(&self, nanos: u64) -> u64 {
        let ticks = (u128::from(nanos) * u128::from(self.timescale) + 500_000_000) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn television_rates_lie_on_an_even_grid() {
        let mut line = Timeline::new((30_000, 1_001), 7);
        assert_eq!((line.timescale(), line.frame_ticks()), (30_000, 1_001));
        assert_eq!(line.place(7, Some(33_366_666)), (0, 1_001));
        assert_eq!(line.place(33_366_673, Some(33_366_666)), (1_001, 1_001));
        // A container that counts milliseconds.
        assert_eq!(line.place(67_000_007, Some(33_000_000)), (2_002, 1_001));
        let line = Timeline::new((25, 2), 0);
        assert_eq!((line.timescale(), line.frame_ticks()), (12_000, 960));
    }

    #[test]
    fn uneven_times_stay_and_none_runs_back() {
        let mut line = Timeline::new((25, 1), 0);
        let mut at = |millis: i64| line.place(millis * 1_000_000, None).0;
        assert_eq!([at(0), at(17), at(100), at(90), at(500)], [0, 204, 1_200, 1_212, 6_000]);
    }

    #[test]
    fn pictures_denser_than_the_nominal_rate_keep_their_times() {
        let mut line = Timeline::new((25, 1), 0);
        let placed: Vec<u64> = (0..1_000).map(|n| line.place(n * 1_000_000, None).0).collect();
        assert_eq!(placed.get(..4), Some(&[0, 12, 24, 36][..]));
        assert_eq!(placed.last(), Some(&(999 * 12)));
    }

    #[test]
    fn an_absurd_rate_has_a_clock_too() {
        let line = Timeline::new((u32::MAX, 1), 0);
        assert_eq!((line.timescale(), line.frame_ticks()), (ODD_TIMESCALE, 1));
    }
}
