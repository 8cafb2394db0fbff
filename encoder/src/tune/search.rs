//! The whole number at which a falling function comes nearest to a goal, in few
//! steps, since each step encodes blocks.

use crate::error::EncodeError;
use std::collections::BTreeMap;

/// Where in `low..=high` the value of `at`, which falls as its argument rises,
/// is nearest to `goal`. Between two known values the next argument is read off
/// the straight line through them; at first that is the range's middle.
pub(super) fn nearest(
    (low, high): (u32, u32),
    goal: f64,
    mut at: impl FnMut(u32) -> Result<f64, EncodeError>,
) -> Result<u32, EncodeError> {
    let mut known: BTreeMap<u32, f64> = BTreeMap::new();
    let mut next = low.midpoint(high);
    loop {
        let value = at(next)?;
        known.insert(next, value);
        let above =
            known.iter().filter(|(_, value)| **value >= goal).map(|(at, value)| (*at, *value)).next_back();
        let below = known.iter().find(|(_, value)| **value < goal).map(|(at, value)| (*at, *value));
        next = match (above, below) {
            (Some((left, over)), Some((right, under))) if right > left + 1 => {
                between(left, right, (over - goal) / (over - under))
            }
            (Some((left, _)), None) if left < high => (left + STRIDE).min(high),
            (None, Some((right, _))) if right > low => right.saturating_sub(STRIDE).max(low),
            _ => break,
        };
        if known.contains_key(&next) {
            break; // the function does not fall everywhere
        }
    }
    let off = |value: &f64| (value - goal).abs();
    Ok(known.iter().min_by(|a, b| off(a.1).total_cmp(&off(b.1))).map_or(low, |(at, _)| *at))
}

/// How far a first step goes; a rate changes by about a factor of two or three.
const STRIDE: u32 = 9;

/// The whole number strictly between two others that is nearest to a part of
/// the way.
fn between(left: u32, right: u32, part: f64) -> u32 {
    let width = f64::from(right - left);
    let whole = (1..right - left).min_by(|a, b| {
        let off = |n: &u32| (f64::from(*n) - part * width).abs();
        off(a).total_cmp(&off(b))
    });
    left + whole.unwrap_or(1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    /// Finds a goal on `value = 100 - 2 at`; with the number of steps.
    fn found(goal: f64) -> (u32, u32) {
        let mut steps = 0;
        let at = nearest((0, 63), goal, |at| {
            steps += 1;
            Ok(100.0 - 2.0 * f64::from(at))
        });
        (at.unwrap(), steps)
    }

    #[test]
    fn the_nearest_setting_is_found_in_few_steps() {
        for wanted in 0..=63 {
            let (at, steps) = found(100.0 - 2.0 * f64::from(wanted));
            assert_eq!(at, wanted);
            assert!(steps <= 7, "{wanted} after {steps} steps");
        }
        assert_eq!(found(59.4).0, 20);
        assert_eq!(found(58.6).0, 21);
    }

    #[test]
    fn a_goal_beyond_the_range_gives_its_end() {
        assert_eq!(found(1e9).0, 0);
        assert_eq!(found(-1e9).0, 63);
        assert_eq!(nearest((7, 7), 1.0, |_| Ok(5.0)).unwrap(), 7);
    }

    #[test]
    fn a_function_that_does_not_fall_everywhere_ends_too() {
        let mut steps = 0_u32;
        let at = nearest((0, 63), 0.5, |at| {
            steps += 1;
            Ok(if at % 2 == 0 { 1.0 } else { 0.0 })
        });
        assert!(at.unwrap() <= 63 && steps < 64);
    }
}
