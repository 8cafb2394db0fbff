//! Proxies that help each other.

use crate::film;
use crate::rig::Rig;
use media::{Layer, Quality};
use protocol::proxy::{Event, Upstream};
use protocol::{Message, NodeAddress};
use proxy::{ProxyConfig, Running};

fn at(proxy: &Running) -> NodeAddress {
    NodeAddress { peer: proxy.peer(), address: proxy.address() }
}

/// Two proxies of which the second knows the first, and the first has all of the film.
async fn two(rig: &Rig, node: NodeAddress) -> (Running, Running) {
    let named = |name: &str| ProxyConfig { peer: Some(name.parse().unwrap()), ..rig.config(&[node]) };
    let first = rig.start(named("proxy-1")).await;
    let rich = rig.watching(&first, Quality::GOLD).await;
    for block in 0..film::BLOCKS {
        for layer in Layer::first(3) {
            rich.chunk(block, layer).await.unwrap();
        }
    }
    let second = rig.start(ProxyConfig { peers: vec![at(&first)], ..named("proxy-2") }).await;
    (first, second)
}

#[tokio::test]
async fn when_the_nodes_are_gone_a_proxy_has_what_its_peer_holds_and_without_the_peer_what_it_holds_itself() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let (first, second) = two(&rig, node.at).await;
    let viewer = rig.watching(&second, Quality::GOLD).await;
    // The peer tells of what it holds when the first block is asked for.
    viewer.chunk(0, Layer::BASE).await.unwrap();
    let asked = node.times_asked();
    node.kill();
    for block in 1..film::BLOCKS {
        for layer in Layer::first(3) {
            viewer.chunk(block, layer).await.unwrap();
        }
    }
    let from: Vec<Upstream> = rig
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Filling { chunk, from } if chunk.block == film::BLOCKS - 1 => Some(*from),
            _ => None,
        })
        .collect();
    // The first one fetched it from the node, the second one from the first.
    assert!(from.iter().filter(|from| from.address == first.address()).count() >= 3, "{from:?}");
    assert!(node.times_asked() <= asked + 2, "only layers of the first block");
    drop(first);
    viewer.chunk(1, Layer::BASE).await.unwrap();
}

#[tokio::test]
async fn what_is_not_kept_is_refused_to_a_peer_and_fetched_from_the_node() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let named = |name: &str| ProxyConfig { peer: Some(name.parse().unwrap()), ..rig.config(&[node.at]) };
    let first = rig.start(named("proxy-1")).await;
    let second = rig.start(ProxyConfig { peers: vec![at(&first)], ..named("proxy-2") }).await;
    let viewer = rig.watching(&second, Quality::GOLD).await;
    for block in 0..film::BLOCKS {
        viewer.chunk(block, Layer::BASE).await.unwrap();
    }
    let events = rig.events.lock().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Joined { role: protocol::Role::Proxy, .. })));
    let asked = node.asked.lock().unwrap();
    assert!(asked.values().all(|times| *times == 1), "each chunk is fetched once: {asked:?}");
}

#[tokio::test]
async fn a_proxy_says_how_it_stands() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let proxy = rig.proxy(&[node.at]).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    for _ in 0..2 {
        viewer.chunk(0, Layer::BASE).await.unwrap();
    }
    let (connection, mut inbox) = rig.member("operator", &proxy).await;
    connection.send(Message::AskStatus).unwrap();
    let Message::ProxyStatus(status) = inbox.recv().await.unwrap() else { panic!("no status") };
    let length = u64::try_from(film::LENGTH).unwrap();
    let counts = status.proxy;
    assert_eq!((counts.hits, counts.misses), (1, 1));
    assert_eq!(
        (counts.bytes_from_cache, counts.bytes_from_nodes, counts.bytes_from_peers),
        (length, length, 0)
    );
    assert_eq!(
        (status.sessions, status.titles.len(), status.clients.len(), status.servers.len()),
        (1, 1, 1, 1)
    );
    assert_eq!(status.used.0, length);
}
