//! Time, sizes and rates, with only the operations that make sense.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on a clock that somebody else owns, in nanoseconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// The time `nanos` nanoseconds after the start of the clock.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this time, or nothing if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be told.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of whole seconds, saturating at the longest one.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// A span of whole milliseconds, saturating at the longest one.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `ticks` of a clock that ticks `timescale` times a second, rounded down;
    /// nothing for a clock that does not tick.
    pub fn from_ticks(ticks: u64, timescale: u32) -> Self {
        let nanos = u128::from(ticks) * 1_000_000_000;
        match nanos.checked_div(u128::from(timescale)) {
            Some(nanos) => Self(u64::try_from(nanos).unwrap_or(u64::MAX)),
            None => Self::ZERO,
        }
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The length in seconds, for people and figures.
    #[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for people and figures")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span without `other`, or nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span `factor` times.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        self.since(earlier)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000_000_000 {
            write!(f, "{} ms", self.as_millis())
        } else {
            write!(f, "{:.2} s", self.as_secs_f64())
        }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// The mean rate of this many bytes over `span`; nothing over no time.
    pub fn over(self, span: Span) -> BitRate {
        let bits = u128::from(self.0) * 8 * 1_000_000_000;
        let rate = bits.checked_div(u128::from(span.as_nanos())).unwrap_or(0);
        BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000 => write!(f, "{n} B"),
            n if n < 1_000_000 => write!(f, "{}.{} kB", n / 1_000, n % 1_000 / 100),
            n if n < 1_000_000_000 => write!(f, "{}.{} MB", n / 1_000_000, n % 1_000_000 / 100_000),
            n => write!(f, "{}.{:02} GB", n / 1_000_000_000, n % 1_000_000_000 / 10_000_000),
        }
    }
}

/// A rate in bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl BitRate {
    /// How long `bytes` take at this rate; for ever at no rate.
    pub fn time_for(self, bytes: ByteCount) -> Span {
        let nanos = u128::from(bytes.0) * 8 * 1_000_000_000;
        match nanos.checked_div(u128::from(self.0)) {
            Some(nanos) => Span(u64::try_from(nanos).unwrap_or(u64::MAX)),
            None => Span::MAX,
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000_000 => write!(f, "{} kbit/s", n / 1_000),
            n => write!(f, "{}.{} Mbit/s", n / 1_000_000, n % 1_000_000 / 100_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_television_rates_become_nanoseconds() {
        assert_eq!(Span::from_ticks(30_030, 30_000).as_nanos(), 1_001_000_000);
        assert_eq!(Span::from_ticks(1, 0), Span::ZERO);
        assert_eq!(Span::from_ticks(u64::MAX, 1), Span::MAX);
    }

    #[test]
    fn rates_and_sizes_meet_in_time() {
        let rate = ByteCount(125_000).over(Span::from_secs(1));
        assert_eq!(rate, BitRate(1_000_000));
        assert_eq!(rate.time_for(ByteCount(250_000)), Span::from_secs(2));
        assert_eq!(BitRate(0).time_for(ByteCount(1)), Span::MAX);
        assert_eq!(ByteCount(1).over(Span::ZERO), BitRate(0));
    }

    #[test]
    fn time_never_runs_below_zero_or_over_the_end() {
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(9));
        assert_eq!(early - late, Span::ZERO);
        assert_eq!(late - early, Span::from_nanos(4));
        assert_eq!(Time::from_nanos(u64::MAX) + Span::from_secs(1), Time::from_nanos(u64::MAX));
    }

    #[test]
    fn people_read_short_forms() {
        assert_eq!(Span::from_millis(412).to_string(), "412 ms");
        assert_eq!(Span::from_millis(1_500).to_string(), "1.50 s");
        assert_eq!(ByteCount(1_234_567).to_string(), "1.2 MB");
        assert_eq!(BitRate(487_300).to_string(), "487 kbit/s");
    }
}
