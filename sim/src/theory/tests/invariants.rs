//! What holds for every system.

use super::*;
use proptest::prelude::*;

fn any_system() -> impl Strategy<Value = System> {
    let load = (0.0..40.0_f64, proptest::option::of(0_u32..30))
        .prop_map(|(erlangs, threshold)| Load { threshold, ..Load::of(erlangs) });
    (1_u32..30, proptest::collection::vec(load, 1..5))
        .prop_map(|(servers, loads)| System::new(servers, loads).unwrap())
}

proptest! {
    #[test]
    fn blocking_is_a_probability_and_one_under_a_threshold_of_nothing(system in any_system()) {
        for (load, blocked) in system.classes().iter().zip(system.blocking()) {
            prop_assert!((0.0..=1.0).contains(&blocked));
            if load.threshold == Some(0) {
                prop_assert!((blocked - 1.0).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn classes_without_a_threshold_are_refused_alike(system in any_system()) {
        let blocked = system.blocking();
        let free = system.classes().iter().zip(&blocked).filter(|(load, _)| {
            load.threshold.is_none_or(|threshold| threshold >= system.servers())
        });
        let free: Vec<f64> = free.map(|(_, blocked)| *blocked).collect();
        prop_assert!(free.iter().all(|blocked| (blocked - free[0]).abs() < 1e-13));
    }

    #[test]
    fn the_order_of_the_classes_does_not_matter(system in any_system()) {
        let mut turned = system.classes().to_vec();
        turned.reverse();
        let mut blocked = System::new(system.servers(), turned).unwrap().blocking();
        blocked.reverse();
        prop_assert!(distance(&blocked, &system.blocking()) < 1e-13);
    }

    #[test]
    fn a_lower_threshold_never_hurts_others_and_never_helps_its_own_class(
        servers in 1_u32..30, rho in proptest::collection::vec(0.0..40.0_f64, 3)
    ) {
        let mut before: Option<Vec<f64>> = None;
        for threshold in (0..=servers).rev() {
            let loads = vec![Load::of(rho[0]), Load::of(rho[1]), Load::of(rho[2]).up_to(threshold)];
            let now = System::new(servers, loads).unwrap().blocking();
            if let Some(before) = before {
                prop_assert!(now[0] <= before[0] + 1e-14 && now[1] <= before[1] + 1e-14);
                prop_assert!(now[2] >= before[2] - 1e-14);
            }
            before = Some(now);
        }
    }

    #[test]
    fn thresholds_that_fit_together_make_classes_independent(
        parts in proptest::collection::vec((0.0..40.0_f64, 0_u32..12), 1..5), spare in 0_u32..4
    ) {
        let servers = parts.iter().map(|(_, threshold)| threshold).sum::<u32>() + spare;
        let loads = parts.iter().map(|(rho, threshold)| Load::of(*rho).up_to(*threshold)).collect();
        let blocked = System::new(servers, loads).unwrap().blocking();
        for ((rho, threshold), blocked) in parts.iter().zip(blocked) {
            let alone = limits::erlang_b(*rho, *threshold).unwrap();
            prop_assert!((blocked - alone).abs() < 1e-13, "{blocked} {alone}");
        }
    }
}

#[test]
fn extremes_give_probabilities() {
    let loads = [0.0, 1e-300, 1e-9, 1.0, 50.0, 1e6, MAX_ERLANGS];
    for servers in [0, 1, 7, 100, 2000] {
        for rho in loads {
            for other in loads {
                for threshold in [None, Some(0), Some(1), Some(servers / 2), Some(servers), Some(u32::MAX)] {
                    let classes =
                        vec![Load::of(rho), Load::of(other).taking(3), Load { threshold, ..Load::of(rho) }];
                    let system = System::new(servers, classes).unwrap();
                    for blocked in system.blocking() {
                        assert!((0.0..=1.0).contains(&blocked), "{blocked} in {system}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_overload_of_a_million_erlangs_keeps_its_digits() {
    // With loads without end the servers are always full: what leaves is replaced
    // in proportion to the loads, and B = 1 - C / rho to first order.
    let system = System::new(1000, vec![Load::of(1e6), Load::of(3e6)]).unwrap();
    let erlang = limits::erlang_b(4e6, 1000).unwrap();
    assert!(distance(&system.blocking(), &[erlang; 2]) < 1e-12);
    let capped = System::new(1000, vec![Load::of(1e6), Load::of(3e6).up_to(100)]).unwrap();
    let blocked = capped.blocking();
    let carried = capped.carried(&blocked);
    assert!((carried[0] - 900.0).abs() < 0.1 && (carried[1] - 100.0).abs() < 0.1, "{carried:?}");
}

#[test]
fn the_recursion_loses_its_digits_where_a_loaded_class_is_held_down() {
    let system = System::new(100, vec![Load::of(2.0), Load::of(2.0), Load::of(80.0).up_to(3)]).unwrap();
    let (truth, recursion) = (system.blocking()[0], recursion::blocking(&system).unwrap()[0]);
    assert!((truth / 4.6e-96 - 1.0).abs() < 0.02, "{truth:e}");
    assert!((recursion / truth).abs() > 1e6, "it is a check, not the method to use: {recursion:e}");
}

#[test]
fn misses_at_the_extremes_give_probabilities() {
    for erlangs in [0.0, 1e-9, 30.0, 1e6, MAX_ERLANGS] {
        for hits in [0.0, 0.3, 1.0] {
            for threshold in [None, Some(0), Some(5), Some(u32::MAX)] {
                for (servers, channels) in [(0, 0), (40, 0), (40, 7), (40, 99)] {
                    let loose = misses::Split { erlangs: 20.0, hits: 0.9, threshold: None };
                    let split = misses::Split { erlangs, hits, threshold };
                    for blocked in misses::blocking(servers, channels, &[loose, split]).unwrap() {
                        for value in [blocked.hit, blocked.miss, blocked.class] {
                            assert!((0.0..=1.0).contains(&value), "{value}: {split:?} {servers} {channels}");
                        }
                    }
                }
            }
        }
    }
}
