//! Admission by class, as the nodes enforce it.

use super::rig::{Rig, millis, peer, secs};
use crate::node::autonomy::*;
use crate::node::classes::{Reason, TitleFacts, Usage};
use media::{BitRate, ByClass, Quality, Span, Time, TitleClass};

const RATE: BitRate = BitRate(1_000_000);

fn facts(title: &str, class: TitleClass) -> TitleFacts {
    TitleFacts { title: title.parse().unwrap(), class, rates: vec![RATE; 3], archive: None }
}

/// Room for everybody, blocked is lost, and the film is an ad-hoc title.
fn config() -> AutonomyConfig {
    AutonomyConfig { bottom_line: 0, redirects: Some(0), ..AutonomyConfig::paper() }
}

fn rig(config: AutonomyConfig, links: &str) -> Rig {
    let mut rig = Rig::new(config, links);
    let names: Vec<_> = rig.nodes.keys().copied().collect();
    for name in names {
        rig.put(name, AutonomyInput::Titles(vec![facts("film", TitleClass::AdHoc)]));
    }
    rig
}

fn used(rig: &Rig, name: &str) -> Usage {
    *rig.node(name).grants().admission().used()
}

/// What a user was told who came to a node.
fn told(rig: &Rig, user: u64) -> Option<AdmissionRefusal> {
    rig.log.iter().rev().find_map(|(_, _, output)| match output {
        AutonomyOutput::TellViewer { user: of, notice } if *of == UserId(user) => match notice {
            ViewerNotice::Refused { why, .. } => Some(Some(*why)),
            _ => Some(None),
        },
        _ => None,
    })?
}

#[test]
fn the_class_is_tested_before_users_before_slots_before_the_link_and_each_has_its_name() {
    let none = ByClass { ad_hoc: 1, ..AutonomyConfig::paper().thresholds };
    let tight = AutonomyConfig { thresholds: none, capacity: 1, link_rate: RATE, ..config() };
    // Each case lifts one more limit; the last one has the bottom line alone.
    let open = AutonomyConfig::paper().thresholds;
    let few = AutonomyConfig { capacity: 9, bottom_line: 9, link_rate: RATE, ..tight };
    let cases = [
        (tight, AdmissionRefusal::Threshold, Reason::Threshold),
        (AutonomyConfig { ..few }, AdmissionRefusal::Threshold, Reason::Threshold),
        (AutonomyConfig { thresholds: open, ..few }, AdmissionRefusal::BottomLine, Reason::BottomLine),
        (AutonomyConfig { thresholds: open, ..tight }, AdmissionRefusal::Full, Reason::Slots),
        (
            AutonomyConfig { thresholds: open, capacity: 9, ..tight },
            AdmissionRefusal::ViewerLink,
            Reason::ViewerLink,
        ),
    ];
    for (config, why, reason) in cases {
        let mut rig = rig(config, "b1-e1");
        // A normal ranks below the VIP who is there.
        rig.arrive("b1", 1, Sla::Vip);
        let before = used(&rig, "b1");
        assert_eq!((before.viewings.ad_hoc, before.slots, before.to_viewers), (1, 1, RATE));
        rig.arrive("b1", 2, Sla::Normal);
        assert_eq!((told(&rig, 2), used(&rig, "b1")), (Some(why), before), "a refusal takes nothing");
        let refusals = rig.node("b1").grants().admission().refusals();
        assert_eq!((refusals.of(TitleClass::AdHoc, reason), refusals.iter().count()), (1, 1));
        rig.put(peer("b1"), AutonomyInput::Depart { user: UserId(1) });
        assert_eq!(used(&rig, "b1"), Usage::default());
        rig.arrive("b1", 2, Sla::Normal);
        assert_eq!(told(&rig, 2), None, "{reason:?} is over");
    }
}

#[test]
fn a_threshold_holds_for_vips_unless_they_are_exempt_and_then_they_count() {
    let thresholds = ByClass { ad_hoc: 0, ..AutonomyConfig::paper().thresholds };
    for vip_exempt in [false, true] {
        let mut rig = rig(AutonomyConfig { thresholds, vip_exempt, ..config() }, "b1-e1");
        rig.arrive("b1", 1, Sla::Vip);
        assert_eq!(told(&rig, 1).is_none(), vip_exempt);
        assert_eq!(used(&rig, "b1").viewings.ad_hoc, u64::from(vip_exempt));
    }
}

#[test]
fn backups_count_nothing_and_who_is_taken_over_counts_whatever_the_limits() {
    let thresholds = ByClass { ad_hoc: 0, ..AutonomyConfig::paper().thresholds };
    let config = AutonomyConfig { thresholds, link_rate: BitRate(0), ..config() };
    let mut rig = Rig::watching(config, "b1-e1 e1-b2");
    // At the first node the film is not known to be of any class.
    rig.put(peer("b2"), AutonomyInput::Titles(vec![facts("film", TitleClass::AdHoc)]));
    rig.arrive("b1", 1, Sla::Vip);
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::VipDual)]);
    assert_eq!((rig.node("b2").used(), used(&rig, "b2")), (1, Usage::default()));
    rig.kill("b1");
    rig.run(secs(20));
    assert_eq!(rig.source_of(1), ["b2"]);
    let after = used(&rig, "b2");
    assert_eq!((after.viewings.ad_hoc, after.to_viewers), (1, RATE));
    rig.put(peer("b2"), AutonomyInput::Depart { user: UserId(1) });
    assert_eq!(used(&rig, "b2"), Usage::default());
}

#[test]
fn a_refused_viewer_is_sent_on_so_many_times_and_told_what_the_first_node_said() {
    let thresholds = ByClass { ad_hoc: 1, ..AutonomyConfig::paper().thresholds };
    let links = "b1-e1 e1-b2 e1-b3 e1-o";
    for (redirects, served) in [(Some(0), 1), (Some(1), 2), (Some(2), 3), (None, 4)] {
        let config = AutonomyConfig { thresholds, redirects, ..config() };
        let mut rig = rig(config, links);
        for user in 1..=5 {
            rig.arrive("b1", user, Sla::Normal);
        }
        // With no bound the origin serves one too, and then nobody is left.
        let found = (1..=5).filter(|user| !rig.source_of(*user).is_empty()).count();
        assert_eq!((found, told(&rig, 5)), (served, Some(AdmissionRefusal::Threshold)), "{redirects:?}");
        // Who has begun to watch is sent on as long as there is anybody.
        let begun = UserRequest { started: true, ..Rig::request(9, Sla::Normal) };
        rig.ask("b1", begun);
        rig.run(secs(40));
        assert_eq!(rig.source_of(9).len(), usize::from(served < 4), "{redirects:?}");
    }
}

#[test]
fn a_further_layer_of_a_viewing_takes_of_the_link_and_not_of_the_threshold() {
    let thresholds = ByClass { ad_hoc: 1, ..AutonomyConfig::paper().thresholds };
    let config = AutonomyConfig { thresholds, link_rate: BitRate(2 * RATE.0), ..config() };
    let mut rig = rig(config, "o-e1");
    rig.ask("o", UserRequest { quality: Quality::GOLD, ..Rig::request(1, Sla::Normal) });
    rig.run(secs(5));
    // The origin serves all layers; the link has room for two.
    let all = used(&rig, "o");
    assert_eq!((all.viewings.ad_hoc, all.slots, all.to_viewers), (1, 2, BitRate(2 * RATE.0)));
    assert_eq!(told(&rig, 1), Some(AdmissionRefusal::ViewerLink), "enh2 is refused by name");
    rig.put(peer("o"), AutonomyInput::Depart { user: UserId(1) });
    assert_eq!(used(&rig, "o"), Usage::default());
}

/// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
fn below(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % bound
}

/// What another node asks for one of its users.
fn confirm(user: u64, kind: EntryKind) -> AgentMessage {
    let info = agent::UserInfo {
        user: UserId(user),
        title: "film".parse().unwrap(),
        quality: Quality::BRONZE,
        sla: Sla::Normal,
        started: true,
        epoch: 1,
        position: Span::ZERO,
        remaining: secs(60),
        buffer: secs(4),
        level: Span::ZERO,
        layers: [].into(),
    };
    let search = SearchId { start: peer("b2"), user: UserId(user), serial: 1 };
    AgentMessage::Confirm { search, kind, info: Box::new(info) }
}

#[test]
fn no_slot_leaks_in_a_hundred_thousand_admissions_departures_crashes_and_failures() {
    let thresholds = ByClass { ad_hoc: 4, first_time: 9, ..AutonomyConfig::paper().thresholds };
    let config = AutonomyConfig {
        thresholds,
        capacity: 12,
        origin_capacity: 12,
        bottom_line: 2,
        link_rate: BitRate(11 * RATE.0),
        redirects: Some(0),
        assume_stored: true,
        ..AutonomyConfig::production()
    };
    for (level, seed) in [(Level::BASE, 5), (Level::Origin, 6)] {
        let (mut dice, mut now) = (seed, Time::ZERO);
        let mut node = Autonomy::new(now, peer("b1"), level, config, seed);
        let titles =
            [("film", TitleClass::AdHoc), ("news", TitleClass::FirstTime), ("old", TitleClass::Archived)];
        let put = |node: &mut Autonomy, now: Time, input| {
            node.handle_input(now, input);
            while node.poll_output().is_some() {}
        };
        put(&mut node, now, AutonomyInput::Titles(titles.map(|(title, class)| facts(title, class)).to_vec()));
        let neighbour =
            AutonomyInput::NeighbourIs { peer: peer("b2"), level: Level::BASE, travel: millis(1) };
        put(&mut node, now, neighbour);
        let hears = |message| AutonomyInput::Heard { from: peer("b2"), message, travel: millis(1) };
        let (mut refused, mut most) = (0, 0);
        for _ in 0..50_000 {
            now += Span::from_nanos(1_000 * below(&mut dice, 400_000));
            let user = below(&mut dice, 40);
            let input = match below(&mut dice, 12) {
                0..6 => AutonomyInput::Arrive {
                    request: UserRequest {
                        title: titles[usize::try_from(below(&mut dice, 3)).unwrap()].0.parse().unwrap(),
                        quality: Quality([1, 2, 3][usize::try_from(below(&mut dice, 3)).unwrap()]),
                        started: below(&mut dice, 2) == 0,
                        sla: if below(&mut dice, 4) == 0 { Sla::Vip } else { Sla::Normal },
                        ..Rig::request(user, Sla::Normal)
                    },
                },
                6 | 7 => AutonomyInput::Depart { user: UserId(user) },
                // Another node's users are backed up here, or are not any more.
                8 => hears(confirm(100 + user, EntryKind::VipDual)),
                9 => hears(confirm(100 + user, EntryKind::NormalDual)),
                10 => hears(AgentMessage::Release { user: UserId(100 + user), epoch: 9 }),
                // Everybody else says nothing, as if it had crashed: leases end.
                _ => AutonomyInput::Timeout,
            };
            let (before, arrives) =
                (*node.grants().admission().used(), matches!(input, AutonomyInput::Arrive { .. }));
            put(&mut node, now, input);
            let used = node.grants().admission().used();
            let viewings: u64 = used.viewings.iter().map(|(_, count)| *count).sum();
            assert_eq!(viewings, node.records().count() as u64);
            assert_eq!(used.slots, (node.records().count() + node.streams().count()) as u64);
            assert_eq!(used.to_viewers.0, used.slots * RATE.0);
            assert!(node.used() <= 12);
            if arrives {
                // What a neighbour left that fell silent may stand above the limits.
                let more = |now: u64, then: u64, most: u64| now <= then || now <= most;
                assert!(more(used.viewings.ad_hoc, before.viewings.ad_hoc, 4));
                assert!(more(used.viewings.first_time, before.viewings.first_time, 9));
                assert!(more(used.to_viewers.0, before.to_viewers.0, config.link_rate.0));
            }
            (refused, most) =
                (refused.max(node.grants().admission().refusals().iter().count()), most.max(used.slots));
        }
        assert!(refused >= 4 && most >= 9, "{refused} kinds of refusals, {most} slots at most");
        now += secs(60);
        put(&mut node, now, AutonomyInput::Timeout);
        put(&mut node, now + secs(60), AutonomyInput::Timeout);
        assert_eq!((node.used(), *node.grants().admission().used()), (0, Usage::default()));
        assert_eq!(node.grants().admission().viewings(), 0);
    }
}
