//! What a viewer meets whom a node cannot give all it wants, or who goes away for
//! a while.

use super::rig::{Rig, ms};
use crate::message::Role;
use crate::node::autonomy::{Level, UserId};
use crate::node::*;
use media::{BitRate, Quality};

const VIEWER: UserId = UserId(1);
const OTHER: UserId = UserId(2);

/// An origin alone. Each layer of the film takes 13,333 bits a second.
fn origin(adjust: impl FnOnce(&mut NodeConfig)) -> Rig {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, adjust);
    rig
}

#[test]
fn a_link_with_room_for_two_layers_gives_two_or_refuses_by_its_name() {
    // Whether it is let in if it may be content with so much.
    for (downgrade, beta, granted) in
        [(true, 0, true), (true, 60, true), (true, 80, false), (false, 0, false)]
    {
        let mut rig = origin(|config| {
            (config.downgrade, config.beta) = (downgrade, beta);
            config.autonomy.link_rate = BitRate(30_000);
        });
        rig.seek(VIEWER, "origin");
        rig.run(ms(2_000));
        let node = rig.node("origin");
        if granted {
            assert_eq!((rig.refusals(VIEWER), node.autonomy().used()), (vec![], 2), "beta {beta}");
            assert_eq!(rig.layer_of(VIEWER, Layer::ENH1), "origin");
            assert_eq!(rig.layer_of(VIEWER, Layer::ENH2), "nobody");
        } else {
            assert_eq!((rig.refusals(VIEWER), node.autonomy().used()), (vec![Refusal::ViewerLink], 0));
            assert_eq!(*node.autonomy().grants().admission().used(), classes::Usage::default());
        }
    }
}

#[test]
fn who_pauses_for_a_minute_gives_its_slot_back_and_is_let_in_again_when_there_is_one() {
    let mut rig = origin(|config| config.autonomy.origin_capacity = 1);
    for user in [VIEWER, OTHER] {
        rig.person(user, Role::Viewer).quality = Quality::BRONZE;
    }
    rig.seek(VIEWER, "origin");
    rig.run(ms(2_000));
    rig.person(VIEWER, Role::Viewer).paused = true;
    rig.run(ms(59_000));
    assert_eq!((rig.chunk(VIEWER, "origin", Layer::BASE), rig.node("origin").autonomy().used()), (Ok(()), 1));
    rig.run(ms(4_000));
    let gave = |event: &Event| matches!(event, Event::SlotGivenBack { .. }).then_some(());
    assert_eq!((rig.heard_of("origin", gave).len(), rig.node("origin").autonomy().used()), (1, 0));
    assert_eq!(rig.chunk(VIEWER, "origin", Layer::BASE), Err(Refusal::NotServing));
    // Somebody else has the slot meanwhile.
    rig.seek(OTHER, "origin");
    rig.run(ms(2_000));
    rig.person(VIEWER, Role::Viewer).paused = false;
    rig.seek(VIEWER, "origin");
    rig.run(ms(2_000));
    assert_eq!(rig.refusals(VIEWER), [Refusal::Full]);
    rig.leave(OTHER);
    rig.run(ms(2_000));
    rig.seek(VIEWER, "origin");
    rig.run(ms(2_000));
    assert_eq!(rig.chunk(VIEWER, "origin", Layer::BASE), Ok(()));
    let record = rig.node("origin").autonomy().record(VIEWER);
    assert!(record.is_some_and(|record| record.info.started), "as one who has begun");
    assert_eq!(rig.node("origin").autonomy().used(), 1);
}

#[test]
fn a_title_placed_elsewhere_is_fetched_too_and_watched_there_if_it_cannot_be_fetched() {
    for (rate, fetched) in [(BitRate(u64::MAX), true), (BitRate(1), false)] {
        let mut rig = Rig::new();
        rig.start("origin", Level::Origin, |config| config.publish = Some(1));
        for (name, level) in [
            ("enh2-1", Level::ENH2),
            ("enh1-1", Level::ENH1),
            ("base-1", Level::BASE),
            ("base-2", Level::BASE),
        ] {
            rig.start(name, level, |config| {
                config.autonomy.store_limit = media::ByteCount(10_000_000);
                config.autonomy.origin_rate = rate;
            });
        }
        rig.run(ms(13_000));
        let film = "film".parse().unwrap();
        let holds = |name: &str| rig.node(name).shelf.placed(&film).is_some_and(|held| held.has(Layer::BASE));
        let (holder, other) = if holds("base-1") { ("base-1", "base-2") } else { ("base-2", "base-1") };
        assert!(holds(holder) && !holds(other), "one copy");
        rig.seek(VIEWER, other);
        rig.run(ms(3_000));
        let at = if fetched { other } else { holder };
        assert_eq!(rig.chunk(VIEWER, at, Layer::BASE), Ok(()), "{rate}: {:?}", rig.refusals(VIEWER));
        assert_eq!(rig.refusals(VIEWER), []);
        let begun = |event: &Event| matches!(event, Event::Downloading { .. }).then_some(());
        assert_eq!(!rig.heard_of(other, begun).is_empty(), fetched);
    }
}
