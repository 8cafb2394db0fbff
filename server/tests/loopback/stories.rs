//! What a viewer lives through with one node.

use crate::film::{self, BLOCKS, chunk_bytes};
use crate::rig::{PATIENCE, Rig};
use media::{Layer, Quality};
use protocol::node::Event;
use protocol::{Message, Refusal, StreamRequest};
use server::{ServeConfig, StartError};
use std::os::unix::fs::FileExt as _;
use transport::{ClosedBy, Expect, LinkError, RequestError};

#[tokio::test]
async fn every_chunk_comes_as_it_lies_on_disk() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let mut viewer = rig.viewer(&node).await;
    assert_eq!(viewer.titles().await, ["film"]);
    let manifest = viewer.manifest("film").await;
    // Twice: from disk, then from memory.
    for _ in 0..2 {
        for block in 0..BLOCKS {
            for layer in Layer::first(3) {
                let got = viewer.chunk(&manifest, block, layer).await.unwrap();
                assert_eq!(got, chunk_bytes("film", block, layer));
            }
        }
    }
}

#[tokio::test]
async fn a_title_that_comes_later_or_changes_is_found() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let mut viewer = rig.viewer(&node).await;
    assert_eq!(viewer.open("news").await.unwrap_err(), Refusal::NoSuchTitle);
    film::write(&rig.library, "news");
    assert_eq!(viewer.titles().await, ["film", "news"]);
    let news = viewer.manifest("news").await;
    assert_eq!(viewer.chunk(&news, 0, Layer::BASE).await.unwrap(), chunk_bytes("news", 0, Layer::BASE));
    std::fs::remove_dir_all(rig.library.path().join("news")).unwrap();
    assert_eq!(viewer.titles().await, ["film"]);
    std::fs::create_dir(rig.library.path().join("half")).unwrap();
    assert_eq!(viewer.titles().await, ["film"], "a folder that is no title hides nothing");
}

#[tokio::test]
async fn one_more_than_the_capacity_is_refused_until_somebody_leaves() {
    let rig = Rig::new();
    // A gold viewer takes a slot for each of three layers.
    let node = rig.serve(ServeConfig { capacity: Some(4), ..rig.config() }).await;
    let (mut first, mut second, mut third) =
        (rig.viewer(&node).await, rig.viewer(&node).await, rig.viewer(&node).await);
    let session = first.open("film").await.unwrap().session;
    second.open_with("film", Quality::BRONZE, None).await.unwrap();
    assert_eq!(third.open_with("film", Quality::BRONZE, None).await.unwrap_err(), Refusal::Full);
    first.connection.send(Message::Close(session)).unwrap();
    // The probe's answer says that the close before it was heard.
    first.connection.send(Message::Probe(1)).unwrap();
    assert_eq!(first.inbox.recv().await, Ok(Message::Alive(1)));
    third.open("film").await.unwrap();
}

#[tokio::test]
async fn a_damaged_chunk_is_refused_and_the_others_are_served() {
    let rig = Rig::new();
    let folder = rig.library.title(&"film".parse().unwrap()).unwrap();
    let offset = folder.manifest().chunk(1, Layer::BASE).unwrap().offset;
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("base.mp4")).unwrap();
    file.write_all_at(b"X", offset + 100).unwrap();
    let node = rig.serve(rig.config()).await;
    let mut viewer = rig.viewer(&node).await;
    let manifest = viewer.manifest("film").await;
    let damaged = Err(RequestError::Refused(Refusal::Damaged));
    assert_eq!(viewer.chunk(&manifest, 1, Layer::BASE).await, damaged);
    assert!(viewer.chunk(&manifest, 0, Layer::BASE).await.is_ok());
    // Somebody puts the right bytes back.
    file.write_all_at(&chunk_bytes("film", 1, Layer::BASE), offset).unwrap();
    assert!(viewer.chunk(&manifest, 1, Layer::BASE).await.is_ok());
    file.set_len(0).unwrap();
    assert_eq!(viewer.chunk(&manifest, 2, Layer::BASE).await, damaged, "a file cut short");
    let count =
        rig.events.lock().unwrap().iter().filter(|event| matches!(event, Event::Damaged { .. })).count();
    assert_eq!(count, 2);
}

#[tokio::test]
async fn the_order_to_stop_lets_a_slow_viewer_finish_and_refuses_the_rest() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let (mut slow, mut late) = (rig.viewer(&node).await, rig.viewer(&node).await);
    let manifest = slow.manifest("film").await;
    late.open("film").await.unwrap();
    let id = manifest.chunk_id(0, Layer::ENH2);
    let info = *manifest.chunk(0, Layer::ENH2).unwrap();
    let request = StreamRequest::Chunk(protocol::ChunkRequest::whole(id, 1000));
    let expect = Expect::Exactly { length: info.length, hash: info.hash };
    let mut reader = slow.connection.open(&request, expect).await.unwrap();
    let stopping = tokio::spawn(node.drain());
    assert_eq!(late.inbox.recv().await, Ok(Message::Draining));
    let refused = late.chunk(&manifest, 0, Layer::BASE).await;
    assert!(
        matches!(refused, Err(RequestError::Refused(Refusal::Draining) | RequestError::Lost(_))),
        "{refused:?}"
    );
    let mut got = 0;
    while let Some(piece) = reader.next_piece().await.unwrap() {
        got += piece.len();
    }
    assert_eq!(got, chunk_bytes("film", 0, Layer::ENH2).len());
    assert!(matches!(late.inbox.recv().await, Err(LinkError::Lost(_))));
    drop((slow, late));
    stopping.await.unwrap();
    assert_eq!(rig.events.lock().unwrap().last(), Some(&Event::Drained { unanswered: 0 }));
}

#[tokio::test]
async fn the_first_half_of_a_chunk_is_a_part_of_the_same_bytes_with_a_hash_of_its_own() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let mut viewer = rig.viewer(&node).await;
    let manifest = viewer.manifest("film").await;
    let first = |layer| protocol::ChunkRequest {
        part: protocol::Part::First,
        ..protocol::ChunkRequest::whole(manifest.chunk_id(1, layer), 1000)
    };
    let half = *manifest.half(1, Layer::ENH2).unwrap();
    let expect = Expect::Exactly { length: half.length, hash: half.hash };
    // From the disk, and then from memory.
    for _ in 0..2 {
        let request = StreamRequest::Chunk(first(Layer::ENH2));
        let got = viewer.connection.request(&request, expect, PATIENCE).await.unwrap();
        assert_eq!(got.bytes[..], chunk_bytes("film", 1, Layer::ENH2)[..12_345]);
        viewer.chunk(&manifest, 1, Layer::ENH2).await.unwrap();
    }
    let base = StreamRequest::Chunk(first(Layer::BASE));
    let refused = viewer.connection.request(&base, Expect::AtMost(1 << 20), PATIENCE).await;
    assert_eq!(refused, Err(RequestError::Refused(Refusal::NoSuchChunk)), "Base has no halves");
}

#[tokio::test]
async fn a_node_that_ends_at_once_is_gone_for_its_viewers() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let viewer = rig.viewer(&node).await;
    drop(node);
    assert_eq!(viewer.connection.closed().await, ClosedBy::Peer("going away".into()));
}

#[tokio::test]
async fn viewers_that_vanish_in_the_middle_leave_room_for_a_hundred_more() {
    let rig = Rig::new();
    // Ten gold viewers at once; who vanishes may come back for a moment.
    let config = ServeConfig { capacity: Some(30), lease_ms: 200, ..rig.config() };
    let node = rig.serve(config).await;
    for number in 0..=100 {
        let mut viewer = rig.viewer(&node).await;
        let id = media::ChunkId { title: "film".parse().unwrap(), block: 0, layer: Layer::ENH2 };
        let request = StreamRequest::Chunk(protocol::ChunkRequest::whole(id, 1000));
        let mut reader = loop {
            while viewer.open("film").await == Err(Refusal::Full) {
                tokio::task::yield_now().await;
            }
            match viewer.connection.open(&request, Expect::AtMost(1 << 20)).await {
                // The machine was busy for longer than the lease.
                Err(RequestError::Refused(Refusal::NotServing)) => {}
                reader => break reader.unwrap(),
            }
        };
        if number == 100 {
            assert!(reader.next_piece().await.unwrap().is_some());
        }
        drop((reader, viewer));
    }
}

#[tokio::test]
async fn a_viewer_that_never_reads_its_messages_is_dropped() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let viewer = rig.viewer(&node).await;
    let flood = async {
        let mut number = 0;
        while viewer.connection.close_reason().is_none() {
            number += 1;
            if viewer.connection.send(Message::Probe(number)).is_err() {
                tokio::task::yield_now().await;
            }
        }
    };
    // It takes a hundred thousand messages: a second of a machine that does nothing else.
    tokio::time::timeout(6 * PATIENCE, flood).await.unwrap();
    let reason = viewer.connection.close_reason();
    assert_eq!(reason, Some(ClosedBy::Peer("messages are not taken".into())));
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let rig = Rig::new();
    let silent = |_: &Event| {};
    let nowhere = ServeConfig { library: "/nowhere".into(), ..rig.config() };
    assert!(matches!(server::serve(nowhere, silent).await, Err(StartError::Store(_))));
    let keyless = ServeConfig { keys: Some("/nowhere".into()), ..rig.config() };
    assert!(matches!(server::serve(keyless, silent).await, Err(StartError::Keys(_))));
    let taken = rig.serve(rig.config()).await;
    let second = ServeConfig { listen: taken.address(), ..rig.config() };
    assert!(matches!(server::serve(second, silent).await, Err(StartError::Endpoint(_))));
}
