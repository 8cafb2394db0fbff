//! Blocking probabilities by convolution of truncated Poisson terms.
//!
//! With `f_k` the terms of class k and `r_k` the convolution of those of all
//! others, `B_k` is the weight of the states in which a request of class k is
//! blocked over the weight of all states. The blocked weight is summed itself:
//! `1 - admitted` would lose small probabilities completely.

use super::terms::{poisson, power, rescale, tilt};
use super::{Load, System, at};

/// `B_k` for each class.
pub(super) fn blocking(system: &System) -> Vec<f64> {
    let servers = system.servers;
    let z = tilt(system);
    let own: Vec<Vec<f64>> = system
        .classes
        .iter()
        .map(|load| poisson(load.erlangs * power(z, load.servers), load.most(servers)))
        .collect();
    let spread: Vec<Vec<f64>> =
        own.iter().zip(&system.classes).map(|(terms, load)| spread(terms, load, servers)).collect();
    let others = all_but_one(&spread, servers);
    let classes = system.classes.iter().zip(&own).zip(&others);
    classes.map(|((load, own), others)| blocked(load, own, others, servers, z)).collect()
}

/// Terms over viewings as terms over servers.
fn spread(terms: &[f64], load: &Load, servers: u32) -> Vec<f64> {
    let mut spread = vec![0.0; at(servers) + 1];
    for (place, term) in spread.iter_mut().step_by(at(load.servers)).zip(terms) {
        *place = *term;
    }
    spread
}

/// For each class the convolution of all others, from products of those before
/// and those behind it: 3 K convolutions.
fn all_but_one(classes: &[Vec<f64>], servers: u32) -> Vec<Vec<f64>> {
    let mut none = vec![0.0; at(servers) + 1];
    if let Some(first) = none.first_mut() {
        *first = 1.0;
    }
    let mut behind = vec![none.clone()];
    for terms in classes.iter().skip(1).rev() {
        let next = behind.last().map_or_else(|| none.clone(), |last| convolve(terms, last));
        behind.push(next);
    }
    let mut before = none;
    let mut all = Vec::with_capacity(classes.len());
    for (terms, behind) in classes.iter().zip(behind.iter().rev()) {
        all.push(convolve(&before, behind));
        before = convolve(terms, &before);
    }
    all
}

/// The convolution of two lists of equal length, cut to that length and scaled
/// to a largest of 1.
fn convolve(left: &[f64], right: &[f64]) -> Vec<f64> {
    let count = |list: &[f64]| list.iter().filter(|weight| **weight > 0.0).count();
    let (few, many) = if count(left) <= count(right) { (left, right) } else { (right, left) };
    let mut sum = vec![0.0; many.len()];
    for (shift, weight) in few.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        if let Some(sums) = sum.get_mut(shift..) {
            for (place, other) in sums.iter_mut().zip(many) {
                *place += weight * other;
            }
        }
    }
    rescale(&mut sum);
    sum
}

/// `B_k` from the terms of class k and the convolution of all others.
fn blocked(load: &Load, own: &[f64], others: &[f64], servers: u32, z: f64) -> f64 {
    if load.servers > servers || load.threshold == Some(0) {
        return 1.0;
    }
    // Up to m servers taken by others, the tilt undone relative to m.
    let up_to: Vec<f64> = others
        .iter()
        .scan(0.0, |sum, weight| {
            *sum = *sum * z + weight;
            Some(*sum)
        })
        .collect();
    let step = at(load.servers);
    let rooms = (0..=at(servers)).rev().step_by(step);
    let (mut all, mut full) = (0.0, 0.0);
    for (term, room) in own.iter().zip(rooms) {
        all += term * up_to.get(room).unwrap_or(&0.0);
        // Fewer than b_k servers are free.
        let tight = others.get((room + 1).saturating_sub(step)..=room).unwrap_or(&[]);
        full += term * tight.iter().fold(0.0, |sum, weight| sum * z + weight);
    }
    let at_threshold = load.threshold.and_then(|threshold| {
        let room = servers.checked_sub(threshold.checked_add(1)?.checked_mul(load.servers)?)?;
        Some(own.get(at(threshold))? * up_to.get(at(room))? * power(z, load.servers))
    });
    ((full + at_threshold.unwrap_or(0.0)) / all).clamp(0.0, 1.0)
}
