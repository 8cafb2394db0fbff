//! What a slot is worth over real QUIC, and who is right when two nodes think
//! that they serve one viewer.

use crate::film::{BLOCKS, chunk_bytes};
use crate::rig::Rig;
use media::Layer;
use media::library::Library;
use protocol::Message;
use protocol::node::Event;
use protocol::node::autonomy::AutonomyEvent;
use std::time::{Duration, Instant};

/// How long the two viewers watch.
const WATCHED: u32 = 4;

#[tokio::test]
async fn a_greedy_viewer_gets_no_more_than_its_slot_and_the_one_beside_it_never_freezes() {
    let rig = Rig::new();
    let node = rig.serve(rig.config()).await;
    let (mut greedy, mut modest) = (rig.viewer(&node).await, rig.viewer(&node).await);
    let manifest = greedy.manifest("film").await;
    modest.manifest("film").await;
    let began = Instant::now();
    let second = |seconds: u32| began + Duration::from_secs(seconds.into());

    // One takes all it can get, with four requests open at any time.
    let grabbing = async {
        let lane = |lane: u32| {
            let (greedy, manifest) = (&greedy, &manifest);
            async move {
                let mut bytes = 0;
                for block in lane.. {
                    let chunk = greedy.chunk(manifest, block % BLOCKS, Layer::BASE);
                    match tokio::time::timeout_at(second(WATCHED).into(), chunk).await {
                        Ok(chunk) => bytes += chunk.unwrap().len(),
                        Err(_) => break,
                    }
                }
                bytes
            }
        };
        let (a, b, c, d) = tokio::join!(lane(0), lane(1), lane(2), lane(3));
        a + b + c + d
    };
    // The other plays: a buffer at first, then a block for each second.
    let playing = async {
        let mut late: Vec<u32> = Vec::new();
        for block in 0..BLOCKS + WATCHED {
            let asked = second(block.saturating_sub(BLOCKS - 1));
            tokio::time::sleep_until(asked.into()).await;
            modest.chunk(&manifest, block % BLOCKS, Layer::BASE).await.unwrap();
            // The first block begins the play, and each of the others is due in its turn.
            late.extend((block > 0 && Instant::now() > second(block)).then_some(block));
        }
        late
    };
    let (grabbed, late) = tokio::join!(grabbing, playing);
    let chunk = chunk_bytes("film", 0, Layer::BASE).len();
    let seconds = usize::try_from(WATCHED).unwrap();
    let most = 4 * chunk + chunk * seconds * 3 / 2 + chunk / 10;
    assert!(grabbed <= most, "{grabbed} of {most}");
    assert!(grabbed >= 4 * chunk + chunk * (seconds - 1), "it waits, and is not refused: {grabbed}");
    assert!(late.is_empty(), "a freeze: {late:?}");
}

#[tokio::test]
async fn a_viewer_that_seeks_elsewhere_is_not_served_twice() {
    let rig = Rig::new();
    let origin = rig.serve(rig.config()).await;
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
    drop(bases.remove(0));
    let taken = |event: &Event| matches!(event, Event::Network(AutonomyEvent::TakenOver { epoch: 2, .. }));
    rig.until(taken).await;
    // The viewer has not heard of it, and goes to the origin.
    let mut anew = rig.viewer(&origin).await;
    let opened = anew.seek_as(&viewer, &["base-1", "base-2"]).await;
    match opened {
        Ok(opened) => assert_eq!(opened.epoch, 17),
        Err(why) => panic!("{why}"),
    }
    let superseded =
        |event: &Event| matches!(event, Event::Network(AutonomyEvent::Superseded { epoch: 17, .. }));
    rig.until(superseded).await;
}
