//! Every state, one by one: slow, and too simple to be wrong.

use super::{System, TheoryError};

/// The most states that are gone through.
pub const MAX_STATES: u64 = 20_000_000;

/// `B_k` for each class by its definition: the weight of the states from which an
/// arrival leads out of the lawful ones, over the weight of all.
pub fn blocking(system: &System) -> Result<Vec<f64>, TheoryError> {
    let (mut all, mut blocked) = (0.0, vec![0.0; system.classes.len()]);
    each_state(system, |state, weight| {
        all += weight;
        for (class, blocked) in blocked.iter_mut().enumerate() {
            if !lawful_with_one_more(system, state, class) {
                *blocked += weight;
            }
        }
    })?;
    Ok(blocked.into_iter().map(|weight| weight / all).collect())
}

/// Tells every lawful state and its weight, not normalised.
pub fn each_state(system: &System, mut tell: impl FnMut(&[u32], f64)) -> Result<(), TheoryError> {
    let most: Vec<u32> = system.classes.iter().map(|load| load.most(system.servers)).collect();
    let states = most.iter().fold(1_u64, |product, most| product.saturating_mul(u64::from(*most) + 1));
    if states > MAX_STATES {
        return Err(TheoryError::States);
    }
    let mut state = vec![0; most.len()];
    loop {
        if taken(system, &state) <= u64::from(system.servers) {
            tell(&state, weight(system, &state));
        }
        // The next state, as an odometer turns.
        let mut turned = false;
        for (count, most) in state.iter_mut().zip(&most) {
            if *count < *most {
                *count += 1;
                turned = true;
                break;
            }
            *count = 0;
        }
        if !turned {
            return Ok(());
        }
    }
}

fn taken(system: &System, state: &[u32]) -> u64 {
    let each = system.classes.iter().zip(state);
    each.map(|(load, count)| u64::from(load.servers) * u64::from(*count)).sum()
}

fn weight(system: &System, state: &[u32]) -> f64 {
    let term = |rho: f64, count: u32| -> f64 { (1..=count).map(|n| rho / f64::from(n)).product() };
    system.classes.iter().zip(state).map(|(load, count)| term(load.erlangs, *count)).product()
}

fn lawful_with_one_more(system: &System, state: &[u32], class: usize) -> bool {
    let (Some(load), Some(count)) = (system.classes.get(class), state.get(class)) else { return false };
    let room = taken(system, state) + u64::from(load.servers) <= u64::from(system.servers);
    room && load.threshold.is_none_or(|threshold| *count < threshold)
}
