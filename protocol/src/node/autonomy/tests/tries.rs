//! Searches that bring nothing, or bring it late.

use super::rig::{Rig, Sent, millis, peer, secs};
use crate::node::autonomy::agent::AgentState;
use crate::node::autonomy::*;

fn normal(buffer: u64) -> UserRequest {
    UserRequest { buffer: secs(buffer), ..Rig::request(1, Sla::Normal) }
}

fn attempts(rig: &Rig) -> Vec<(u64, u32)> {
    let started = rig.events().filter_map(|(at, _, event)| match event {
        AutonomyEvent::SearchStarted { attempt, .. } => Some((at.as_nanos() / 1_000_000_000, *attempt)),
        _ => None,
    });
    started.collect()
}

#[test]
fn with_all_agents_lost_there_are_three_attempts_and_then_none() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2");
    rig.lose = |(_, _, _, message)| matches!(message, AgentMessage::Discovery(_));
    rig.ask("b1", normal(5));
    rig.run(secs(500));
    assert_eq!(attempts(&rig), [(0, 1), (10, 2), (20, 3)], "each after two buffers");
    let gave_up = AutonomyEvent::GaveUp { user: UserId(1), wanted: EntryKind::NormalDual };
    assert_eq!(rig.events().filter(|(_, _, event)| **event == gave_up).count(), 1);
    let record = rig.node("b1").record(UserId(1)).unwrap();
    assert_eq!((record.backup, rig.node("b1").searching()), (None, 0));
    assert!(matches!(record.search, record::SearchState::GivenUp { again: None }));
}

#[test]
fn a_second_attempt_finds_what_the_first_one_lost() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2 e1-b3");
    rig.lose = |(at, _, _, message)| {
        matches!(message, AgentMessage::Discovery(_)) && *at < media::Time::ZERO + secs(1)
    };
    rig.ask("b1", normal(5));
    rig.run(secs(60));
    assert_eq!(attempts(&rig), [(0, 1), (10, 2)]);
    assert_eq!(rig.backups_of(1).len(), 1);
}

#[test]
fn one_lost_agent_costs_its_branch_and_the_timer_brings_the_rest() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2 e1-b3 b3-e3 e3-b4");
    rig.lose = |(_, from, _, message)| *from == peer("b2") && matches!(message, AgentMessage::Discovery(_));
    rig.ask("b1", normal(5));
    rig.run(secs(60));
    assert_eq!(attempts(&rig), [(0, 1)], "e1's timer answers in time");
    assert_eq!(rig.backups_of(1), [("b3", EntryKind::NormalDual)]);
    assert_eq!(rig.tentative(), 0);
}

#[test]
fn a_reply_after_its_time_still_counts() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2");
    rig.ask("b1", normal(5));
    rig.run(millis(150));
    // The way back takes longer than the timer.
    rig.link("b1", "e1", secs(12));
    rig.run(secs(100));
    assert_eq!(attempts(&rig), [(0, 1), (10, 2)]);
    let taken = |event: &AutonomyEvent| matches!(event, AutonomyEvent::LateReplyTaken { .. });
    assert_eq!(rig.events().filter(|(_, _, event)| taken(event)).count(), 1);
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)]);
    assert_eq!((rig.tentative(), rig.node("b1").searching()), (0, 0));
}

#[test]
fn a_late_reply_that_is_not_needed_any_more_gives_its_reservation_back() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2 b1-e2 e2-b3");
    rig.ask("b1", UserRequest { sla: Sla::Vip, ..normal(5) });
    rig.run(millis(150));
    rig.link("b1", "e1", secs(12));
    rig.run(secs(10));
    // At the timer the other branch was there.
    assert_eq!(rig.backups_of(1), [("b3", EntryKind::VipDual)]);
    assert_eq!(rig.tentative(), 1, "the late one is still on its way");
    rig.run(secs(5));
    let cancelled = |(_, from, to, message): &&Sent| {
        *from == peer("b1") && *to == peer("b2") && matches!(message, AgentMessage::Cancel(_))
    };
    assert_eq!(rig.sent.iter().filter(cancelled).count(), 1);
    assert_eq!((rig.tentative(), rig.node("b2").used()), (0, 0));
    assert_eq!(rig.backups_of(1), [("b3", EntryKind::VipDual)]);
}

#[test]
fn a_refused_reservation_falls_to_the_next_best_of_the_route() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2 b2-e2 e2-b3");
    rig.configure("b2", |config| config.capacity = 1);
    rig.ask("b1", normal(5));
    // While the agent is behind b2, b2 fills up.
    rig.run(millis(350));
    rig.ask("b2", Rig::request(2, Sla::Normal));
    rig.run(secs(60));
    assert_eq!(rig.backups_of(1), [("b3", EntryKind::NormalDual)]);
    assert_eq!(attempts(&rig).iter().filter(|(_, attempt)| *attempt > 1).count(), 0);
}

#[test]
fn a_vip_without_a_standby_gets_a_reservation_and_not_less_than_a_normal() {
    let mut rig = Rig::new(AutonomyConfig::paper(), "b1-e1 e1-b2");
    rig.configure("b2", |config| config.capacity = 2);
    for (user, sla) in [(2, Sla::Vip), (3, Sla::Vip)] {
        rig.arrive("b1", user, sla);
    }
    assert_eq!(rig.node("b2").free(), 0);
    rig.arrive("b1", 1, Sla::Vip);
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)]);
    assert_eq!(rig.searches().last(), Some(&(1, SearchWhy::Fallback)));
}

#[test]
fn coming_back_with_nothing_is_repeated_after_a_wait_where_so_configured() {
    let config = AutonomyConfig { retry_empty: true, buffer: secs(15), ..AutonomyConfig::paper() };
    let mut rig = Rig::new(config, "b1-e1");
    rig.ask("b1", normal(5));
    rig.run(secs(20));
    assert_eq!(attempts(&rig), [(0, 1), (1, 2), (2, 3)]);
    let back = |message: &AgentMessage| match message {
        AgentMessage::Discovery(agent) => agent.state != AgentState::Search,
        _ => false,
    };
    assert_eq!(rig.sent.iter().filter(|(_, _, _, message)| back(message)).count(), 3);
}
