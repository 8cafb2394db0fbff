//! How late a relay is: for each datagram, from when it was due to when it went.

use media::Span;

/// The width of a bucket in nanoseconds: a twentieth of a millisecond.
const BUCKET: u64 = 50_000;
/// Buckets up to a fifth of a second; what is later counts as that late.
const BUCKETS: usize = 4_000;

/// How many were how late.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    all: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], all: 0 }
    }
}

impl Lateness {
    /// One more, so late.
    pub fn note(&mut self, late: Span) {
        let bucket = usize::try_from(late.as_nanos() / BUCKET).unwrap_or(BUCKETS).min(BUCKETS - 1);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.all += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.all
    }

    /// The lateness that so many of a thousand do not exceed, to a twentieth of a
    /// millisecond; nothing if there were none.
    pub fn permille(&self, share: u64) -> Span {
        let wanted = self.all.saturating_mul(share).div_ceil(1_000);
        let mut seen = 0;
        for (bucket, count) in (1_u64..).zip(&self.counts) {
            seen += count;
            if seen >= wanted && wanted > 0 {
                return Span::from_nanos(bucket * BUCKET);
            }
        }
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_nine_of_a_hundred_are_not_later_than_the_99th_percentile() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.permille(990), Span::ZERO);
        for late in 0..100 {
            lateness.note(Span::from_millis(late));
        }
        assert_eq!(lateness.permille(990), Span::from_nanos(98_050_000));
        assert_eq!(lateness.permille(500), Span::from_nanos(49_050_000));
        lateness.note(Span::from_secs(9));
        assert_eq!((lateness.permille(1_000), lateness.count()), (Span::from_millis(200), 101));
    }
}
