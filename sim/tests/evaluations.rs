//! The evaluations through the machines, at points small enough for a test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use media::Span;
use sim::eval::continuity::{self, Plan, Variant};
use sim::eval::{detection, recovery, search_cost};

#[test]
fn a_dedicated_standby_is_safe_to_800_users_and_collapses_as_published() {
    let normal = |users, vips| {
        let runs =
            (1..=3).map(|seed| continuity::run(&Plan::paper(users, vips, seed), Variant::Without).unwrap());
        let values: Vec<f64> = runs.map(|outcome| outcome.continuity.normal()).collect();
        sim::eval::Estimate::of(&values).mean
    };
    for vips in [0, 200, 400, 600] {
        assert!(normal(800, vips) >= 0.99);
    }
    assert!(normal(1400, 200) < 0.40);
    assert!(normal(1300, 600) < 0.25);
}

#[test]
fn reservations_carry_a_thousand_users_and_every_vip() {
    let outcome = continuity::run(&Plan::paper(1000, 200, 1), Variant::With).unwrap();
    assert!(outcome.continuity.normal() >= 0.98, "{}", outcome.continuity.normal());
    assert!((outcome.continuity.vip() - 1.0).abs() < 1e-12);
    assert_eq!(outcome.vip_backups, [200, 0, 0]);
    assert!(outcome.recoveries.iter().all(|took| *took <= Span::from_secs(15)));
}

#[test]
fn a_death_is_noticed_in_time_and_a_smaller_td_costs_more_signals() {
    let points: Vec<_> = [1, 3].map(|td| detection::measure(Span::from_secs(td), 60, &[1]).unwrap()).to_vec();
    let verdicts = detection::verdicts(&points);
    assert!(verdicts.iter().all(|verdict| verdict.holds), "{verdicts:#?}");
}

#[test]
fn a_reservation_recovers_sooner_than_a_search_after_the_failure() {
    let both = recovery::compare(120, 200, &[1]).unwrap();
    assert!(both[0].mean.mean < both[1].mean.mean, "{} against {}", both[0].mean, both[1].mean);
    assert!(both[0].longest <= 15.0);
}

#[test]
fn boards_save_messages_when_many_search_at_once_and_tries_help_when_agents_get_lost() {
    let costs: Vec<_> = [(1, true), (1, false), (50, true), (50, false)]
        .map(|(users, boards)| search_cost::measure(users, boards, &[1]).unwrap())
        .to_vec();
    let losses = [search_cost::loss(20, 300, &[1]).unwrap()];
    let verdicts = search_cost::verdicts(&costs, &losses);
    assert!(costs.iter().all(|cost| cost.found.mean >= 1.0), "{costs:#?}");
    assert!(verdicts[1].holds && verdicts[2].holds, "{verdicts:#?}");
}
