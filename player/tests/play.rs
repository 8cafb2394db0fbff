//! A viewer among real nodes: QUIC on loopback, GStreamer without a screen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::mem_forget,
    unreachable_pub,
    missing_docs,
    reason = "tests state exact values"
)]

mod moves;
mod net;
mod support;

use media::{Quality, Span};
use net::Network;
use player::{Command, PlayError, PlayReport, PlayerEvent};
use protocol::Refusal;
use std::net::SocketAddr;
use std::sync::LazyLock;
use support::title::{Recipe, Title};
use tokio::sync::Mutex;

/// One viewer at a time: two would fight for the processor and call it freezes.
static STAGE: Mutex<()> = Mutex::const_new(());

/// Thirty blocks of 0.4 s in three layers, with sound.
static FILM: LazyLock<Title> = LazyLock::new(|| Title::make(&Recipe::small(30)));

fn changes(report: &PlayReport) -> Vec<(&str, &str, &str)> {
    let change = |t: &'_ player::report::Transition| {
        let found = report.transitions.iter().find(|other| *other == t).unwrap();
        (found.from.as_str(), found.to.as_str(), found.cause.as_str())
    };
    report.transitions.iter().map(change).collect()
}

/// Every picture was shown, on time, as the encoder made it.
fn assert_whole(report: &PlayReport) {
    assert_eq!(report.freezes.list, [], "{report:#?}");
    assert_eq!((report.frames_shown, report.frames_dropped), (report.frames_expected, 0));
    assert_eq!(report.hash_mismatches, []);
    assert_eq!(report.outcome, "ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn gold_plays_whole_and_every_block_is_as_encoded() {
    let _alone = STAGE.lock().await;
    player::init().unwrap();
    let network = Network::start(&FILM);
    let folder = tempfile::tempdir().unwrap();
    let mut options = network.options();
    options.report_dir = Some(folder.path().join("report"));
    let report = network.play(options, |_, _| ()).await.unwrap();
    assert_whole(&report);
    assert_eq!((report.frames_shown, report.blocks_checked, report.blocks_unchecked), (300, 30, 0));
    assert_eq!(changes(&report), []);
    println!("start-up {:?} ms", report.startup_ms);
    assert!(report.startup_ms.unwrap() < 700, "{:?}", report.startup_ms);
    assert!(report.seconds_at_quality["gold"] > 11.9);
    let deepest = report.samples.iter().map(|sample| sample.buffer_ms).max().unwrap();
    assert!((3_000..=4_000).contains(&deepest), "{deepest}");
    let read = PlayReport::read(&folder.path().join("report/report.json")).unwrap();
    assert_eq!(read, report);
    for name in ["buffer.csv", "timeline.csv", "chart.svg"] {
        assert!(folder.path().join("report").join(name).metadata().unwrap().len() > 20, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bronze_viewer_receives_no_enhancement_byte() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut options = network.options();
    options.quality = Quality::BRONZE;
    options.start = Span::from_millis(8_200);
    let report = network.play(options, |_, _| ()).await.unwrap();
    assert_whole(&report);
    assert_eq!(report.bytes_by_layer.keys().collect::<Vec<_>>(), ["base"]);
    assert_eq!(network.chunks_of("enh1-1") + network.chunks_of("enh2-1"), 0);
    assert_eq!(network.chunks_of("base-1"), 10, "from the block that holds the start");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_serving_base_node_falls_silent_and_nobody_notices() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut options = network.options();
    options.limit = Some(Span::from_millis(8_000));
    let report = network
        .play(options, |event, _| {
            if matches!(event, PlayerEvent::Status { position_ms: 2_000.., .. }) {
                network.hang("base-1", true);
            }
        })
        .await
        .unwrap();
    assert_whole(&report);
    assert_eq!(changes(&report), []);
    let over: Vec<_> = report.failovers.iter().map(|f| (f.node.as_str(), f.to.as_str())).collect();
    assert_eq!(over, [("base-1", "base-2")]);
    let over = &report.failovers[0];
    assert!(over.detected_ms >= 200 && over.detected_ms < 600, "{over:?}");
    assert!(over.buffer_ms > 1_500, "{over:?}");
}

/// Whoever fell silent is dialled anew; when it is heard again, that this dial comes
/// to nothing is no loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_silent_for_a_moment_is_not_lost_with_the_dial_that_fails() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut told = Vec::new();
    let mut options = network.options();
    options.limit = Some(Span::from_millis(6_000));
    let report = network
        .play(options, |event, _| match event {
            PlayerEvent::Status { position_ms: 2_000.., .. } if told.is_empty() => {
                told.push("hangs");
                network.hang("base-1", true);
            }
            PlayerEvent::SourceSilent { node, .. } if node == "base-1" => {
                told.push("silent");
                let nobody = &network.nodes["base-1"].moods.greets_nobody;
                nobody.store(true, std::sync::atomic::Ordering::SeqCst);
                network.hang("base-1", false);
            }
            PlayerEvent::SourceUp { node, .. } if node == "base-1" => told.push("up"),
            PlayerEvent::SourceLost { node, .. } if node == "base-1" => told.push("lost"),
            _ => {}
        })
        .await
        .unwrap();
    assert_eq!(told, ["hangs", "silent", "up"]);
    assert_whole(&report);
}

#[tokio::test(flavor = "multi_thread")]
async fn quality_falls_when_the_last_source_is_gone_and_returns_with_it() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let report = network
        .play(network.options(), |event, _| match event {
            PlayerEvent::Status { position_ms: 6_000.., .. } => network.hang("enh2-2", false),
            PlayerEvent::Status { position_ms: 3_000.., .. } => network.hang("enh2-2", true),
            PlayerEvent::Status { position_ms: 1_000.., .. } => network.hang("enh2-1", true),
            _ => {}
        })
        .await
        .unwrap();
    assert_whole(&report);
    assert_eq!(changes(&report), [("gold", "silver", "failure"), ("silver", "gold", "recovered")]);
    assert_eq!((report.blocks_checked, report.blocks_unchecked), (30, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_chunks_are_fetched_elsewhere_and_never_shown() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    network.lie("base-1");
    network.lie("enh2-1");
    let mut options = network.options();
    options.limit = Some(Span::from_millis(4_800));
    let report = network.play(options, |_, _| ()).await.unwrap();
    assert_whole(&report);
    let failed: Vec<_> = report.sources.iter().filter(|s| s.failed > 0).map(|s| s.node.as_str()).collect();
    assert_eq!(failed, ["base-1", "enh2-1"]);
    assert_eq!(report.blocks_checked, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_viewer_seeks_changes_quality_and_stops() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut told = 0;
    let report = network
        .play(network.options(), |event, commands| {
            let PlayerEvent::Status { position_ms, .. } = event else { return };
            let step = match (told, *position_ms) {
                (0, 1_000..) => Command::SeekTo(Span::from_millis(6_000)),
                (1, 7_000..) => Command::Quality(Quality::BRONZE),
                (2, 9_000..) => Command::Quality(Quality::GOLD),
                (3, 11_000..) => Command::Stop,
                _ => return,
            };
            told += 1;
            commands.try_send(step).unwrap();
        })
        .await
        .unwrap();
    assert_eq!(report.outcome, "stopped");
    assert_eq!(report.freezes.list, []);
    assert_eq!(changes(&report), [("gold", "bronze", "user"), ("bronze", "gold", "user")]);
    assert!(report.watched_ms < 8_000, "{}", report.watched_ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_viewer_winds_forward_and_back_on_key_pictures_of_base() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut told = 0;
    let report = network
        .play(network.options(), |event, commands| {
            let PlayerEvent::Status { position_ms, quality, .. } = event else { return };
            let step = match (told, *position_ms, quality.as_str()) {
                (0, 1_000.., _) => Command::Rate(4),
                (1, 8_000.., "bronze") => Command::Rate(-4),
                (2, ..=4_000, "bronze") => Command::Rate(1),
                (3, 5_500.., "gold") => Command::Stop,
                _ => return,
            };
            told += 1;
            commands.try_send(step).unwrap();
        })
        .await
        .unwrap();
    assert_eq!((told, report.outcome.as_str()), (4, "stopped"));
    assert!(report.watched_ms < 10_000, "{} ms for ten seconds of film and more", report.watched_ms);
    assert_eq!(report.freezes.list, []);
    assert_eq!(changes(&report), [], "winding is no change of quality");
}

#[tokio::test(flavor = "multi_thread")]
async fn gold_over_a_narrow_link_plays_on_in_what_it_carries() {
    let _alone = STAGE.lock().await;
    let base: u64 = FILM.chunks.iter().map(|block| block[0].len() as u64).sum();
    let rate = base * 8 / 12 * 13 / 10;
    let network = Network::through(&FILM, |nodes| net::relay::start(nodes, rate));
    let report = network.play(network.options(), |_, _| ()).await.unwrap();
    println!("link {rate} bit/s, start-up {:?} ms, {:?}", report.startup_ms, report.seconds_at_quality);
    assert_whole(&report);
}

/// On a narrow line the manifest, asked for with the greeting, may come before its
/// answer: who sends so much is not silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_that_stands_behind_the_manifest_is_waited_for() {
    let _alone = STAGE.lock().await;
    let manifest = FILM.manifest.to_bytes().unwrap().len() as u64;
    // The manifest takes two seconds and the greeting comes after one and a half.
    let network = Network::through(&FILM, |nodes| net::relay::start(nodes, manifest * 8 / 2));
    network.nodes["base-1"].moods.greets_after.store(1_500, std::sync::atomic::Ordering::SeqCst);
    let mut options = network.options();
    options.limit = Some(Span::from_millis(400));
    let report = network.play(options, |_, _| ()).await.unwrap();
    assert_eq!(report.outcome, "ended");

    // Where nothing comes at all nobody waits longer than for a greeting.
    let network = Network::through(&FILM, |nodes| net::relay::start(nodes, manifest * 8 / 2));
    network.hang("base-1", true);
    let begun = std::time::Instant::now();
    let error = network.play(network.options(), |_, _| ()).await.unwrap_err();
    let PlayError::Dial(error) = error else { panic!("{error:?}") };
    assert!(matches!(error.why, transport::DialWhy::Timeout), "{error:?}");
    assert!(begun.elapsed() < std::time::Duration::from_millis(2_500), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_is_told_in_one_line() {
    let _alone = STAGE.lock().await;
    let network = Network::start(&FILM);
    let mut wrong_title = network.options();
    wrong_title.title = "no such film".parse().unwrap();
    let error = network.play(wrong_title, |_, _| ()).await.unwrap_err();
    assert!(matches!(error, PlayError::Refused { why: Refusal::NoSuchTitle, .. }), "{error:?}");
    assert_eq!(error.to_string(), "base-1 does not open the title no such film");

    let mut nobody = network.options();
    nobody.addresses = vec![(None, SocketAddr::from(([127, 0, 0, 1], 9)))];
    let error = network.play(nobody, |_, _| ()).await.unwrap_err();
    assert!(matches!(error, PlayError::Dial(_)), "{error:?}");

    let stranger = Network::start(&FILM);
    let mut wrong_authority = network.options();
    wrong_authority.authority = stranger.authority.clone();
    let error = network.play(wrong_authority, |_, _| ()).await.unwrap_err();
    let PlayError::Dial(error) = error else { panic!("{error:?}") };
    assert!(matches!(error.why, transport::DialWhy::Certificate(_)), "{error:?}");

    let mut second_address = network.options();
    second_address.addresses.insert(0, (None, SocketAddr::from(([127, 0, 0, 1], 9))));
    second_address.limit = Some(Span::from_millis(500));
    let report = network.play(second_address, |_, _| ()).await.unwrap();
    assert_eq!((report.outcome.as_str(), report.blocks_checked), ("ended", 2));
}
