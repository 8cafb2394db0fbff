//! What a viewer lives through while the network moves it about.

use super::rig::{A, B, C, D, E, Millis, Rig};
use crate::message::Refusal;
use crate::player::*;
use crate::quality::Cause;
use media::{Layer, Quality, Span, Time};

const NOT_SERVING: FetchFailure = FetchFailure::Refused(Refusal::NotServing);

fn waiting() -> PlayerConfig {
    PlayerConfig { own: Own::NONE, ..PlayerConfig::default() }
}

fn asked(of: SourceId) -> impl Fn(&Output) -> bool {
    move |output| matches!(output, Output::Request { source, .. } if *source == of)
}

fn moves(rig: &Rig) -> Vec<(Layer, SourceId, SourceId, MoveCause)> {
    let seen = |(_, event): &(Time, Event)| match event {
        Event::FailedOver { layer, from, to, cause, .. } => Some((*layer, *from, *to, *cause)),
        _ => None,
    };
    rig.events.iter().filter_map(seen).collect()
}

/// Nothing was seen: no freeze, no step, and (the rig looks) no block left out
/// or fed twice.
fn assert_unseen(rig: &Rig) {
    assert_eq!((rig.pipe.frozen, rig.transitions()), (Span::ZERO, vec![]));
}

#[test]
fn a_delivery_start_alone_moves_base() {
    for moment in 0..20 {
        let mut rig = Rig::in_network(&waiting());
        rig.run(5.s() + Span::from_millis(50 * moment));
        rig.kill(A);
        let killed = rig.now;
        rig.run(420.ms());
        assert_eq!(rig.first(Time::ZERO, asked(B)), None, "B is not asked before it says so");
        rig.put(Input::DeliveryStart { source: B, epoch: 2 });
        rig.run(8.s());
        assert_eq!((rig.source_of(Layer::BASE), rig.player.epoch()), (Some(B), 2));
        assert_eq!(moves(&rig), [(Layer::BASE, A, B, MoveCause::DeliveryStart)]);
        let moved = rig.events.iter().find(|(_, e)| *e == Event::ServedBy { source: B, epoch: 2 }).unwrap().0;
        assert!(moved - killed >= 420.ms() && moved - killed <= 525.ms(), "{}", moved - killed);
        assert_eq!(
            rig.first(killed, |o| *o == Output::Leave { source: A }).map(|at| at > killed),
            Some(true)
        );
        assert_unseen(&rig);
        let blocks: Vec<u32> = rig.pipe.fed.iter().map(|(block, _)| *block).collect();
        assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{blocks:?}");
    }
}

#[test]
fn a_broken_connection_waits_for_the_delivery_start_too() {
    let mut rig = Rig::in_network(&waiting());
    rig.run(5.s());
    rig.lose(A);
    rig.run(1.s());
    assert_eq!(rig.first(Time::ZERO, asked(B)), None);
    let told = rig.now;
    rig.put(Input::DeliveryStart { source: B, epoch: 2 });
    assert_eq!(rig.first(told, asked(B)), Some(told), "nobody is asked whether A is there");
    rig.run(6.s());
    assert_eq!(moves(&rig), [(Layer::BASE, A, B, MoveCause::DeliveryStart)]);
    assert_unseen(&rig);
}

#[test]
fn who_still_delivers_is_not_left() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5_003.ms());
    rig.user(Command::Pause);
    rig.run(3_060.ms());
    // Nothing comes while the film stands: A is asked before B is answered.
    for _ in 0..10 {
        rig.run(17.ms());
        let told = rig.now;
        rig.put(Input::DeliveryStart { source: B, epoch: 2 });
        rig.run(30.ms());
        let answer = rig.first(told, |o| *o == Output::StillServed { source: B, epoch: 2 });
        // Its farewell might have been under way until then.
        assert_eq!(answer.unwrap() - told, 20.ms());
    }
    rig.user(Command::Resume);
    rig.run(10.s());
    assert_eq!((rig.player.home(), rig.player.epoch(), rig.source_of(Layer::BASE)), (Some(A), 1, Some(A)));
    assert_eq!(rig.count(|event| *event == Event::StillServed { source: B, epoch: 2 }), 10);
    assert_eq!((rig.nodes[1].served, moves(&rig)), (0, vec![]));
    assert_unseen(&rig);
}

#[test]
fn a_hang_that_ends_in_time_is_none_and_one_that_ends_late_is_over() {
    let mut rig = Rig::in_network(&waiting());
    rig.run(5.s());
    rig.hang(A);
    rig.run(250.ms());
    rig.put(Input::DeliveryStart { source: B, epoch: 2 });
    rig.run(30.ms());
    rig.wake(A);
    rig.run(20.ms());
    assert_eq!(rig.count(|event| matches!(event, Event::StillServed { .. })), 1, "it answered the probe");
    rig.run(3.s());
    rig.hang(A);
    rig.run(600.ms());
    rig.put(Input::DeliveryStart { source: B, epoch: 3 });
    assert_eq!(rig.player.home(), Some(B), "who is silent is not asked");
    rig.wake(A);
    rig.put(Input::BackupIs { from: A, backup: C, epoch: 1 });
    rig.put(Input::LayerAt { from: A, layer: Layer::BASE, node: Some(A), epoch: 9 });
    rig.run(8.s());
    assert_eq!((rig.player.home(), rig.player.backup(), rig.player.epoch()), (Some(B), None, 3));
    assert_unseen(&rig);
}

#[test]
fn a_source_that_is_dead_before_the_viewer_knows_does_not_cost_the_backup() {
    let mut rig = Rig::in_network(&waiting());
    rig.run(5.s());
    rig.kill(A);
    rig.run(180.ms());
    let told = rig.now;
    rig.put(Input::DeliveryStart { source: B, epoch: 2 });
    // B names its own backup while the viewer still waits for A.
    rig.run(20.ms());
    rig.put(Input::BackupIs { from: B, backup: E, epoch: 2 });
    rig.run(1.s());
    let moved = rig.first(told, asked(B)).unwrap() - told;
    assert!(moved >= 100.ms() && moved <= 110.ms(), "{moved}");
    assert_eq!((rig.player.home(), rig.player.backup()), (Some(B), Some(E)));
    assert_eq!(rig.count(|event| matches!(event, Event::StillServed { .. })), 0);
}

#[test]
fn a_backup_is_dialled_at_once_kept_and_asked_for_nothing() {
    for config in [waiting(), PlayerConfig::default()] {
        let mut rig = Rig::in_network(&config);
        assert_eq!(rig.first(Time::ZERO, |o| *o == Output::Dial { source: B }), Some(Time::ZERO));
        rig.run(10.s());
        assert_eq!((rig.nodes[1].connected, rig.nodes[1].served), (true, 0));
        rig.lose(B);
        rig.run(5_500.ms());
        let dials = rig.outputs.iter().filter(|(_, o)| *o == Output::Dial { source: B }).count();
        assert!((5..=7).contains(&dials), "{dials}");
        let told = rig.now;
        rig.put(Input::BackupIs { from: A, backup: E, epoch: 1 });
        assert_eq!(rig.first(told, |o| *o == Output::Dial { source: E }), Some(told));
        assert_eq!(rig.first(told, |o| *o == Output::Leave { source: B }), Some(told));
        rig.run(3.s());
        assert_eq!(rig.count(|event| matches!(event, Event::BackupKnown { .. })), 2);
        assert_eq!(rig.nodes[4].served, 0);
        assert_unseen(&rig);
    }
}

#[test]
fn a_vip_asks_its_hot_standby_for_what_is_late_and_two_blocks_are_enough() {
    let mut before_the_verdict = 0;
    for moment in 0..40 {
        let config = PlayerConfig { hot_standby: true, buffer: 2.s(), ..PlayerConfig::default() };
        let mut rig = Rig::in_network(&config);
        rig.run(5.s() + Span::from_millis(25 * moment));
        rig.hang(A);
        let hung = rig.now;
        rig.run(6.s());
        assert_eq!(rig.pipe.frozen, Span::ZERO, "{moment}");
        let hedged = rig.first(hung, asked(B)).unwrap();
        let verdict =
            rig.events.iter().find(|(_, e)| matches!(e, Event::Silent { source, .. } if *source == A));
        before_the_verdict += u32::from(hedged <= verdict.unwrap().0);
    }
    // In the other moments nothing was open at A, and so nothing was late.
    assert!(before_the_verdict >= 14, "{before_the_verdict}");
    let config = PlayerConfig { buffer: 2.s(), ..waiting() };
    let mut rig = Rig::in_network(&PlayerConfig { hot_standby: true, ..config });
    rig.run(5.s());
    rig.hang(A);
    rig.run(3.s());
    assert_eq!(rig.first(Time::ZERO, asked(B)), None, "the switch is off");
}

#[test]
fn a_vip_is_not_held_up_by_a_node_that_talks_and_delivers_nothing() {
    let config = PlayerConfig { hot_standby: true, buffer: 2.s(), ..PlayerConfig::default() };
    let mut rig = Rig::in_network(&config);
    rig.run(5_100.ms());
    rig.node(A).stuck = true;
    rig.run(8.s());
    assert_eq!(rig.count(|event| matches!(event, Event::Silent { .. })), 0);
    assert_eq!((rig.pipe.frozen, rig.player.home()), (Span::ZERO, Some(A)));
    assert!(rig.nodes[1].served >= 7, "{}", rig.nodes[1].served);
}

#[test]
fn who_does_not_serve_yet_is_asked_again_every_tenth_of_a_second() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.node(B).failing = Some(NOT_SERVING);
    rig.run(5.s());
    rig.kill(A);
    let killed = rig.now;
    rig.run(1_000.ms());
    let first = rig.first(killed, asked(B)).unwrap();
    let times: Vec<Time> = rig.outputs.iter().filter(|(_, o)| asked(B)(o)).map(|(at, _)| *at).collect();
    let mut rounds = times.clone();
    rounds.dedup();
    assert!(rounds.windows(2).all(|pair| pair[1] - pair[0] >= 100.ms()), "{times:?}");
    assert!((4..=8).contains(&rounds.len()), "{times:?}");
    assert!(first - killed >= 200.ms());
    rig.node(B).failing = None;
    rig.put(Input::DeliveryStart { source: B, epoch: 2 });
    rig.run(8.s());
    assert_eq!(moves(&rig), [(Layer::BASE, A, B, MoveCause::DeliveryStart)]);
    assert_eq!(
        rig.count(|event| matches!(event, Event::FetchFailed { why: NOT_SERVING, .. })),
        1,
        "said once"
    );
    assert_unseen(&rig);
}

#[test]
fn who_does_not_serve_is_not_asked_while_the_old_source_is_back() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.node(B).failing = Some(NOT_SERVING);
    rig.run(5.s());
    rig.hang(A);
    rig.run(700.ms());
    rig.wake(A);
    rig.run(1_500.ms());
    let since = rig.now;
    rig.run(5.s());
    assert_eq!((rig.source_of(Layer::BASE), rig.first(since, asked(B))), (Some(A), None));
    assert_unseen(&rig);
}

#[test]
fn a_layer_is_moved_without_a_dip() {
    for config in [waiting(), PlayerConfig::default()] {
        let mut rig = Rig::in_network(&config);
        rig.run(5_200.ms());
        rig.kill(D);
        rig.run(450.ms());
        // Who is not the Base node has no say.
        rig.put(Input::LayerAt { from: B, layer: Layer::ENH2, node: None, epoch: 7 });
        rig.put(Input::LayerAt { from: A, layer: Layer::ENH2, node: None, epoch: 0 });
        rig.put(Input::LayerAt { from: A, layer: Layer::ENH2, node: Some(E), epoch: 1 });
        rig.run(8.s());
        assert_eq!(rig.source_of(Layer::ENH2), Some(E));
        assert_eq!(moves(&rig), [(Layer::ENH2, D, E, MoveCause::Moved)]);
        assert_unseen(&rig);
    }
}

#[test]
fn a_layer_that_nobody_serves_is_a_failure_until_somebody_does() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    rig.put(Input::LayerAt { from: A, layer: Layer::ENH2, node: None, epoch: 1 });
    let before = rig.pipe.fed.last().unwrap().0;
    rig.run(6.s());
    rig.put(Input::LayerAt { from: A, layer: Layer::ENH2, node: Some(E), epoch: 1 });
    rig.run(6.s());
    let seen = rig.transitions();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!((seen[0].1, seen[0].2, seen[0].3), (Quality::GOLD, Quality::SILVER, Cause::Failure));
    assert_eq!((seen[1].1, seen[1].2, seen[1].3), (Quality::SILVER, Quality::GOLD, Cause::Recovered));
    assert!(seen[0].0 > before, "what is held is shown");
    assert_eq!(rig.pipe.frozen, Span::ZERO);
}

#[test]
fn base_is_handed_over_and_the_old_node_is_left() {
    let mut rig = Rig::in_network(&waiting());
    rig.run(5.s());
    rig.put(Input::Draining { source: A });
    rig.put(Input::LayerAt { from: A, layer: Layer::BASE, node: Some(B), epoch: 2 });
    rig.run(6.s());
    assert_eq!((rig.player.home(), rig.player.epoch()), (Some(B), 2));
    assert_eq!(moves(&rig), [(Layer::BASE, A, B, MoveCause::Moved)]);
    assert!(rig.first(Time::ZERO, |o| *o == Output::Leave { source: A }).is_some());
    assert_unseen(&rig);
}

#[test]
fn strangers_and_former_epochs_are_not_heard() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    let before = rig.outputs.len();
    rig.put(Input::DeliveryStart { source: C, epoch: 9 });
    rig.put(Input::DeliveryStart { source: B, epoch: 0 });
    rig.put(Input::BackupIs { from: C, backup: D, epoch: 9 });
    rig.put(Input::BackupIs { from: A, backup: D, epoch: 0 });
    rig.put(Input::LayerAt { from: D, layer: Layer::BASE, node: Some(D), epoch: 9 });
    assert_eq!((rig.player.home(), rig.player.backup(), rig.player.epoch()), (Some(A), Some(B), 1));
    assert!(
        !rig.outputs[before..]
            .iter()
            .any(|(_, o)| matches!(o, Output::Leave { .. } | Output::StillServed { .. }))
    );
    rig.put(Input::BackupIs { from: A, backup: B, epoch: 4 });
    rig.put(Input::BackupIs { from: A, backup: E, epoch: 3 });
    assert_eq!((rig.player.backup(), rig.player.epoch()), (Some(B), 4));
}

fn seeks(rig: &Rig) -> Vec<(Time, SourceId)> {
    let seek = |(at, output): &(Time, Output)| match output {
        Output::Seek { door, progress, former } => {
            assert_eq!(*former, [Some(A), Some(B)], "who may think that it serves this viewer");
            assert!(progress.started && progress.epoch == 1 && progress.buffer == 4.s());
            Some((*at, *door))
        }
        _ => None,
    };
    rig.outputs.iter().filter_map(seek).collect()
}

fn found(home: SourceId, backup: SourceId, epoch: u64) -> Input {
    let service = Service { home: Some(home), backup: Some(backup), epoch, doors: vec![] };
    Input::Found(Found { sources: vec![vec![home], vec![C], vec![D]], service })
}

#[test]
fn a_backup_with_another_version_is_no_backup_and_service_is_sought_elsewhere() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    rig.put(Input::OtherVersion { source: B });
    let told = rig.now;
    rig.run(3.s());
    rig.kill(A);
    rig.run_until(|rig| !seeks(rig).is_empty());
    assert_eq!(seeks(&rig)[0].1, E);
    rig.put(found(E, B, 17));
    rig.put(Input::Connected { source: E, round_trip: 4.ms() });
    rig.node(E).connected = true;
    rig.run(8.s());
    assert_eq!((rig.source_of(Layer::BASE), rig.player.epoch()), (Some(E), 17));
    let to_b = |output: &Output| *output == Output::Dial { source: B } || asked(B)(output);
    assert_eq!(rig.first(told, to_b), None, "neither dialled nor asked, named backup again or not");
    assert_unseen(&rig);
}

#[test]
fn who_finds_another_version_everywhere_is_told_why_it_ends() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    rig.kill(A);
    let mut answered = 0;
    rig.put(Input::OtherVersion { source: B });
    while rig.player.poll_timeout().is_some() && rig.now < Time::ZERO + 60.s() {
        rig.run(20.ms());
        if let Some((_, door)) = seeks(&rig).get(answered).copied() {
            answered += 1;
            rig.put(Input::OtherVersion { source: door });
            rig.put(Input::NotFound { door });
        }
    }
    let end = rig.outputs.iter().find_map(|(_, output)| match output {
        Output::GiveUp(why) => Some(*why),
        _ => None,
    });
    assert!(answered > 10, "{answered} doors");
    assert!(matches!(end, Some(GiveUp::Replaced { waited, .. }) if waited == 30.s()), "{end:?}");
}

#[test]
fn who_has_lost_everybody_seeks_again_at_one_door_after_the_other() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    // Base has just come: when more is to be asked for, both are known to be gone.
    let blocks = |rig: &Rig| rig.count(|event| matches!(event, Event::Fetched { layer: Layer::BASE, .. }));
    let before = blocks(&rig);
    rig.run_until(|rig| blocks(rig) > before);
    rig.kill(A);
    rig.kill(B);
    let killed = rig.now;
    rig.run_until(|rig| !seeks(rig).is_empty());
    let (first, door) = seeks(&rig)[0];
    assert_eq!(door, E, "who is known to be gone comes last");
    assert!(first - killed >= 1_200.ms() && first - killed < 1_500.ms(), "{}", first - killed);
    rig.put(Input::NotFound { door: E });
    assert_eq!(seeks(&rig)[1..], [(rig.now, B)], "then the other doors");
    rig.put(Input::NotFound { door: B });
    rig.run(490.ms());
    assert_eq!(seeks(&rig).len(), 2, "a pause between the rounds");
    rig.run(20.ms());
    assert_eq!(seeks(&rig).len(), 3);
    rig.put(found(E, C, 3));
    rig.put(Input::DeliveryStart { source: B, epoch: 2 });
    assert_eq!((rig.player.home(), rig.player.backup(), rig.player.epoch()), (Some(E), Some(C), 3));
    rig.run(6.s());
    assert_eq!(moves(&rig), [(Layer::BASE, A, E, MoveCause::Repull)]);
    assert_eq!((rig.source_of(Layer::BASE), rig.pipe.frozen), (Some(E), Span::ZERO));
}

#[test]
fn of_a_search_and_a_delivery_start_the_higher_epoch_wins() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.node(B).failing = Some(NOT_SERVING);
    rig.run(5.s());
    rig.kill(A);
    rig.run_until(|rig| !seeks(rig).is_empty());
    assert_eq!(seeks(&rig)[0].1, B, "the backup comes first");
    rig.node(B).failing = None;
    rig.put(Input::DeliveryStart { source: B, epoch: 4 });
    rig.put(found(E, C, 3));
    assert_eq!((rig.player.home(), rig.player.epoch()), (Some(B), 4), "what was found is over");
    rig.put(found(E, C, 5));
    assert_eq!((rig.player.home(), rig.player.epoch()), (Some(E), 5));
    assert!(rig.first(Time::ZERO, |o| *o == Output::Leave { source: B }).is_some());
    rig.run(6.s());
    assert_eq!((rig.source_of(Layer::BASE), rig.pipe.frozen), (Some(E), Span::ZERO));
}

#[test]
fn nobody_seeks_who_may_not_or_who_is_served() {
    let mut rig = Rig::in_network(&waiting());
    rig.run(5.s());
    rig.kill(A);
    rig.kill(B);
    rig.run(10.s());
    assert_eq!(seeks(&rig), []);
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5.s());
    rig.hang(A);
    rig.run(10.s());
    assert_eq!((seeks(&rig), rig.source_of(Layer::BASE)), (vec![], Some(B)), "B was willing");
}

#[test]
fn the_base_node_hears_how_the_viewer_stands() {
    let mut rig = Rig::in_network(&PlayerConfig::default());
    rig.run(5_500.ms());
    rig.user(Command::Pause);
    rig.run(3.s());
    rig.user(Command::Seek(60.s()));
    let sought = rig.now;
    rig.run(1.s());
    rig.put(Input::LayerAt { from: A, layer: Layer::BASE, node: Some(B), epoch: 2 });
    rig.run(1_500.ms());
    let report = |(at, output): &(Time, Output)| match output {
        Output::Report { source, position, buffer, .. } => Some((*at, *source, *position, *buffer)),
        _ => None,
    };
    let all: Vec<_> = rig.outputs.iter().filter_map(report).collect();
    let gaps = all.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.clone().all(|gap| gap <= 1_005.ms()), "{all:?}");
    assert_eq!(all.len(), 13, "{all:?}");
    assert!(all.iter().any(|(at, _, position, _)| *at == sought && *position == 60.s()), "{all:?}");
    assert_eq!(all.iter().map(|(_, source, ..)| *source).filter(|source| *source == B).count(), 2);
    assert!(all[5].2 >= 4_800.ms() && all[5].3 > 2.s(), "{all:?}");
}
