//! Stories of users who look for somebody to serve them.

use super::rig::{Rig, millis, peer, secs};
use crate::node::autonomy::*;
use media::{Layer, Quality, Time};

const NETWORK: &str = "b1-e1 b2-e1 b3-e2 e1-f1 e2-f1 e2-f2 f1-o f2-o b2-e2";

fn request(user: u64, quality: Quality) -> UserRequest {
    UserRequest { quality, ..Rig::request(user, Sla::Normal) }
}

fn layers(rig: &Rig, user: u64) -> Vec<(Layer, &str)> {
    let mut layers = Vec::new();
    for (name, node) in &rig.nodes {
        layers.extend(node.record(UserId(user)).map(|_| (Layer::BASE, name.as_str())));
        let own = node.streams().filter(|(of, _, _)| *of == UserId(user));
        layers.extend(own.map(|(_, layer, _)| (layer, name.as_str())));
    }
    layers.sort_unstable();
    layers
}

#[test]
fn bronze_takes_one_node_silver_two_gold_three_on_levels_of_their_own() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    for (user, quality) in [(1, Quality::BRONZE), (2, Quality::SILVER), (3, Quality::GOLD)] {
        rig.ask("b1", request(user, quality));
        rig.run(secs(40));
    }
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1")]);
    assert_eq!(layers(&rig, 2), [(Layer::BASE, "b1"), (Layer::ENH1, "e1")]);
    assert_eq!(layers(&rig, 3), [(Layer::BASE, "b1"), (Layer::ENH1, "e1"), (Layer::ENH2, "f1")]);
    let record = rig.node("b1").record(UserId(3)).unwrap();
    assert_eq!(*record.info.layers, [(Layer::ENH1, peer("e1")), (Layer::ENH2, peer("f1"))]);
}

#[test]
fn a_full_node_sends_the_user_to_the_nearest_other_one() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    rig.configure("b1", |config| config.capacity = 1);
    rig.ask("b1", request(1, Quality::BRONZE));
    rig.ask("b1", request(2, Quality::BRONZE));
    rig.run(secs(40));
    assert_eq!(layers(&rig, 2), [(Layer::BASE, "b2")]);
    // The viewer hears of it at the node it came to.
    let told = AutonomyOutput::TellViewer {
        user: UserId(2),
        notice: ViewerNotice::ServedBy { layer: Layer::BASE, node: peer("b2"), epoch: 1 },
    };
    assert!(rig.log.iter().any(|(_, name, output)| *name == peer("b1") && *output == told));
}

#[test]
fn an_agent_that_is_lost_is_followed_by_another_one() {
    let config = AutonomyConfig { layer_retry: Some(secs(1)), ..AutonomyConfig::paper() };
    let mut rig = Rig::new(config, NETWORK);
    // Whatever looks for Enh2, and the answer to it, is lost for 5 s.
    rig.lose = |(at, _, to, message)| {
        let asks = matches!(message, AgentMessage::Search(agent) if agent.layer == Layer::ENH2);
        *at < Time::ZERO + secs(5) && (asks || *to == peer("f1"))
    };
    rig.ask("b1", request(1, Quality::GOLD));
    rig.run(millis(4_900));
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1"), (Layer::ENH1, "e1")]);
    rig.run(millis(1_500));
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1"), (Layer::ENH1, "e1"), (Layer::ENH2, "f1")]);
}

#[test]
fn a_node_that_forgot_a_delivery_is_replaced() {
    let config =
        AutonomyConfig { layer_retry: Some(secs(1)), layer_check: Some(secs(5)), ..AutonomyConfig::paper() };
    let mut rig = Rig::new(config, NETWORK);
    rig.ask("b1", request(1, Quality::SILVER));
    rig.run(secs(2));
    // It thinks that b1 needs it no more, b1 that it goes on.
    let forget = AgentMessage::ReleaseLayer { user: UserId(1), layer: Layer::ENH1, epoch: 9 };
    let (from, travel) = (peer("b9"), millis(100));
    rig.put(peer("e1"), AutonomyInput::Heard { from, message: forget, travel });
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1")]);
    for _ in 0..5 {
        let (position, buffer) = (secs(1), secs(2));
        rig.put(peer("b1"), AutonomyInput::Position { user: UserId(1), position, buffer });
        rig.run(secs(1));
    }
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1"), (Layer::ENH1, "e1")]);
}

#[test]
fn of_two_nodes_found_the_first_one_serves() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    rig.ask("b1", request(1, Quality::SILVER));
    rig.run(secs(2));
    let granted = AgentMessage::Granted { user: UserId(1), layer: Layer::ENH1, node: peer("e2"), epoch: 1 };
    let (from, travel) = (peer("e2"), millis(100));
    rig.put(peer("b1"), AutonomyInput::Heard { from, message: granted, travel });
    let released = AgentMessage::ReleaseLayer { user: UserId(1), layer: Layer::ENH1, epoch: 1 };
    let (_, by, to, message) = rig.sent.last().unwrap();
    assert_eq!((*by, *to, message), (peer("b1"), peer("e2"), &released));
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1"), (Layer::ENH1, "e1")]);
}

#[test]
fn where_a_whole_level_refuses_the_origin_serves() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    for enh in ["e1", "e2"] {
        rig.configure(enh, |config| config.capacity = 0);
    }
    rig.ask("b1", request(1, Quality::GOLD));
    rig.run(secs(40));
    assert_eq!(layers(&rig, 1), [(Layer::BASE, "b1"), (Layer::ENH1, "o"), (Layer::ENH2, "o")]);
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    for full in ["b1", "b2", "b3", "e1", "e2"] {
        rig.configure(full, |config| config.capacity = 0);
    }
    rig.ask("b2", request(2, Quality::SILVER));
    rig.run(secs(40));
    assert_eq!(layers(&rig, 2), [(Layer::BASE, "o"), (Layer::ENH1, "o")]);
}

#[test]
fn who_cannot_be_served_at_all_is_told_so_at_once() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    for name in ["b1", "b2", "b3"] {
        rig.configure(name, |config| config.capacity = 0);
    }
    rig.configure("o", |config| config.origin_capacity = 0);
    rig.ask("b1", request(1, Quality::BRONZE));
    rig.run(secs(5));
    let notice = ViewerNotice::Refused { layer: Layer::BASE, why: AdmissionRefusal::Full };
    let told = AutonomyOutput::TellViewer { user: UserId(1), notice };
    assert!(rig.log.iter().any(|(_, name, output)| *name == peer("b1") && *output == told));
}

#[test]
fn when_the_node_of_an_enhancement_dies_another_one_goes_on_and_base_never_stops() {
    let links = format!("{NETWORK} b1-e2");
    let mut rig = Rig::watching(AutonomyConfig::paper(), &links);
    rig.ask("b1", request(1, Quality::GOLD));
    rig.run(secs(40));
    assert_eq!(layers(&rig, 1)[1], (Layer::ENH1, "e1"));
    rig.clear();
    let killed = rig.now;
    rig.kill("e1");
    rig.run(secs(6));
    assert_eq!(rig.node("b1").record(UserId(1)).unwrap().layer_node(Layer::ENH1), Some(peer("e2")));
    let found = rig.events().find(|(_, _, event)| matches!(event, AutonomyEvent::LayerFound { .. })).unwrap();
    // Detection, and one round to the next node of the level.
    assert!(found.0 - killed <= secs(4), "{}", found.0 - killed);
    let stops = |output: &AutonomyOutput| matches!(output, AutonomyOutput::StopDelivery { .. });
    assert!(!rig.log.iter().any(|(_, _, output)| stops(output)), "nothing was stopped");
}

#[test]
fn who_departs_leaves_nothing_behind() {
    let mut rig = Rig::new(AutonomyConfig::paper(), NETWORK);
    rig.ask("b1", UserRequest { sla: Sla::Vip, ..request(1, Quality::GOLD) });
    rig.run(secs(40));
    assert_eq!(rig.backups_of(1), [("b2", EntryKind::VipDual)]);
    rig.put(peer("b1"), AutonomyInput::Depart { user: UserId(1) });
    rig.run(secs(40));
    for (name, node) in &rig.nodes {
        let left = (node.used(), node.rows().count(), node.streams().count(), node.searching());
        assert_eq!(left, (0, 0, 0, 0), "{name}");
    }
}

#[test]
fn an_enhancement_whose_base_node_died_is_adopted_by_the_backup_or_ended() {
    for sla in [Sla::Normal, Sla::Vip] {
        let mut rig = Rig::watching(AutonomyConfig::paper(), NETWORK);
        rig.ask("b1", UserRequest { sla, ..request(1, Quality::SILVER) });
        rig.run(secs(40));
        rig.kill("b1");
        rig.run(secs(20));
        assert_eq!(rig.source_of(1), ["b2"]);
        let base = rig.node("e1").streams().map(|(_, _, base)| base).next();
        assert_eq!(base, Some(peer("b2")), "{sla:?}");
    }
    // Nobody can take over: the slot comes back.
    let mut rig = Rig::watching(AutonomyConfig::paper(), "b1-e1 e1-o");
    rig.ask("b1", request(1, Quality::SILVER));
    rig.run(secs(40));
    assert_eq!(rig.node("e1").used(), 1);
    rig.kill("b1");
    rig.run(secs(20));
    assert_eq!(rig.node("e1").used(), 0);
}
