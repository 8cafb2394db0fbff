//! Links that carry less than is wanted.

use super::rig::{LENGTHS, Millis, Rig, title};
use crate::player::*;
use crate::quality::Cause;
use media::{BitRate, Quality, Span};

const BASE: u64 = LENGTHS[0] * 8;
const SILVER: u64 = (LENGTHS[0] + LENGTHS[1]) * 8;
const GOLD: u64 = (LENGTHS[0] + LENGTHS[1] + LENGTHS[2]) * 8;

/// Blocks that differ as those of films do: by a third either way, in bursts.
fn film(blocks: u64, lengths: &[u64]) -> TitleShape {
    let mut shape = title(blocks, lengths);
    for (number, block) in shape.blocks.iter_mut().enumerate() {
        let part = [100, 130, 133, 70, 67, 100, 125, 75][number % 8];
        for length in &mut block.lengths {
            length.0 = length.0 * part / 100;
        }
    }
    shape
}

#[test]
fn gold_over_a_link_of_one_and_a_third_of_base_never_freezes() {
    let small = LENGTHS.map(|length| length / 4);
    for (shape, base) in
        [(title(90, &LENGTHS), BASE), (film(90, &LENGTHS), BASE), (title(90, &small), BASE / 4)]
    {
        for round_trip in [4, 24, 64, 104] {
            let mut rig = Rig::with(1, shape.clone(), BitRate(base * 13 / 10), Quality::GOLD);
            rig.round_trip = Span::from_millis(round_trip);
            rig.run(68.s());
            let facts = format!("base {base}, round trip {round_trip}: {:?}", rig.transitions());
            assert_eq!(rig.pipe.frozen, Span::ZERO, "{facts}");
            assert!(rig.pipe.position > 60.s(), "{facts}");
            assert_eq!(rig.transitions(), [], "bronze from the start to the end");
        }
    }
}

#[test]
fn near_a_threshold_quality_changes_at_most_twice_a_minute_and_is_what_the_link_carries() {
    for (quality, threshold) in [(Quality::SILVER, SILVER), (Quality::GOLD, GOLD)] {
        for part in [85, 90, 95, 100, 105, 110, 115] {
            for shape in [title(400, &LENGTHS), film(400, &LENGTHS)] {
                let constant = shape == title(400, &LENGTHS);
                let mut rig = Rig::with(3, shape, BitRate(threshold * part / 100), Quality::GOLD);
                rig.run(300.s());
                let changes: Vec<_> = rig
                    .events
                    .iter()
                    .filter(|(_, event)| matches!(event, Event::Transition { .. }))
                    .map(|(at, _)| *at)
                    .collect();
                let facts = format!("{part} % of {quality}: {:?}", rig.transitions());
                assert!(!changes.windows(3).any(|three| three[2] - three[0] < 60.s()), "{facts}");
                assert_eq!(rig.pipe.frozen, Span::ZERO, "{facts}");
                let fed = rig.fed();
                let reached = fed.iter().filter(|layers| **layers >= quality.layers()).count();
                // Some blocks of a film weigh a third more than the mean.
                let sure = if constant { 110 } else { 115 };
                assert!(part < sure || reached * 10 >= fed.len() * 9, "{facts}");
                assert!(part > 95 || reached * 10 <= fed.len(), "{facts}");
            }
        }
    }
}

#[test]
fn a_link_that_narrows_steps_down_and_one_that_widens_steps_up_after_the_hold() {
    let mut rig = Rig::with(1, title(200, &LENGTHS), BitRate(GOLD * 4), Quality::GOLD);
    rig.run(10.s());
    assert_eq!(rig.transitions(), []);
    rig.link = BitRate(BASE * 13 / 10);
    rig.run(20.s());
    let down = rig.transitions();
    assert!(!down.is_empty() && down.iter().all(|(.., cause)| *cause == Cause::Rate), "{down:?}");
    assert_eq!(down.last().unwrap().2, Quality::BRONZE);
    rig.link = BitRate(GOLD * 400);
    rig.run(40.s());
    let up = &rig.transitions()[down.len()..];
    assert_eq!(up.iter().map(|(_, _, to, _)| to.layers()).collect::<Vec<_>>(), [2, 3], "{up:?}");
    assert!(up.iter().all(|(.., cause)| *cause == Cause::Headroom));
    assert!(up[1].0 - up[0].0 >= 9, "each step up has its own hold");
    assert_eq!(rig.pipe.frozen, Span::ZERO);
}
