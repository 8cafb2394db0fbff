//! Against whole numbers of any length: no rounding anywhere.

use super::*;
use num_bigint::BigUint;

/// A load of `numerator / 16` erlangs, so that it is the same number as a float.
#[derive(Clone, Copy)]
struct Sixteenths {
    numerator: u32,
    threshold: u32,
}

/// The terms of a class times `16^C C!`: whole numbers.
fn terms(load: Sixteenths, servers: u32) -> Vec<BigUint> {
    let most = load.threshold.min(servers);
    (0..=most)
        .map(|n| {
            let falling: BigUint = (n + 1..=servers).map(BigUint::from).product();
            BigUint::from(load.numerator).pow(n) * BigUint::from(16_u32).pow(servers - n) * falling
        })
        .collect()
}

fn convolve(left: &[BigUint], right: &[BigUint], servers: u32) -> Vec<BigUint> {
    let mut sum = vec![BigUint::ZERO; at(servers) + 1];
    for (n, left) in left.iter().enumerate() {
        for (m, right) in right.iter().enumerate().take(sum.len() - n) {
            sum[n + m] += left * right;
        }
    }
    sum
}

/// Numerator and denominator of `B_k`, by the definition.
fn blocking(servers: u32, loads: &[Sixteenths], class: usize) -> (BigUint, BigUint) {
    let own = terms(loads[class], servers);
    let mut others = vec![BigUint::from(1_u32)];
    for (_, load) in loads.iter().enumerate().filter(|(other, _)| *other != class) {
        others = convolve(&others, &terms(*load, servers), servers);
    }
    others.resize(at(servers) + 1, BigUint::ZERO);
    let (mut all, mut blocked) = (BigUint::ZERO, BigUint::ZERO);
    for (n, term) in own.iter().enumerate() {
        for (m, other) in others.iter().enumerate().take(at(servers) + 1 - n) {
            let weight = term * other;
            if n + m == at(servers) || n == at(loads[class].threshold) {
                blocked += &weight;
            }
            all += weight;
        }
    }
    (blocked, all)
}

/// `|value - numerator / denominator|` over the latter, at most `1 / bound`: in
/// whole numbers, as a float is a whole number times a power of two.
fn within(value: f64, numerator: &BigUint, denominator: &BigUint, bound: u64) -> bool {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52) & 0x7FF, bits & ((1 << 52) - 1));
    assert!(exponent > 0, "{value:e} has lost digits by being small");
    let (mantissa, shift) = (fraction | (1 << 52), 1075 - exponent);
    let (value, truth) = (BigUint::from(mantissa) * denominator, numerator << shift);
    let off = if value > truth { &value - &truth } else { &truth - &value };
    off * bound <= truth
}

#[test]
fn digits_are_right_down_to_the_smallest_probabilities() {
    let none = u32::MAX;
    let load = |numerator, threshold| Sixteenths { numerator, threshold };
    let systems: [(u32, Vec<Sixteenths>); 6] = [
        // Loads 2, 2, 80 with a threshold of 3: B_1 is 4.6e-96.
        (100, vec![load(32, none), load(32, none), load(1280, 3)]),
        (100, vec![load(40, none), load(24, none), load(720, 5)]),
        (60, vec![load(3, none), load(5, 40), load(700, 4)]),
        (100, vec![load(533, none), load(533, none), load(533, 20)]),
        (90, vec![load(640, 30), load(640, 40), load(640, 10)]),
        (80, vec![load(16, none), load(1, 2), load(9, 70), load(11, 7)]),
    ];
    let mut smallest = 1.0_f64;
    for (servers, loads) in systems {
        let as_load = |load: &Sixteenths| Load::of(f64::from(load.numerator) / 16.0);
        let with = |load: &Sixteenths| Load { threshold: Some(load.threshold), ..as_load(load) };
        let system = System::new(servers, loads.iter().map(with).collect()).unwrap();
        for (class, blocked) in system.blocking().into_iter().enumerate() {
            let (numerator, denominator) = blocking(servers, &loads, class);
            assert!(within(blocked, &numerator, &denominator, 1_000_000_000_000), "{blocked:e} in {system}");
            assert!(!within(blocked * (1.0 + 1e-11), &numerator, &denominator, 1_000_000_000_000));
            smallest = smallest.min(blocked);
        }
    }
    assert!(smallest < 1e-90, "{smallest:e}");
}
