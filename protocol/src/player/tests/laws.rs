//! What holds whatever happens. The rig looks at the laws after every input:
//! the buffer's bound, blocks in order, no chunk asked for twice at once but as
//! a double elsewhere, no block fed that nobody wanted.

use super::rig::{LENGTHS, Millis, Rig, title};
use crate::player::*;
use media::{BitRate, Quality, Span};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Blow {
    Kill(u16),
    Hang(u16),
    Revive(u16),
    Corrupt(u16),
    Heal(u16),
    Narrow(u64),
    Command(Command),
    Stale(u64),
    /// A node says something about the viewer's service.
    Word(u8, u16, u16, u64),
}

/// Blows, and words of nodes that need not make sense.
fn blow_or_word() -> impl Strategy<Value = Blow> {
    let word = (0..6_u8, 0..6_u16, 0..6_u16, 0..6_u64);
    prop_oneof![3 => blow(), 1 => word.prop_map(|(what, from, to, epoch)| Blow::Word(what, from, to, epoch))]
}

fn word(rig: &mut Rig, what: u8, from: SourceId, to: SourceId, epoch: u64) {
    // There are five nodes; the sixth is nobody.
    let node = Some(to).filter(|to| to.0 < 5);
    let other = node.unwrap_or(SourceId(0));
    rig.put(match what {
        0 => Input::BackupIs { from, backup: other, epoch },
        1 => Input::DeliveryStart { source: from, epoch },
        2 => Input::LayerAt { from, layer: media::Layer((epoch % 3) as u8), node, epoch },
        3 => Input::NotFound { door: from },
        4 => Input::OtherVersion { source: from },
        _ => {
            let service =
                Service { home: Some(other), backup: Some(SourceId(from.0 % 5)), epoch, doors: vec![other] };
            Input::Found(Found { sources: vec![vec![other], vec![SourceId(2)], vec![]], service })
        }
    });
}

fn blow() -> impl Strategy<Value = Blow> {
    let node = 0..5_u16;
    prop_oneof![
        node.clone().prop_map(Blow::Kill),
        node.clone().prop_map(Blow::Hang),
        node.clone().prop_map(Blow::Revive),
        node.clone().prop_map(Blow::Revive),
        node.clone().prop_map(Blow::Corrupt),
        node.prop_map(Blow::Heal),
        (300_000..20_000_000_u64).prop_map(Blow::Narrow),
        (0..130_000_u64).prop_map(|ms| Blow::Command(Command::Seek(Span::from_millis(ms)))),
        (0..4_u8).prop_map(|q| Blow::Command(Command::Quality(Quality(q)))),
        Just(Blow::Command(Command::Pause)),
        Just(Blow::Command(Command::Resume)),
        (-17..=17_i8).prop_map(|rate| Blow::Command(Command::Rate(rate))),
        Just(Blow::Command(Command::Rate(1))),
        (0..400_u64).prop_map(Blow::Stale),
    ]
}

fn strike(rig: &mut Rig, blow: &Blow) {
    match blow {
        Blow::Kill(node) => rig.kill(SourceId(*node)),
        Blow::Hang(node) => rig.hang(SourceId(*node)),
        Blow::Revive(node) => rig.restart(SourceId(*node)),
        Blow::Corrupt(node) => rig.node(SourceId(*node)).failing = Some(FetchFailure::Corrupt),
        Blow::Heal(node) => rig.node(SourceId(*node)).failing = None,
        Blow::Narrow(rate) => rig.link = BitRate(*rate),
        Blow::Command(command) => rig.user(*command),
        Blow::Word(what, from, to, epoch) => word(rig, *what, SourceId(*from), SourceId(*to), *epoch),
        Blow::Stale(n) => {
            // Answers to questions nobody asks any more, and nonsense.
            rig.put(Input::Failed { request: RequestId(10_000 + n), why: FetchFailure::Broken });
            rig.put(Input::Arrived { request: RequestId(10_000 + n) });
            rig.put(Input::Lost { source: SourceId(900) });
            rig.put(Input::Position { serial: 99_999, at: Span::from_secs(*n) });
            rig.put(Input::Timeout);
        }
    }
}

/// What came of five-millisecond steps with these blows between them.
fn play(seed: u64, blows: &[(Blow, u64)], needless: bool) -> Vec<(media::Time, Output)> {
    let mut rig = Rig::new(seed);
    for (blow, wait) in blows {
        for _ in 0..wait / 5 {
            rig.step();
            if needless {
                rig.put(Input::Timeout);
                rig.put(Input::Timeout);
            }
        }
        strike(&mut rig, blow);
    }
    rig.outputs
}

#[test]
fn a_needless_timeout_changes_nothing_when_one_verdict_leads_to_another() {
    let blows = [
        (Blow::Command(Command::Resume), 180),
        (Blow::Word(0, 0, 0, 0), 770),
        (Blow::Kill(0), 520),
        (Blow::Hang(1), 425),
        (Blow::Kill(2), 55),
        (Blow::Command(Command::Pause), 275),
        (Blow::Kill(0), 845),
    ];
    assert_eq!(play(0, &blows, true), play(0, &blows, false));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_blow_breaks_a_law(seed in any::<u64>(), blows in prop::collection::vec((blow_or_word(), 1..1_500_u64), 1..24)) {
        let mut rig = Rig::with(seed, title(120, &LENGTHS), BitRate(8_000_000), Quality::GOLD);
        for (blow, wait) in &blows {
            rig.run(Span::from_millis(*wait));
            strike(&mut rig, blow);
        }
        rig.run(2.s());
    }

    #[test]
    fn the_same_seed_and_blows_give_the_same_outputs(seed in any::<u64>(), blows in prop::collection::vec((blow_or_word(), 1..900_u64), 1..12)) {
        let play = || {
            let mut rig = Rig::new(seed);
            for (blow, wait) in &blows {
                rig.run(Span::from_millis(*wait));
                strike(&mut rig, blow);
            }
            rig.outputs
        };
        prop_assert_eq!(play(), play());
    }

    #[test]
    fn needless_timeouts_change_nothing(seed in any::<u64>(), blows in prop::collection::vec((blow_or_word(), 1..900_u64), 1..10)) {
        prop_assert_eq!(play(seed, &blows, true), play(seed, &blows, false));
    }

    #[test]
    fn every_network_that_comes_back_plays_on(seed in any::<u64>(), blows in prop::collection::vec((blow(), 1..900_u64), 1..16)) {
        let mut rig = Rig::with(seed, title(120, &LENGTHS), BitRate(8_000_000), Quality::GOLD);
        for (blow, wait) in &blows {
            rig.run(Span::from_millis(*wait));
            strike(&mut rig, blow);
        }
        for node in 0..5 {
            rig.restart(SourceId(node));
            rig.node(SourceId(node)).failing = None;
        }
        rig.link = BitRate(20_000_000);
        rig.user(Command::Rate(1));
        rig.user(Command::Resume);
        rig.user(Command::Seek(30.s()));
        rig.run(6.s());
        prop_assert!(rig.pipe.position > 32.s(), "at {}", rig.pipe.position);
    }
}
