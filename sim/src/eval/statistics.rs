//! Means with their uncertainty.

/// A mean of independent runs and the half width of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean of the runs.
    pub mean: f64,
    /// Half the width of the 95 % interval (Student); 0 for a single run.
    pub half_width: f64,
    /// How many runs.
    pub runs: usize,
}

/// Student's t at 97.5 % for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// The estimate from the values of independent runs; zero for none.
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        if runs == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / float(runs);
        if runs == 1 {
            return Self { mean, half_width: 0.0, runs };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / float(runs - 1) / float(runs)).sqrt();
        let t = STUDENT.get(runs - 2).copied().unwrap_or(1.96);
        Self { mean, half_width: t * error, runs }
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.runs > 1 {
            write!(f, "{:.3} ± {:.3}", self.mean, self.half_width)
        } else {
            write!(f, "{:.3}", self.mean)
        }
    }
}

/// A count as a number to calculate with; exact below 2^53.
#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "counts are far below 2^53")]
pub fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        // s = sqrt(2.5), s.e. = sqrt(0.5), t(4) = 2.776.
        assert!((estimate.half_width - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[0.25]).to_string(), "0.250");
        assert_eq!(Estimate::of(&[]), Estimate::default());
    }
}
