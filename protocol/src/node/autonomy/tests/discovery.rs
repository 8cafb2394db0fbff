//! One search for a backup, step by step.

use super::rig::{Rig, Sent, millis, peer, secs};
use crate::node::autonomy::agent::{AgentState, DiscoveryAgent};
use crate::node::autonomy::*;
use media::{Span, Time};

fn paper() -> AutonomyConfig {
    AutonomyConfig { board_stop: false, ..AutonomyConfig::paper() }
}

/// The searching agents that were sent: from, to, agent.
fn agents(sent: &[Sent]) -> Vec<(&str, &str, &DiscoveryAgent)> {
    let agents = sent.iter().filter_map(|(_, from, to, message)| match message {
        AgentMessage::Discovery(agent) if agent.state == AgentState::Search => {
            Some((from.as_str(), to.as_str(), agent.as_ref()))
        }
        _ => None,
    });
    agents.collect()
}

fn hops(rig: &Rig) -> Vec<(&str, &str)> {
    agents(&rig.sent).into_iter().map(|(from, to, _)| (from, to)).collect()
}

/// A user of a node, with a buffer.
fn search(rig: &mut Rig, name: &str, buffer: Span) {
    rig.ask(name, UserRequest { buffer, ..Rig::request(1, Sla::Normal) });
    rig.run(secs(40));
}

#[test]
fn timeouts_are_two_buffers_less_two_ways_and_nothing_exactly_at_the_buffer() {
    let mut rig = Rig::new(paper(), "b1-e1:1000 e1-b2:2000 b2-e2:1000 e2-b3:1000 b3-e3 e3-b4");
    search(&mut rig, "b1", secs(5));
    let buffer = secs(5);
    for (from, to, agent) in agents(&rig.sent) {
        // As sent: what was travelled before this link.
        assert_eq!(agent.timeout, buffer.saturating_sub(agent.travelled).saturating_mul(2), "{from} {to}");
    }
    assert_eq!(agents(&rig.sent)[0].2.timeout, secs(10), "two buffers at the start");
    // At b3 the agent has travelled 5 s: no time is left, and it goes no further.
    assert_eq!(hops(&rig), [("b1", "e1"), ("e1", "b2"), ("b2", "e2"), ("e2", "b3")]);
}

#[test]
fn an_agent_stops_where_no_other_link_leads_on() {
    let mut rig = Rig::new(paper(), "b1-e1 e1-b2 e1-b3 b3-e2");
    search(&mut rig, "b1", secs(15));
    // b2 and e2 have no link but the one it came by.
    assert_eq!(hops(&rig), [("b1", "e1"), ("e1", "b2"), ("e1", "b3"), ("b3", "e2")]);
}

#[test]
fn an_agent_stops_where_it_has_travelled_the_buffer_and_not_before() {
    let links = "b1-e1:500 e1-b2:499 b2-e2:1 e2-b3:1";
    for (buffer, last) in [(1_000, "e2"), (1_001, "b3"), (999, "b2")] {
        let mut rig = Rig::new(paper(), links);
        search(&mut rig, "b1", millis(buffer));
        assert_eq!(hops(&rig).last().unwrap().1, last, "{buffer} ms");
        assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)], "what it has reached counts");
    }
}

#[test]
fn an_agent_stops_where_the_search_has_been() {
    let mut rig = Rig::new(paper(), "b1-e1:100 b1-e2:150 e1-b2:100 e2-b2:100 b2-e3:100 e3-b3:100");
    search(&mut rig, "b1", secs(15));
    // b2 is reached twice, and goes on once; what came second, at 250 ms, ends there.
    let expected =
        [("b1", "e1"), ("b1", "e2"), ("e1", "b2"), ("e2", "b2"), ("b2", "e2"), ("b2", "e3"), ("e3", "b3")];
    let mut hops = hops(&rig);
    hops.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(hops, expected);
}

#[test]
fn one_agent_comes_back_and_one_reservation_is_official() {
    let mut rig = Rig::new(paper(), "b1-e1 e1-b2 e1-b3 b2-e2 b3-e2 e2-b4 b1-e3 e3-b4");
    search(&mut rig, "b1", secs(15));
    let back = rig.sent.iter().filter(|(_, _, to, message)| {
        *to == peer("b1")
            && matches!(message, AgentMessage::Discovery(agent) if agent.state != AgentState::Search)
    });
    assert_eq!(back.count(), 2, "one from each neighbour");
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::NormalDual)]);
    assert_eq!(rig.tentative(), 0);
    let record = rig.node("b1").record(UserId(1)).unwrap();
    assert_eq!(record.backup.unwrap().node, peer("b2"));
    let notice = ViewerNotice::BackupIs { node: peer("b2"), epoch: 1 };
    let told = AutonomyOutput::TellViewer { user: UserId(1), notice };
    assert!(rig.log.iter().any(|(_, name, output)| *name == peer("b1") && *output == told));
}

#[test]
fn the_losers_of_a_search_are_cancelled_and_every_hold_is_counted() {
    let config = AutonomyConfig { policy: Policy::MostHeadroom, ..paper() };
    let mut rig = Rig::new(config, "b1-e1 e1-b2 e1-b3 b2-e2 b3-e3 e2-b4 e3-b5");
    for (name, capacity) in [("b2", 10), ("b3", 11), ("b4", 12), ("b5", 13)] {
        rig.configure(name, |config| config.capacity = capacity);
    }
    rig.ask("b1", Rig::request(1, Sla::Vip));
    rig.run(millis(700));
    assert!(rig.tentative() > 1, "each branch holds its own best");
    rig.run(secs(40));
    assert_eq!(rig.backups_of(1), [("b5", EntryKind::VipDual)]);
    let cancels = rig.sent.iter().filter(|(_, _, _, message)| matches!(message, AgentMessage::Cancel(_)));
    assert_eq!((cancels.count(), rig.tentative()), (1, 0));
    assert_eq!(rig.node("b4").used(), 0);
}

#[test]
fn two_searches_cannot_both_win_the_last_slot() {
    let mut rig = Rig::new(paper(), "b1-e1 b2-e1 e1-b3 b3-e2 e2-b4");
    for name in ["b1", "b2"] {
        rig.configure(name, |config| config.capacity = 1);
    }
    rig.configure("b3", |config| config.capacity = 1);
    rig.ask("b1", Rig::request(1, Sla::Vip));
    rig.ask("b2", Rig::request(2, Sla::Vip));
    rig.run(secs(40));
    let mut backups = [rig.backups_of(1), rig.backups_of(2)].concat();
    backups.sort_unstable();
    assert_eq!(backups, [("b3", EntryKind::VipDual), ("b4", EntryKind::VipDual)]);
    assert_eq!(rig.tentative(), 0);
}

#[test]
fn a_tentative_row_lapses_when_its_agent_is_lost() {
    let mut rig = Rig::new(paper(), "b1-e1 e1-b2 b2-e2");
    rig.lose = |(_, from, _, message)| {
        *from == "e1".parse().unwrap()
            && matches!(message, AgentMessage::Discovery(agent) if agent.state != AgentState::Search)
    };
    rig.ask("b1", Rig::request(1, Sla::Vip));
    rig.run(secs(1));
    assert_eq!((rig.tentative(), rig.node("b2").used()), (1, 1));
    // Three searches for a standby, three for a reservation, and each row's own time.
    rig.run(secs(250));
    assert_eq!((rig.tentative(), rig.node("b2").used()), (0, 0));
}

#[test]
fn boards_save_messages_when_many_search_at_once() {
    let links = "b1-e1 b2-e1 b3-e1 b1-e2 b4-e2 b5-e2 b2-e3 b4-e3 b6-e3 b3-e4 b5-e4 b6-e4";
    let count = |board_stop: bool| {
        let mut rig = Rig::new(AutonomyConfig { board_stop, ..AutonomyConfig::paper() }, links);
        for (name, user) in ["b1", "b2", "b3", "b4", "b5", "b6"].into_iter().cycle().zip(0..12) {
            rig.ask(name, Rig::request(user, Sla::Normal));
            rig.run(millis(150));
        }
        rig.run(secs(40));
        assert!((0..12).all(|user| rig.backups_of(user).len() == 1), "everybody has a backup");
        rig.sent.len()
    };
    let (with, without) = (count(true), count(false));
    assert!(with < without, "{with} with boards, {without} without");
}

#[test]
fn nonsense_is_refused_by_name_and_changes_nothing() {
    let mut rig = Rig::new(paper(), "b1-e1 e1-b2");
    search(&mut rig, "b1", secs(15));
    let (_, _, honest) = agents(&rig.sent)[0];
    let honest = honest.clone();
    let fresh = SearchId { serial: 99, ..honest.id };
    let cases: [(&str, DiscoveryAgent, RejectedWhy); 5] = [
        ("b9", honest.clone(), RejectedWhy::NotANeighbour),
        ("b2", honest.clone(), RejectedWhy::BadPath),
        ("b1", DiscoveryAgent { timeout: secs(99), id: fresh, ..honest.clone() }, RejectedWhy::TooLong),
        (
            "b1",
            DiscoveryAgent { wanted: EntryKind::Vip, id: fresh, ..honest.clone() },
            RejectedWhy::NotABackup,
        ),
        (
            "b1",
            DiscoveryAgent { path: vec![peer("b1"); 60].into(), id: fresh, ..honest.clone() },
            RejectedWhy::TooLong,
        ),
    ];
    for (from, agent, why) in cases {
        rig.clear();
        let message = AgentMessage::Discovery(Box::new(agent));
        rig.put(peer("e1"), AutonomyInput::Heard { from: peer(from), message, travel: millis(1) });
        let events: Vec<_> = rig.events().map(|(_, _, event)| event.clone()).collect();
        assert_eq!(events, [AutonomyEvent::Rejected { from: peer(from), why }]);
        assert!(rig.sent.is_empty());
    }
    // Time does not go back, and a timeout too many does no harm.
    let node = rig.nodes.get_mut(&peer("e1")).unwrap();
    node.handle_input(Time::ZERO, AutonomyInput::Timeout);
    assert_eq!(node.poll_output(), None);
}
