//! A network in order: how it forms, how titles spread, how viewers find nodes.

use super::rig::{Rig, TRAVEL, held, ms, peer};
use crate::message::{Contact, NodeAddress, Open, SessionId, Visit};
use crate::node::autonomy::Sla;
use crate::node::autonomy::{AutonomyEvent, Level, UserId};
use crate::node::*;
use crate::token::Claims;
use media::Quality;

const VIEWER: UserId = UserId(1);
const OTHER: UserId = UserId(2);
const OPERATOR: UserId = UserId(99);

/// An origin, two nodes of each level, and the film everywhere. Every Base node
/// has so many slots.
pub(super) fn network(slots: u32) -> Rig {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, |config| config.publish = Some(2));
    for (name, level) in [
        ("enh2-1", Level::ENH2),
        ("enh2-2", Level::ENH2),
        ("enh1-1", Level::ENH1),
        ("enh1-2", Level::ENH1),
        ("base-1", Level::BASE),
        ("base-2", Level::BASE),
    ] {
        rig.start(name, level, |config| {
            if level == Level::BASE {
                config.autonomy.capacity = slots;
            }
        });
    }
    rig.run(ms(13_000));
    rig
}

pub(super) fn operator(rig: &mut Rig) {
    let person = rig.person(OPERATOR, Role::Operator);
    person.name = peer(crate::message::OPERATOR);
}

fn film() -> TitleName {
    "film".parse().unwrap()
}

#[test]
fn nodes_that_know_one_address_link_themselves_and_know_everybody() {
    let rig = network(10);
    for (name, host) in &rig.hosts {
        assert_eq!(host.node.book.all().count(), 6, "{name} knows all others");
        assert_eq!(host.node.autonomy.believed_dead().count(), 0);
    }
    let neighbours = |name: &str| -> Vec<String> {
        rig.node(name).autonomy.neighbours().map(|(peer, _)| peer.to_string()).collect()
    };
    for (inner, outer) in [("origin", "enh2"), ("enh2-1", "enh1"), ("enh1-1", "base"), ("enh1-2", "base")] {
        for number in 1..=2 {
            let outer = format!("{outer}-{number}");
            assert!(neighbours(inner).contains(&outer), "{inner}: {:?}", neighbours(inner));
            assert!(neighbours(&outer).contains(&inner.to_owned()), "{outer}: {:?}", neighbours(&outer));
        }
    }
}

#[test]
fn a_door_that_is_not_there_yet_is_tried_again() {
    let mut rig = Rig::new();
    rig.join("base-1", Level::BASE);
    rig.run(ms(4_000));
    assert_eq!(rig.node("base-1").book.all().count(), 0);
    rig.join("origin", Level::Origin);
    rig.run(ms(2_000));
    assert_eq!(rig.node("base-1").book.all().count(), 1);
    assert_eq!(rig.node("origin").autonomy.neighbours().count(), 1);
}

#[test]
fn a_node_whose_own_address_is_among_its_doors_finds_the_others_all_the_same() {
    let mut rig = Rig::new();
    let doors = |config: &mut NodeConfig| {
        config.join =
            ["base-1", "base-2"].map(|name| Door { address: Rig::address(name), peer: None }).into();
    };
    rig.start("base-1", Level::BASE, doors);
    rig.run(ms(3_000));
    rig.start("base-2", Level::BASE, doors);
    rig.run(ms(4_000));
    assert_eq!(rig.node("base-1").autonomy.neighbours().count(), 1);
    assert_eq!(rig.node("base-2").autonomy.neighbours().count(), 1);
}

#[test]
fn a_title_is_published_by_order_and_lands_level_by_level() {
    let mut rig = Rig::new();
    rig.join("origin", Level::Origin);
    for (name, level) in [("enh2-1", Level::ENH2), ("enh1-1", Level::ENH1), ("base-1", Level::BASE)] {
        rig.join(name, level);
    }
    rig.run(ms(2_000));
    assert!(rig.hosts[&peer("base-1")].disk.is_empty());
    operator(&mut rig);
    let publish = Message::Publish { request: 5, title: film(), copies: 0, popularity: 1000 };
    rig.tell(OPERATOR, "origin", &publish);
    rig.run(ms(2_000));
    assert!(rig.people[&OPERATOR].heard.iter().any(|(_, _, said)| *said == Message::Done { request: 5 }));
    for (name, layer) in [("enh2-1", Layer::ENH2), ("enh1-1", Layer::ENH1), ("base-1", Layer::BASE)] {
        assert_eq!(rig.hosts[&peer(name)].disk[&film()].layers, [layer], "{name}");
        assert!(rig.node(name).autonomy.stores(&film(), layer));
    }
    rig.tell(OPERATOR, "origin", &Message::AskStatus);
    rig.run(ms(100));
    let placement = &rig.statuses[0].placements[0];
    assert_eq!(placement.layers, [(Layer::ENH2, 1, 0), (Layer::ENH1, 1, 0), (Layer::BASE, 1, 0)]);
    // Who joins later, further out than the origin's neighbours, gets its layer.
    rig.join("base-2", Level::BASE);
    rig.run(ms(12_000));
    assert_eq!(rig.hosts[&peer("base-2")].disk[&film()].layers, [Layer::BASE]);

    rig.tell(OPERATOR, "origin", &Message::Unpublish { request: 6, title: film() });
    rig.run(ms(2_000));
    for name in ["enh2-1", "enh1-1", "base-1", "base-2"] {
        assert!(rig.hosts[&peer(name)].disk.is_empty(), "{name}");
        assert!(rig.node(name).autonomy.stored().next().is_none());
    }
    assert_eq!(rig.hosts[&peer("origin")].disk.len(), 1, "the origin keeps what is its own");
}

#[test]
fn what_was_withdrawn_is_not_published_again_by_itself() {
    let mut rig = network(10);
    assert_eq!(rig.hosts[&peer("base-1")].disk.len(), 1);
    operator(&mut rig);
    rig.tell(OPERATOR, "origin", &Message::Unpublish { request: 6, title: film() });
    rig.run(ms(1_000));
    rig.look_through(peer("origin"));
    rig.run(ms(12_000));
    assert!(rig.hosts[&peer("base-1")].disk.is_empty());
    // Nor by the origin's next life.
    rig.kill("origin");
    rig.run(ms(6_000));
    rig.revive("origin");
    rig.run(ms(12_000));
    assert!(rig.hosts[&peer("base-1")].disk.is_empty());
    // By order it is.
    rig.tell(
        OPERATOR,
        "origin",
        &Message::Publish { request: 7, title: film(), copies: 2, popularity: 1000 },
    );
    rig.run(ms(12_000));
    assert_eq!(rig.hosts[&peer("base-1")].disk.len(), 1);
}

#[test]
fn gold_comes_from_three_levels_and_a_backup_is_named_after_it_is_reserved() {
    let mut rig = network(10);
    let begin = rig.now;
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    assert_eq!((rig.base_of(VIEWER), rig.backup_of(VIEWER)), ("base-1", "base-2"));
    assert!(rig.layer_of(VIEWER, Layer::ENH1).starts_with("enh1"));
    assert!(rig.layer_of(VIEWER, Layer::ENH2).starts_with("enh2"));
    let opened = rig.people[&VIEWER].heard.iter().find_map(|(at, _, said)| match said {
        Message::Opened(opened) => Some((*at, opened.clone())),
        _ => None,
    });
    let (at, opened) = opened.unwrap();
    assert!(at < begin + ms(100), "a few hops: {:?}", at - begin);
    assert_eq!((opened.quality, opened.sources.len(), opened.epoch), (Quality::GOLD, 3, 1));
    assert!(opened.sources.iter().all(|source| source.nodes.len() == 1));
    assert_eq!(opened.doors.iter().map(|door| door.peer).collect::<Vec<_>>(), [peer("base-2")]);
    // The backup knows the viewer before the viewer knows the backup.
    let told = rig.people[&VIEWER].heard.iter().find(|(_, _, said)| matches!(said, Message::BackupIs { .. }));
    let reserved = rig.heard_of("base-2", |event| match event {
        Event::Network(AutonomyEvent::Reserved { user, .. }) => Some(*user),
        _ => None,
    });
    assert_eq!(reserved[0].1, VIEWER);
    assert!(told.is_none_or(|(at, ..)| *at > reserved[0].0));
    let row = rig.node("base-2").autonomy.row(VIEWER).unwrap();
    assert_eq!((row.primary, row.info.layers.len()), (peer("base-1"), 2));
    for (name, layer) in [(0, Layer::BASE), (1, Layer::ENH1), (2, Layer::ENH2)] {
        let node = opened.sources[name].nodes[0].peer;
        assert_eq!(rig.chunk(VIEWER, node.as_str(), layer), Ok(()));
    }
    assert_eq!(rig.chunk(VIEWER, "base-2", Layer::BASE), Err(Refusal::NotServing));
    assert_eq!(rig.chunk(VIEWER, "base-1", Layer::ENH1), Err(Refusal::LayerNotOffered));
}

#[test]
fn who_comes_to_a_full_node_is_sent_on_and_opens_there_with_all_layers() {
    let mut rig = network(1);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    assert_eq!(rig.base_of(VIEWER), "base-1");
    rig.seek(OTHER, "base-1");
    rig.run(ms(1_000));
    let first =
        &rig.people[&OTHER].heard.iter().find(|(_, _, said)| !matches!(said, Message::Hello(_))).unwrap().2;
    let base = NodeAddress { peer: peer("base-2"), address: Rig::address("base-2") };
    assert_eq!(*first, Message::Elsewhere { request: 1, base, epoch: 1 });
    assert_eq!(rig.base_of(OTHER), "base-2");
    assert!(rig.layer_of(OTHER, Layer::ENH1).starts_with("enh1"));
    assert!(rig.layer_of(OTHER, Layer::ENH2).starts_with("enh2"));
    assert_eq!(rig.chunk(OTHER, "base-2", Layer::BASE), Ok(()));
    // Where the whole level is full, the origin serves.
    let third = UserId(3);
    rig.seek(third, "base-2");
    rig.run(ms(1_000));
    assert_eq!(rig.base_of(third), "origin");
    assert_eq!(rig.chunk(third, "origin", Layer::BASE), Ok(()));
}

#[test]
fn where_everybody_is_full_the_viewer_hears_so() {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, |config| {
        config.autonomy.origin_capacity = 3;
        config.publish = Some(1);
    });
    rig.start("base-1", Level::BASE, |config| config.autonomy.capacity = 1);
    rig.run(ms(12_000));
    for user in [1, 2] {
        rig.seek(UserId(user), "base-1");
        rig.run(ms(1_000));
    }
    // One Base, and the origin's three: Enh1 and Enh2 of the first, Base of the second.
    assert_eq!((rig.base_of(UserId(1)), rig.base_of(UserId(2))), ("base-1", "origin"));
    assert_eq!(rig.layer_of(UserId(2), Layer::ENH1), "nobody");
    rig.seek(UserId(3), "base-1");
    rig.run(ms(1_000));
    assert_eq!(rig.refusals(UserId(3)), [Refusal::Full]);
    rig.leave(UserId(1));
    rig.run(ms(1_000));
    rig.seek(UserId(3), "base-1");
    rig.run(ms(1_000));
    assert_eq!(rig.base_of(UserId(3)), "base-1");
}

#[test]
fn an_unknown_title_is_refused_by_its_name_whoever_is_asked() {
    let mut rig = network(10);
    for (number, name) in ["base-1", "base-2", "enh1-1", "enh2-2", "origin"].into_iter().enumerate() {
        let user = UserId(10 + u64::try_from(number).unwrap());
        rig.seek_title(user, name, "no-such-film");
        rig.run(ms(2_500));
        assert_eq!(rig.refusals(user), [Refusal::NoSuchTitle], "{name}");
    }
    assert_eq!(rig.in_use(), (0, 0, 0));
}

#[test]
fn a_search_may_begin_at_a_node_of_any_level() {
    let mut rig = network(10);
    for (number, name) in ["enh1-1", "enh2-2", "origin"].into_iter().enumerate() {
        let user = UserId(10 + u64::try_from(number).unwrap());
        rig.seek(user, name);
        rig.run(ms(2_500));
        assert_ne!(rig.base_of(user), "nobody", "{name}: {:?}", rig.people[&user].heard);
        assert_ne!(rig.layer_of(user, Layer::ENH2), "nobody", "{name}");
    }
}

#[test]
fn who_leaves_frees_its_slots_everywhere_at_once() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.vip(OTHER);
    rig.seek(OTHER, "base-2");
    rig.run(ms(2_000));
    // Three layers each, a standby's slot for the VIP; a row for each.
    assert_eq!((rig.in_use().0, rig.in_use().1), (7, 2));
    rig.leave(VIEWER);
    rig.leave(OTHER);
    rig.run(ms(500));
    assert_eq!(rig.in_use(), (0, 0, 0));
}

#[test]
fn who_hangs_up_in_order_frees_its_slots_too() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    rig.hang_up(VIEWER, true);
    rig.run(ms(500));
    assert_eq!(rig.in_use(), (0, 0, 0));
}

#[test]
fn who_vanishes_frees_its_slots_after_its_lease() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    rig.vanish(VIEWER);
    rig.run(ms(8_000));
    assert_eq!((rig.in_use().0, rig.in_use().1), (3, 1), "it may come back");
    rig.run(ms(3_000));
    assert_eq!(rig.in_use(), (0, 0, 0));
}

#[test]
fn a_viewer_that_comes_back_within_its_lease_goes_on_where_it_was() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    rig.hang_up(VIEWER, false);
    rig.run(ms(6_000));
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    assert_eq!((rig.base_of(VIEWER), rig.people[&VIEWER].epoch), ("base-1", 1));
    assert_eq!(rig.chunk(VIEWER, "base-1", Layer::BASE), Ok(()));
    rig.run(ms(20_000));
    assert_eq!((rig.in_use().0, rig.in_use().1), (3, 1), "its reports renew the lease");
}

#[test]
fn a_standby_serves_a_vip_at_once_and_a_reservation_serves_nobody_yet() {
    let mut rig = network(10);
    rig.vip(VIEWER);
    rig.seek(VIEWER, "base-1");
    rig.seek(OTHER, "base-1");
    rig.run(ms(2_000));
    assert_eq!((rig.backup_of(VIEWER), rig.backup_of(OTHER)), ("base-2", "base-2"));
    assert_eq!(rig.chunk(VIEWER, "base-2", Layer::BASE), Ok(()));
    assert_eq!(rig.chunk(OTHER, "base-2", Layer::BASE), Err(Refusal::NotServing));
}

#[test]
fn a_token_decides_class_and_quality() {
    let mut rig = network(10);
    rig.person(VIEWER, Role::Viewer).claims = Ok(Claims { sla: Sla::Normal, top: Quality::SILVER });
    rig.seek(VIEWER, "base-1");
    rig.person(OTHER, Role::Viewer).claims = Err(Refusal::Token);
    rig.seek(OTHER, "base-1");
    rig.run(ms(1_000));
    assert_eq!(rig.layer_of(VIEWER, Layer::ENH2), "nobody");
    assert_ne!(rig.layer_of(VIEWER, Layer::ENH1), "nobody");
    assert_eq!(rig.refusals(OTHER), [Refusal::Token]);
}

#[test]
fn only_members_copy_and_a_copy_takes_no_slot() {
    let mut rig = network(10);
    rig.person(VIEWER, Role::Viewer);
    rig.copy(VIEWER, "origin");
    rig.person(OTHER, Role::Node);
    rig.copy(OTHER, "origin");
    rig.run(ms(100));
    assert_eq!(rig.refusals(VIEWER), [Refusal::NotAllowed]);
    assert_eq!(rig.chunk(VIEWER, "origin", Layer::BASE), Err(Refusal::NoSession));
    for layer in Layer::first(3) {
        assert_eq!(rig.chunk(OTHER, "origin", layer), Ok(()));
    }
    assert_eq!(rig.in_use(), (0, 0, 1));
}

#[test]
fn orders_are_taken_from_the_operator_alone_and_by_an_origin_alone() {
    let mut rig = network(10);
    operator(&mut rig);
    let publish = |title: &str| Message::Publish {
        request: 5,
        title: title.parse().unwrap(),
        copies: 1,
        popularity: 1,
    };
    let unpublish = Message::Unpublish { request: 6, title: film() };
    for (user, role) in [(3, Role::Viewer), (4, Role::Node), (5, Role::Proxy), (6, Role::Operator)] {
        let user = UserId(user);
        rig.person(user, role);
        rig.tell(user, "origin", &publish("film"));
        rig.tell(user, "origin", &unpublish);
        rig.run(ms(100));
        // The name counts, not only the part that somebody claims.
        assert_eq!(rig.refusals(user), [Refusal::NotAllowed, Refusal::NotAllowed], "{role:?}");
    }
    rig.tell(OPERATOR, "base-1", &publish("film"));
    rig.tell(OPERATOR, "base-1", &unpublish);
    rig.tell(OPERATOR, "origin", &publish("no-such-film"));
    rig.tell(OPERATOR, "origin", &Message::Unpublish { request: 7, title: "other".parse().unwrap() });
    rig.run(ms(100));
    let expected = [Refusal::NotOrigin, Refusal::NotOrigin, Refusal::NoSuchTitle, Refusal::NoSuchTitle];
    assert_eq!(rig.refusals(OPERATOR), expected);
    rig.tell(UserId(3), "base-1", &Message::AskStatus);
    rig.tell(OPERATOR, "base-1", &Message::AskStatus);
    rig.run(ms(100));
    assert_eq!(rig.refusals(UserId(3)).last(), Some(&Refusal::NotAllowed));
    let status = rig.statuses.last().unwrap();
    assert_eq!((status.peer, status.slots.capacity, status.titles.len()), (peer("base-1"), 10, 1));
    assert!(!status.neighbours.is_empty() && status.neighbours.iter().all(|line| !line.dead));
}

#[test]
fn nonsense_from_every_part_is_an_event_and_nothing_else() {
    let mut rig = network(10);
    let address = NodeAddress { peer: peer("x"), address: Rig::address("x") };
    let contact = Contact { node: address, level: Level::BASE, since: 1 };
    let nonsense = [
        Message::Titles(Vec::new()),
        Message::Refused { request: 0, why: Refusal::Full },
        Message::Alive(1),
        Message::BackupIs { user: VIEWER, backup: address, epoch: 1 },
        Message::DeliveryStart { user: VIEWER, position: ms(1), epoch: 1 },
        Message::Elsewhere { request: 0, base: address, epoch: 1 },
        Message::LayerAt { user: VIEWER, layer: Layer::ENH1, node: None, epoch: 1 },
        Message::Done { request: 1 },
        Message::Neighbour(contact),
        Message::Position { user: VIEWER, position: ms(1), buffer: ms(1), paused: false },
        Message::StillServed { user: VIEWER, epoch: 1 },
    ];
    rig.seek(VIEWER, "base-1");
    rig.run(ms(2_000));
    let before =
        format!("{:?}", rig.node("base-1").autonomy.record(VIEWER).map(|record| record.info.clone()));
    for (user, role) in [(3, Role::Viewer), (4, Role::Node), (5, Role::Proxy), (6, Role::Operator)] {
        let user = UserId(user);
        rig.person(user, role);
        for message in &nonsense {
            let (heard, events) = (rig.people[&user].heard.len(), rig.events.len());
            rig.tell(user, "base-1", message);
            rig.run(TRAVEL + TRAVEL);
            let said: Vec<&Message> =
                rig.people[&user].heard[heard..].iter().map(|(_, _, said)| said).collect();
            assert!(
                said.iter().all(|said| matches!(said, Message::Hello(_))),
                "{role:?} {message:?}: {said:?}"
            );
            let rejected = |(_, _, event): &(Time, PeerId, Event)| matches!(event, Event::Rejected { .. });
            assert!(rig.events[events..].iter().any(rejected), "{role:?} {message:?}");
        }
        for message in [Message::Contacts(vec![contact]), Message::Agent(autonomy::AgentMessage::Signal)] {
            if role != Role::Node {
                let events = rig.events.len();
                rig.tell(user, "base-1", &message);
                rig.run(TRAVEL);
                let rejected =
                    |(_, _, event): &(Time, PeerId, Event)| matches!(event, Event::Rejected { .. });
                assert!(rig.events[events..].iter().any(rejected), "{role:?} {message:?}");
            }
        }
    }
    let after = format!("{:?}", rig.node("base-1").autonomy.record(VIEWER).map(|record| record.info.clone()));
    assert_eq!(before, after);
    assert_eq!(rig.node("base-1").book.all().count(), 6);
}

#[test]
fn nobody_speaks_for_somebody_else() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    rig.person(OTHER, Role::Viewer);
    rig.tell(
        OTHER,
        "base-1",
        &Message::Position { user: VIEWER, position: ms(500_000), buffer: ms(0), paused: false },
    );
    rig.tell(OTHER, "base-1", &Message::Close(rig.people[&VIEWER].sessions[&peer("base-1")]));
    rig.tell(OTHER, "base-1", &Message::Close(SessionId(77)));
    rig.run(ms(100));
    let record = rig.node("base-1").autonomy.record(VIEWER).unwrap();
    assert!(record.info.position < ms(500_000));
    assert_eq!(rig.chunk(OTHER, "base-1", Layer::BASE), Err(Refusal::NoSession));
    // A stranger is not let in by a name alone that nobody serves.
    rig.attach(OTHER, "base-1");
    rig.run(ms(100));
    assert_eq!(rig.refusals(OTHER), [Refusal::NotServing]);
    assert_eq!(rig.chunk(VIEWER, "base-1", Layer::BASE), Ok(()));
}

#[test]
fn one_viewing_is_of_one_title() {
    let mut rig = network(10);
    let layers: Vec<Layer> = Layer::first(3).collect();
    rig.hosts.get_mut(&peer("origin")).unwrap().disk.insert("news".parse().unwrap(), held("news", &layers));
    rig.look_through(peer("origin"));
    rig.run(ms(12_000));
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    let open = Open::new(2, "news".parse().unwrap(), Quality::GOLD, VIEWER, Visit::Attach);
    rig.tell(VIEWER, "base-1", &Message::Open(open));
    rig.run(ms(1_000));
    assert_eq!(rig.refusals(VIEWER), [Refusal::NotServing], "it is served another title");
    assert_eq!(rig.chunk(VIEWER, "base-1", Layer::BASE), Ok(()));
    // Who seeks another title with the same number has left the first one.
    rig.seek_title(VIEWER, "base-1", "news");
    rig.run(ms(1_000));
    let record = rig.node("base-1").autonomy.record(VIEWER).unwrap();
    assert_eq!(record.info.title.as_str(), "news");
    assert_eq!((rig.in_use().0, rig.in_use().1), (3, 1));
}
