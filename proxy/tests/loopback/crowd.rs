//! Many who ask for the same, and one among them who is slow.

use crate::film::{self, LENGTH};
use crate::node::Manner;
use crate::rig::{PATIENCE, Rig, Viewer, id, read};
use media::{Layer, Quality};
use proxy::ProxyConfig;
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Clients, each with a connection of its own.
const CLIENTS: usize = 1000;
/// Sockets that they share.
const SOCKETS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_with_one_cold_chunk_are_one_fetch_and_the_first_may_leave() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.manner.send(Manner::Waiting).unwrap();
    let proxy = rig.start(ProxyConfig { capacity: CLIENTS, ..rig.config(&[node.at]) }).await;
    let proxy = Arc::new(proxy);

    // The first one has half of it, and so it is under way, when all others ask.
    let first = rig.watching(&proxy, Quality::BRONZE).await;
    let mut begun = first.begin(2, Layer::BASE).await;
    read(&mut begun, LENGTH / 2).await;

    let all_follow = Arc::new(Barrier::new(CLIENTS));
    let mut others = JoinSet::new();
    for socket in 0..SOCKETS {
        let (from, proxy) = (rig.socket(None), Arc::clone(&proxy));
        let clients = CLIENTS / SOCKETS - usize::from(socket == 0);
        let all_follow = Arc::clone(&all_follow);
        others.spawn(async move {
            let mut following = JoinSet::new();
            for _ in 0..clients {
                let mut viewer = Viewer::dial(&from, &proxy).await;
                viewer.open("film", Quality::BRONZE).await.unwrap();
                let all_follow = Arc::clone(&all_follow);
                following.spawn(async move {
                    let mut reader = viewer.begin(2, Layer::BASE).await;
                    read(&mut reader, 1).await;
                    all_follow.wait().await;
                    let mut rest = 0;
                    // The end comes only if length and hash of all of it are right.
                    while let Some(piece) = reader.next_piece().await.unwrap() {
                        rest += piece.len();
                    }
                    rest
                });
            }
            let rests = following.join_all().await;
            assert!(rests.iter().all(|rest| (LENGTH / 2..LENGTH).contains(rest)), "{rests:?}");
            rests.len()
        });
    }
    tokio::select! {
        _ = all_follow.wait() => {}
        // One that could not even ask would be waited for without end.
        ended = others.join_next() => panic!("a client left too early: {ended:?}"),
    }
    drop(begun);
    drop(first);
    node.go.send(true).unwrap();
    let whole: usize = others.join_all().await.into_iter().sum();
    assert_eq!((whole, node.times_asked(), rig.fetches()), (CLIENTS - 1, 1, 1));
}

#[tokio::test]
async fn a_client_that_reads_little_by_little_delays_neither_the_fetch_nor_another_client() {
    let rig = Rig::new();
    let node = rig.node("base-1", &[]);
    node.manner.send(Manner::Waiting).unwrap();
    let proxy = rig.proxy(&[node.at]).await;
    let quick = rig.watching(&proxy, Quality::BRONZE).await;
    // No more than a kilobyte comes to this one before it has read what came.
    let mut slow = Viewer::dial(&rig.socket(Some(1024)), &proxy).await;
    slow.open("film", Quality::BRONZE).await.unwrap();
    let mut reader = slow.begin(0, Layer::BASE).await;
    let mut got = reader.next_piece().await.unwrap().unwrap().len();
    node.go.send(true).unwrap();
    for block in 0..film::BLOCKS {
        quick.chunk(block, Layer::BASE).await.unwrap();
        // A client of both kinds in turns, while the slow one has hardly begun.
        let piece = reader.next_piece().await.unwrap().unwrap();
        got += piece.len();
        assert!(got <= 1024 * usize::try_from(block + 2).unwrap(), "{got}");
    }
    // On a connection of its own, and following what is whole by now.
    let info = film::manifest().chunk(0, Layer::BASE).unwrap();
    quick.connection.request_chunk(&id(0, Layer::BASE), info, PATIENCE).await.unwrap();
    // And the slow one is served to the end.
    while let Some(piece) = reader.next_piece().await.unwrap() {
        got += piece.len();
    }
    assert_eq!((got, node.times_asked()), (LENGTH, 4));
}
