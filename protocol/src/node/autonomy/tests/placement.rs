//! Stories of titles that are spread over the levels.

use super::rig::{Rig, peer, secs};
use crate::node::autonomy::*;
use media::{ByteCount, Hash, Layer};

/// The film's manifest, and the one that replaces it.
const FIRST: Hash = Hash::from_bytes([1; 32]);

const NETWORK: &str = "o-f1 o-f2 f1-e1 f1-e2 f2-e2 f2-e3 e1-b1 e1-b2 e2-b2 e2-b3 e3-b3 e3-b4";

fn config() -> AutonomyConfig {
    AutonomyConfig { assume_stored: false, ..AutonomyConfig::paper() }
}

fn film(copies: u16) -> PlacementOrder {
    let layer = |n: u8| LayerOrder {
        layer: Layer(n),
        size: ByteCount(u64::from(n) * 1_000 + 1_000),
        importance: 100,
    };
    PlacementOrder {
        title: "film".parse().unwrap(),
        layers: vec![layer(2), layer(1), layer(0)].into(),
        popularity: 500,
        copies,
        version: FIRST,
    }
}

/// Publishes, and lets every node that fetches have what it wants.
fn publish(rig: &mut Rig, copies: u16) {
    for LayerOrder { layer, size, .. } in film(copies).layers.iter().copied() {
        rig.put(peer("o"), AutonomyInput::Stored { title: film(copies).title, layer, size, version: FIRST });
    }
    rig.put(peer("o"), AutonomyInput::Publish(film(copies)));
    settle(rig);
}

fn settle(rig: &mut Rig) {
    for _ in 0..20 {
        rig.run(secs(1));
        let fetched: Vec<_> = rig.log.drain(..).collect();
        for (_, name, output) in &fetched {
            if let AutonomyOutput::Fetch { title, layer, version, .. } = output {
                let size = ByteCount(u64::from(layer.0) * 1_000 + 1_000);
                let (title, version) = (title.clone(), *version);
                rig.put(*name, AutonomyInput::Stored { title, layer: *layer, size, version });
            }
        }
        rig.log.splice(0..0, fetched);
    }
}

/// The nodes that were given the layer.
fn holders(rig: &Rig, layer: Layer) -> Vec<&str> {
    let has = |node: &Autonomy| node.stored().any(|(_, of)| of == layer);
    rig.nodes.iter().filter(|(_, node)| has(node)).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn each_level_keeps_its_own_layer_and_the_rest_travels_on() {
    let mut rig = Rig::new(config(), NETWORK);
    publish(&mut rig, 0);
    assert_eq!(holders(&rig, Layer::ENH2), ["f1", "f2"]);
    assert_eq!(holders(&rig, Layer::ENH1), ["e1", "e2", "e3"]);
    assert_eq!(holders(&rig, Layer::BASE), ["b1", "b2", "b3", "b4"]);
    let whole = rig.events().filter(|(_, _, event)| matches!(event, AutonomyEvent::PlacementWhole { .. }));
    assert_eq!(whole.count(), 1);
    // Information fades: nobody carries on what it has kept.
    let carried = |from: &str| {
        let agents = rig.sent.iter().filter(|(_, by, _, _)| *by == peer(from));
        let layers = agents.filter_map(|(_, _, _, message)| match message {
            AgentMessage::Placement(agent) => Some(agent.order.layers.len()),
            _ => None,
        });
        layers.collect::<Vec<_>>()
    };
    assert_eq!((carried("o"), carried("f1"), carried("e1")), (vec![3, 3], vec![2, 2], vec![1, 1]));
    // And all of it is less than the whole title on each of these nodes.
    let stored: u64 =
        rig.nodes.values().flat_map(Autonomy::stored).map(|(_, l)| u64::from(l.0) * 1_000 + 1_000).sum();
    assert_eq!((stored, 9 * 6_000), (2 * 3_000 + 3 * 2_000 + 4 * 1_000, 54_000));
}

#[test]
fn a_node_that_refuses_is_passed_through_and_a_level_without_any_is_reported() {
    let mut rig = Rig::new(config(), NETWORK);
    rig.configure("e1", |config| config.storage = ByteCount(1_999));
    for base in ["b1", "b2", "b3", "b4"] {
        rig.configure(base, |config| config.popularity_floor = 501);
    }
    publish(&mut rig, 0);
    assert_eq!(holders(&rig, Layer::ENH1), ["e2", "e3"]);
    assert!(holders(&rig, Layer::BASE).is_empty());
    let refused = |event: &AutonomyEvent| match event {
        AutonomyEvent::NotStoring { why, .. } => Some(*why),
        _ => None,
    };
    let reasons: Vec<_> = rig.events().filter_map(|(_, name, event)| Some((name, refused(event)?))).collect();
    assert!(reasons.contains(&("e1", talk::PlacementRefusal::NoStorage)));
    assert!(reasons.contains(&("b1", talk::PlacementRefusal::NotPopular)), "behind a refusing node");
    let short =
        AutonomyEvent::PlacementShort { title: film(0).title, layer: Layer::BASE, copies: 0, wanted: 1 };
    assert!(rig.events().any(|(_, name, event)| name == "o" && *event == short));
}

#[test]
fn a_wanted_number_of_copies_is_kept_when_holders_die_and_return() {
    let mut rig = Rig::watching(config(), NETWORK);
    publish(&mut rig, 2);
    assert_eq!(holders(&rig, Layer::BASE).len(), 2);
    assert_eq!(holders(&rig, Layer::ENH1).len(), 2);
    let first = holders(&rig, Layer::BASE)[0].to_owned();
    rig.kill(&first);
    rig.run(secs(5));
    settle(&mut rig);
    let alive: Vec<&str> = holders(&rig, Layer::BASE).into_iter().filter(|name| *name != first).collect();
    assert_eq!(alive.len(), 2, "{alive:?}");
    for (name, node) in &rig.nodes {
        assert!(
            node.stored().all(|(_, layer)| node.level() == Level::Layer(layer)),
            "{name} keeps a wrong layer"
        );
    }
}

#[test]
fn what_is_short_of_copies_is_offered_to_a_node_that_joins() {
    let mut rig = Rig::new(config(), "o-f1 f1-e1 e1-b1");
    publish(&mut rig, 2);
    let short = |rig: &Rig| {
        rig.events().filter(|(_, _, event)| matches!(event, AutonomyEvent::PlacementShort { .. })).count()
    };
    assert!(short(&rig) >= 3);
    rig.link("e1", "b2", secs(0));
    rig.run(secs(10));
    settle(&mut rig);
    assert_eq!(holders(&rig, Layer::BASE), ["b1", "b2"]);
}

#[test]
fn a_title_that_is_withdrawn_is_gone_everywhere_and_serves_nobody() {
    let mut rig = Rig::new(config(), NETWORK);
    publish(&mut rig, 0);
    rig.arrive("b1", 1, Sla::Normal);
    assert_eq!(rig.source_of(1), ["b1"]);
    rig.put(peer("o"), AutonomyInput::Unpublish { title: film(0).title });
    rig.run(secs(5));
    assert!(Layer::first(3).all(|layer| holders(&rig, layer).is_empty()));
    let drops = rig.log.iter().filter(|(_, _, output)| matches!(output, AutonomyOutput::Drop { .. }));
    assert_eq!(drops.count(), 9);
    // Who comes now is served by the origin alone.
    rig.arrive("b2", 2, Sla::Normal);
    assert_eq!(rig.source_of(2), ["o"]);
}

#[test]
fn layers_on_their_levels_take_less_than_whole_titles_everywhere() {
    let mut rig = Rig::new(config(), NETWORK);
    publish(&mut rig, 0);
    let order = film(0);
    let size = |layer: Layer| order.layers.iter().find(|order| order.layer == layer).unwrap().size.0;
    let nodes = rig.nodes.values().filter(|node| node.level() != Level::Origin);
    let stored: u64 = nodes.clone().flat_map(Autonomy::stored).map(|(_, layer)| size(layer)).sum();
    let whole: u64 = order.layers.iter().map(|order| order.size.0).sum();
    let everywhere = whole * u64::try_from(nodes.count()).unwrap();
    assert!(stored > 0 && stored < everywhere, "{stored} of {everywhere}");
}
