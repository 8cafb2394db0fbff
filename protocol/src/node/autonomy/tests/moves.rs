//! Stories of backups that have to move, and of what makes users search again.

use super::rig::{Rig, millis, peer, secs};
use crate::node::autonomy::reservation::{Reservations, Row};
use crate::node::autonomy::*;
use media::{Span, Time};
use proptest::prelude::*;

/// b1 is nearest to b2; b4 is further.
const LINE: &str = "b2-e1:1 e1-b1:1 b1-e2:1 e2-b4:1";

fn watching(links: &str) -> Rig {
    let config = AutonomyConfig { bottom_line_moves: Moves::LowestBackup, ..AutonomyConfig::paper() };
    Rig::watching(config, links)
}

fn displaced(rig: &Rig) -> Vec<(u64, bool)> {
    let out = rig.events().filter_map(|(_, _, event)| match event {
        AutonomyEvent::Displaced { user, at_once, .. } => Some((user.0, *at_once)),
        _ => None,
    });
    out.collect()
}

#[test]
fn at_the_bottom_line_an_entry_stays_until_it_has_another_place() {
    let mut rig = watching(LINE);
    rig.configure("b1", |config| config.capacity = 5);
    for user in [1, 2] {
        rig.arrive("b2", user, Sla::Normal);
        assert_eq!(rig.backups_of(user), [("b1", EntryKind::NormalDual)]);
    }
    for user in [10, 11] {
        rig.arrive("b1", user, Sla::Normal);
    }
    assert!(displaced(&rig).is_empty(), "above the bottom line nobody moves");
    let crossed = AutonomyEvent::BelowBottomLine { free: 3 };
    assert_eq!(rig.events().filter(|(_, _, event)| **event == crossed).count(), 1);
    rig.clear();
    rig.ask("b1", Rig::request(12, Sla::Normal));
    assert_eq!(displaced(&rig), [(1, false)], "the least remaining playback");
    rig.run(millis(3));
    assert_eq!(rig.backups_of(1), [("b1", EntryKind::NormalDual)], "valid until the result is there");
    rig.run(secs(40));
    assert_eq!(rig.backups_of(1), [("b4", EntryKind::NormalDual)]);
    assert_eq!(rig.searches(), [(12, SearchWhy::Admitted), (1, SearchWhy::Relocated)]);
    // The result reached the node that asked and the user's own.
    let done = AutonomyEvent::DisplacedDone { user: UserId(1), to: Some(peer("b4")) };
    assert!(rig.events().any(|(_, name, event)| name == "b1" && *event == done));
    assert_eq!(rig.node("b2").record(UserId(1)).unwrap().backup.unwrap().node, peer("b4"));
}

#[test]
fn on_a_full_node_the_lowest_standby_is_deleted_at_once() {
    let mut rig = watching(LINE);
    rig.configure("b1", |config| {
        config.capacity = 2;
        config.bottom_line = 0;
    });
    rig.arrive("b2", 1, Sla::Vip);
    rig.arrive("b1", 10, Sla::Normal);
    assert_eq!((rig.backups_of(1), rig.node("b1").free()), (vec![("b1", EntryKind::VipDual)], 0));
    rig.clear();
    rig.ask("b1", Rig::request(11, Sla::Normal));
    assert_eq!(displaced(&rig), [(1, true)]);
    assert!(rig.backups_of(1).is_empty(), "it does not wait");
    assert_eq!(rig.node("b1").users(EntryKind::Normal), 2);
    rig.run(secs(40));
    assert_eq!(rig.backups_of(1), [("b4", EntryKind::VipDual)]);
    let done = AutonomyEvent::DisplacedDone { user: UserId(1), to: Some(peer("b4")) };
    assert!(rig.events().any(|(_, name, event)| name == "b1" && *event == done));
}

#[test]
fn an_entry_without_another_place_stays_and_its_user_is_served_on() {
    let mut rig = watching("b2-e1:1 e1-b1:1");
    rig.configure("b1", |config| config.capacity = 3);
    rig.arrive("b2", 1, Sla::Normal);
    rig.arrive("b1", 10, Sla::Normal);
    assert_eq!(displaced(&rig), [(1, false)]);
    assert_eq!(rig.backups_of(1), [("b1", EntryKind::NormalDual)]);
    let done = AutonomyEvent::DisplacedDone { user: UserId(1), to: None };
    assert!(rig.events().any(|(_, name, event)| name == "b1" && *event == done));
    assert!(!rig.node("b1").row(UserId(1)).unwrap().leaving, "it may be asked again");
    assert_eq!(rig.source_of(1), ["b2"]);
}

#[test]
fn a_full_node_refuses_who_ranks_no_higher_and_never_interrupts_anybody() {
    let mut rig = watching("b1-e1:1 e1-b4:1");
    rig.configure("b1", |config| config.capacity = 2);
    for user in [1, 2] {
        rig.arrive("b1", user, Sla::Normal);
    }
    // The vip ranks above both, but they are being served.
    for (user, sla) in [(3, Sla::Normal), (4, Sla::Vip)] {
        rig.clear();
        rig.arrive("b1", user, sla);
        let why = if sla == Sla::Vip { AdmissionRefusal::NothingToDisplace } else { AdmissionRefusal::Full };
        let refused = AutonomyEvent::Refused { user: UserId(user), kind: EntryKind::serving(sla), why };
        assert!(rig.events().any(|(_, name, event)| name == "b1" && *event == refused));
        assert_eq!(rig.source_of(user), ["b4"]);
    }
    assert_eq!(rig.node("b1").users(EntryKind::Normal), 2);
}

#[test]
fn the_new_displace_no_backup_where_that_is_switched_off() {
    let config = AutonomyConfig { new_may_displace_backups: false, ..AutonomyConfig::paper() };
    for (started, source) in [(false, "b2"), (true, "b1")] {
        let mut rig = Rig::new(config, LINE);
        rig.configure("b1", |config| config.capacity = 1);
        rig.arrive("b2", 1, Sla::Vip);
        assert_eq!(rig.backups_of(1), [("b1", EntryKind::VipDual)]);
        rig.ask("b1", UserRequest { started, ..Rig::request(2, Sla::Normal) });
        rig.run(secs(1));
        assert_eq!(rig.source_of(2), [source]);
    }
}

#[test]
fn the_bottom_line_keeps_the_last_slots_for_the_higher_unless_switched_off() {
    for (on, source) in [(true, "b4"), (false, "b1")] {
        let config = AutonomyConfig { bottom_line_for_primaries: on, ..AutonomyConfig::paper() };
        let mut rig = Rig::new(config, "b1-e1 e1-b4");
        rig.configure("b1", |config| config.capacity = 4);
        rig.ask("b1", Rig::request(1, Sla::Vip));
        rig.ask("b1", Rig::request(2, Sla::Normal));
        rig.run(secs(1));
        assert_eq!(rig.source_of(2), [source]);
    }
}

#[test]
fn a_take_over_by_a_standby_makes_its_user_search_and_nobody_else() {
    let mut rig = watching("b2-e1:1 e1-b1:1 b1-e2:1 e2-b4:1 e1-b3:1");
    rig.configure("b1", |config| config.capacity = 40);
    rig.arrive("b2", 1, Sla::Vip);
    rig.arrive("b3", 2, Sla::Normal);
    assert_eq!((rig.backups_of(1)[0].0, rig.backups_of(2)[0].0), ("b1", "b1"));
    rig.kill("b2");
    rig.clear();
    rig.run(secs(40));
    assert_eq!(rig.searches(), [(1, SearchWhy::TookOver)]);
}

#[test]
fn the_death_of_a_backup_node_makes_its_users_search_and_nobody_else() {
    let mut rig = watching("b2-e1:1 e1-b1:1 b2-e5:9 e5-b5:9 e5-b4:9");
    rig.configure("b1", |config| config.capacity = 40);
    rig.arrive("b2", 1, Sla::Normal);
    rig.arrive("b2", 3, Sla::Vip);
    rig.arrive("b5", 2, Sla::Normal);
    assert_eq!((rig.backups_of(1)[0].0, rig.backups_of(3)[0].0), ("b1", "b1"));
    assert_ne!(rig.backups_of(2)[0].0, "b1");
    rig.kill("b1");
    rig.clear();
    rig.run(secs(40));
    assert_eq!(rig.searches(), [(1, SearchWhy::BackupDied), (3, SearchWhy::BackupDied)]);
    assert_eq!((rig.backups_of(1).len(), rig.backups_of(3).len()), (1, 1));
}

#[test]
fn when_a_reservation_is_used_the_others_that_share_it_search_too() {
    let mut rig = watching("b2-e1:1 e1-b1:1 b1-e2:1 e2-b4:1 e1-b3:1");
    rig.configure("b1", |config| config.capacity = 40);
    for (name, user, sla) in [("b2", 1, Sla::Normal), ("b3", 2, Sla::Normal), ("b3", 3, Sla::Vip)] {
        rig.arrive(name, user, sla);
        assert_eq!(rig.backups_of(user)[0].0, "b1");
    }
    rig.kill("b2");
    rig.clear();
    rig.run(secs(40));
    let mut searches = rig.searches();
    searches.sort_by_key(|(user, _)| *user);
    // Not the VIP: its standby is its own.
    assert_eq!(searches, [(1, SearchWhy::TookOver), (2, SearchWhy::StandbyUsed)]);
    assert_eq!(rig.backups_of(2).len(), 1);
}

#[test]
fn one_user_is_searched_for_once_at_a_time() {
    let mut rig = watching(LINE);
    rig.arrive("b2", 1, Sla::Normal);
    let heard = AgentMessage::SearchAgain(UserId(1));
    for _ in 0..2 {
        let message = heard.clone();
        rig.put(peer("b2"), AutonomyInput::Heard { from: peer("b1"), message, travel: Span::ZERO });
    }
    let coalesced = AutonomyEvent::SearchCoalesced { user: UserId(1), why: SearchWhy::StandbyUsed };
    assert_eq!(rig.events().filter(|(_, _, event)| **event == coalesced).count(), 1);
    rig.run(secs(40));
    assert_eq!(rig.backups_of(1), [("b1", EntryKind::NormalDual)]);
}

fn row(user: u64, ends: u64, kind: EntryKind) -> Row {
    let request = Rig::request(user, Sla::Normal);
    let info = agent::UserInfo {
        user: UserId(user),
        title: request.title,
        quality: request.quality,
        sla: if kind == EntryKind::VipDual { Sla::Vip } else { Sla::Normal },
        started: true,
        epoch: 1,
        position: Span::ZERO,
        remaining: secs(ends),
        buffer: secs(15),
        level: Span::ZERO,
        layers: [].into(),
    };
    Row { primary: peer("b9"), kind, info, ends: Time::ZERO + secs(ends), heard: Time::ZERO, leaving: false }
}

proptest! {
    #[test]
    fn who_has_the_least_left_leaves_first_and_takes_over_last(rows in proptest::collection::vec((0_u64..50, any::<bool>()), 1..30)) {
        let mut table = Reservations::default();
        for (user, (ends, vip)) in rows.iter().enumerate() {
            let kind = if *vip { EntryKind::VipDual } else { EntryKind::NormalDual };
            table.insert(row(user as u64, *ends, kind));
        }
        for kind in [EntryKind::NormalDual, EntryKind::VipDual] {
            let of: Vec<&Row> = table.rows().filter(|row| row.kind == kind).collect();
            let least = of.iter().map(|row| row.ends).min();
            let leaves = table.least_remaining(kind).and_then(|user| table.get(user));
            prop_assert_eq!(leaves.map(|row| row.ends), least);
            prop_assert!(leaves.is_none_or(|row| row.kind == kind));
        }
        let order: Vec<&Row> = table.behind(peer("b9")).into_iter().filter_map(|user| table.get(user)).collect();
        prop_assert_eq!(order.len(), rows.len());
        prop_assert!(order.is_sorted_by_key(|row| std::cmp::Reverse((row.info.sla, row.ends))));
        let slots = order.iter().filter(|row| row.kind == EntryKind::VipDual).count();
        prop_assert_eq!(table.slots() as usize, slots);
    }

    #[test]
    fn holds_are_counted_and_the_last_one_to_let_go_deletes_the_row(holds in 1_u32..20, extra in 0_u32..5) {
        let mut table = Reservations::default();
        let search = SearchId { start: peer("b1"), user: UserId(1), serial: 1 };
        for _ in 0..holds {
            table.hold(search, EntryKind::VipDual, Time::ZERO + secs(1));
        }
        for n in 1..=holds + extra {
            prop_assert_eq!(table.cancel(search), n <= holds);
            prop_assert_eq!(table.slots(), u32::from(n < holds));
        }
    }
}
