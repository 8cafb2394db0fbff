//! Random faults, every checker on; a seed that fails says how to replay it.
#![allow(clippy::panic, reason = "a broken rule fails the test with its own words")]

use sim::chaos;

#[test]
fn two_hundred_networks_survive_what_chance_does_to_them() {
    let mut faults = 0;
    for seed in 0..200 {
        match chaos::run(seed) {
            Ok(chaos) => faults += chaos.faults.len(),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(faults > 600, "something did go wrong: {faults}");
}

#[test]
fn a_seed_is_replayed_to_the_last_event() {
    assert_eq!(chaos::run(17), chaos::run(17));
}
