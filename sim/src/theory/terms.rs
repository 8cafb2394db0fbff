//! Truncated Poisson terms, in a scale in which nothing that matters is lost.
//!
//! Under a load far above the capacity the lawful states lie where each class
//! alone is very unlikely, and the product of such terms would be 0. Weights are
//! therefore tilted: each server that is taken counts with a factor z <= 1, the
//! same for all classes, chosen so that the likeliest numbers of all classes fill
//! the servers. Sums over states undo it; it cancels exactly in every quotient.

use super::{Load, System, at};

/// Below this, next to a largest term of 1, a term is no longer told from 0.
const FLUSH: f64 = 1e-300;

/// z of a system: 1 if the classes do not overfill the servers.
pub(super) fn tilt(system: &System) -> f64 {
    let capacity = f64::from(system.servers);
    solve(capacity, |z| system.classes.iter().map(|load| likeliest(load, system.servers, z)).sum())
}

/// The servers that the likeliest number of viewings of a class takes.
fn likeliest(load: &Load, servers: u32, z: f64) -> f64 {
    let viewings = (load.erlangs * power(z, load.servers)).min(f64::from(load.most(servers)));
    viewings * f64::from(load.servers)
}

/// The z between 0 and 1 at which a growing function reaches `capacity`; 1 if it
/// never exceeds it.
pub(super) fn solve(capacity: f64, taken: impl Fn(f64) -> f64) -> f64 {
    if taken(1.0) <= capacity {
        return 1.0;
    }
    // Loads reach 1e12: halving the logarithm finds z to 1e-12 soon enough.
    let (mut low, mut high) = (-40.0_f64, 0.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if taken(middle.exp()) > capacity {
            high = middle;
        } else {
            low = middle;
        }
    }
    low.exp()
}

/// `z^n`.
pub(super) fn power(z: f64, n: u32) -> f64 {
    i32::try_from(n).map_or(0.0, |n| z.powi(n))
}

/// `f(n) = rho^n / n!` for n from 0 to `most`, scaled so that the largest is 1:
/// from the largest one outwards by products of two factors each, so that the
/// error grows with the distance and not with the logarithms of large factorials.
pub(super) fn poisson(rho: f64, most: u32) -> Vec<f64> {
    let mut terms = vec![0.0; at(most).saturating_add(1)];
    let top = largest(rho, most);
    let (below, from_top) = terms.split_at_mut(at(top).min(at(most)));
    let mut term = 1.0;
    for (n, place) in (top..=most).zip(from_top.iter_mut()) {
        if n > top {
            term *= rho / f64::from(n);
        }
        if term < FLUSH {
            break;
        }
        *place = term;
    }
    term = 1.0;
    for (n, place) in (1..=top).rev().zip(below.iter_mut().rev()) {
        term *= f64::from(n) / rho;
        if term < FLUSH {
            break;
        }
        *place = term;
    }
    terms
}

/// The n up to `most` with the largest term: the whole part of rho.
fn largest(rho: f64, most: u32) -> u32 {
    if rho >= f64::from(most) {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if f64::from(middle) <= rho {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Scales so that the largest weight is 1.
pub(super) fn rescale(weights: &mut [f64]) {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        for weight in weights {
            *weight /= largest;
        }
    }
}
