//! Nodes that form a network, over real QUIC: titles spread, and are withdrawn.

use crate::film::{BLOCKS, chunk_bytes};
use crate::rig::{PATIENCE, Rig};
use media::Layer;
use media::library::Library;
use protocol::node::Event;
use protocol::node::autonomy::AutonomyEvent;
use protocol::{Message, Promise, Refusal, Sla};
use std::path::Path;
use std::time::Duration;
use transport::Keys;

/// Whether a node has announced that it holds a layer, whole: the origin counts it.
async fn whole(rig: &Rig, operator: &mut crate::rig::Viewer, copies: u16) {
    let wait = async {
        loop {
            operator.connection.send(Message::AskStatus).unwrap();
            let status = loop {
                if let Message::Status(status) = operator.inbox.recv().await.unwrap() {
                    break status;
                }
            };
            let of = |layer: Layer| {
                let line = status.placements.first()?;
                line.layers.iter().find(|(have, _, _)| *have == layer).map(|(_, whole, _)| *whole)
            };
            if of(Layer::BASE) >= Some(copies) && of(Layer::ENH1) >= Some(1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, wait).await.is_err() {
        let events = rig.events.lock().unwrap();
        panic!("not copied: {:?}", events.iter().rev().take(12).collect::<Vec<_>>());
    }
}

/// A copy has the manifest and the file of its layer, byte for byte, and no other.
fn is_copy(original: &Path, copy: &Path, layer: Layer) {
    for file in ["title.json".to_owned(), format!("{layer}.mp4")] {
        let read = |folder: &Path| std::fs::read(folder.join("film").join(&file)).unwrap();
        assert_eq!(read(original), read(copy), "{file} in {}", copy.display());
    }
    let files = std::fs::read_dir(copy.join("film")).unwrap().count();
    assert_eq!(files, 2, "{}", copy.display());
}

#[tokio::test]
async fn a_title_is_copied_whole_by_order_and_deleted_by_order() {
    let rig = Rig::new();
    let origin = rig.serve(rig.config()).await;
    let enh1 = rig.serve(rig.member("enh1-1", "enh1", &origin)).await;
    let base = rig.serve(rig.member("base-1", "base", &enh1)).await;
    let linked = |event: &Event| matches!(event, Event::Linked { peer } if peer.as_str() == "base-1");
    rig.until(linked).await;
    let mut operator = rig.operator(&origin).await;
    let title: media::TitleName = "film".parse().unwrap();
    let publish = Message::Publish { request: 1, title: title.clone(), copies: 0, popularity: 1000 };
    operator.connection.send(publish).unwrap();
    assert_eq!(operator.inbox.recv().await, Ok(Message::Done { request: 1 }));
    whole(&rig, &mut operator, 1).await;
    is_copy(rig.library.path(), &rig.folder.path().join("enh1-1"), Layer::ENH1);
    is_copy(rig.library.path(), &rig.folder.path().join("base-1"), Layer::BASE);

    // Who joins later gets its layer without another order.
    let late = rig.serve(rig.member("base-2", "base", &base)).await;
    whole(&rig, &mut operator, 2).await;
    is_copy(rig.library.path(), &rig.folder.path().join("base-2"), Layer::BASE);

    // A viewer who comes there is served from three nodes.
    let mut viewer = rig.viewer(&late).await;
    let opened = viewer.open("film").await.unwrap();
    let node = |layer: usize| opened.sources[layer].nodes[0].peer.to_string();
    assert_eq!((node(0), node(1), node(2)), ("base-2".into(), "enh1-1".into(), "origin".into()));
    let manifest = rig.library.title(&title).unwrap().manifest().clone();
    for block in 0..BLOCKS {
        let got = viewer.chunk(&manifest, block, Layer::BASE).await.unwrap();
        assert_eq!(got, chunk_bytes("film", block, Layer::BASE));
    }

    operator.connection.send(Message::Unpublish { request: 2, title: title.clone() }).unwrap();
    let gone = async {
        let copies = ["enh1-1", "base-1", "base-2"].map(|name| rig.folder.path().join(name).join("film"));
        while copies.iter().any(|copy| copy.exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    assert!(rig.library.title(&title).is_ok(), "the origin keeps its own");
    drop((enh1, base));
}

#[tokio::test]
async fn a_node_serves_the_layers_it_finds_on_its_disk() {
    let rig = Rig::new();
    let own = Library::create(rig.folder.path().join("base-1")).unwrap();
    let film = rig.library.title(&"film".parse().unwrap()).unwrap();
    media::library::copy_layers(&film, &[Layer::BASE], &own, false).unwrap();
    let origin = rig.serve(rig.config()).await;
    let base = rig.serve(rig.member("base-1", "base", &origin)).await;
    rig.until(|event| matches!(event, Event::Linked { peer } if peer.as_str() == "origin")).await;
    let mut viewer = rig.viewer(&base).await;
    let opened = viewer.open("film").await.unwrap();
    let node = |layer: usize| opened.sources[layer].nodes[0].peer.to_string();
    assert_eq!((node(0), node(1), node(2)), ("base-1".into(), "origin".into(), "origin".into()));
}

#[tokio::test]
async fn the_backup_calls_the_viewer_of_a_node_that_is_gone() {
    let rig = Rig::new();
    let origin = rig.serve(rig.config()).await;
    // Backups are searched through nodes of the next level.
    let enh1 = rig.serve(rig.member("enh1-1", "enh1", &origin)).await;
    let film = rig.library.title(&"film".parse().unwrap()).unwrap();
    let mut bases = Vec::new();
    for name in ["base-1", "base-2"] {
        let own = Library::create(rig.folder.path().join(name)).unwrap();
        media::library::copy_layers(&film, &[Layer::BASE], &own, false).unwrap();
        bases.push(rig.serve(rig.member(name, "base", &enh1)).await);
    }
    let linked = |event: &Event| matches!(event, Event::Linked { peer } if peer.as_str() == "enh1-1");
    rig.until_times(2 + 1, linked).await;
    let mut viewer = rig.viewer(&bases[0]).await;
    viewer.open("film").await.unwrap();
    let Message::BackupIs { backup, epoch: 1, .. } = viewer.next().await else { panic!() };
    assert_eq!(backup.peer.as_str(), "base-2");
    let mut quiet = rig.viewer(&bases[1]).await;
    quiet.attach_as(&viewer, "film").await.unwrap();
    drop(bases.remove(0));
    let start = quiet.next().await;
    assert!(matches!(start, Message::DeliveryStart { epoch: 2, .. }), "{start:?}");
    let taken = |event: &Event| matches!(event, Event::Network(AutonomyEvent::TakenOver { epoch: 2, .. }));
    rig.until(taken).await;
    let chunk = quiet.chunk(film.manifest(), 0, Layer::BASE).await.unwrap();
    assert_eq!(chunk, chunk_bytes("film", 0, Layer::BASE));
}

#[tokio::test]
async fn a_token_of_another_authority_is_refused_by_its_name() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let elsewhere = rig.folder.path().join("elsewhere");
    Keys::init(&elsewhere).unwrap();
    let promise = Promise {
        viewer: "viewer".parse().unwrap(),
        sla: Sla::Vip,
        top: media::Quality::GOLD,
        until: u64::MAX,
    };
    let sign = |folder: &Path| Keys::open(folder).unwrap().sign(promise).unwrap();
    let mut viewer = rig.viewer(&node).await;
    let foreign = Some(sign(&elsewhere));
    assert_eq!(viewer.open_with("film", media::Quality::GOLD, foreign).await.unwrap_err(), Refusal::Token);
    let own = Some(sign(&rig.folder.path().join("keys")));
    assert!(viewer.open_with("film", media::Quality::GOLD, own).await.is_ok());
}
