//! The classical formulas, to which systems without thresholds come down.

use super::{MAX_SERVERS, System, TheoryError, at, check_erlangs};

/// Erlang B: the blocking of `erlangs` on `servers` servers, by `B(n) = rho B(n-1)
/// / (n + rho B(n-1))`, which loses no digits.
pub fn erlang_b(erlangs: f64, servers: u32) -> Result<f64, TheoryError> {
    check_erlangs(1, erlangs)?;
    if servers > MAX_SERVERS {
        return Err(TheoryError::Servers(servers));
    }
    let step = |blocked: f64, n: u32| {
        let weight = erlangs * blocked;
        weight / (f64::from(n) + weight)
    };
    Ok((1..=servers).fold(1.0, step))
}

/// Kaufman and Roberts: the blocking of each class of a system, as if it had no
/// thresholds, by `j q(j) = sum_k rho_k b_k q(j - b_k)`.
pub fn kaufman_roberts(system: &System) -> Vec<f64> {
    let mut occupied = vec![1.0_f64];
    for taken in 1..=system.servers {
        let from = |load: &super::Load| {
            let before = taken.checked_sub(load.servers).and_then(|before| occupied.get(at(before)));
            load.erlangs * f64::from(load.servers) * before.unwrap_or(&0.0)
        };
        let weight: f64 = system.classes.iter().map(from).sum::<f64>() / f64::from(taken);
        occupied.push(weight);
        if weight > 1e200 {
            for weight in &mut occupied {
                *weight *= 1e-200;
            }
        }
    }
    let all: f64 = occupied.iter().sum();
    let tight = |load: &super::Load| occupied.iter().rev().take(at(load.servers)).sum::<f64>() / all;
    system.classes.iter().map(tight).collect()
}
