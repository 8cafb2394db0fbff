//! Rate curves and the mean distance between them.
//!
//! Bjøntegaard's measures (ITU-T VCEG-M33 and VCEG-AI11; HSTP-VID-WPOM): the
//! mean difference of two curves over the range that both cover, in rate at
//! equal score or in score at equal rate. Rates enter as logarithms, and the
//! curves pass through the measured points as monotone piecewise cubics
//! (Fritsch and Butland 1984, the `pchip` of other programs), so that a point
//! more or less does not bend the rest.

/// One measurement: a rate and the score it bought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Rate, in any unit above 0 (kbit/s here).
    pub rate: f64,
    /// Quality, higher is better: PSNR in dB, SSIM.
    pub score: f64,
}

/// Why points make no curve, or two curves no number.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// A curve needs two points.
    #[error("{0} points make no curve")]
    TooFew(usize),
    /// A rate that is not above 0, or a value that is no number.
    #[error("a point has rate {rate} and score {score}")]
    Value {
        /// The rate as it came.
        rate: f64,
        /// The score as it came.
        score: f64,
    },
    /// More rate bought a lower or the same score.
    #[error("the score does not rise from rate {below} to rate {above}")]
    NotRising {
        /// The lower rate.
        below: f64,
        /// The higher rate.
        above: f64,
    },
    /// The curves share no range.
    #[error("one ends at {end}, where the other starts at {start}")]
    Apart {
        /// End of the lower range.
        end: f64,
        /// Start of the upper range.
        start: f64,
    },
}

/// A rate curve: points by rising rate, scores rising with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Natural logarithm of rate over score.
    rate: Cubics,
    /// Score over natural logarithm of rate.
    score: Cubics,
}

impl Curve {
    /// The curve through points in any order.
    pub fn new(points: &[Point]) -> Result<Self, CurveError> {
        if points.len() < 2 {
            return Err(CurveError::TooFew(points.len()));
        }
        for &Point { rate, score } in points {
            if !(rate.is_finite() && rate > 0.0 && score.is_finite()) {
                return Err(CurveError::Value { rate, score });
            }
        }
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        for (below, above) in points.iter().zip(points.iter().skip(1)) {
            if below.rate >= above.rate || below.score >= above.score {
                return Err(CurveError::NotRising { below: below.rate, above: above.rate });
            }
        }
        let logs: Vec<f64> = points.iter().map(|point| point.rate.ln()).collect();
        let scores: Vec<f64> = points.iter().map(|point| point.score).collect();
        Ok(Self { rate: Cubics::new(&scores, &logs), score: Cubics::new(&logs, &scores) })
    }

    /// Lowest and highest score of the points.
    pub fn scores(&self) -> (f64, f64) {
        self.rate.domain()
    }

    /// The rate that buys a score; none outside the points.
    pub fn rate_at(&self, score: f64) -> Option<f64> {
        self.rate.at(score).map(f64::exp)
    }

    /// The score that a rate buys; none outside the points.
    pub fn score_at(&self, rate: f64) -> Option<f64> {
        self.score.at(rate.ln())
    }
}

/// BD-rate: how much more rate `test` needs than `anchor` at equal score, as a
/// fraction (0.5 is 50 % more), the mean over the scores that both cover.
pub fn bd_rate(anchor: &Curve, test: &Curve) -> Result<f64, CurveError> {
    mean_difference(&anchor.rate, &test.rate).map(f64::exp_m1)
}

/// BD-PSNR, BD-SSIM: how much more score `test` reaches than `anchor` at equal
/// rate, in the score's unit, the mean over the log rates that both cover.
pub fn bd_score(anchor: &Curve, test: &Curve) -> Result<f64, CurveError> {
    mean_difference(&anchor.score, &test.score)
}

fn mean_difference(anchor: &Cubics, test: &Cubics) -> Result<f64, CurveError> {
    let ((anchor_from, anchor_to), (test_from, test_to)) = (anchor.domain(), test.domain());
    let (from, to) = (anchor_from.max(test_from), anchor_to.min(test_to));
    if from >= to {
        return Err(CurveError::Apart { end: to, start: from });
    }
    Ok((test.integral(from, to) - anchor.integral(from, to)) / (to - from))
}

/// A monotone piecewise cubic through points of strictly rising x.
#[derive(Debug, Clone, PartialEq)]
struct Cubics(Vec<Piece>);

/// One cubic in Hermite form.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    x: [f64; 2],
    y: [f64; 2],
    slope: [f64; 2],
}

impl Cubics {
    fn new(x: &[f64], y: &[f64]) -> Self {
        let steps: Vec<(f64, f64)> = x
            .windows(2)
            .zip(y.windows(2))
            .filter_map(|pair| match pair {
                (&[x0, x1], &[y0, y1]) => Some((x1 - x0, (y1 - y0) / (x1 - x0))),
                _ => None,
            })
            .collect();
        let slopes = slopes(&steps);
        let pieces = x.windows(2).zip(y.windows(2)).zip(slopes.windows(2));
        Self(
            pieces
                .filter_map(|piece| match piece {
                    ((&[x0, x1], &[y0, y1]), &[s0, s1]) => {
                        Some(Piece { x: [x0, x1], y: [y0, y1], slope: [s0, s1] })
                    }
                    _ => None,
                })
                .collect(),
        )
    }

    fn domain(&self) -> (f64, f64) {
        let from = self.0.first().map_or(f64::NAN, |piece| piece.x[0]);
        (from, self.0.last().map_or(f64::NAN, |piece| piece.x[1]))
    }

    fn at(&self, x: f64) -> Option<f64> {
        self.0.iter().find(|piece| (piece.x[0]..=piece.x[1]).contains(&x)).map(|piece| piece.at(x))
    }

    fn integral(&self, from: f64, to: f64) -> f64 {
        self.0.iter().map(|piece| piece.integral(from, to)).sum()
    }
}

/// Slopes at the points, from the width and slope of each step between them:
/// inside, the weighted harmonic mean of both sides, 0 at a turn; at the ends a
/// one-sided three-point estimate that keeps the curve monotone.
fn slopes(steps: &[(f64, f64)]) -> Vec<f64> {
    let inner = steps.windows(2).filter_map(|pair| match *pair {
        [(h0, d0), (h1, d1)] if d0 * d1 > 0.0 => {
            let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
            Some((w0 + w1) / (w0 / d0 + w1 / d1))
        }
        [_, _] => Some(0.0),
        _ => None,
    });
    let first = end_slope(steps.first(), steps.get(1));
    let before_last = steps.len().checked_sub(2).and_then(|index| steps.get(index));
    let last = end_slope(steps.last(), before_last);
    std::iter::once(first).chain(inner).chain(std::iter::once(last)).collect()
}

fn end_slope(end: Option<&(f64, f64)>, next: Option<&(f64, f64)>) -> f64 {
    match (end, next) {
        (Some(&(h0, d0)), Some(&(h1, d1))) => {
            let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
            if slope * d0 <= 0.0 {
                0.0
            } else if d0 * d1 <= 0.0 && slope.abs() > 3.0 * d0.abs() {
                3.0 * d0
            } else {
                slope
            }
        }
        (Some(&(_, only)), None) => only,
        (None, _) => 0.0,
    }
}

impl Piece {
    fn at(&self, x: f64) -> f64 {
        let width = self.x[1] - self.x[0];
        let t = (x - self.x[0]) / width;
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * self.y[0]
            + (t3 - 2.0 * t2 + t) * width * self.slope[0]
            + (3.0 * t2 - 2.0 * t3) * self.y[1]
            + (t3 - t2) * width * self.slope[1]
    }

    /// Simpson's rule is exact for cubics.
    fn integral(&self, from: f64, to: f64) -> f64 {
        let (from, to) = (from.max(self.x[0]), to.min(self.x[1]));
        if from >= to {
            return 0.0;
        }
        (to - from) / 6.0 * (self.at(from) + 4.0 * self.at(f64::midpoint(from, to)) + self.at(to))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        let points: Vec<Point> = points.iter().map(|&(rate, score)| Point { rate, score }).collect();
        Curve::new(&points).unwrap()
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    const FILM: [(f64, f64); 4] = [(250.0, 33.1), (610.0, 36.4), (1300.0, 39.0), (3100.0, 41.9)];

    #[test]
    fn a_curve_is_no_distance_from_itself() {
        let film = curve(&FILM);
        near(bd_rate(&film, &film).unwrap(), 0.0);
        near(bd_score(&film, &film).unwrap(), 0.0);
    }

    #[test]
    fn twice_the_rate_is_one_hundred_per_cent_more() {
        let film = curve(&FILM);
        let doubled = curve(&FILM.map(|(rate, score)| (2.0 * rate, score)));
        near(bd_rate(&film, &doubled).unwrap(), 1.0);
        near(bd_rate(&doubled, &film).unwrap(), -0.5);
    }

    #[test]
    fn a_decibel_more_at_every_rate_is_a_decibel() {
        let film = curve(&FILM);
        let better = curve(&FILM.map(|(rate, score)| (rate, score + 1.0)));
        near(bd_score(&film, &better).unwrap(), 1.0);
        near(bd_score(&better, &film).unwrap(), -1.0);
    }

    #[test]
    fn only_the_range_that_both_cover_counts() {
        // Score = log2(rate) and score = log2(rate) - 1, from other ends.
        let anchor = curve(&[(1.0, 0.0), (2.0, 1.0), (8.0, 3.0)]);
        let test = curve(&[(4.0, 1.0), (8.0, 2.0), (64.0, 5.0)]);
        near(bd_rate(&anchor, &test).unwrap(), 1.0);
        near(bd_score(&anchor, &test).unwrap(), -1.0);
    }

    #[test]
    fn the_cubic_is_the_published_one() {
        // Steps of width 1 with slopes 1 and 3. Inner slope 2 / (1/1 + 1/3) = 1.5;
        // ends (3 * 1 - 3) / 2 = 0 and (3 * 3 - 1) / 2 = 4.
        let cubics = Cubics::new(&[0.0, 1.0, 2.0], &[0.0, 1.0, 4.0]);
        near(cubics.at(0.5).unwrap(), 0.5 - 1.5 / 8.0);
        near(cubics.at(1.5).unwrap(), 2.5 + (1.5 - 4.0) / 8.0);
        // Hermite: h (y0 + y1) / 2 + h^2 (s0 - s1) / 12.
        near(cubics.integral(0.0, 2.0), 0.5 - 1.5 / 12.0 + 2.5 + (1.5 - 4.0) / 12.0);
        assert_eq!(cubics.at(2.001), None);
    }

    #[test]
    fn what_is_no_curve_is_refused_by_name() {
        let curve = |points: &[(f64, f64)]| {
            Curve::new(&points.iter().map(|&(rate, score)| Point { rate, score }).collect::<Vec<_>>())
        };
        assert_eq!(curve(&[(1.0, 1.0)]), Err(CurveError::TooFew(1)));
        assert_eq!(curve(&[(0.0, 1.0), (2.0, 2.0)]), Err(CurveError::Value { rate: 0.0, score: 1.0 }));
        assert_eq!(curve(&[(2.0, 1.0), (1.0, 2.0)]), Err(CurveError::NotRising { below: 1.0, above: 2.0 }));
        let low = curve(&[(1.0, 1.0), (2.0, 2.0)]).unwrap();
        let high = curve(&[(1.0, 3.0), (2.0, 4.0)]).unwrap();
        assert_eq!(bd_rate(&low, &high), Err(CurveError::Apart { end: 2.0, start: 3.0 }));
    }

    proptest! {
        /// Both directions of a curve agree at its points, and between them it never turns.
        #[test]
        fn a_curve_is_monotone(steps in prop::collection::vec((0.05_f64..2.0, 0.05_f64..5.0), 1..8), split in 0.0_f64..1.0) {
            let mut points = vec![Point { rate: 100.0, score: 30.0 }];
            for (octaves, decibels) in steps {
                let last = *points.last().unwrap();
                points.push(Point { rate: last.rate * octaves.exp2(), score: last.score + decibels });
            }
            let curve = Curve::new(&points).unwrap();
            for pair in points.windows(2) {
                prop_assert!((curve.rate_at(pair[0].score).unwrap() / pair[0].rate - 1.0).abs() < 1e-9);
                let score = pair[0].score + (pair[1].score - pair[0].score) * split;
                let rate = curve.rate_at(score).unwrap();
                prop_assert!(pair[0].rate <= rate * (1.0 + 1e-9) && rate <= pair[1].rate * (1.0 + 1e-9));
            }
        }
    }
}
