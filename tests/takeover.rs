//! Fifteen processes, a viewer, and one death after the other: who serves next is
//! the network's doing.
//!
//! `LAMINA_KILLS=30 ./x test --test takeover -- --nocapture` makes as many kills
//! as are claimed; `LAMINA_SEED=N` repeats a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use media::Span;
use player::{PlayReport, PlayerEvent};
use protocol::Sla;
use protocol::player::Own;
use std::time::Duration;
use support::theatre::{Death, ONE_AT_A_TIME, Theatre};
use support::{peer, small_title};

/// Survival signals, and the silence that is a death, as nodes are started.
const TS: Duration = Duration::from_millis(100);
const TD: Duration = Duration::from_millis(400);
/// What a machine may add to a verdict where it has nothing else to do, as when
/// the claim is measured, and where many share it.
const SLACK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

fn kills() -> usize {
    std::env::var("LAMINA_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

fn mean_and_interval(values: &[f64]) -> (f64, f64) {
    let n = f64::from(u32::try_from(values.len()).unwrap());
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, 1.96 * (variance / n).sqrt())
}

fn tell(name: &str, deaths: &[Death], report: &PlayReport) {
    let detected: Vec<f64> = deaths.iter().map(|death| death.detected.as_secs_f64() * 1e3).collect();
    let recovered: Vec<f64> =
        deaths.iter().map(|death| f64::from(u32::try_from(death.recovered_ms).unwrap())).collect();
    let ((d, di), (r, ri)) = (mean_and_interval(&detected), mean_and_interval(&recovered));
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    println!(
        "{name}: {} kills, detected after {d:.0} +- {di:.0} ms (at most {:.0}), recovered after {r:.0} +- {ri:.0} ms \
         (at most {:.0}), freezes {} ({} ms)",
        deaths.len(),
        most(&detected),
        most(&recovered),
        report.freezes.count,
        report.freezes.total_ms,
    );
    for death in deaths {
        println!("  {death:?}");
    }
}

async fn deaths(sla: Sla, own: Own, buffer: Span, name: &str) -> (Vec<Death>, PlayReport) {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let seconds = 30 + 6 * u64::try_from(kills()).unwrap();
    let title = small_title(folder.path(), seconds);
    let mut theatre = Theatre::open(folder.path(), &title, sla, own, buffer).await;
    let deep = buffer.as_millis() * 6 / 10;
    let mut deaths = Vec::new();
    for _ in 0..kills() {
        deaths.push(theatre.death(deep).await);
    }
    let report = theatre.close().await;
    tell(name, &deaths, &report);
    (deaths, report)
}

#[tokio::test(flavor = "multi_thread")]
async fn base_nodes_die_and_the_network_alone_brings_the_viewer_over() {
    let (deaths, report) =
        deaths(Sla::Normal, Own::NONE, Span::from_secs(4), "by delivery start alone").await;
    assert!(deaths.iter().all(|death| death.cause == "delivery start"), "{deaths:?}");
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn base_nodes_die_under_a_normal_viewer_with_all_its_own_means() {
    let (deaths, report) = deaths(Sla::Normal, Own::ALL, Span::from_secs(4), "normal, with everything").await;
    let measured = std::env::var_os("LAMINA_KILLS").is_some();
    let slack = if measured { SLACK.0 } else { SLACK.1 };
    for death in &deaths {
        assert!(death.detected + TS > TD && death.detected <= TD + slack, "{death:?}");
        assert!(death.recovered_ms < death.buffer_ms, "{death:?}");
    }
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn base_nodes_die_under_a_vip_with_two_blocks_of_buffer() {
    let (_, report) = deaths(Sla::Vip, Own::ALL, Span::from_secs(2), "VIP, two blocks").await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_lives_as_long_as_one_node_has_it_and_returns_with_it() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 60);
    let buffer = Span::from_secs(4);
    let mut theatre = Theatre::open(folder.path(), &title, Sla::Normal, Own::ALL, buffer).await;
    theatre.until_safe(2_400).await;
    // The node that serves Enh2 dies: the other one goes on, and nobody sees it.
    let mut serving = Vec::new();
    for name in ["enh2-1", "enh2-2"] {
        let status = theatre.stage.inquiry(peer(name)).await.unwrap().status().await.unwrap();
        serving.extend((status.slots.enhancements > 0).then_some(name));
    }
    let [first] = serving[..] else { panic!("one node serves Enh2: {serving:?}") };
    let second = if first == "enh2-1" { "enh2-2" } else { "enh2-1" };
    theatre.stage.process(peer(first)).unwrap().kill().await.unwrap();
    let moved = theatre.until(|event| {
        assert!(!matches!(event, PlayerEvent::Transition { .. }), "nobody sees it: {event:?}");
        matches!(event, PlayerEvent::FailedOver { layer, .. } if layer == "enh2")
    });
    println!("{:?}", moved.await);
    // Both are dead: silver, and no freeze.
    theatre.stage.process(peer(second)).unwrap().kill().await.unwrap();
    let down = theatre.until(|event| matches!(event, PlayerEvent::Transition { .. })).await;
    let PlayerEvent::Transition { from, to, cause, .. } = down else { unreachable!() };
    assert_eq!((from.as_str(), to.as_str(), cause.as_str()), ("gold", "silver", "failure"));
    // One returns, and gold with it.
    theatre.stage.process(peer(first)).unwrap().start().await.unwrap();
    let up = theatre.until(|event| matches!(event, PlayerEvent::Transition { .. })).await;
    let PlayerEvent::Transition { from, to, .. } = up else { unreachable!() };
    assert_eq!((from.as_str(), to.as_str()), ("silver", "gold"));
    let report = theatre.close().await;
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
    assert_eq!(report.transitions.len(), 2);
}
