//! Searches on many random graphs of Base and Enh1 nodes.

use super::rig::{Rig, peer, secs};
use crate::node::autonomy::agent::AgentState;
use crate::node::autonomy::*;
use crate::peer::PeerId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A small generator of our own, so that a seed names a graph for ever.
struct Lot(u64);

impl Lot {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// 2 to 8 Base nodes, 1 to 5 Enh1 nodes, 1 to 3 links of each Base node.
fn graph(lot: &mut Lot, delays: bool) -> BTreeMap<(String, String), u64> {
    let (bases, enhs) = (2 + lot.below(7), 1 + lot.below(5));
    let mut links = BTreeMap::new();
    for base in 0..bases {
        for _ in 0..=lot.below(3) {
            let delay = if delays { 1 + lot.below(900) } else { 100 };
            links.insert((format!("b{base}"), format!("e{}", lot.below(enhs))), delay);
        }
    }
    links
}

fn text(links: &BTreeMap<(String, String), u64>) -> String {
    let links: Vec<String> = links.iter().map(|((a, b), delay)| format!("{a}-{b}:{delay}")).collect();
    links.join(" ")
}

#[test]
fn on_a_thousand_graphs_routes_never_run_in_a_circle_and_every_node_forks_once() {
    for seed in 0..1_000 {
        let mut lot = Lot(seed);
        let links = text(&graph(&mut lot, true));
        let mut rig = Rig::new(AutonomyConfig { board_stop: false, ..AutonomyConfig::paper() }, &links);
        rig.ask("b0", Rig::request(1, Sla::Normal));
        rig.run(secs(60));
        // What each node forwarded: the ways agents had taken until there.
        let mut forked: BTreeMap<PeerId, BTreeSet<Vec<PeerId>>> = BTreeMap::new();
        for (_, from, _, message) in &rig.sent {
            if let AgentMessage::Discovery(agent) = message
                && agent.state == AgentState::Search
            {
                forked.entry(*from).or_default().insert(agent.path.to_vec());
            }
        }
        for (node, paths) in &forked {
            assert_eq!(paths.len(), 1, "{node} forked twice; seed {seed}: {links}");
            let path = paths.first().unwrap();
            let once: BTreeSet<&PeerId> = path.iter().collect();
            assert_eq!((once.len(), path.last()), (path.len(), Some(node)), "seed {seed}: {links}");
        }
        assert_eq!(rig.tentative(), 0, "seed {seed}: {links}");
        assert!(rig.backups_of(1).len() <= 1, "seed {seed}: {links}");
    }
}

/// The best candidate by one who sees everything: distance by links, all equal.
fn omniscient(
    links: &BTreeMap<(String, String), u64>,
    rig: &Rig,
    reach: u64,
    policy: Policy,
) -> Option<PeerId> {
    let mut hops: BTreeMap<&str, u64> = BTreeMap::from([("b0", 0)]);
    let mut queue = VecDeque::from(["b0"]);
    while let Some(at) = queue.pop_front() {
        let so_far = hops[at];
        if so_far > 0 && so_far * 100 >= reach {
            continue;
        }
        for (a, b) in links.keys() {
            for (from, to) in [(a, b), (b, a)] {
                if from == at && !hops.contains_key(to.as_str()) {
                    hops.insert(to, so_far + 1);
                    queue.push_back(to);
                }
            }
        }
    }
    let bases = hops.iter().filter(|(name, _)| name.starts_with('b') && **name != "b0");
    let able = bases.filter(|(name, _)| rig.node(name).headroom() >= 1);
    let best = able.min_by_key(|(name, hops)| {
        let room = Reverse(rig.node(name).headroom());
        let (near, roomy) = ((**hops, room, 0), (0, room, **hops));
        (if policy == Policy::Nearest { near } else { roomy }, peer(name))
    });
    best.map(|(name, _)| peer(name))
}

#[test]
fn the_start_node_gets_what_one_who_sees_everything_would_choose() {
    let mut found = 0;
    for seed in 0..400 {
        let mut lot = Lot(seed);
        let links = graph(&mut lot, false);
        let policy = if lot.below(2) == 0 { Policy::Nearest } else { Policy::MostHeadroom };
        let config = AutonomyConfig { board_stop: false, policy, ..AutonomyConfig::paper() };
        let mut rig = Rig::new(config, &text(&links));
        let bases: Vec<String> =
            rig.nodes.keys().map(PeerId::to_string).filter(|n| n.starts_with('b')).collect();
        for base in bases.iter().filter(|base| *base != "b0") {
            let capacity = u32::try_from(lot.below(4)).unwrap();
            rig.configure(base, |config| config.capacity = capacity);
        }
        // Whole links: beyond them the timers of the paper are too short for the way back.
        let reach = 100 + 100 * lot.below(9);
        let sla = if lot.below(2) == 0 { Sla::Normal } else { Sla::Vip };
        let expected = omniscient(&links, &rig, reach, policy);
        rig.ask("b0", UserRequest { buffer: super::rig::millis(reach), ..Rig::request(1, sla) });
        rig.run(secs(60));
        let chosen: Vec<PeerId> = rig.backups_of(1).into_iter().map(|(name, _)| peer(name)).collect();
        assert_eq!(chosen, expected.into_iter().collect::<Vec<_>>(), "seed {seed}: {}", text(&links));
        assert_eq!(rig.tentative(), 0, "seed {seed}");
        let record = rig.node("b0").record(UserId(1)).unwrap();
        assert_eq!(record.backup.map(|backup| backup.node), chosen.first().copied());
        found += chosen.len();
    }
    assert!(found > 200, "{found} of 400 had anybody to find");
}
