//! What viewers get of the slots they have, in a network; and that of two nodes
//! that were asked one after the other the later one is right.

use super::rig::{Rig, held, ms, peer};
use super::stories::network;
use crate::message::ChunkRequest;
use crate::node::autonomy::{AutonomyEvent, Level, UserId};
use crate::node::*;
use media::{ByteCount, ChunkId, Quality};

const VIEWER: UserId = UserId(1);
const OTHER: UserId = UserId(2);

/// Asks a node for Base of these blocks at once.
fn ask(rig: &mut Rig, user: UserId, name: &str, blocks: std::ops::Range<u32>) -> Vec<StreamId> {
    let link = rig.people[&user].links[&peer(name)];
    let mut request = |block| {
        let id = ChunkId { title: "film".parse().unwrap(), block, layer: Layer::BASE };
        rig.request(link, StreamRequest::Chunk(ChunkRequest::whole(id, 10_000)))
    };
    blocks.map(&mut request).collect()
}

/// How many of these were granted since they were last looked at.
fn granted(rig: &mut Rig, user: UserId, name: &str, streams: &[StreamId]) -> usize {
    let link = rig.people[&user].links[&peer(name)];
    streams.iter().filter(|stream| rig.answer(link, **stream) == Some(Ok(()))).count()
}

#[test]
fn who_asks_for_more_than_a_slot_is_worth_waits_and_nobody_else_does() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.seek(OTHER, "base-1");
    rig.run(ms(2_000));
    let greedy = ask(&mut rig, VIEWER, "base-1", 0..12);
    assert_eq!(granted(&mut rig, VIEWER, "base-1", &greedy), 4, "one buffer");
    let modest = ask(&mut rig, OTHER, "base-1", 0..4);
    assert_eq!(granted(&mut rig, OTHER, "base-1", &modest), 4);
    rig.run(ms(4_000));
    assert_eq!(granted(&mut rig, VIEWER, "base-1", &greedy), 6, "1.5 s of film a second");
    let paced = rig.heard_of("base-1", |event| matches!(event, Event::Paced { .. }).then_some(()));
    assert_eq!(paced.len(), 8);
    // Who leaves waits no more.
    rig.leave(VIEWER);
    rig.run(ms(2_000));
    let refused = rig.heard_of("base-1", |event| match event {
        Event::RequestRefused { why, .. } => Some(*why),
        _ => None,
    });
    assert!(refused.iter().all(|(_, why)| *why == Refusal::NotServing), "{refused:?}");
}

#[test]
fn whoever_seeks_to_and_fro_has_a_first_block_within_a_second() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    let link = rig.people[&VIEWER].links[&peer("base-1")];
    let mut open = Vec::new();
    for seek in 0..30 {
        for stream in open {
            if rig.answer(link, stream).is_none() {
                rig.end(link, stream, Outcome::GivenUp);
            }
        }
        open = ask(&mut rig, VIEWER, "base-1", seek * 7..seek * 7 + 4);
        rig.run(ms(300));
    }
    rig.run(ms(367));
    let first = open.remove(0);
    assert_eq!(rig.answer(link, first), Some(Ok(())), "a block of a second takes two thirds of one");
}

#[test]
fn a_standby_that_takes_over_gives_a_whole_buffer_at_once() {
    let mut rig = network(10);
    rig.vip(VIEWER);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    assert_eq!(rig.backup_of(VIEWER), "base-2");
    // What was late was asked of the standby, until its slot was used up.
    let hedged = ask(&mut rig, VIEWER, "base-2", 0..4);
    assert_eq!(granted(&mut rig, VIEWER, "base-2", &hedged), 4);
    rig.kill("base-1");
    rig.run(ms(600));
    assert_eq!(rig.base_of(VIEWER), "base-2");
    let after = ask(&mut rig, VIEWER, "base-2", 4..8);
    assert_eq!(granted(&mut rig, VIEWER, "base-2", &after), 4);
}

/// A viewer of base-1 with base-2 behind it, and a third Base node.
fn three_base_nodes() -> Rig {
    let mut rig = network(10);
    rig.start("base-3", Level::BASE, |_| {});
    rig.run(ms(13_000));
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    assert_eq!(rig.base_of(VIEWER), "base-1");
    rig
}

#[test]
fn a_viewer_that_seeks_elsewhere_is_served_there_alone() {
    let mut rig = three_base_nodes();
    let backup = rig.backup_of(VIEWER).to_owned();
    let other = if backup == "base-2" { "base-3" } else { "base-2" };
    rig.kill("base-1");
    // It never hears that its backup has taken over.
    rig.hang_up(VIEWER, false);
    rig.run(ms(1_000));
    let epoch =
        |rig: &Rig, name: &str| rig.node(name).autonomy.record(VIEWER).map(|record| record.info.epoch);
    assert_eq!((epoch(&rig, &backup), epoch(&rig, other)), (Some(2), None));
    rig.seek(VIEWER, other);
    rig.run(ms(500));
    assert_eq!((epoch(&rig, &backup), epoch(&rig, other)), (None, Some(17)));
    let superseded = rig.heard_of(&backup, |event| {
        matches!(event, Event::Network(AutonomyEvent::Superseded { .. })).then_some(())
    });
    assert_eq!(superseded.len(), 1);
    for layer in [Layer::ENH1, Layer::ENH2] {
        let node = rig.layer_of(VIEWER, layer).to_owned();
        assert_eq!(rig.chunk(VIEWER, &node, layer), Ok(()));
    }
    assert_eq!(rig.in_use().0, 3, "no slot is kept for the other one");
}

#[test]
fn nobody_looks_for_layers_that_the_title_does_not_have() {
    let mut rig = network(10);
    // This one has no room for the film, and does not know how many layers it has.
    rig.start("base-3", Level::BASE, |config| config.autonomy.storage = ByteCount(0));
    rig.run(ms(3_000));
    rig.person(VIEWER, Role::Viewer).quality = Quality(8);
    rig.seek(VIEWER, "base-3");
    rig.run(ms(3_000));
    let base = rig.base_of(VIEWER).to_owned();
    assert!(base == "base-1" || base == "base-2", "{base}");
    let quality = rig.node(&base).autonomy.record(VIEWER).map(|record| record.info.quality);
    assert_eq!(quality, Some(Quality::GOLD));
    let in_vain = rig
        .events
        .iter()
        .filter(|(_, _, event)| matches!(event, Event::Network(AutonomyEvent::NotServed { .. })));
    assert_eq!(in_vain.count(), 0);
    assert_ne!(rig.layer_of(VIEWER, Layer::ENH2), "nobody");
}

/// The viewer seeks at the third node before anybody has noticed that its own is
/// dead. How often the backup took over, who serves it now, and who does at all.
fn sought_before_the_verdict(rig: &mut Rig) -> (usize, String, Vec<PeerId>) {
    let backup = rig.backup_of(VIEWER).to_owned();
    assert_eq!(backup, "base-2");
    rig.kill("base-1");
    rig.hang_up(VIEWER, false);
    rig.seek(VIEWER, "base-3");
    rig.run(ms(2_000));
    let taken = rig.heard_of(&backup, |event| {
        matches!(event, Event::Network(AutonomyEvent::TakenOver { .. })).then_some(())
    });
    let serving = rig.hosts.iter().filter(|(_, host)| host.node.autonomy.record(VIEWER).is_some());
    let serving = serving.map(|(name, _)| *name).collect();
    (taken.len(), rig.base_of(VIEWER).to_owned(), serving)
}

#[test]
fn a_backup_whose_viewer_sought_elsewhere_before_the_verdict_does_not_take_over() {
    let mut rig = three_base_nodes();
    let copy = held("film", &[Layer::BASE]);
    rig.hosts.get_mut(&peer("base-3")).unwrap().disk.insert("film".parse().unwrap(), copy);
    rig.look_through(peer("base-3"));
    rig.run(ms(100));
    let (taken, base, serving) = sought_before_the_verdict(&mut rig);
    assert_eq!((taken, base.as_str(), serving), (0, "base-3", vec![peer("base-3")]));
    assert_eq!(rig.in_use().0, 3, "one of each layer");
}

#[test]
fn a_search_that_is_lost_with_the_dead_node_leaves_the_viewer_to_its_backup() {
    let mut rig = three_base_nodes();
    // base-3 has no copy of the film, and sends the search on to who has died.
    let (taken, _, serving) = sought_before_the_verdict(&mut rig);
    assert_eq!((taken, serving), (1, vec![peer("base-2")]));
    assert_eq!(rig.in_use().0, 3);
}
