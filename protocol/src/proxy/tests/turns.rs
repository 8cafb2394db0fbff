//! Narrow lines: what they cannot carry yet waits its turn, is asked for once, and
//! what somebody waits for goes first.

use super::rig::{BRONZE, GOLD, Rig, base_1, base_2, chunk, fill, node};
use crate::proxy::cooperation::CooperationConfig;
use crate::proxy::*;
use media::{ByteCount, ChunkId, Layer, Quality};

/// A bronze and a gold client on lines of which nothing is known: one chunk at a time.
fn narrow() -> Rig {
    let cooperation = CooperationConfig { prefetch: false, ..ProxyConfig::default().cooperation };
    let mut rig = Rig::on_narrow_lines(ProxyConfig {
        first_window: ByteCount(0),
        cooperation,
        ..ProxyConfig::default()
    });
    rig.open(BRONZE, Quality::BRONZE);
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig
}

/// The same on a line that is known to carry 80 kbit/s: a kilobyte in a tenth of a
/// second.
fn measured() -> Rig {
    let mut rig = narrow();
    let first = chunk(9, Layer::BASE);
    rig.ask(BRONZE, &first).unwrap();
    for _ in 0..3 {
        came(&mut rig, &first, 1_000);
        rig.run(Span::from_millis(100));
    }
    came(&mut rig, &first, 1_000);
    rig.held.push(first.clone());
    rig.input(Input::Filled { chunk: first });
    rig
}

fn came(rig: &mut Rig, chunk: &ChunkId, bytes: u64) -> Vec<Output> {
    rig.input(Input::Came { chunk: chunk.clone(), bytes })
}

/// All of it is here; who is asked for what next.
fn whole(rig: &mut Rig, chunk: &ChunkId) -> Vec<Output> {
    rig.held.push(chunk.clone());
    let outputs = rig.input(Input::Filled { chunk: chunk.clone() });
    outputs.into_iter().filter(|output| matches!(output, Output::Fill { .. })).collect()
}

/// How often each chunk was asked of anybody.
fn asked_for(rig: &Rig, wanted: &ChunkId) -> usize {
    let of = |event: &&Event| matches!(event, Event::Filling { chunk, .. } if chunk == wanted);
    rig.events.iter().filter(of).count()
}

#[test]
fn base_that_somebody_waits_for_goes_before_everything_else_that_waits() {
    let mut rig = measured();
    let (base, enh1, enh2) = (chunk(0, Layer::BASE), chunk(0, Layer::ENH1), chunk(0, Layer::ENH2));
    assert_eq!(rig.ask(GOLD, &base), Ok(vec![fill(&base, base_1())]));
    // Its enhancements wait, and then somebody else comes who has nothing yet.
    assert_eq!(rig.ask(GOLD, &enh1), Ok(vec![]));
    assert_eq!(rig.ask(GOLD, &enh2), Ok(vec![]));
    let other = chunk(5, Layer::BASE);
    assert_eq!(rig.ask(BRONZE, &other), Ok(vec![]));
    assert_eq!(whole(&mut rig, &base), [fill(&other, base_1())]);
    assert_eq!(whole(&mut rig, &other), [fill(&enh1, node("enh1-1", 3))]);
    // The next Base does not stand behind an enhancement that has only just begun.
    came(&mut rig, &enh1, 1_000);
    let next = chunk(1, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, base_1())]));
    assert_eq!(whole(&mut rig, &next), []);
    assert_eq!(whole(&mut rig, &enh1), [fill(&enh2, node("enh2-1", 4))]);
    for chunk in [base, enh1, enh2, other, next] {
        assert_eq!(asked_for(&rig, &chunk), 1, "{chunk}");
    }
}

#[test]
fn a_full_line_is_asked_for_each_chunk_once_however_long_it_takes() {
    let mut rig = narrow();
    // Base of four blocks, a tenth of which comes each second: everybody answers probes.
    let all: Vec<ChunkId> = (0..4).map(|block| chunk(block, Layer::BASE)).collect();
    for chunk in &all {
        rig.ask(BRONZE, chunk).unwrap();
    }
    for one in &all {
        for _ in 0..10 {
            rig.run(Span::from_secs(1));
            came(&mut rig, one, 5_000);
            // It is asked for again and again, by the same client and by others.
            rig.ask(GOLD, one).unwrap();
        }
        whole(&mut rig, one);
    }
    for chunk in &all {
        assert_eq!(asked_for(&rig, chunk), 1, "{chunk}");
    }
    assert!(!rig.events.iter().any(|event| matches!(event, Event::FillFailed { .. } | Event::Silent { .. })));
}

#[test]
fn a_measured_line_is_asked_for_what_it_carries_in_a_round_trip_and_a_tenth_of_a_second() {
    let mut rig = narrow();
    let first = chunk(0, Layer::BASE);
    rig.ask(BRONZE, &first).unwrap();
    for block in 1..4 {
        assert_eq!(rig.ask(BRONZE, &chunk(block, Layer::BASE)), Ok(vec![]));
    }
    // 1.6 Mbit/s: 20 kB in the round trip of 1 ms and a tenth of a second.
    for step in 1..=14 {
        rig.run(Span::from_millis(10));
        assert_eq!(came(&mut rig, &first, 2_000), [], "{step}");
    }
    rig.run(Span::from_millis(10));
    let second = chunk(1, Layer::BASE);
    assert_eq!(came(&mut rig, &first, 2_000), [fill(&second, base_1())], "20 kB are left");
    assert_eq!(whole(&mut rig, &first), [], "50 kB are more than that");
    assert_eq!(came(&mut rig, &second, 30_000), [fill(&chunk(2, Layer::BASE), base_1())]);
}

#[test]
fn what_waits_for_a_node_that_dies_is_asked_of_the_next_in_the_same_order() {
    let mut rig = measured();
    let all: Vec<ChunkId> = (0..3).map(|block| chunk(block, Layer::BASE)).collect();
    rig.ask(BRONZE, &all[2]).unwrap();
    rig.ask(BRONZE, &all[1]).unwrap();
    rig.ask(BRONZE, &all[0]).unwrap();
    rig.fake(base_1()).dead = true;
    let asked = rig.run(Span::from_millis(510));
    assert_eq!(asked, [fill(&all[0], base_2())]);
    assert_eq!(whole(&mut rig, &all[0]), [fill(&all[1], base_2())]);
    assert_eq!(whole(&mut rig, &all[1]), [fill(&all[2], base_2())]);
}

#[test]
fn a_node_is_not_silent_while_another_that_was_asked_before_takes_the_line() {
    let mut rig = narrow();
    let (base, enh1) = (chunk(0, Layer::BASE), chunk(0, Layer::ENH1));
    rig.ask(GOLD, &enh1).unwrap();
    rig.ask(GOLD, &base).unwrap();
    // Two clients' worth of enhancements come; the Base node's answers are behind them.
    came(&mut rig, &enh1, 1_000);
    rig.run(Span::from_millis(10));
    rig.fake(base_1()).dead = true;
    let silent = |rig: &Rig| rig.events.contains(&Event::Silent { node: base_1() });
    for _ in 0..8 {
        rig.run(Span::from_millis(100));
        came(&mut rig, &enh1, 1_000);
    }
    assert!(!silent(&rig), "after 800 ms");
    for _ in 0..6 {
        rig.run(Span::from_millis(100));
        came(&mut rig, &enh1, 1_000);
    }
    assert!(silent(&rig), "three times as long as on an empty line");
    // Nothing else is on the line: 400 ms.
    whole(&mut rig, &enh1);
    rig.fake(node("enh2-1", 4)).dead = true;
    rig.run(Span::from_millis(510));
    assert!(rig.events.contains(&Event::Silent { node: node("enh2-1", 4) }));
}
