//! What viewers live through behind a proxy.

use crate::film::{self, LENGTH};
use crate::node::Manner;
use crate::rig::{PATIENCE, Rig, id, read};
use media::{Layer, Manifest, Quality};
use protocol::proxy::{Event, FillFailure, Outcome};
use protocol::{Message, Refusal, StreamRequest};
use proxy::{ProxyConfig, StartError};
use transport::{Expect, RequestError};

#[tokio::test]
async fn to_a_player_the_proxy_looks_like_a_node() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let proxy = rig.proxy(&[node.at]).await;
    let mut viewer = rig.viewer(&proxy).await;
    viewer.connection.send(Message::ListTitles).unwrap();
    let titles = Message::Titles(vec![film::manifest().summary()]);
    assert_eq!(viewer.inbox.recv().await, Ok(titles));
    assert_eq!(viewer.open("other", Quality::GOLD).await.unwrap_err(), Refusal::NoSuchTitle);
    let opened = viewer.open("film", Quality::GOLD).await.unwrap();
    let sources = opened.sources.iter().flat_map(|layer| layer.nodes.iter().map(|node| node.address));
    assert_eq!(sources.collect::<Vec<_>>(), [proxy.address(); 3]);
    let expect = Expect::Exactly { length: opened.manifest_length, hash: opened.manifest_hash };
    let request = StreamRequest::Manifest("film".parse().unwrap());
    let manifest = viewer.connection.request(&request, expect, PATIENCE).await.unwrap();
    assert_eq!(Manifest::parse(&manifest.bytes).unwrap(), *film::manifest());
    // Twice: from the node, then from memory.
    for _ in 0..2 {
        for layer in Layer::first(3) {
            viewer.chunk(0, layer).await.unwrap();
        }
    }
    assert_eq!(node.times_asked(), 3);
}

#[tokio::test]
async fn pieces_pass_through_and_the_fetch_survives_its_first_asker() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.manner.send(Manner::Waiting).unwrap();
    let proxy = rig.proxy(&[node.at]).await;
    let (first, second) =
        (rig.watching(&proxy, Quality::BRONZE).await, rig.watching(&proxy, Quality::BRONZE).await);
    let mut begun = first.begin(0, Layer::BASE).await;
    // The node itself has sent no more than this.
    read(&mut begun, LENGTH / 2).await;
    drop(begun);
    drop(first);
    node.go.send(true).unwrap();
    second.chunk(0, Layer::BASE).await.unwrap();
    assert_eq!(node.times_asked(), 1);
}

#[tokio::test]
async fn the_first_half_of_a_chunk_is_given_from_the_one_copy_as_it_comes_and_later() {
    let rig = Rig::new();
    let node = rig.node("enh-1", &[]);
    node.manner.send(Manner::Waiting).unwrap();
    let proxy = rig.proxy(&[node.at]).await;
    let viewer = rig.watching(&proxy, Quality::GOLD).await;
    // The node has sent half of the bytes and waits: that is more than the first half.
    viewer.half(0, Layer::ENH1).await.unwrap();
    node.go.send(true).unwrap();
    viewer.chunk(0, Layer::ENH1).await.unwrap();
    viewer.half(0, Layer::ENH1).await.unwrap();
    let asked = node.asked.lock().unwrap().get(&id(0, Layer::ENH1)).copied();
    assert_eq!(asked, Some(1), "one fetch, of the whole chunk");
    let base = viewer.half(0, Layer::BASE).await;
    assert_eq!(base, Err(RequestError::Refused(Refusal::NoSuchChunk)), "Base has no halves");
}

#[tokio::test]
async fn a_bronze_client_receives_base_alone() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let proxy = rig.start(ProxyConfig { max_layers: Some(2), ..rig.config(&[node.at]) }).await;
    let bronze = rig.watching(&proxy, Quality::BRONZE).await;
    bronze.chunk(0, Layer::BASE).await.unwrap();
    let above = Err(RequestError::Refused(Refusal::AboveQuality));
    assert_eq!(bronze.chunk(0, Layer::ENH1).await, above);
    let mut gold = rig.viewer(&proxy).await;
    assert_eq!(
        gold.open("film", Quality::GOLD).await.unwrap().quality,
        Quality::SILVER,
        "no more than 2 layers"
    );
    gold.chunk(0, Layer::ENH1).await.unwrap();
    assert_eq!(gold.chunk(0, Layer::ENH2).await, above);
    assert!(!node.asked.lock().unwrap().contains_key(&id(0, Layer::ENH2)));
}

#[tokio::test]
async fn a_node_that_breaks_off_half_way_is_followed_by_the_next() {
    let rig = Rig::new();
    let second = rig.node("base-2", &[]);
    let first = rig.node("base-1", &[second.at]);
    first.manner.send(Manner::Half).unwrap();
    let proxy = rig.proxy(&[first.at]).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    let mut reader = viewer.begin(0, Layer::BASE).await;
    read(&mut reader, LENGTH / 2).await;
    first.go.send(true).unwrap();
    // Whoever was half-way gets the rest, and the hash of all of it is right.
    let mut got = 0;
    while let Some(piece) = reader.next_piece().await.unwrap() {
        got += piece.len();
    }
    assert_eq!(got, LENGTH - LENGTH / 2);
    assert_eq!((first.times_asked(), second.times_asked()), (1, 1));
}

#[tokio::test]
async fn wrong_bytes_are_never_kept_and_never_whole() {
    let rig = Rig::new();
    let second = rig.node("base-2", &[]);
    let first = rig.node("base-1", &[second.at]);
    first.manner.send(Manner::Bent).unwrap();
    let proxy = rig.proxy(&[first.at]).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    // Whoever followed the liar is broken off, or was late enough to miss it.
    let outcome = viewer.chunk(0, Layer::BASE).await;
    assert!(matches!(outcome, Ok(()) | Err(RequestError::Reset)), "{outcome:?}");
    viewer.chunk(0, Layer::BASE).await.unwrap();
    viewer.chunk(1, Layer::BASE).await.unwrap();
    let lies = |event: &Event| matches!(event, Event::FillFailed { why: FillFailure::Lie, .. });
    assert_eq!(rig.events.lock().unwrap().iter().filter(|event| lies(event)).count(), 1);
    assert_eq!(first.times_asked(), 1, "the liar is not asked for the next");
}

#[tokio::test]
async fn when_nobody_delivers_the_client_is_told_so_and_may_ask_again() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.manner.send(Manner::Refusing).unwrap();
    let proxy = rig.proxy(&[node.at]).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    assert_eq!(viewer.chunk(0, Layer::BASE).await, Err(RequestError::Refused(Refusal::Upstream)));
    node.manner.send(Manner::Well).unwrap();
    viewer.chunk(0, Layer::BASE).await.unwrap();
}

#[tokio::test]
async fn a_dead_node_is_passed_by() {
    let rig = Rig::new();
    let second = rig.node("base-2", &[]);
    let first = rig.node("base-1", &[second.at]);
    let proxy = rig.proxy(&[first.at, second.at]).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    viewer.chunk(0, Layer::BASE).await.unwrap();
    first.kill();
    viewer.chunk(1, Layer::BASE).await.unwrap();
    viewer.chunk(0, Layer::BASE).await.unwrap();
    // What was learnt is still known, and a new client may come.
    rig.watching(&proxy, Quality::BRONZE).await.chunk(2, Layer::BASE).await.unwrap();
    assert_eq!((first.times_asked(), second.times_asked()), (1, 2));
}

#[tokio::test]
async fn with_nobody_upstream_an_opening_is_refused_by_that_name() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.kill();
    let proxy = rig.proxy(&[node.at]).await;
    let mut viewer = rig.viewer(&proxy).await;
    assert_eq!(viewer.open("film", Quality::GOLD).await.unwrap_err(), Refusal::Upstream);
    let nobody = ProxyConfig { upstream: Vec::new(), ..rig.config(&[]) };
    assert!(matches!(proxy::start(nobody, |_| {}).await, Err(StartError::NoUpstream)));
}

#[tokio::test]
async fn a_cache_smaller_than_a_chunk_still_serves_it() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    let proxy = rig.start(ProxyConfig { cache_bytes: Some(1000), ..rig.config(&[node.at]) }).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    for _ in 0..2 {
        viewer.chunk(0, Layer::BASE).await.unwrap();
    }
    assert_eq!(node.times_asked(), 2);
}

#[tokio::test]
async fn the_order_to_stop_lets_what_is_open_finish() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.manner.send(Manner::Waiting).unwrap();
    let proxy = rig.proxy(&[node.at]).await;
    let mut viewer = rig.watching(&proxy, Quality::BRONZE).await;
    let reader = viewer.begin(0, Layer::BASE).await;
    let stopping = tokio::spawn(proxy.drain());
    assert_eq!(viewer.inbox.recv().await, Ok(Message::Draining));
    node.go.send(true).unwrap();
    assert_eq!(reader.collect().await.unwrap().bytes, film::chunk_bytes(0, Layer::BASE));
    drop(viewer);
    stopping.await.unwrap();
    let sent = Outcome::Sent { bytes: u64::try_from(LENGTH).unwrap() };
    let served = |event: &Event| matches!(event, Event::Answered { outcome, .. } if *outcome == sent);
    assert!(rig.events.lock().unwrap().iter().any(served));
}
