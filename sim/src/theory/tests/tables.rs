//! The published shapes: blocking against thresholds and against demand, and the
//! link to the origin, each value to five digits.

use super::*;

fn equal(rho: f64, threshold: Option<u32>) -> System {
    let loads = vec![Load::of(rho), Load::of(rho), Load { threshold, ..Load::of(rho) }];
    System::new(100, loads).unwrap()
}

/// Digits as they stand in a table.
fn digits(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

#[test]
fn the_table_of_thresholds_agrees_to_five_digits() {
    const LOADS: [f64; 3] = [30.0, 100.0 / 3.0, 40.0];
    #[rustfmt::skip]
    let table: [(Option<u32>, [[&str; 3]; 3]); 8] = [
        (None,     [["0.02696", "0.02696", "87.574"], ["0.07570", "0.07570", "92.430"], ["0.19627", "0.19627", "96.448"]]),
        (Some(40), [["0.02555", "0.03345", "87.463"], ["0.07263", "0.08518", "92.319"], ["0.19139", "0.20768", "96.382"]]),
        (Some(30), [["0.01230", "0.13531", "85.203"], ["0.04369", "0.19933", "90.443"], ["0.14710", "0.31830", "95.500"]]),
        (Some(25), [["0.00521", "0.24590", "82.310"], ["0.02455", "0.30850", "88.080"], ["0.11207", "0.41480", "94.443"]]),
        (Some(20), [["0.00157", "0.38017", "78.501"], ["0.01085", "0.43525", "84.768"], ["0.07731", "0.52386", "92.861"]]),
        (Some(15), [["0.00034", "0.52725", "74.162"], ["0.00370", "0.57100", "80.720"], ["0.04740", "0.63922", "90.639"]]),
        (Some(10), [["0.00006", "0.68134", "69.557"], ["0.00096", "0.71156", "76.217"], ["0.02510", "0.75789", "87.677"]]),
        (Some(0),  [["0.00000", "1.00000", "60.000"], ["0.00003", "1.00000", "66.665"], ["0.00399", "1.00000", "79.681"]]),
    ];
    for (threshold, columns) in table {
        for (rho, expected) in LOADS.into_iter().zip(columns) {
            let system = equal(rho, threshold);
            let blocked = system.blocking();
            let carried: f64 = system.carried(&blocked).iter().sum();
            let found = [digits(blocked[0], 5), digits(blocked[2], 5), digits(carried, 3)];
            assert_eq!(found, expected, "T_3 {threshold:?}, {rho} erlangs");
            assert!((blocked[0] - blocked[1]).abs() < 1e-14);
        }
    }
}

#[test]
fn the_table_of_demand_agrees_and_carried_traffic_grows_with_it() {
    #[rustfmt::skip]
    let table = [
        (90.0,  [["0.0000", "0.0000"], ["0.0000", "0.3228"], ["0.0000", "0.6483"]]),
        (120.0, [["0.0064", "0.0064"], ["0.0000", "0.4726"], ["0.0000", "0.7319"]]),
        (150.0, [["0.0903", "0.0903"], ["0.0007", "0.5713"], ["0.0000", "0.7837"]]),
        (180.0, [["0.2135", "0.2135"], ["0.0194", "0.6399"], ["0.0022", "0.8188"]]),
        (240.0, [["0.3991", "0.3991"], ["0.1689", "0.7286"], ["0.0913", "0.8635"]]),
    ];
    let mut carried_before = [0.0; 3];
    for (requests, columns) in table {
        for (column, (threshold, expected)) in [None, Some(20), Some(10)].into_iter().zip(columns).enumerate()
        {
            let classes = [(0.4, 45.0), (0.4, 12.5), (0.2, 90.0)];
            let mut loads = classes.map(|(share, minutes)| Load::of(requests * share * minutes / 60.0));
            loads[2].threshold = threshold;
            let system = System::new(100, loads.to_vec()).unwrap();
            let blocked = system.blocking();
            let found = [digits(blocked[0], 4), digits(blocked[2], 4)];
            assert_eq!(found, expected, "{requests} requests an hour, T_3 {threshold:?}");
            let carried: f64 = system.carried(&blocked).iter().sum();
            assert!(carried > carried_before[column], "throughput grows with demand");
            carried_before[column] = carried;
        }
    }
}

#[test]
fn the_table_of_misses_agrees() {
    let split = |erlangs, hits, threshold| misses::Split { erlangs, hits, threshold };
    let solve = |channels, threshold| {
        let classes = [split(14.0, 0.9, None), split(10.0, 0.9, None), split(10.0, 0.2, threshold)];
        let blocked = misses::blocking(40, channels, &classes).unwrap();
        assert!((blocked[0].class - blocked[1].class).abs() < 1e-14);
        [digits(blocked[0].class, 4), digits(blocked[2].class, 4)]
    };
    assert_eq!(solve(6, None), ["0.0565", "0.4021"]);
    assert_eq!(solve(6, Some(8)), ["0.0530", "0.4369"]);
    assert_eq!(solve(12, None), ["0.0413", "0.1221"]);
    assert_eq!(solve(12, Some(8)), ["0.0167", "0.3416"]);
    assert_eq!(solve(40, None), ["0.0440", "0.0440"]);
    assert_eq!(solve(40, Some(8)), ["0.0150", "0.3402"]);
}
