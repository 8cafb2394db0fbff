//! A player behind a proxy, both as they are, over a line of constant rate: how
//! often quality changes near a threshold, and whether it is what the line carries.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets the unexpected should say so loudly"
)]

mod line;

use line::{TITLE, World};
use media::{BitRate, Quality, Span, Time};
use protocol::quality::{Cause, Step};

/// The rates of silver and gold.
const THRESHOLDS: [(Quality, u64); 2] = [(Quality::SILVER, 896_000), (Quality::GOLD, 1_696_000)];

/// The most changes within any minute.
fn most_in_a_minute(changes: &[Time]) -> usize {
    let within =
        |from: Time| changes.iter().filter(move |at| **at >= from && **at - from < Span::from_secs(60));
    changes.iter().map(|from| within(*from).count()).max().unwrap_or(0)
}

#[test]
fn near_a_threshold_quality_changes_at_most_twice_a_minute_and_nothing_freezes() {
    for (quality, threshold) in THRESHOLDS {
        for percent in [85, 90, 95, 98, 100, 102, 105, 110, 115] {
            let mut world = World::new(BitRate(threshold * percent / 100));
            world.run(Span::from_secs(290));
            let changes: Vec<Time> = world.changes.iter().map(|(at, ..)| *at).collect();
            println!("{percent} % of {quality}: {:?}, seconds {:?}", world.changes, world.seconds);
            assert!(most_in_a_minute(&changes) <= 2, "{percent} % of {quality}: {:?}", world.changes);
            assert_eq!(world.frozen, Span::ZERO, "{percent} % of {quality}");
            assert!(world.changes.iter().all(|(_, _, cause)| matches!(cause, Cause::Rate | Cause::Headroom)));
            let reached: u32 = world.seconds[usize::from(quality.layers()) - 1..].iter().sum();
            assert!(percent < 110 || reached >= 275, "{percent} % of {quality}: {:?}", world.seconds);
            assert!(percent > 98 || reached <= 5, "{percent} % of {quality}: {:?}", world.seconds);
        }
    }
}

#[test]
fn a_wide_line_carries_gold_from_the_first_block() {
    let mut world = World::new(BitRate(20_000_000));
    world.run(Span::from_secs(60));
    assert_eq!((&world.changes[..], world.frozen), (&[][..], Span::ZERO));
    assert_eq!(world.seconds[..2], [0, 0]);
}

#[test]
fn a_narrow_line_gets_base_in_time_and_a_line_that_widens_gets_all_after_the_holds() {
    let mut world = World::new(BitRate(520_000));
    world.run(Span::from_secs(60));
    assert_eq!(world.frozen, Span::ZERO);
    assert!(world.seconds[0] >= 50, "{:?}", world.seconds);
    world.rate = BitRate(20_000_000);
    let widened = world.now;
    world.run(Span::from_secs(90));
    let up: Vec<(u64, Quality)> = world
        .changes
        .iter()
        .filter(|(at, ..)| *at >= widened)
        .map(|(at, to, _)| ((*at - widened).as_millis(), to.quality))
        .collect();
    println!("{up:?}");
    let [(_, first), (last, second)] = up[..] else { panic!("{up:?}") };
    assert_eq!((first, second), (Quality::SILVER, Quality::GOLD));
    assert!(last < 75_000, "{last} ms");
    assert_eq!(world.frozen, Span::ZERO);
    assert_eq!(TITLE.len(), 3);
}

#[test]
fn between_silver_and_gold_a_viewer_sees_gold_by_half_and_no_flicker_of_steps() {
    // What a first half of gold needs, and what a first half of silver needs.
    for (top, half, next) in [(1, 1_376_000, 1_696_000), (0, 696_000, 896_000)] {
        for rate in [half * 90 / 100, half * 98 / 100, half * 103 / 100, half * 112 / 100, next] {
            let mut world = World::in_halves(BitRate(rate));
            world.run(Span::from_secs(240));
            let changes: Vec<Time> = world.changes.iter().map(|(at, ..)| *at).collect();
            let facts = format!(
                "{rate}: {:?}, seconds {:?}, of them by half {:?}",
                world
                    .changes
                    .iter()
                    .map(|(at, to, _)| (at.as_nanos() / 1_000_000_000, to.to_string()))
                    .collect::<Vec<_>>(),
                world.seconds,
                world.halved
            );
            println!("{facts}");
            assert!(most_in_a_minute(&changes) <= 2, "{facts}");
            assert_eq!(world.frozen, Span::ZERO, "{facts}");
            assert!(![half * 112 / 100, next].contains(&rate) || world.halved[top] >= 220, "{facts}");
            assert!(rate > half * 98 / 100 || world.halved[top] <= 5, "{facts}");
        }
    }
}

#[test]
fn where_a_line_widens_the_second_half_is_tried_unseen_and_then_shown() {
    let mut world = World::in_halves(BitRate(1_541_000));
    world.run(Span::from_secs(60));
    assert_eq!(world.changes.last().unwrap().1, Step::half(Quality::GOLD));
    let before = world.changes.len();
    world.rate = BitRate(20_000_000);
    world.run(Span::from_secs(70));
    let after: Vec<Step> = world.changes[before..].iter().map(|(_, to, _)| *to).collect();
    assert_eq!((after, world.frozen), (vec![Step::whole(Quality::GOLD)], Span::ZERO));
}
