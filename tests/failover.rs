//! Nodes die under a playing viewer, and the viewer does not notice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use media::Quality;
use player::PlayerEvent;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{Viewer, peer, small_title, stage};

const KILLS: usize = 20;

/// A small generator, so that a run can be repeated by its seed.
struct Dice(u64);

impl Dice {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// `LAMINA_SEED=N ./x test twenty` repeats a run.
fn seed() -> u64 {
    let named = std::env::var("LAMINA_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    named.unwrap_or(u64::from(now.subsec_nanos()))
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_base_nodes_are_killed_at_random_and_nothing_freezes() {
    let seed = seed();
    println!("LAMINA_SEED={seed} ./x test twenty");
    let mut dice = Dice(seed);
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 150);
    let mut network = stage(folder.path(), &title, true).await;
    let first = (Some(peer("base-1")), network.address(peer("base-1")).unwrap());
    let mut viewer = Viewer::start(first, &title.manifest().title, network.keys(), Quality::GOLD);
    viewer.wait(|event| matches!(event, PlayerEvent::FirstPicture { .. })).await.expect("a first picture");
    let mut serving = "base-1".to_owned();
    let mut recoveries = Vec::new();
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(800 + dice.below(1_700))).await;
        let victim = serving.clone();
        network.process(peer(&victim)).unwrap().kill().await.unwrap();
        let moved =
            viewer.wait(|event| matches!(event, PlayerEvent::FailedOver { layer, .. } if layer == "base"));
        let Some(PlayerEvent::FailedOver { from, to, recovered_ms, .. }) = moved.await else {
            panic!("the viewer ended before it moved away from {victim}")
        };
        // A kill counts: Base was due from the victim, and comes from somebody else now.
        assert_eq!(from, victim);
        recoveries.push(recovered_ms);
        serving = to;
        network.process(peer(&victim)).unwrap().start().await.unwrap();
        viewer
            .wait(|event| matches!(event, PlayerEvent::SourceUp { node, .. } if *node == victim))
            .await
            .expect("the victim is found again");
    }
    let report = viewer.stop().await;
    recoveries.sort_unstable();
    println!("recovery in ms, sorted: {recoveries:?}");
    assert_eq!(recoveries.len(), KILLS);
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
    assert_eq!(report.hash_mismatches, []);
    assert!(report.frames_shown.abs_diff(report.frames_expected) * 100 <= report.frames_expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_source_of_a_layer_dies_and_returns() {
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 20);
    let mut network = stage(folder.path(), &title, false).await;
    let first = (Some(peer("base-1")), network.address(peer("base-1")).unwrap());
    let mut viewer = Viewer::start(first, &title.manifest().title, network.keys(), Quality::GOLD);
    viewer.wait(|event| matches!(event, PlayerEvent::FirstPicture { .. })).await.expect("a first picture");
    for node in ["enh2-1", "enh2-2"] {
        network.process(peer(node)).unwrap().kill().await.unwrap();
    }
    let down = viewer.wait(|event| matches!(event, PlayerEvent::Transition { .. })).await.unwrap();
    let PlayerEvent::Transition { from, to, cause, .. } = down else { unreachable!() };
    assert_eq!((from.as_str(), to.as_str(), cause.as_str()), ("gold", "silver", "failure"));
    network.process(peer("enh2-2")).unwrap().start().await.unwrap();
    let up = viewer.wait(|event| matches!(event, PlayerEvent::Transition { .. })).await.unwrap();
    let PlayerEvent::Transition { from, to, .. } = up else { unreachable!() };
    assert_eq!((from.as_str(), to.as_str()), ("silver", "gold"));
    let report = viewer.report().await;
    assert_eq!(report.freezes.count, 0);
    assert_eq!(report.transitions.len(), 2);
    assert_eq!(report.hash_mismatches, []);
}
