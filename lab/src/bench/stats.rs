//! What repeated measurements say.

use serde::Serialize;

/// The median of repeated measurements and an interval that holds the true
/// median with the stated confidence, whatever the distribution (order
/// statistics of the binomial law, as in David and Nagaraja).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// The middle measurement; of an even number, the mean of the two.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How sure the interval is: at least 0.95 from six repeats on.
    pub confidence: f64,
}

impl Median {
    /// Of measurements in any order; none without any.
    pub fn of(measurements: &[f64]) -> Option<Self> {
        let mut sorted = measurements.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |index: usize| sorted.get(index).copied();
        let median = f64::midpoint(at(last / 2)?, at(sorted.len() / 2)?);
        // The narrowest interval that is sure enough; else the widest there is.
        let mut cut = 0;
        while cut < last / 2 && confidence(sorted.len(), cut + 1) >= 0.95 {
            cut += 1;
        }
        Some(Self { median, low: at(cut)?, high: at(last - cut)?, confidence: confidence(sorted.len(), cut) })
    }
}

/// The chance that the true median lies between the measurements that remain
/// when `cut` are taken from either end of `count` sorted ones.
fn confidence(count: usize, cut: usize) -> f64 {
    // Terms of the binomial law of a fair coin, from 0 successes up.
    let exponent = i32::try_from(count).unwrap_or(i32::MAX);
    let (mut term, mut tail) = (0.5_f64.powi(exponent), 0.0);
    let whole = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    for successes in 0..=cut {
        tail += term;
        term *= whole(count - successes) / whole(successes + 1);
    }
    1.0 - 2.0 * tail
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn six_repeats_are_held_by_their_extremes() {
        let median = Median::of(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]).unwrap();
        assert_eq!(median, Median { median: 3.5, low: 1.0, high: 6.0, confidence: 1.0 - 2.0 / 64.0 });
    }

    #[test]
    fn nine_repeats_leave_one_out_on_either_side() {
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        let median = Median::of(&nine).unwrap();
        let confidence = 1.0 - 2.0 * 10.0 / 512.0;
        assert_eq!(median, Median { median: 5.0, low: 2.0, high: 8.0, confidence });
    }

    #[test]
    fn few_repeats_say_how_little_they_know() {
        assert_eq!(Median::of(&[]), None);
        let one = Median::of(&[7.0]).unwrap();
        assert_eq!(one, Median { median: 7.0, low: 7.0, high: 7.0, confidence: 0.0 });
        let three = Median::of(&[1.0, 2.0, 9.0]).unwrap();
        assert_eq!(three, Median { median: 2.0, low: 1.0, high: 9.0, confidence: 0.75 });
    }
}
