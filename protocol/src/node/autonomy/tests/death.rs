//! Stories of nodes that die, hang, and return.

use super::rig::{Rig, millis, peer, secs};
use crate::node::autonomy::*;
use crate::peer::PeerId;
use media::{Layer, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Four Base nodes, each reached by two ways.
const SQUARE: &str = "b1-e1:1 b2-e1:1 b2-e2:1 b3-e2:1 b3-e3:1 b4-e3:1 b4-e4:1 b1-e4:1";

fn watching(links: &str) -> Rig {
    Rig::watching(AutonomyConfig::paper(), links)
}

fn position(rig: &mut Rig, name: &str, user: u64, secs_played: u64) {
    let (user, buffer) = (UserId(user), secs(8));
    rig.put(peer(name), AutonomyInput::Position { user, position: secs(secs_played), buffer });
    rig.run(secs(1));
}

fn taken_over(rig: &Rig) -> Vec<(u64, &str)> {
    let taken = rig.events().filter_map(|(_, name, event)| match event {
        AutonomyEvent::TakenOver { user, .. } => Some((user.0, name)),
        _ => None,
    });
    taken.collect()
}

#[test]
fn a_death_is_noticed_after_td_less_ts_and_before_td() {
    let (ts, td) = (secs(1), secs(3));
    for phase in 0..20 {
        let mut rig = watching("b1-e1:0 e1-b2:0");
        rig.run(secs(5) + millis(phase * 50 + 1));
        let killed = rig.now;
        rig.kill("b1");
        rig.run(secs(5));
        let detected = rig.events().find(|(_, _, event)| matches!(event, AutonomyEvent::Detected { .. }));
        let (at, by, _) = detected.unwrap();
        let after = at - killed;
        assert!(after > td.saturating_sub(ts) && after <= td, "{after} at phase {phase}");
        assert_eq!(by, "e1");
    }
}

#[test]
fn nobody_is_thought_dead_while_everybody_lives() {
    let mut rig = watching(SQUARE);
    rig.run(secs(600));
    assert!(rig.nodes.values().all(|node| node.believed_dead().count() == 0));
}

#[test]
fn the_news_of_a_death_reaches_all_and_is_passed_on_once_by_each() {
    let mut rig = watching(SQUARE);
    rig.run(secs(3));
    rig.kill("b1");
    rig.clear();
    rig.run(secs(6));
    let mut told: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (at, from, _, message) in &rig.sent {
        if matches!(message, AgentMessage::FailureDetected(_)) {
            told.entry(from.as_str()).or_default().insert(at.as_nanos());
        }
    }
    let living: Vec<&str> = rig.nodes.keys().map(PeerId::as_str).filter(|name| *name != "b1").collect();
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), living);
    assert!(told.values().all(|times| times.len() == 1), "{told:?}");
    for name in living {
        assert_eq!(rig.node(name).believed_dead().collect::<Vec<_>>(), [peer("b1")], "{name}");
    }
}

#[test]
fn the_backup_goes_on_where_the_viewer_last_was() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Normal);
    let backup = rig.backups_of(1)[0].0.to_owned();
    position(&mut rig, "b1", 1, 17);
    rig.kill("b1");
    rig.clear();
    rig.run(secs(8));
    assert_eq!(rig.source_of(1), [backup.as_str()]);
    let (user, title) = (UserId(1), "film".parse().unwrap());
    let start =
        AutonomyOutput::StartDelivery { user, title, layer: Layer::BASE, position: secs(17), epoch: 2 };
    let notice = ViewerNotice::DeliveryStart { position: secs(17), epoch: 2 };
    let tell = AutonomyOutput::TellViewer { user, notice };
    for output in [start, tell] {
        let said: Vec<&str> =
            rig.log.iter().filter(|(_, _, o)| *o == output).map(|(_, n, _)| n.as_str()).collect();
        assert_eq!(said, [backup.as_str()]);
    }
    assert_eq!(rig.backups_of(1).len(), 1, "and somebody stands behind it again");
}

#[test]
fn only_the_base_node_knows_a_user_so_without_a_backup_its_death_loses_the_user() {
    let mut rig = watching("b1-e1:1 e1-f1:1 f1-o:1");
    rig.arrive("b1", 1, Sla::Normal);
    assert!(rig.backups_of(1).is_empty());
    rig.kill("b1");
    rig.run(secs(60));
    assert!(rig.source_of(1).is_empty());
    let knows = |node: &Autonomy| node.record(UserId(1)).is_some() || node.row(UserId(1)).is_some();
    assert!(rig.nodes.iter().all(|(name, node)| name.as_str() == "b1" || !knows(node)));
    // With one, the same death is survived.
    let mut rig = watching("b1-e1:1 e1-f1:1 f1-o:1 b2-e1:1");
    rig.arrive("b1", 1, Sla::Normal);
    rig.kill("b1");
    rig.run(secs(60));
    assert_eq!(rig.source_of(1), ["b2"]);
}

#[test]
fn a_vip_is_served_by_its_standby_at_once_and_gets_another_one() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Vip);
    let (standby, kind) = rig.backups_of(1)[0];
    let standby = standby.to_owned();
    assert_eq!((kind, rig.node(&standby).used()), (EntryKind::VipDual, 1));
    position(&mut rig, "b1", 1, 5);
    position(&mut rig, "b1", 1, 6);
    assert_eq!(rig.node(&standby).row(UserId(1)).unwrap().info.position, secs(6), "kept in step");
    rig.kill("b1");
    rig.clear();
    rig.run(secs(8));
    // Between the news and the delivery there is nothing.
    let news = rig
        .events()
        .find(|(_, name, event)| *name == standby && matches!(event, AutonomyEvent::BelievedDead { .. }));
    let start = rig.log.iter().find(|(_, _, output)| matches!(output, AutonomyOutput::StartDelivery { .. }));
    assert_eq!(start.unwrap().0 - news.unwrap().0, Span::ZERO);
    assert_eq!(rig.searches(), [(1, SearchWhy::TookOver)]);
    let again = rig.backups_of(1);
    assert_eq!((again.len(), again[0].1), (1, EntryKind::VipDual));
    assert_eq!(rig.node(&standby).users(EntryKind::Vip), 1);
}

#[test]
fn normal_users_of_several_nodes_share_one_standby_capacity_without_a_slot() {
    let mut rig = watching("b1-e1:1 b2-e1:1 b3-e1:1");
    rig.configure("b3", |config| config.capacity = 40); // the most headroom
    rig.arrive("b1", 1, Sla::Normal);
    rig.arrive("b2", 2, Sla::Normal);
    let node = rig.node("b3");
    let primaries: BTreeSet<&str> = node.rows().map(|row| row.primary.as_str()).collect();
    assert_eq!(primaries.into_iter().collect::<Vec<_>>(), ["b1", "b2"]);
    assert_eq!((node.users(EntryKind::NormalDual), node.used(), node.free()), (2, 0, 40));
}

#[test]
fn vips_before_normals_and_the_longest_remaining_first_as_far_as_the_headroom_goes() {
    let mut rig = watching("b1-e1:1 e1-b2:1");
    rig.configure("b2", |config| config.capacity = 3);
    for (user, sla) in [(1, Sla::Normal), (2, Sla::Vip), (3, Sla::Normal), (4, Sla::Normal)] {
        rig.arrive("b1", user, sla);
    }
    assert_eq!(rig.node("b2").rows().count(), 4);
    rig.kill("b1");
    rig.clear();
    rig.run(secs(8));
    // The remaining playback grows with the user's number.
    assert_eq!(taken_over(&rig), [(2, "b2"), (4, "b2"), (3, "b2")]);
    let why = AdmissionRefusal::NoHeadroom;
    let failed = AutonomyEvent::TakeOverFailed { user: UserId(1), from: peer("b1"), why };
    assert!(rig.events().any(|(_, _, event)| *event == failed));
}

#[test]
fn an_activated_normal_displaces_a_standby_unless_read_strictly() {
    for (strict, taken) in [(false, vec![(1, "b2")]), (true, vec![])] {
        let config = AutonomyConfig { strict, bottom_line: 0, capacity: 1, ..AutonomyConfig::paper() };
        let mut rig = Rig::watching(config, "b1-e1:1 e1-b2:1 b3-e1:1");
        rig.arrive("b1", 1, Sla::Normal);
        assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)]);
        // b1 is full, so that the VIP's standby fills b2.
        rig.arrive("b3", 2, Sla::Vip);
        assert_eq!(rig.backups_of(2), [("b2", EntryKind::VipDual)]);
        rig.kill("b1");
        rig.clear();
        rig.run(secs(8));
        assert_eq!(taken_over(&rig), taken, "strict {strict}");
        if !strict {
            let out = AutonomyEvent::Displaced { user: UserId(2), kind: EntryKind::VipDual, at_once: true };
            assert!(rig.events().any(|(_, _, event)| *event == out));
        }
    }
}

#[test]
fn a_node_that_hung_is_told_that_others_have_its_users_now() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Vip);
    rig.arrive("b1", 2, Sla::Normal);
    rig.kill("b1");
    rig.run(secs(20));
    let now = rig.source_of(1)[0].to_owned();
    rig.clear();
    rig.wake("b1");
    // It judges nobody by the time it slept, and drops its old sessions.
    assert!(
        rig.events().any(|(_, name, event)| name == "b1" && matches!(event, AutonomyEvent::Slept { .. }))
    );
    rig.run(secs(3));
    assert_eq!(rig.source_of(1), [now.as_str()]);
    assert_eq!(rig.source_of(2).len(), 1);
    assert_ne!(rig.source_of(2), ["b1"]);
    assert!(rig.nodes.values().all(|node| node.believed_dead().count() == 0), "and it is alive for all");
    let stops = rig.log.iter().filter(|(_, name, output)| {
        *name == peer("b1") && matches!(output, AutonomyOutput::StopDelivery { why: StopWhy::Superseded, .. })
    });
    assert_eq!(stops.count(), 2);
}

#[test]
fn a_viewer_that_is_still_served_sends_its_backup_back_to_the_reservation() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Vip);
    let backup = rig.backups_of(1)[0].0.to_owned();
    // All links of b1 are cut, but not that to its viewer.
    rig.lose = |(_, from, to, _)| *from == peer("b1") || *to == peer("b1");
    rig.run(secs(5));
    assert!(rig.node(&backup).record(UserId(1)).is_some(), "a false alarm");
    rig.put(peer(&backup), AutonomyInput::StillServed { user: UserId(1) });
    rig.run(secs(5));
    assert_eq!(rig.source_of(1), ["b1"]);
    assert_eq!(rig.node(&backup).row(UserId(1)).unwrap().kind, EntryKind::VipDual);
    // The cut heals, and nobody is served twice or backed up twice.
    rig.lose = |_| false;
    rig.run(secs(60));
    assert_eq!(rig.source_of(1), ["b1"]);
    assert_eq!(rig.backups_of(1).len(), 1, "{:?}", rig.backups_of(1));
}

#[test]
fn a_backup_node_falsely_thought_dead_keeps_nothing_for_who_has_another_one() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Normal);
    let backup = rig.backups_of(1)[0].0.to_owned();
    assert_eq!(backup, "b2");
    rig.lose = |(_, from, to, _)| *from == peer("b2") || *to == peer("b2");
    rig.run(secs(10));
    rig.lose = |_| false;
    rig.run(secs(60));
    let backups = rig.backups_of(1);
    assert_eq!(backups.len(), 1, "{backups:?}");
    assert_eq!(rig.node("b1").record(UserId(1)).unwrap().backup.unwrap().node, peer(backups[0].0));
}

#[test]
fn who_finds_no_room_at_the_take_over_is_sent_on_where_so_configured() {
    let config = AutonomyConfig { repull: true, ..AutonomyConfig::paper() };
    let mut rig = Rig::watching(config, "b1-e1:1 e1-b2:1 b3-e3:1 e3-b2:1");
    rig.configure("b2", |config| config.capacity = 1);
    rig.arrive("b1", 1, Sla::Normal);
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)]);
    rig.arrive("b2", 2, Sla::Normal);
    rig.kill("b1");
    rig.run(secs(10));
    assert_eq!(rig.source_of(1), ["b3"]);
    assert_eq!(rig.node("b3").record(UserId(1)).unwrap().info.epoch, 2);
}

#[test]
fn a_user_who_says_nothing_for_a_lease_is_served_no_more() {
    let config = AutonomyConfig { lease: Some(secs(10)), ..AutonomyConfig::paper() };
    let mut rig = Rig::new(config, "b1-e1 e1-b2");
    rig.ask("b1", Rig::request(1, Sla::Vip));
    for second in 0..12 {
        position(&mut rig, "b1", 1, second);
    }
    assert_eq!((rig.source_of(1), rig.backups_of(1).len()), (vec!["b1"], 1));
    rig.run(secs(11));
    assert_eq!((rig.source_of(1).len(), rig.backups_of(1).len()), (0, 0));
}

#[test]
fn the_same_inputs_give_the_same_outputs_in_the_same_order() {
    let story = || {
        let mut rig = watching(SQUARE);
        for (name, user) in ["b1", "b2", "b3", "b4"].into_iter().cycle().zip(0..20) {
            let sla = if user % 3 == 0 { Sla::Vip } else { Sla::Normal };
            rig.ask(name, Rig::request(user, sla));
            rig.run(millis(70));
        }
        rig.kill("b2");
        rig.run(secs(30));
        rig.log
    };
    assert_eq!(story(), story());
}

#[test]
fn a_node_that_is_deaf_to_one_neighbour_makes_no_storm_of_verdicts() {
    let mut rig = watching(SQUARE);
    rig.arrive("b1", 1, Sla::Normal);
    rig.lose = |(_, from, to, _)| *from == peer("b1") && *to == peer("e1");
    rig.clear();
    rig.run(secs(120));
    let verdicts = rig.events().filter(|(_, _, event)| matches!(event, AutonomyEvent::Detected { .. }));
    assert_eq!(verdicts.count(), 1);
    assert!(rig.nodes.values().all(|node| node.believed_dead().count() == 0), "the others know better");
    assert_eq!((rig.source_of(1).len(), rig.backups_of(1).len()), (1, 1));
    // Once it is heard again it is watched again.
    rig.lose = |_| false;
    rig.run(secs(5));
    rig.kill("b1");
    rig.run(secs(5));
    assert!(rig.node("e1").believed_dead().eq([peer("b1")]));
}
