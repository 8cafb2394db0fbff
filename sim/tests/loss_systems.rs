//! The admission of nodes, simulated, against the exact formulas.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a witness states what it saw")]

use sim::eval::Estimate;
use sim::eval::admission::{self, Runs};
use sim::loss::{Fate, Law, Miss};
use sim::theory::misses::{self, Split};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Values beside the exact ones, and how many lie where.
#[derive(Default)]
struct Comparison {
    inside: usize,
    outside: Vec<String>,
    seen: usize,
}

impl Comparison {
    fn add(&mut self, what: &str, estimate: Estimate, exact: f64) {
        let off = (estimate.mean - exact).abs();
        self.seen += 1;
        self.inside += usize::from(off <= estimate.half_width);
        // Student's t for 9 degrees of freedom: 2.262 at 95 %, 4.781 at 99.9 %.
        if off > estimate.half_width * 4.781 / 2.262 {
            self.outside.push(format!("{what}: {estimate:?} {exact}"));
        }
    }
}

/// Ten runs on as many cores as there are.
fn ten(plan: &sim::loss::LossPlan) -> Runs {
    std::thread::scope(|scope| {
        let half = |from: u64| scope.spawn(move || Runs::of(plan, from..from + 5));
        let halves = [half(*SEEDS.start()), half(*SEEDS.start() + 5)];
        Runs::join(halves.map(|half| half.join().unwrap()))
    })
}

#[test]
fn simulation_and_theory_agree_in_twenty_values_for_three_service_laws() {
    let mut comparison = Comparison::default();
    let exact = admission::system(admission::SERVERS, [40.0; 3], Some(25)).unwrap().blocking();
    for law in Law::ALL {
        let runs = ten(&admission::service_laws(law, 100_000));
        for (class, exact) in exact.iter().enumerate() {
            let found = runs.of_stream(class, Fate::blocking);
            comparison.add(&format!("{law:?}, class {}", class + 1), found, *exact);
        }
    }
    let split = |erlangs, hits, threshold| Split { erlangs, hits, threshold };
    let solve = |channels, threshold| {
        let classes = [split(14.0, 0.9, None), split(10.0, 0.9, None), split(10.0, 0.2, threshold)];
        misses::blocking(40, channels, &classes).unwrap()
    };
    let (exact, runs) =
        (solve(12, Some(8)), ten(&admission::end_to_end(12, Some(8), Miss::Through, 100_000)));
    for (class, exact) in exact.iter().enumerate() {
        comparison.add("hit, 12 channels", runs.of_stream(class, Fate::hit_blocking), exact.hit);
        comparison.add("miss, 12 channels", runs.of_stream(class, Fate::miss_blocking), exact.miss);
    }
    let (exact, runs) = (solve(6, None), ten(&admission::end_to_end(6, None, Miss::Through, 100_000)));
    for (class, exact) in exact.iter().enumerate() {
        comparison.add("class, 6 channels", runs.of_stream(class, Fate::blocking), exact.class);
    }
    comparison.add("hits, 6 channels", runs.of_all(|_| true, Fate::hit_blocking), exact[0].hit);
    comparison.add("misses, 6 channels", runs.of_all(|_| true, Fate::miss_blocking), exact[0].miss);
    assert_eq!(comparison.seen, 20);
    assert_eq!(comparison.outside, Vec::<String>::new(), "outside of their 99.9 % intervals");
    assert!(comparison.inside >= 17, "{} of 20 inside of their 95 % intervals", comparison.inside);
}

#[test]
fn copying_first_frees_the_link_to_the_origin_sooner() {
    let blocked = |miss| {
        let runs = Runs::of(&admission::end_to_end(6, Some(8), miss, 20_000), 1..=3);
        runs.of_all(|_| true, Fate::miss_blocking).mean
    };
    let (through, first, slow) =
        (blocked(Miss::Through), blocked(Miss::Copied(0.25)), blocked(Miss::Copied(4.0)));
    assert!(first < through - 0.05 && slow > through + 0.05, "{first} {through} {slow}");
}

#[test]
fn a_lower_quality_instead_of_a_refusal_loses_fewer_viewers() {
    let lost = |threshold, downgrade| {
        let runs = Runs::of(&admission::downgrade(50.0, threshold, downgrade, 20_000), 1..=3);
        let important = runs.of_all(|stream| stream < 6, Fate::blocking).mean;
        (runs.of_all(|_| true, Fate::blocking).mean, important)
    };
    let (refused, offered) = (lost(None, false), lost(None, true));
    let both = lost(Some(8), true);
    assert!(offered.0 < refused.0 - 0.008, "{offered:?} {refused:?}");
    assert!(
        both.1 < offered.1 && both.1 < lost(Some(8), false).1,
        "both together serve classes 1 and 2 best"
    );
}

#[test]
fn other_sites_help_and_the_first_one_helps_most() {
    let blocked = |redirects| {
        Runs::of(&admission::redirection(redirects, 30_000), 1..=3).of_all(|_| true, Fate::blocking).mean
    };
    let lost = [0, 1, 2].map(blocked);
    assert!(lost[1] < lost[0] && lost[2] < lost[1], "{lost:?}");
    assert!(lost[0] - lost[1] > lost[1] - lost[2], "{lost:?}");
}
