//! Links that carry less than is wanted.

use super::rig::{A, B, C, LENGTHS, Millis, Rig, title};
use crate::player::*;
use crate::quality::Cause;
use media::{BitRate, Layer, Quality, Span, Time};

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

#[test]
fn nothing_shares_the_line_with_a_first_block_until_it_is_whole() {
    let mut rig = Rig::new(1);
    rig.run_until(|rig| rig.count(|event| matches!(event, Event::Started { .. })) == 1);
    let first: Vec<_> = rig
        .outputs
        .iter()
        .take_while(|(_, output)| !matches!(output, Output::Event(Event::Started { .. })))
        .filter_map(|(_, output)| match output {
            Output::Request { block, layer, .. } => Some((*block, *layer)),
            _ => None,
        })
        .collect();
    assert_eq!(first, [(0, Layer::BASE), (0, Layer::ENH1), (0, Layer::ENH2)]);
    rig.run(10.ms());
    let asked = |block| {
        let is_base = |output: &Output| matches!(output, Output::Request { block: asked, layer: Layer::BASE, .. } if *asked == block);
        rig.outputs.iter().any(|(_, output)| is_base(output))
    };
    assert!((1..4).all(asked), "then Base, as far as the buffer reaches");
}

#[test]
fn a_seek_near_the_end_of_a_block_does_not_freeze_at_the_next_one() {
    for round_trip in [4, 64, 104, 150] {
        for millis in (50..1_000).step_by(90) {
            let mut rig = Rig::new(1);
            rig.round_trip = round_trip.ms();
            rig.link = BitRate(5_000_000);
            rig.run(5.s());
            rig.user(Command::Seek(60.s() + Span::from_millis(millis)));
            rig.run(6.s());
            assert_eq!(rig.pipe.frozen, Span::ZERO, "to 60.{millis:03} s at {round_trip} ms");
        }
    }
}

#[test]
fn what_a_start_shows_is_kept_up_at_any_round_trip() {
    for round_trip in [4, 64, 104, 150, 250] {
        let mut rig = Rig::new(1);
        rig.round_trip = round_trip.ms();
        rig.link = BitRate(5_000_000);
        rig.run(20.s());
        let down = rig.transitions().into_iter().filter(|(_, from, to, _)| to < from).count();
        assert_eq!((down, rig.pipe.frozen), (0, Span::ZERO), "{round_trip} ms: {:?}", rig.transitions());
    }
}

#[test]
fn whoever_cannot_answer_in_time_is_not_asked_for_an_enhancement() {
    let asked = |round_trip: u64| {
        let mut rig = Rig::new(1);
        rig.delay(C, 60.s());
        rig.put(Input::Connected { source: C, round_trip: round_trip.ms() });
        rig.run_until(|rig| rig.count(|event| matches!(event, Event::Started { .. })) == 1);
        rig.first(Time::ZERO, |output| matches!(output, Output::Request { source: C, .. })).is_some()
    };
    // A first block waits for its layers for as long as it lasts and 300 ms.
    assert_eq!([4, 1_290, 1_310].map(asked), [true, true, false]);
}

/// On a crowded line silence is borne for longer. A standby of whom nothing is asked
/// may be found silent there: that tells nothing about who serves.
#[test]
fn the_silence_of_an_idle_standby_is_not_that_of_who_serves() {
    let mut rig = Rig::with(1, title(90, &LENGTHS), BitRate(BASE * 13 / 10), Quality::GOLD);
    rig.run(20.s());
    rig.hang(B);
    rig.run(700.ms());
    rig.hang(A);
    rig.run(900.ms());
    let silent =
        |rig: &Rig, id| rig.count(|event| matches!(event, Event::Silent { source, .. } if *source == id));
    assert_eq!((silent(&rig, A), silent(&rig, B)), (0, 1));
    rig.wake(A);
    rig.run(10.s());
    assert_eq!((silent(&rig, A), rig.source_of(Layer::BASE), rig.pipe.frozen), (0, Some(A), Span::ZERO));
}
