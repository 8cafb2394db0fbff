//! What is worse than one node's death: a hang that ends, a network cut in two, a
//! deaf neighbour, two deaths at once, and the death of whoever stood behind.
//! Nothing hangs, nothing crashes, there is a clear word for it, and the film
//! goes on as soon as any node can serve.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use lab::stage::{Size, Stage};
use media::Span;
use media::library::TitleFolder;
use player::PlayerEvent;
use protocol::player::Own;
use protocol::{PeerId, Sla};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use support::theatre::{ONE_AT_A_TIME, Theatre};
use support::wire::Wire;
use support::{peer, plan, small_title};

const BUFFER: Span = Span::from_secs(4);

fn moved_from(victim: &str) -> impl Fn(&PlayerEvent) -> bool {
    let victim = victim.to_owned();
    move |event| matches!(event, PlayerEvent::FailedOver { layer, from, .. } if layer == "base" && *from == victim)
}

/// A viewer of so many seconds of film, with somebody behind its node and most of
/// its buffer full.
async fn watched(folder: &Path, seconds: u64, own: Own) -> Theatre {
    let title = small_title(folder, seconds);
    let mut theatre = Theatre::open(folder, &title, Sla::Normal, own, BUFFER).await;
    theatre.until_safe(2_400).await;
    theatre
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_is_replaced_and_gives_way_when_it_wakes() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let mut theatre = watched(folder.path(), 60, Own::ALL).await;
    let (hung, since) = (theatre.base.clone(), Instant::now());
    theatre.signal(&hung, "STOP");
    theatre.until(moved_from(&hung)).await;
    theatre.told(since, "detected", &hung).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let woken = Instant::now();
    theatre.signal(&hung, "CONT");
    theatre.told(woken, "believed_alive", &hung).await;
    // It hears that somebody else serves the viewer in a later epoch.
    let gives_way = async {
        while theatre.serves(&hung).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(12), gives_way).await.expect("one primary is enough");
    let now = theatre.base.clone();
    assert!(theatre.serves(&now).await);
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_in_order_hands_its_viewer_over_before_anybody_misses_it() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let mut theatre = watched(folder.path(), 40, Own::NONE).await;
    let (base, backup) = (theatre.base.clone(), theatre.backup.clone().unwrap());
    let since = Instant::now();
    theatre.signal(&base, "TERM");
    let known = theatre.told(since, "believed_dead", &base).await;
    assert!(known < Duration::from_millis(300), "no silence was waited for: {known:?}");
    let moved = theatre.until(moved_from(&base)).await;
    let PlayerEvent::FailedOver { to, cause, .. } = moved else { unreachable!() };
    assert_eq!((to, cause.as_str()), (backup, "delivery start"));
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_base_nodes_die_at_once() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let mut theatre = watched(folder.path(), 40, Own::ALL).await;
    let (base, backup) = (theatre.base.clone(), theatre.backup.clone().unwrap());
    let bystander =
        (1..=8).map(|n| format!("base-{n}")).find(|name| *name != base && *name != backup).unwrap();
    for victim in [&base, &bystander] {
        theatre.stage.process(peer(victim)).unwrap().kill().await.unwrap();
    }
    let moved = theatre.until(moved_from(&base)).await;
    let PlayerEvent::FailedOver { to, cause, .. } = moved else { unreachable!() };
    assert_eq!((to, cause.as_str()), (backup, "delivery start"));
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_serves_and_whoever_stands_behind_die_together() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let mut theatre = watched(folder.path(), 40, Own::ALL).await;
    let (base, backup) = (theatre.base.clone(), theatre.backup.clone().unwrap());
    for victim in [&base, &backup] {
        theatre.stage.process(peer(victim)).unwrap().kill().await.unwrap();
    }
    let moved = theatre.until(moved_from(&base)).await;
    println!("{moved:?}");
    let PlayerEvent::FailedOver { to, .. } = moved else { unreachable!() };
    assert!(to != base && to != backup);
    let report = theatre.close().await;
    println!("freezes {:?}", report.freezes);
    assert!(report.freezes.total_ms < 4_000, "{:?}", report.freezes);
}

/// A network in which every node is found behind a wire that can be cut.
async fn wired(folder: &Path, title: &TitleFolder) -> (Stage, BTreeMap<PeerId, (SocketAddr, Wire)>) {
    let mut stage = Stage::set_up(&plan(folder, title, Size::DEMO, false)).expect("the network is set up");
    let nodes: Vec<(PeerId, SocketAddr)> = stage.addresses().collect();
    let mut wires = BTreeMap::new();
    for (node, address) in nodes.into_iter().filter(|(node, _)| !node.as_str().starts_with("proxy")) {
        let wire = Wire::to(address);
        stage.advertise(node, wire.address()).unwrap();
        wires.insert(node, (address, wire));
    }
    stage.raise().await.expect("the network starts");
    (stage, wires)
}

/// Cuts one node off from all others, or joins it to them again; viewers still
/// reach it.
fn part(wires: &BTreeMap<PeerId, (SocketAddr, Wire)>, node: PeerId, cut: bool) {
    let (own, wire) = &wires[&node];
    for (other, (address, others)) in wires.iter().filter(|(other, _)| **other != node) {
        assert_ne!(*other, node);
        wire.cut_from(*address, cut);
        others.cut_from(*own, cut);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_cut_off_from_the_others_keeps_its_viewer_and_is_one_of_them_again() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 60);
    let (stage, wires) = wired(folder.path(), &title).await;
    let mut theatre = Theatre::in_front_of(stage, &title, Sla::Normal, Own::ALL, BUFFER).await;
    theatre.until_safe(2_400).await;
    let (base, since) = (theatre.base.clone(), Instant::now());
    part(&wires, peer(&base), true);
    // The others think it dead, and its backup calls; but the viewer is served.
    theatre.until(|event| matches!(event, PlayerEvent::StillServed { .. })).await;
    theatre.told(since, "take_over_undone", "").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let healed = Instant::now();
    part(&wires, peer(&base), false);
    theatre.told(healed, "believed_alive", &base).await;
    theatre.until_safe(2_400).await;
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_that_alone_is_deaf_brings_nobody_to_move() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 60);
    let (stage, wires) = wired(folder.path(), &title).await;
    let mut theatre = Theatre::in_front_of(stage, &title, Sla::Normal, Own::ALL, BUFFER).await;
    theatre.until_safe(2_400).await;
    let (base, since) = (theatre.base.clone(), Instant::now());
    let status = theatre.stage.inquiry(peer(&base)).await.unwrap().status().await.unwrap();
    let deaf = status.neighbours.first().expect("it has neighbours").node.peer;
    // Whatever the Base node says is lost on the way to one neighbour, whoever dialled.
    let (own, wire) = &wires[&peer(&base)];
    wire.deafen(wires[&deaf].0);
    wires[&deaf].1.ignore(*own);
    theatre.told(since, "detected", &base).await;
    theatre.told(since, "believed_alive", &base).await;
    theatre.until_safe(2_400).await;
    assert_eq!(theatre.base, base, "everybody else hears it");
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}
