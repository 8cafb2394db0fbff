//! The recursion over the number of occupied servers: a generalised Kaufman-Roberts
//! recursion with terms for the thresholds.
//!
//! With `g(j)` the weight of all states with j viewings: `j g(j) = sum_k rho_k
//! [g(j-1) - w_k(j-1)]`, where `w_k(m)` is the weight of the states with m viewings
//! of which `T_k` are of class k, `rho_k^T_k / T_k! g_-k(m - T_k)`, and `g_-k` is
//! the same without class k. O(C) for one threshold. The subtraction loses all
//! digits where a loaded class is held down hard: it is a check on small systems,
//! not the method to use.

use super::{Load, System, TheoryError, at};

/// The most thresholds: each one doubles the work.
const MAX_THRESHOLDS: usize = 12;

/// `B_k` for each class of a system of one server for each request.
pub fn blocking(system: &System) -> Result<Vec<f64>, TheoryError> {
    if system.classes.iter().any(|load| load.servers != 1) {
        return Err(TheoryError::Multirate);
    }
    let limited = system.classes.iter().filter(|load| limit(load, system.servers).is_some()).count();
    if limited > MAX_THRESHOLDS {
        return Err(TheoryError::States);
    }
    let planes = planes(&system.classes, system.servers);
    let all: f64 = planes.iter().sum();
    let full = planes.last().copied().unwrap_or(0.0);
    let mut result = Vec::new();
    for class in 0..system.classes.len() {
        let capped: f64 = at_threshold(&system.classes, class, system.servers)
            .map_or(0.0, |weights| weights.iter().take(at(system.servers)).sum());
        let blocked = (full + capped) / all;
        if !blocked.is_finite() {
            return Err(TheoryError::Unstable);
        }
        result.push(blocked);
    }
    Ok(result)
}

/// The threshold of a class, if it is below the number of servers.
fn limit(load: &Load, servers: u32) -> Option<u32> {
    load.threshold.filter(|threshold| *threshold < servers)
}

/// `g(0)` to `g(C)`.
fn planes(classes: &[Load], servers: u32) -> Vec<f64> {
    let held: Vec<Option<Vec<f64>>> =
        (0..classes.len()).map(|class| at_threshold(classes, class, servers)).collect();
    let mut planes: Vec<f64> = vec![1.0];
    for total in 1..=servers {
        let before = planes.last().copied().unwrap_or(0.0);
        let inflow = classes.iter().zip(&held).map(|(load, held)| {
            let held = held.as_ref().and_then(|weights| weights.get(at(total - 1))).unwrap_or(&0.0);
            load.erlangs * (before - held)
        });
        planes.push(inflow.sum::<f64>() / f64::from(total));
    }
    planes
}

/// `w_k(0)` to `w_k(C)`, if class k has a threshold.
fn at_threshold(classes: &[Load], class: usize, servers: u32) -> Option<Vec<f64>> {
    let load = classes.get(class)?;
    let threshold = limit(load, servers)?;
    let others: Vec<Load> =
        classes.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, load)| *load).collect();
    let term: f64 = (1..=threshold).map(|n| load.erlangs / f64::from(n)).product();
    let shifted = std::iter::repeat_n(0.0, at(threshold));
    let others = planes(&others, servers - threshold).into_iter().map(|weight| weight * term);
    Some(shifted.chain(others).collect())
}
