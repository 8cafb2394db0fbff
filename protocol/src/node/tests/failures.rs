//! Nodes die, hang, return and stop in order, and viewers go on.

use super::rig::{Rig, TRAVEL, ms, peer};
use super::stories::network;
use crate::node::autonomy::{AutonomyEvent, Level, UserId};
use crate::node::*;

const VIEWER: UserId = UserId(1);
const OTHER: UserId = UserId(2);
/// Td of the production profile.
const TD: Span = Span::from_millis(400);

fn watching(slots: u32) -> Rig {
    let mut rig = network(slots);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-1", "base-2"));
    rig
}

#[test]
fn the_backup_calls_its_viewer_soon_after_the_base_node_died() {
    let mut rig = watching(10);
    let died = rig.now;
    rig.kill("base-1");
    rig.run(ms(1_000));
    let starts = rig.starts(VIEWER);
    assert_eq!(starts.len(), 1);
    let (at, from) = starts[0];
    assert_eq!(from, "base-2");
    // Silence, the news over two links, and one to the viewer.
    assert!(at <= died + TD + TRAVEL + TRAVEL + TRAVEL, "{:?}", at - died);
    assert!(at + ms(100) > died + TD, "{:?}", at - died);
    assert_eq!((rig.base_of(VIEWER), rig.people[&VIEWER].epoch), ("base-2", 2));
    assert_eq!(rig.chunk(VIEWER, "base-2", Layer::BASE), Ok(()));
    // The enhancements go on from where they are.
    for layer in [Layer::ENH1, Layer::ENH2] {
        let node = rig.layer_of(VIEWER, layer).to_owned();
        assert_eq!(rig.chunk(VIEWER, &node, layer), Ok(()));
    }
    rig.run(ms(20_000));
    for layer in [Layer::ENH1, Layer::ENH2] {
        let node = rig.layer_of(VIEWER, layer).to_owned();
        assert_eq!(rig.chunk(VIEWER, &node, layer), Ok(()), "they were adopted");
    }
    // It comes back: it is the viewer's backup now.
    rig.revive("base-1");
    rig.run(ms(15_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-2", "base-1"));
    assert_eq!((rig.in_use().0, rig.in_use().1), (3, 1));
}

#[test]
fn a_viewer_that_is_still_served_says_so_and_stays() {
    let mut rig = watching(10);
    rig.people.get_mut(&VIEWER).unwrap().content = true;
    // It hangs just long enough to be missed, and its viewer does not notice.
    rig.hang("base-1");
    rig.run(ms(480));
    rig.resume("base-1");
    rig.run(ms(2_000));
    assert_eq!(rig.starts(VIEWER).len(), 1);
    let undone = rig.heard_of("base-2", |event| {
        matches!(event, Event::Network(AutonomyEvent::TakeOverUndone { .. })).then_some(())
    });
    assert_eq!(undone.len(), 1);
    assert_eq!(rig.base_of(VIEWER), "base-1");
    let serving = |name: &str| rig.node(name).autonomy.record(VIEWER).is_some();
    assert_eq!((serving("base-1"), serving("base-2")), (true, false));
    assert!(rig.node("base-2").autonomy.row(VIEWER).is_some(), "its reservation is back");
}

#[test]
fn a_node_that_hung_too_long_is_told_that_its_viewer_has_moved() {
    let mut rig = watching(10);
    rig.hang("base-1");
    rig.run(ms(2_000));
    assert_eq!(rig.base_of(VIEWER), "base-2");
    rig.resume("base-1");
    rig.run(ms(2_000));
    let serving = |name: &str| rig.node(name).autonomy.record(VIEWER).is_some();
    assert_eq!((serving("base-1"), serving("base-2")), (false, true));
    assert_eq!(rig.chunk(VIEWER, "base-1", Layer::BASE), Err(Refusal::NotServing));
    rig.run(ms(12_000));
    assert_eq!((rig.in_use().0, rig.in_use().1), (3, 1));
    for (name, host) in &rig.hosts {
        assert_eq!(host.node.autonomy.believed_dead().count(), 0, "{name}");
    }
}

#[test]
fn an_enhancement_moves_when_its_node_dies_and_fails_only_with_the_last_one() {
    let mut rig = network(10);
    // The origin has no room for enhancements here.
    let origin = rig.hosts.get_mut(&peer("origin")).unwrap();
    origin.config.autonomy.origin_capacity = 0;
    rig.kill("origin");
    rig.revive("origin");
    rig.run(ms(8_000));
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    let first = rig.layer_of(VIEWER, Layer::ENH1).to_owned();
    rig.kill(&first);
    rig.run(ms(1_000));
    let second = rig.layer_of(VIEWER, Layer::ENH1).to_owned();
    assert!(second != first && second.starts_with("enh1"), "{second}");
    assert_eq!(rig.chunk(VIEWER, &second, Layer::ENH1), Ok(()));
    assert_eq!(rig.base_of(VIEWER), "base-1");

    rig.kill("enh2-1");
    rig.kill("enh2-2");
    rig.run(ms(1_500));
    assert_eq!(rig.layer_of(VIEWER, Layer::ENH2), "nobody");
    let told = rig.people[&VIEWER].heard.iter().rev().find_map(|(_, from, said)| match said {
        Message::LayerAt { layer, node, .. } if *layer == Layer::ENH2 => Some((*from, *node)),
        _ => None,
    });
    assert_eq!(told, Some((peer("base-1"), None)));
    // It is looked for once a second, and what did not change is said once.
    rig.run(ms(5_000));
    let nobody = |said: &Message| matches!(said, Message::LayerAt { layer: Layer::ENH2, node: None, .. });
    assert_eq!(rig.people[&VIEWER].heard.iter().filter(|(_, _, said)| nobody(said)).count(), 1);
    rig.revive("enh2-1");
    rig.run(ms(8_000));
    assert_eq!(rig.layer_of(VIEWER, Layer::ENH2), "enh2-1");
    assert_eq!(rig.chunk(VIEWER, "enh2-1", Layer::ENH2), Ok(()));
}

#[test]
fn a_node_that_stops_in_order_hands_its_viewers_over_at_once() {
    let mut rig = watching(10);
    let stopped = rig.now;
    rig.drain("base-1");
    rig.run(ms(100));
    let starts = rig.starts(VIEWER);
    assert_eq!((starts.len(), starts[0].1), (1, "base-2"));
    assert!(starts[0].0 <= stopped + TRAVEL + TRAVEL + TRAVEL, "{:?}", starts[0].0 - stopped);
    let heard: Vec<&Message> = rig.people[&VIEWER].heard.iter().map(|(_, _, said)| said).collect();
    let place = |of: fn(&Message) -> bool| heard.iter().position(|said| of(said)).unwrap();
    let draining = place(|said| matches!(said, Message::Draining));
    assert!(draining < place(|said| matches!(said, Message::DeliveryStart { .. })));
    assert!(!rig.hosts.contains_key(&peer("base-1")));
    assert_eq!(rig.chunk(VIEWER, "base-2", Layer::BASE), Ok(()));
    rig.run(ms(3_000));
    rig.revive("base-1");
    rig.run(ms(13_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-2", "base-1"));
}

#[test]
fn an_enhancement_node_that_stops_in_order_is_replaced_at_once() {
    let mut rig = watching(10);
    let first = rig.layer_of(VIEWER, Layer::ENH1).to_owned();
    rig.drain(&first);
    rig.run(ms(100));
    let second = rig.layer_of(VIEWER, Layer::ENH1).to_owned();
    assert!(second != first && second.starts_with("enh1"), "{second}");
    assert_eq!(rig.chunk(VIEWER, &second, Layer::ENH1), Ok(()));
}

#[test]
fn a_node_that_starts_anew_before_it_is_missed_has_died_all_the_same() {
    let mut rig = watching(10);
    let died = rig.now;
    rig.kill("base-1");
    rig.run(ms(50));
    rig.revive("base-1");
    rig.run(ms(300));
    let starts = rig.starts(VIEWER);
    assert_eq!((starts.len(), starts[0].1), (1, "base-2"));
    assert!(starts[0].0 < died + TD, "the word of its new life was faster than its silence");
    rig.run(ms(15_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-2", "base-1"));
    for (name, host) in &rig.hosts {
        assert_eq!(host.node.autonomy.believed_dead().count(), 0, "{name}");
    }
}

#[test]
fn viewers_of_two_nodes_that_die_one_after_the_other_go_on() {
    let mut rig = watching(10);
    rig.join("base-3", Level::BASE);
    let film = rig.hosts[&peer("base-1")].disk.clone();
    rig.hosts.get_mut(&peer("base-3")).unwrap().disk = film;
    rig.look_through(peer("base-3"));
    rig.seek(OTHER, "base-2");
    rig.run(ms(15_000));
    rig.kill("base-1");
    rig.run(ms(3_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-2", "base-3"));
    rig.kill("base-2");
    rig.run(ms(3_000));
    assert_eq!((rig.base_of(VIEWER), rig.base_of(OTHER)), ("base-3", "base-3"));
    assert_eq!(rig.people[&VIEWER].epoch, 3);
    assert_eq!(rig.chunk(VIEWER, "base-3", Layer::BASE), Ok(()));
}

#[test]
fn who_hears_of_no_backup_seeks_again_and_goes_on() {
    let mut rig = network(10);
    rig.kill("base-2");
    rig.run(ms(1_000));
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-1", "nobody"));
    rig.kill("base-1");
    rig.run(ms(1_000));
    rig.seek(VIEWER, "enh1-1");
    rig.run(ms(2_000));
    assert_eq!((rig.base_of(VIEWER), rig.people[&VIEWER].epoch), ("origin", 17));
    assert_eq!(rig.chunk(VIEWER, "origin", Layer::BASE), Ok(()));
}

#[test]
fn who_seeks_at_its_backup_is_served_there() {
    let mut rig = watching(10);
    rig.seek(VIEWER, "base-2");
    rig.run(ms(1_000));
    assert_eq!((rig.base_of(VIEWER), rig.people[&VIEWER].epoch), ("base-2", 17));
    rig.run(ms(12_000));
    assert_eq!(rig.chunk(VIEWER, "base-2", Layer::BASE), Ok(()));
    assert!(rig.node("base-1").autonomy.record(VIEWER).is_none(), "the older one has lapsed");
    for layer in [Layer::ENH1, Layer::ENH2] {
        let node = rig.layer_of(VIEWER, layer).to_owned();
        assert_eq!(rig.chunk(VIEWER, &node, layer), Ok(()));
    }
    assert_eq!(rig.in_use().0, 3);
}

#[test]
fn two_halves_of_a_network_find_each_other_again() {
    let mut rig = network(10);
    rig.split(&["base-1", "enh1-1"], true);
    rig.run(ms(10_000));
    assert!(rig.node("base-1").autonomy.thinks_dead(peer("enh2-1")));
    assert!(rig.node("enh2-1").autonomy.thinks_dead(peer("base-1")));
    rig.split(&[], false);
    rig.run(ms(20_000));
    for (name, host) in &rig.hosts {
        let dead: Vec<PeerId> = host.node.autonomy.believed_dead().collect();
        assert!(dead.is_empty(), "{name} thinks dead: {dead:?}");
    }
}

#[test]
fn a_node_cut_off_from_its_door_alone_finds_the_others_again() {
    let mut rig = network(10);
    rig.kill("origin");
    rig.run(ms(1_000));
    rig.split(&["base-1"], true);
    rig.run(ms(10_000));
    rig.split(&[], false);
    rig.run(ms(20_000));
    assert!(!rig.node("enh1-1").autonomy.thinks_dead(peer("base-1")));
    assert!(!rig.node("base-1").autonomy.thinks_dead(peer("enh1-1")));
}
