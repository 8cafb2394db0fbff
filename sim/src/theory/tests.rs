#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod exact;
mod invariants;
mod tables;

use super::*;
use crate::rng::Rng;

/// A system by lot: at most `classes` classes and `servers` servers.
fn by_lot(rng: &mut Rng, classes: usize, servers: usize, rates: usize) -> System {
    let servers = u32::try_from(1 + rng.below(servers)).unwrap();
    let loads = (0..=rng.below(classes)).map(|_| {
        let erlangs = if rng.chance(0.05) { 0.0 } else { rng.unit() * f64::from(servers) };
        let taking = 1 + u32::try_from(rng.below(rates)).unwrap();
        let most = usize::try_from(servers).unwrap() + 1;
        let threshold = rng.chance(0.7).then(|| u32::try_from(rng.below(most)).unwrap());
        Load { erlangs, servers: taking, threshold }
    });
    System::new(servers, loads.collect()).unwrap()
}

/// The largest difference between two lists of equal length.
fn distance(left: &[f64], right: &[f64]) -> f64 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f64::max)
}

#[test]
fn four_hundred_systems_agree_with_enumeration_and_with_the_recursion() {
    let seed = 1998;
    let mut rng = Rng::new(seed);
    let (mut convolution, mut recursion) = (0.0_f64, 0.0_f64);
    for case in 0..400 {
        let system = by_lot(&mut rng, 4, 14, 1);
        let by_states = enumeration::blocking(&system).unwrap();
        let off = distance(&system.blocking(), &by_states);
        assert!(off <= 1e-12, "seed {seed}, case {case}: {off} in {system}");
        convolution = convolution.max(off);
        let off = distance(&recursion::blocking(&system).unwrap(), &by_states);
        assert!(off <= 1e-10, "seed {seed}, case {case}: recursion {off} in {system}");
        recursion = recursion.max(off);
    }
    assert!(convolution <= 1e-14 && recursion <= 1e-11, "{convolution:e} {recursion:e}");
}

#[test]
fn requests_of_several_servers_agree_with_enumeration_too() {
    let seed = 1990;
    let mut rng = Rng::new(seed);
    for case in 0..200 {
        let system = by_lot(&mut rng, 3, 14, 5);
        let off = distance(&system.blocking(), &enumeration::blocking(&system).unwrap());
        assert!(off <= 1e-12, "seed {seed}, case {case}: {off} in {system}");
    }
}

#[test]
fn without_thresholds_it_is_erlang_b_and_kaufman_roberts() {
    for (servers, erlangs) in [(1, 0.5), (10, 8.0), (100, 100.0), (1000, 900.0), (1000, 2500.0)] {
        let thirds = vec![Load::of(erlangs / 3.0); 3];
        let blocked = System::new(servers, thirds).unwrap().blocking();
        let erlang = limits::erlang_b(erlangs, servers).unwrap();
        assert!(distance(&blocked, &[erlang; 3]) <= 1e-12, "{servers} {erlangs}");
    }
    for servers in [1, 5, 30, 200, 1000] {
        let rho = f64::from(servers) / 6.0;
        let loads = vec![Load::of(rho).taking(1), Load::of(rho).taking(2), Load::of(rho).taking(7)];
        let system = System::new(servers, loads).unwrap();
        let off = distance(&system.blocking(), &limits::kaufman_roberts(&system));
        assert!(off <= 1e-12, "{servers}: {off}");
    }
}

#[test]
fn the_product_form_is_in_balance_in_every_state() {
    let system =
        System::new(6, vec![Load::of(1.3), Load::of(0.7).taking(2).up_to(2), Load::of(2.9).up_to(3)])
            .unwrap();
    let mut weights = std::collections::BTreeMap::new();
    enumeration::each_state(&system, |state, weight| _ = weights.insert(state.to_vec(), weight)).unwrap();
    // Mean holding times differ: balance must not depend on them.
    let leaves = [1.0, 0.25, 3.0];
    for (state, weight) in &weights {
        let (mut out, mut into) = (0.0, 0.0);
        for (class, load) in system.classes().iter().enumerate() {
            let arrives = load.erlangs * leaves[class];
            let (mut above, mut below) = (state.clone(), state.clone());
            above[class] += 1;
            if let Some(above_weight) = weights.get(&above) {
                out += weight * arrives;
                into += above_weight * f64::from(above[class]) * leaves[class];
            }
            if state[class] > 0 {
                below[class] -= 1;
                out += weight * f64::from(state[class]) * leaves[class];
                into += weights[&below] * arrives;
            }
        }
        assert!((out - into).abs() <= 1e-12 * out, "{state:?}: {out} {into}");
    }
}

#[test]
fn what_cannot_be_calculated_is_refused_by_name() {
    let new = |servers, erlangs| System::new(servers, vec![Load::of(1.0), Load::of(erlangs)]);
    for erlangs in [-1.0, f64::NAN, f64::INFINITY, 2e12] {
        let error = new(10, erlangs).unwrap_err();
        assert!(matches!(error, TheoryError::Erlangs { class: 2, .. }), "{error}");
        assert!(limits::erlang_b(erlangs, 3).is_err());
        let split = misses::Split { erlangs, hits: 0.5, threshold: None };
        assert!(matches!(misses::blocking(3, 3, &[split]), Err(TheoryError::Erlangs { class: 1, .. })));
    }
    assert_eq!(new(MAX_SERVERS + 1, 1.0), Err(TheoryError::Servers(MAX_SERVERS + 1)));
    assert_eq!(limits::erlang_b(1.0, u32::MAX), Err(TheoryError::Servers(u32::MAX)));
    assert_eq!(System::new(1, vec![]), Err(TheoryError::Empty));
    assert_eq!(System::new(1, vec![Load::of(1.0); 65]), Err(TheoryError::Classes(65)));
    assert_eq!(System::new(1, vec![Load::of(1.0).taking(0)]), Err(TheoryError::NoServers(1)));
    let multirate = System::new(9, vec![Load::of(1.0).taking(2)]).unwrap();
    assert_eq!(recursion::blocking(&multirate), Err(TheoryError::Multirate));
    let large = System::new(1000, vec![Load::of(1.0); 3]).unwrap();
    assert_eq!(enumeration::blocking(&large), Err(TheoryError::States));
    let split = misses::Split { erlangs: 1.0, hits: 1.5, threshold: None };
    assert_eq!(misses::blocking(3, 3, &[split]), Err(TheoryError::Share { class: 1, share: 1.5 }));
    let split = misses::Split { hits: 0.5, ..split };
    assert_eq!(misses::blocking(40_000, 40_000, &[split]), Err(TheoryError::States));
}

/// The two-dimensional solution, state by state.
fn misses_by_states(servers: u32, channels: u32, classes: &[misses::Split]) -> Vec<f64> {
    // Hits and misses of a class as classes of their own; only their sum has the
    // threshold, and only misses take channels.
    let loads = classes.iter().flat_map(|split| {
        let miss = (1.0 - split.hits) * split.erlangs;
        [Load::of(split.erlangs * split.hits), Load::of(miss)]
    });
    let system = System::new(servers, loads.collect()).unwrap();
    let lawful = |state: &[u32]| {
        state.iter().sum::<u32>() <= servers
            && state.iter().skip(1).step_by(2).sum::<u32>() <= channels
            && classes
                .iter()
                .zip(state.chunks(2))
                .all(|(split, pair)| split.threshold.is_none_or(|threshold| pair[0] + pair[1] <= threshold))
    };
    let (mut all, mut blocked) = (0.0, vec![0.0; classes.len() * 2]);
    enumeration::each_state(&system, |state, weight| {
        if !lawful(state) {
            return;
        }
        all += weight;
        for (kind, blocked) in blocked.iter_mut().enumerate() {
            let mut more = state.to_vec();
            more[kind] += 1;
            if !lawful(&more) {
                *blocked += weight;
            }
        }
    })
    .unwrap();
    blocked.into_iter().map(|weight| weight / all).collect()
}

#[test]
fn sixty_systems_with_misses_agree_with_enumeration() {
    let seed = 2005;
    let mut rng = Rng::new(seed);
    for case in 0..60 {
        let servers = 1 + rng.below(8);
        let number = |count: usize| u32::try_from(count).unwrap();
        let channels = number(rng.below(servers + 2));
        let classes: Vec<misses::Split> = (0..=rng.below(2))
            .map(|_| misses::Split {
                erlangs: rng.unit() * 6.0,
                hits: [rng.unit(), 0.0, 1.0][rng.below(3)],
                threshold: rng.chance(0.6).then(|| number(rng.below(servers + 2))),
            })
            .collect();
        let solved = misses::blocking(number(servers), channels, &classes).unwrap();
        let solved: Vec<f64> = solved.iter().flat_map(|blocked| [blocked.hit, blocked.miss]).collect();
        let by_states = misses_by_states(number(servers), channels, &classes);
        let off = distance(&solved, &by_states);
        assert!(off <= 1e-12, "seed {seed}, case {case}: {off}: {servers} {channels} {classes:?}");
    }
}
