//! Weights whose range has no end: under a load far above what a site can carry,
//! those of states that count differ by more than a float can tell.

use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul};

/// A step of the exponent: `2^512`.
const STEP: f64 = 1.340_780_792_994_259_7e154;
/// Values are kept between its inverse and this, so that products of two of them
/// and of a load neither overflow nor vanish.
const LARGE: f64 = 1.157_920_892_373_162e77;

/// `value * 2^(512 steps)`, never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wide {
    value: f64,
    steps: i32,
}

impl Wide {
    pub(super) const ZERO: Self = Self { value: 0.0, steps: i32::MIN };
    pub(super) const ONE: Self = Self { value: 1.0, steps: 0 };

    /// Whether there is any weight.
    pub(super) const fn is_some(self) -> bool {
        self.value > 0.0
    }

    const fn settled(value: f64, steps: i32) -> Self {
        if value > LARGE {
            return Self { value: value / STEP, steps: steps.saturating_add(1) };
        }
        if value >= 1.0 / LARGE {
            return Self { value, steps };
        }
        if value > 0.0 {
            return Self { value: value * STEP, steps: steps.saturating_sub(1) };
        }
        Self::ZERO
    }
}

impl Add for Wide {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match self.steps.cmp(&other.steps) {
            Ordering::Equal => Self::settled(self.value + other.value, self.steps),
            // Across one step a value near its border still counts.
            Ordering::Greater if other.steps.saturating_add(1) == self.steps => {
                Self::settled(self.value + other.value / STEP, self.steps)
            }
            Ordering::Greater => self,
            Ordering::Less => other + self,
        }
    }
}

impl AddAssign for Wide {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Wide {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// By a number between `1e-70` and `1e70`, or by 0.
impl Mul<f64> for Wide {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self::settled(self.value * factor, self.steps)
    }
}

impl Mul for Wide {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::settled(self.value * other.value, self.steps.saturating_add(other.steps))
    }
}

/// As a float: 0 or infinite if the quotient is beyond all floats.
impl Div for Wide {
    type Output = f64;

    fn div(self, other: Self) -> f64 {
        let steps = self.steps.saturating_sub(other.steps);
        let quotient = self.value / other.value;
        match steps {
            ..-3 => 0.0,
            4.. => f64::INFINITY,
            steps => (0..steps.abs()).fold(quotient, |quotient, _| quotient / STEP.powi(-steps.signum())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_products_and_quotients_go_beyond_the_range_of_floats() {
        let mut power = Wide::ONE;
        let mut powers = vec![power];
        for _ in 0..2_000 {
            power = power * 1e6;
            powers.push(power);
        }
        for (left, right) in powers.iter().zip(powers.iter().skip(1)) {
            assert!((*right / *left / 1e6 - 1.0).abs() < 1e-12);
            assert!(((*left + *right) / *left / (1e6 + 1.0) - 1.0).abs() < 1e-12);
            assert!(((*right + *left) / *left / (1e6 + 1.0) - 1.0).abs() < 1e-12);
        }
        assert_eq!((Wide::ONE / power, power / Wide::ONE), (0.0, f64::INFINITY));
        assert!(((power + Wide::ZERO) / power - 1.0).abs() < 1e-15);
        assert!(!(power * 0.0).is_some() && !Wide::ZERO.is_some());
        let back = (0..2_000).fold(power, |power, _| power * 1e-6);
        assert!((back / Wide::ONE - 1.0).abs() < 1e-10, "{back:?}");
        let inverse = (0..2_000).fold(Wide::ONE, |power, _| power * 1e-6);
        assert!((power * inverse / Wide::ONE - 1.0).abs() < 1e-10, "{inverse:?}");
    }
}
