//! What a viewer lives through, told with verbs.

use super::rig::{A, B, C, D, E, LENGTHS, Millis, Rig, title};
use crate::message::Refusal;
use crate::player::*;
use crate::quality::Cause;
use media::{BitRate, Layer, Quality, Span, Time};

#[test]
fn a_healthy_network_plays_gold_from_the_first_block_to_the_last() {
    let mut rig = Rig::with(1, title(10, &LENGTHS), BitRate(50_000_000), Quality::GOLD);
    rig.run_until(|rig| rig.count(|event| *event == Event::Ended) == 1);
    assert_eq!(rig.fed(), [3; 10]);
    assert_eq!(rig.pipe.frozen, Span::ZERO);
    assert_eq!(rig.transitions(), []);
    assert!(rig.now < Time::ZERO + 10_400.ms(), "{:?}", rig.now);
    assert_eq!(rig.player.poll_timeout(), None);
}

#[test]
fn a_bronze_viewer_asks_no_enhancement_node_for_anything() {
    let mut rig = Rig::with(1, title(20, &LENGTHS), BitRate(50_000_000), Quality::BRONZE);
    rig.run(15.s());
    let dialled = |output: &Output| matches!(output, Output::Dial { source } if *source >= C);
    assert!(!rig.outputs.iter().any(|(_, output)| dialled(output)));
    assert_eq!(rig.nodes[2].served + rig.nodes[3].served, 0);
    assert_eq!(rig.transitions(), []);
}

#[test]
fn base_goes_first_and_enhancements_follow_two_blocks_behind_or_where_no_more_base_may_be_asked_for() {
    let mut rig = Rig::new(1);
    rig.run(8.s());
    let mut held = std::collections::BTreeSet::new();
    let mut names = std::collections::BTreeMap::new();
    let mut last = 0;
    for (_, output) in &rig.outputs {
        match output {
            Output::Request { request, block, layer, .. } => {
                names.insert(*request, (*block, *layer));
                if *layer == Layer::BASE {
                    last = last.max(*block);
                } else if *block > 0 {
                    let needed = *block..=(*block + 2).min(last);
                    assert!(needed.clone().all(|b| held.contains(&b)), "{layer} of {block} too early");
                    assert!(last >= 3, "Base was asked for as far as the buffer reaches");
                }
            }
            Output::Event(Event::Fetched { block, layer: Layer::BASE, .. }) => {
                held.insert(*block);
            }
            _ => {}
        }
    }
    assert!(names.len() > 20);
}

#[test]
fn the_serving_base_node_dies_and_nobody_notices() {
    let mut rig = Rig::new(1);
    rig.run(5_150.ms());
    assert_eq!(rig.source_of(Layer::BASE), Some(A));
    rig.kill(A);
    rig.run(1_500.ms());
    assert_eq!(rig.source_of(Layer::BASE), Some(B));
    rig.run(10.s());
    assert_eq!(rig.pipe.frozen, Span::ZERO);
    assert_eq!(rig.transitions(), []);
    let over = rig.events.iter().find_map(|(_, event)| match event {
        Event::FailedOver { layer: Layer::BASE, from, to, heard, verdict, .. } => {
            Some((*from, *to, *verdict - *heard))
        }
        _ => None,
    });
    let (from, to, patience) = over.unwrap();
    assert_eq!((from, to), (A, B));
    assert!(patience >= 400.ms() && patience < 420.ms(), "{patience}");
}

#[test]
fn a_dead_node_is_dialled_every_second_and_taken_back() {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    rig.kill(A);
    rig.run(5_500.ms());
    let dials = |rig: &Rig| {
        let to_a = |(at, output): &(Time, Output)| (*output == Output::Dial { source: A }).then_some(*at);
        rig.outputs.iter().filter_map(to_a).collect::<Vec<_>>()
    };
    let seen = dials(&rig);
    assert!(seen.len() >= 5, "{seen:?}");
    assert!(
        seen.windows(2).all(|pair| pair[1] - pair[0] >= 1.s() && pair[1] - pair[0] < 1_010.ms()),
        "{seen:?}"
    );
    rig.restart(A);
    rig.run(1_100.ms());
    let count = dials(&rig).len();
    assert_eq!(rig.count(|event| *event == Event::SourceUp { source: A }), 1);
    rig.run(3.s());
    assert_eq!(dials(&rig).len(), count, "a source that is up is not dialled");
}

#[test]
fn one_of_two_enhancement_nodes_dies_without_a_dip() {
    for moment in 0..40 {
        let mut rig = Rig::new(1);
        rig.run(5.s() + Span::from_millis(25 * moment));
        rig.kill(D);
        rig.run(8.s());
        assert_eq!(rig.transitions(), [], "killed {} ms into a block", 25 * moment);
        assert_eq!(rig.source_of(Layer::ENH2), Some(E));
        let over = |event: &Event| matches!(event, Event::FailedOver { layer: Layer::ENH2, from, to, .. } if (*from, *to) == (D, E));
        assert_eq!(rig.count(over), 1, "killed {} ms into a block", 25 * moment);
    }
}

#[test]
fn both_die_and_gold_returns_with_the_first_that_is_back() {
    let mut rig = Rig::new(1);
    rig.run(5.s());
    rig.kill(D);
    rig.run(6.s());
    rig.kill(E);
    rig.run(8.s());
    assert_eq!(rig.player.target(), Quality::SILVER);
    rig.restart(D);
    let block_at_restart = rig.pipe.fed.last().unwrap().0;
    rig.run(6.s());
    let transitions = rig.transitions();
    assert_eq!(transitions.len(), 2, "{transitions:?}");
    assert_eq!((transitions[0].1, transitions[0].2), (Quality::GOLD, Quality::SILVER));
    assert_eq!(transitions[0].3, Cause::Failure);
    assert_eq!((transitions[1].1, transitions[1].2), (Quality::SILVER, Quality::GOLD));
    assert_eq!(transitions[1].3, Cause::Recovered);
    assert!(transitions[1].0 <= block_at_restart + 3, "no hold after a failure");
    assert_eq!(rig.pipe.frozen, Span::ZERO);
}

#[test]
fn the_first_in_order_serves_even_if_it_answers_last_at_the_start() {
    let mut rig = Rig::new(1);
    rig.delay(D, 150.ms());
    rig.run(100.ms());
    assert_eq!(rig.source_of(Layer::ENH2), Some(E), "nobody waits for it");
    rig.run(2.s());
    assert_eq!(rig.source_of(Layer::ENH2), Some(D));
    rig.kill(D);
    rig.run(2.s());
    rig.restart(D);
    rig.run(4.s());
    assert_eq!(rig.source_of(Layer::ENH2), Some(E), "who failed does not take its place back");
    assert_eq!(rig.transitions(), []);
}

#[test]
fn a_viewer_who_was_asleep_does_not_blame_its_sources() {
    let mut rig = Rig::new(1);
    rig.run(5.s());
    for _ in 0..20 {
        // The processor was elsewhere; the answers lie in the socket.
        rig.now += 700.ms();
        rig.run(150.ms());
    }
    assert_eq!(rig.count(|event| matches!(event, Event::Silent { .. })), 0);
    assert_eq!(rig.transitions(), []);
}

#[test]
fn a_hanging_node_is_passed_over_and_used_again_when_it_wakes() {
    let mut rig = Rig::new(1);
    rig.run(4.s());
    rig.hang(A);
    rig.run(700.ms());
    assert_eq!(rig.count(|event| matches!(event, Event::Silent { source, .. } if *source == A)), 1);
    rig.wake(A);
    rig.run(2_500.ms());
    rig.kill(B);
    rig.run(6.s());
    assert_eq!(rig.source_of(Layer::BASE), Some(A));
    assert_eq!(rig.pipe.frozen, Span::ZERO);
}

#[test]
fn a_corrupt_chunk_is_fetched_elsewhere_and_its_source_comes_last() {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    rig.node(A).failing = Some(FetchFailure::Corrupt);
    rig.run(10.s());
    let corrupt = |event: &Event| matches!(event, Event::FetchFailed { why: FetchFailure::Corrupt, .. });
    assert!((1..=4).contains(&rig.count(corrupt)), "only what was open at once");
    assert_eq!(rig.source_of(Layer::BASE), Some(B));
    assert_eq!(rig.pipe.frozen, Span::ZERO);
    assert_eq!(rig.transitions(), []);
}

#[test]
fn a_layer_that_is_refused_by_its_only_source_is_a_failure_not_a_rate() {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    rig.node(C).failing = Some(FetchFailure::Refused(Refusal::LayerNotOffered));
    rig.run(4.s());
    let transitions = rig.transitions();
    assert_eq!(transitions.len(), 1);
    assert_eq!((transitions[0].2, transitions[0].3), (Quality::BRONZE, Cause::Failure));
}

#[test]
fn no_source_at_all_gives_up_after_half_a_minute() {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    rig.kill(A);
    rig.kill(B);
    rig.run(45.s());
    assert_eq!(rig.count(|event| matches!(event, Event::Starved { .. })), 1);
    let given_up = rig.outputs.iter().find_map(|(_, output)| match output {
        Output::GiveUp(GiveUp::NoSource { waited, .. }) => Some(*waited),
        _ => None,
    });
    assert_eq!(given_up, Some(30.s()));
    assert_eq!(rig.player.poll_timeout(), None);
}

/// All nodes answer every request with this; the viewer is where nothing is held.
fn with_all_nodes_saying(why: Refusal) -> Rig {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    for node in &mut rig.nodes {
        node.failing = Some(FetchFailure::Refused(why));
    }
    rig.user(Command::Seek(60.s()));
    rig
}

#[test]
fn a_title_that_comes_from_an_archive_is_waited_for_and_begins_as_good_as_was_wished() {
    let mut rig = with_all_nodes_saying(Refusal::Coming);
    let asked = |rig: &Rig| rig.outputs.iter().filter(|(_, o)| matches!(o, Output::Request { .. })).count();
    let before = asked(&rig);
    rig.run(120.s());
    let gave_up = |rig: &Rig| rig.outputs.iter().any(|(_, output)| matches!(output, Output::GiveUp(_)));
    assert!(!gave_up(&rig), "two minutes are waited");
    assert_eq!(rig.count(|event| matches!(event, Event::Coming { .. })), 1, "which is said once");
    let often = asked(&rig) - before;
    assert!(often < 120 * 14, "each chunk of the window is asked for once a second: {often}");
    for node in &mut rig.nodes {
        node.failing = None;
    }
    rig.run(3.s());
    assert_eq!(rig.count(|event| matches!(event, Event::Started { quality: Quality::GOLD, .. })), 2);
    assert_eq!(rig.transitions(), []);
    // Who says nothing of it any more is waited for half a minute, as ever.
    let mut rig = with_all_nodes_saying(Refusal::Coming);
    rig.run(20.s());
    for node in &mut rig.nodes {
        node.failing = Some(FetchFailure::Refused(Refusal::Upstream));
    }
    rig.run(28.s());
    assert!(!gave_up(&rig));
    rig.run(3.s());
    assert!(gave_up(&rig));
}

#[test]
fn pausing_fills_the_buffer_and_asks_for_nothing_beyond_it() {
    let mut rig = Rig::new(1);
    rig.run(5_500.ms());
    rig.user(Command::Pause);
    rig.run(2.s());
    let (position, served) = (rig.pipe.position, rig.nodes[0].served);
    rig.run(30.s());
    assert_eq!((rig.pipe.position, rig.nodes[0].served), (position, served));
    rig.user(Command::Resume);
    rig.run(5.s());
    assert!(rig.pipe.position > position + 4_900.ms());
    assert_eq!(rig.pipe.frozen, Span::ZERO);
    assert_eq!(rig.transitions(), []);
}

#[test]
fn a_seek_starts_afresh_in_full_quality() {
    let mut rig = Rig::new(1);
    rig.run(5.s());
    rig.user(Command::Seek(60_500.ms()));
    rig.run(5.s());
    assert_eq!(rig.pipe.serial, 1);
    let after: Vec<_> = rig.pipe.fed.iter().skip_while(|(block, _)| *block < 60).collect();
    assert_eq!(*after[0], (60, Quality::GOLD));
    assert_eq!(rig.transitions(), []);
    assert_eq!(rig.count(|event| matches!(event, Event::Started { .. })), 2);
}

#[test]
fn a_storm_of_seeks_is_answered_by_the_last_of_them() {
    let mut rig = Rig::new(1);
    rig.run(3.s());
    for n in 0..200_u64 {
        rig.user(Command::Seek(Span::from_millis(500 * (n * 37 % 200))));
        rig.run(50.ms());
    }
    rig.user(Command::Seek(42.s()));
    rig.run(3.s());
    assert!(rig.pipe.serial <= 110, "{}", rig.pipe.serial);
    assert!(rig.pipe.position > 44.s() && rig.pipe.position < 45.s());
    assert_eq!(rig.pipe.frozen, Span::ZERO);
}

#[test]
fn the_viewer_chooses_a_quality_and_the_next_block_has_it() {
    let mut rig = Rig::new(1);
    rig.run(5.s());
    rig.user(Command::Quality(Quality::BRONZE));
    rig.run(4.s());
    rig.user(Command::Quality(Quality::GOLD));
    rig.run(4.s());
    let transitions = rig.transitions();
    assert_eq!(transitions.len(), 2, "{transitions:?}");
    assert_eq!((transitions[0].2, transitions[0].3), (Quality::BRONZE, Cause::User));
    assert_eq!((transitions[1].2, transitions[1].3), (Quality::GOLD, Cause::User));
    assert!(transitions[0].0 <= 7 && transitions[1].0 <= 12);
}

#[test]
fn trick_play_takes_base_alone_and_skips_what_no_eye_could_follow() {
    let mut rig = Rig::new(1);
    rig.run(10_200.ms());
    let before = rig.outputs.len();
    rig.user(Command::Rate(16));
    rig.run(1.s());
    let fed: Vec<u32> = rig.outputs[before..]
        .iter()
        .filter_map(|(_, output)| match output {
            Output::Feed { block, quality: Quality::BRONZE, key_only: Some(way), .. } => {
                assert_eq!(*way, 16.s());
                Some(*block)
            }
            Output::Request { layer, .. } => {
                assert_eq!(*layer, Layer::BASE);
                None
            }
            _ => None,
        })
        .collect();
    assert_eq!(fed, [10, 26, 42]);
    assert!(rig.pipe.position > 23.s() && rig.pipe.position < 27.s(), "{}", rig.pipe.position);
    rig.user(Command::Rate(-4));
    rig.run(2.s());
    assert!(rig.pipe.position > 16.s() && rig.pipe.position < 19.s(), "{}", rig.pipe.position);
    rig.user(Command::Rate(1));
    rig.run(3.s());
    assert_eq!(rig.pipe.fed.last().map(|(_, quality)| *quality), Some(Quality::GOLD));
}

#[test]
fn trick_play_keeps_its_speed_behind_nodes_that_pace_it() {
    let mut wrong = Vec::new();
    for (rate, from) in [(2, 10), (4, 10), (8, 10), (16, 10), (-2, 220), (-4, 220), (-8, 220), (-16, 220)] {
        let mut rig = Rig::with(1, title(240, &LENGTHS), BitRate(50_000_000), Quality::GOLD);
        (rig.node(A).paced, rig.node(B).paced) = (Some(Time::ZERO), Some(Time::ZERO));
        rig.user(Command::Seek(from.s()));
        // By then the burst that the seek took is made up for.
        rig.run(15.s());
        let (before, speed) = (rig.pipe.position, u64::from(i8::unsigned_abs(rate)));
        rig.user(Command::Rate(rate));
        rig.run(10.s());
        let after = rig.pipe.position;
        let way = before.max(after).saturating_sub(before.min(after));
        let starved = rig.count(|event| matches!(event, Event::Starved { .. }));
        let since = rig.now;
        rig.user(Command::Rate(1));
        rig.run(6.s());
        let first = rig.first(since, |output| matches!(output, Output::PipelinePlay)).unwrap();
        let pace = way > Span::from_millis(9_700 * speed) && way <= (10 * speed).s();
        if !pace || starved > 0 || first - since >= 50.ms() || rig.pipe.frozen > Span::ZERO {
            wrong.push((rate, way, starved, first - since, rig.pipe.frozen));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn running_backwards_into_the_start_plays_from_it() {
    let mut rig = Rig::new(1);
    rig.run(5.s());
    rig.user(Command::Rate(-8));
    rig.run(4.s());
    assert!(rig.pipe.position > 1.s() && rig.pipe.position < 4.s(), "{}", rig.pipe.position);
    assert_eq!(rig.pipe.fed.last().map(|(_, quality)| *quality), Some(Quality::GOLD));
}

#[test]
fn a_draining_node_finishes_what_is_open_and_is_asked_for_nothing_more() {
    let mut rig = Rig::new(1);
    rig.run(3_020.ms());
    rig.put(Input::Draining { source: A });
    let from = rig.outputs.len();
    rig.run(5.s());
    let asked = |output: &Output| matches!(output, Output::Request { source, .. } if *source == A);
    assert!(!rig.outputs[from..].iter().any(|(_, output)| asked(output)));
    assert_eq!((rig.source_of(Layer::BASE), rig.pipe.frozen), (Some(B), Span::ZERO));
}
