//! How fast bytes come while they are asked for.

use media::{BitRate, ByteCount, Span, Time};
use std::collections::VecDeque;

/// Length of one bucket.
const BUCKET: Span = Span::from_millis(500);
/// How many buckets are kept: the estimate looks back over this much activity.
const BUCKETS: usize = 10;
/// Less busy time than this says nothing about a link.
const LEAST_BUSY: Span = Span::from_millis(100);

/// Bytes over busy time. Idle time does not count: a viewer whose buffer is
/// full is no sign of a slow link.
#[derive(Clone, Debug)]
pub struct RateMeter {
    buckets: VecDeque<Bucket>,
    seen: Time,
    busy: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    start: Time,
    bytes: ByteCount,
    busy: Span,
}

impl RateMeter {
    /// A meter that has seen nothing.
    pub fn new(now: Time) -> Self {
        Self { buckets: VecDeque::with_capacity(BUCKETS + 1), seen: now, busy: false }
    }

    /// From now on something is asked for, or nothing is.
    pub fn set_busy(&mut self, now: Time, busy: bool) {
        if busy || self.busy {
            self.advance(now);
        }
        self.seen = now;
        self.busy = busy;
    }

    /// Bytes came.
    pub fn add(&mut self, now: Time, bytes: ByteCount) {
        if !self.busy {
            return;
        }
        self.advance(now);
        if let Some(bucket) = self.buckets.back_mut() {
            bucket.bytes += bytes;
        }
    }

    /// The mean rate over the busy time seen lately; none if that was too short.
    pub fn rate(&self) -> Option<BitRate> {
        let busy = self.busy_time();
        if busy < LEAST_BUSY {
            return None;
        }
        let bytes = self.buckets.iter().fold(ByteCount(0), |sum, bucket| sum + bucket.bytes);
        Some(bytes.over(busy))
    }

    /// The busy time that the estimate rests on.
    pub fn busy_time(&self) -> Span {
        self.buckets.iter().fold(Span::ZERO, |sum, bucket| sum + bucket.busy)
    }

    fn advance(&mut self, now: Time) {
        let passed = if self.busy { now - self.seen } else { Span::ZERO };
        self.seen = now;
        if self.buckets.back().is_none_or(|bucket| now - bucket.start >= BUCKET) {
            self.buckets.push_back(Bucket { start: now, bytes: ByteCount(0), busy: Span::ZERO });
            if self.buckets.len() > BUCKETS {
                self.buckets.pop_front();
            }
        }
        if let Some(bucket) = self.buckets.back_mut() {
            bucket.busy += passed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut meter = RateMeter::new(at(0));
        assert_eq!(meter.rate(), None);
        meter.set_busy(at(1_000), true);
        meter.add(at(1_100), ByteCount(12_500));
        meter.set_busy(at(1_100), false);
        assert_eq!(meter.rate(), Some(BitRate(1_000_000)));
        meter.set_busy(at(9_000), true);
        meter.add(at(9_300), ByteCount(12_500));
        assert_eq!(meter.rate(), Some(BitRate(500_000)));
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut meter = RateMeter::new(at(0));
        meter.set_busy(at(0), true);
        for step in 1..=200 {
            let bytes = if step <= 100 { 1_250 } else { 12_500 };
            meter.add(at(step * 100), ByteCount(bytes));
        }
        assert_eq!(meter.rate(), Some(BitRate(1_000_000)));
    }
}
