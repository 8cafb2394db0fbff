//! Titles that are replaced, withdrawn, deleted by hand or damaged, and nodes that
//! were elsewhere meanwhile.

use super::rig::{End, Rig, ms, peer};
use super::stories::{network, operator};
use crate::node::autonomy::{AutonomyEvent, Level, UserId};
use crate::node::*;

const VIEWER: UserId = UserId(1);
const OTHER: UserId = UserId(2);
const OPERATOR: UserId = UserId(99);
/// All who store, each with its layer.
const STORING: [(&str, Layer); 6] = [
    ("enh2-1", Layer::ENH2),
    ("enh2-2", Layer::ENH2),
    ("enh1-1", Layer::ENH1),
    ("enh1-2", Layer::ENH1),
    ("base-1", Layer::BASE),
    ("base-2", Layer::BASE),
];

fn film() -> TitleName {
    "film".parse().unwrap()
}

fn first() -> Hash {
    Hash::of(b"manifest")
}

fn unpublish(rig: &mut Rig) {
    operator(rig);
    rig.tell(OPERATOR, "origin", &Message::Unpublish { request: 6, title: film() });
}

fn publish(rig: &mut Rig, copies: u16) {
    operator(rig);
    let order = Message::Publish { request: 7, title: film(), copies, popularity: 1000 };
    rig.tell(OPERATOR, "origin", &order);
}

#[test]
fn a_replaced_title_is_spread_anew_by_itself() {
    let mut rig = network(10);
    assert!(STORING.iter().all(|(name, layer)| rig.version_at(name, "film", *layer) == Some(first())));
    let second = rig.replace("film", b"another film");
    rig.run(ms(1_000));
    let replaced = rig.heard_of("origin", |event| matches!(event, Event::Replaced { .. }).then_some(()));
    assert_eq!(replaced.len(), 1);
    for (name, layer) in STORING {
        assert_eq!(rig.version_at(name, "film", layer), Some(second), "{name}");
        assert_eq!(rig.node(name).autonomy.version(&film(), layer), Some(second), "{name}");
    }
    // All of them are counted again, and nothing is short.
    rig.run(ms(12_000));
    let counts = rig.node("origin").autonomy.published().next().unwrap().2;
    assert_eq!(counts, [(Layer::ENH2, 2, 2), (Layer::ENH1, 2, 2), (Layer::BASE, 2, 2)]);
}

#[test]
fn a_title_published_by_order_is_spread_anew_with_as_many_copies() {
    let mut rig = Rig::new();
    rig.join("origin", Level::Origin);
    for name in ["base-1", "base-2", "base-3"] {
        rig.join(name, Level::BASE);
    }
    rig.run(ms(3_000));
    publish(&mut rig, 1);
    rig.run(ms(3_000));
    let has = |rig: &Rig, version| {
        let of = ["base-1", "base-2", "base-3"].into_iter();
        of.filter(|name| rig.version_at(name, "film", Layer::BASE) == Some(version)).collect::<Vec<_>>()
    };
    let before = has(&rig, first());
    assert_eq!(before.len(), 1);
    let second = rig.replace("film", b"another film");
    rig.run(ms(3_000));
    assert!(has(&rig, first()).is_empty());
    assert!(has(&rig, second).contains(&before[0]), "who had the old one has the new one");
}

#[test]
fn who_watches_a_replaced_title_goes_on_with_the_old_one_to_its_end() {
    let mut rig = network(10);
    rig.seek(VIEWER, "base-1");
    rig.run(ms(1_000));
    let second = rig.replace("film", b"another film");
    rig.run(ms(1_000));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), Some(second));
    // The new one has 300 blocks, the old one 600.
    let enh1 = rig.layer_of(VIEWER, Layer::ENH1).to_owned();
    for (name, layer) in [("base-1", Layer::BASE), (&enh1, Layer::ENH1)] {
        assert_eq!(rig.chunk_of(VIEWER, name, layer, 599), Ok(()), "{name}");
        assert_eq!(rig.granted.last(), Some(&first()), "{name}");
    }
    assert!(rig.released.iter().all(|(name, ..)| *name != peer("base-1")));
    // Who comes now gets the new one, on the same node and at the same time.
    rig.seek(OTHER, "base-1");
    rig.run(ms(1_000));
    assert_eq!(rig.base_of(OTHER), "base-1");
    assert_eq!(rig.chunk_of(OTHER, "base-1", Layer::BASE, 599), Err(Refusal::NoSuchChunk));
    assert_eq!(rig.chunk_of(OTHER, "base-1", Layer::BASE, 299), Ok(()));
    assert_eq!(rig.granted.last(), Some(&second));
    rig.leave(VIEWER);
    rig.run(ms(500));
    assert!(rig.released.contains(&(peer("base-1"), film(), first())), "nobody holds it open for ever");
}

#[test]
fn who_was_cut_off_or_dead_while_a_title_was_replaced_gets_the_new_one() {
    let mut rig = network(10);
    rig.split(&["base-2"], true);
    rig.kill("enh1-2");
    rig.run(ms(6_000));
    let second = rig.replace("film", b"another film");
    rig.run(ms(2_000));
    assert_eq!(rig.version_at("base-2", "film", Layer::BASE), Some(first()));
    rig.split(&[], false);
    rig.revive("enh1-2");
    rig.run(ms(15_000));
    for (name, layer) in STORING {
        assert_eq!(rig.version_at(name, "film", layer), Some(second), "{name}");
    }
}

#[test]
fn who_was_cut_off_or_dead_while_a_title_was_withdrawn_deletes_it_later() {
    let mut rig = network(10);
    rig.split(&["base-2"], true);
    rig.kill("enh1-2");
    rig.run(ms(6_000));
    unpublish(&mut rig);
    rig.run(ms(2_000));
    // Not even the origin is needed to remember.
    rig.kill("origin");
    assert_eq!(rig.version_at("base-2", "film", Layer::BASE), Some(first()));
    rig.split(&[], false);
    rig.revive("enh1-2");
    rig.run(ms(15_000));
    for (name, layer) in STORING {
        assert_eq!(rig.version_at(name, "film", layer), None, "{name}");
    }
}

#[test]
fn an_old_withdrawal_does_not_delete_what_was_published_again() {
    let mut rig = network(10);
    unpublish(&mut rig);
    rig.run(ms(1_000));
    // This one knows of the withdrawal, and of nothing after it.
    rig.split(&["base-2"], true);
    rig.run(ms(6_000));
    publish(&mut rig, 2);
    rig.run(ms(2_000));
    rig.split(&[], false);
    rig.run(ms(15_000));
    for (name, layer) in STORING {
        assert_eq!(rig.version_at(name, "film", layer), Some(first()), "{name}");
    }
    let digests: Vec<u64> = rig.hosts.values().map(|host| host.node.autonomy.digest()).collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "all know the same in the end: {digests:?}");
}

#[test]
fn a_copy_that_ends_as_its_title_is_withdrawn_is_deleted() {
    let mut rig = network(10);
    unpublish(&mut rig);
    rig.run(ms(1_000));
    // It came through all the same: it could not be stopped in time.
    let late = super::rig::held("film", &[Layer::BASE]);
    rig.hosts.get_mut(&peer("base-1")).unwrap().disk.insert(film(), late);
    rig.look_through(peer("base-1"));
    rig.run(ms(500));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), None);
    assert_eq!(rig.node("base-1").autonomy.stored().count(), 0);
}

#[test]
fn what_is_deleted_by_hand_is_missed_and_placed_again() {
    let mut rig = network(10);
    rig.delete_by_hand("base-1", "film");
    assert!(!rig.node("base-1").autonomy.stores(&film(), Layer::BASE), "it is not said to be here");
    let lost = rig.heard_of("base-1", |event| match event {
        Event::Network(AutonomyEvent::CopyLost { layer, .. }) => Some(*layer),
        _ => None,
    });
    assert_eq!(lost.len(), 1);
    rig.run(ms(3_000));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), Some(first()));
    assert_eq!(rig.node("origin").autonomy.published().next().unwrap().2[2], (Layer::BASE, 2, 2));
}

#[test]
fn a_damaged_copy_is_deleted_and_placed_again_but_never_the_origins_own() {
    let mut rig = network(10);
    for (name, layer) in [("base-1", Layer::BASE), ("origin", Layer::BASE)] {
        let to = End::Node(peer(name), rig.hosts[&peer(name)].life);
        // What was damaged in a version that is here no more says nothing.
        let other = Hash::of(b"other");
        rig.input(to, Input::Damaged { title: film(), layer, version: other });
        assert!(rig.node(name).autonomy.stores(&film(), layer), "{name}");
        rig.input(to, Input::Damaged { title: film(), layer, version: first() });
        assert!(!rig.node(name).autonomy.stores(&film(), layer), "{name}");
    }
    rig.run(ms(50));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), None);
    rig.run(ms(3_000));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), Some(first()));
    assert_eq!(rig.version_at("origin", "film", Layer::BASE), Some(first()));
}

#[test]
fn a_copy_goes_on_when_its_origin_is_elsewhere() {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, |config| config.publish = Some(0));
    rig.join("base-1", Level::BASE);
    rig.start("enh1-1", Level::ENH1, |_| {});
    rig.run(ms(3_000));
    rig.replace("film", b"another film");
    rig.run(ms(12));
    assert!(!rig.hosts[&peer("base-1")].copies.is_empty(), "it has begun");
    rig.kill("origin");
    rig.run(ms(3_000));
    rig.revive_as("origin", |config| {
        config.since += 10_000;
        config.address = Rig::address("elsewhere");
        config.join = vec![Door { address: Rig::address("enh1-1"), peer: None }];
    });
    rig.run(ms(8_000));
    assert_eq!(rig.version_at("base-1", "film", Layer::BASE), Some(Hash::of(b"another film")));
}

#[test]
fn a_copy_from_an_origin_nobody_knows_yet_is_begun_when_it_is_known() {
    let mut rig = network(10);
    let to = End::Node(peer("base-1"), rig.hosts[&peer("base-1")].life);
    let said = autonomy::ledger::Edition {
        title: film(),
        origin: peer("other"),
        number: u64::MAX / 2,
        version: Some(Hash::of(b"theirs")),
    };
    let travel = ms(1);
    let link = rig.node("base-1").mesh.link(peer("enh1-1")).unwrap();
    let message = Message::Agent(autonomy::AgentMessage::Editions([said].into()));
    rig.input(to, Input::Heard { link, message, travel });
    let unsaid = rig.heard_of("base-1", |event| matches!(event, Event::Unsaid { .. }).then_some(()));
    assert_eq!(unsaid.len(), 1);
    assert!(rig.hosts[&peer("base-1")].copies.is_empty());
    rig.start("other", Level::Origin, |config| {
        config.join = vec![Door { address: Rig::address("origin"), peer: None }];
    });
    rig.run(ms(2_000));
    assert!(!rig.hosts[&peer("base-1")].copies.is_empty(), "it is said again");
}

#[test]
fn the_later_start_wins_whatever_the_clock_says() {
    let mut rig = network(10);
    let before = rig.hosts[&peer("base-2")].config.since;
    rig.kill("base-2");
    // Back before anybody missed it, with a clock of last year: it counts on.
    rig.run(ms(50));
    rig.revive_as("base-2", |config| config.since = before + 1);
    rig.run(ms(300));
    let restarted = rig.heard_of("enh1-1", |event| match event {
        Event::Met { node } if node.node.peer == peer("base-2") => Some(node.since),
        _ => None,
    });
    assert_eq!(restarted.last().unwrap().1, before + 1, "nobody waited for its silence");
}
