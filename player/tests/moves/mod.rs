//! A viewer in a network that moves it about.

use crate::STAGE;
use crate::net::Network;
use crate::support::title::{Recipe, Title};
use media::{Layer, Span};
use player::report::Sequence;
use player::{PlayReport, PlayerEvent};
use protocol::player::Own;
use protocol::{Message, UserId, Visit};
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

/// Twenty blocks of 0.4 s in three layers, with sound.
static FILM: LazyLock<Title> = LazyLock::new(|| Title::make(&Recipe::small(20)));

/// Every picture was shown, on time, in gold, and every block went by once.
fn assert_unseen(report: &PlayReport) {
    assert_eq!(report.freezes.list, [], "{report:#?}");
    assert_eq!((report.frames_shown, report.frames_dropped), (report.frames_expected, 0));
    assert_eq!((report.hash_mismatches.len(), report.transitions.len()), (0, 0));
    assert_eq!((report.outcome.as_str(), report.sequence), ("ended", Sequence::default()));
}

fn moves(report: &PlayReport) -> Vec<(&str, &str, &str)> {
    report.failovers.iter().map(|f| (f.node.as_str(), f.to.as_str(), f.cause.as_str())).collect()
}

fn epochs(report: &PlayReport) -> Vec<(&str, u64)> {
    report.epochs.iter().map(|epoch| (epoch.node.as_str(), epoch.epoch)).collect()
}

/// How often a node heard where its viewer stands, and how often goodbye.
fn reports_and_closes(network: &Network, name: &str) -> (usize, usize) {
    let heard = network.heard(name);
    let count = |pick: fn(&Message) -> bool| heard.iter().filter(|message| pick(message)).count();
    (
        count(|message| matches!(message, Message::Position { .. })),
        count(|message| matches!(message, Message::Close(_))),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_door_sends_the_viewer_to_its_node_and_the_end_is_said_to_all() {
    let _alone = STAGE.lock().await;
    player::init().unwrap();
    let network = Network::autonomous(&FILM);
    let mut options = network.options();
    options.addresses = vec![(None, network.nodes["base-2"].at.address)];
    options.limit = Some(Span::from_millis(4_000));
    // It hears of the viewer from its node, and that may take a moment longer.
    network.nodes["enh1-1"].moods.refusals.store(2, Ordering::SeqCst);
    let report = network.play(options, |_, _| ()).await.unwrap();
    assert_unseen(&report);
    assert_eq!(epochs(&report), [("base-1", 1)]);
    let door = &network.opens("base-2")[0];
    assert!(matches!(door.visit, Visit::Seek(progress) if !progress.started), "{door:?}");
    for name in ["base-1", "enh1-1", "enh2-1"] {
        let opens = network.opens(name);
        assert_eq!(opens.len(), if name == "enh1-1" { 3 } else { 1 }, "{name}");
        assert_eq!((opens[0].visit, opens[0].user), (Visit::Attach, door.user), "{name}");
        assert_eq!(reports_and_closes(&network, name).1, 1, "{name}");
    }
    let (reports, _) = reports_and_closes(&network, "base-1");
    assert!((4..=6).contains(&reports), "{reports} in four seconds");
    let again = Network::autonomous(&FILM);
    let mut options = again.options();
    options.limit = Some(Span::from_millis(400));
    again.play(options, |_, _| ()).await.unwrap();
    assert_ne!(again.opens("base-1")[0].user, door.user, "drawn for each viewing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_start_on_the_quiet_connection_moves_base() {
    let _alone = STAGE.lock().await;
    let network = Network::autonomous(&FILM);
    let mut options = network.options();
    options.own = Own::NONE;
    let (mut told, mut at_backup) = (0, None);
    let report = network
        .play(options, |event, _| {
            let PlayerEvent::Status { position_ms, .. } = event else { return };
            let user = network.opens("base-1").first().map_or(UserId(0), |open| open.user);
            match (told, *position_ms) {
                (0, 600..) => {
                    let backup = network.nodes["base-2"].at;
                    network.say("base-1", &Message::BackupIs { user, backup, epoch: 1 });
                }
                (1, 1_600..) => network.hang("base-1", true),
                (2, 2_300..) => {
                    at_backup = Some(network.opens("base-2"));
                    assert_eq!(network.chunks_of("base-2"), 0);
                    network.stand_by("base-2", false);
                    let position = Span::from_millis(1_000);
                    network.say("base-2", &Message::DeliveryStart { user, position, epoch: 2 });
                }
                _ => return,
            }
            told += 1;
        })
        .await
        .unwrap();
    assert_unseen(&report);
    let at_backup = at_backup.unwrap();
    assert_eq!(at_backup.len(), 1, "one quiet connection");
    assert_eq!(at_backup[0].visit, Visit::Attach);
    assert_eq!(moves(&report), [("base-1", "base-2", "delivery start")]);
    assert_eq!(epochs(&report), [("base-1", 1), ("base-2", 2)]);
    let (reports, closes) = reports_and_closes(&network, "base-2");
    assert!(reports >= 4, "{reports}");
    assert_eq!(closes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_start_while_the_old_node_delivers_is_answered() {
    let _alone = STAGE.lock().await;
    let network = Network::autonomous(&FILM);
    let mut told = 0;
    let report = network
        .play(network.options(), |event, _| {
            let PlayerEvent::Status { position_ms, .. } = event else { return };
            let user = network.opens("base-1")[0].user;
            match (told, *position_ms) {
                (0, 400..) => {
                    let backup = network.nodes["base-2"].at;
                    network.say("base-1", &Message::BackupIs { user, backup, epoch: 1 });
                    let node = Some(network.nodes["enh2-2"].at);
                    network.say("base-1", &Message::LayerAt { user, layer: Layer::ENH2, node, epoch: 1 });
                }
                (1, 1_400..) => {
                    network.say("base-2", &Message::DeliveryStart { user, position: Span::ZERO, epoch: 2 });
                }
                _ => return,
            }
            told += 1;
        })
        .await
        .unwrap();
    assert_unseen(&report);
    let user = network.opens("base-1")[0].user;
    assert!(network.heard("base-2").contains(&Message::StillServed { user, epoch: 2 }));
    assert_eq!((epochs(&report), network.chunks_of("base-2")), (vec![("base-1", 1)], 0));
    assert_eq!(moves(&report), [("enh2-1", "enh2-2", "moved")]);
    assert_eq!(reports_and_closes(&network, "enh2-1").1, 1, "the old one heard the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lost_everybody_finds_service_at_another_door() {
    let _alone = STAGE.lock().await;
    let network = Network::autonomous(&FILM);
    let mut options = network.options();
    options.addresses.push((None, network.nodes["base-2"].at.address));
    let report = network
        .play(options, |event, _| {
            if matches!(event, PlayerEvent::Status { position_ms: 1_600.., .. }) {
                network.hang("base-1", true);
                network.stand_by("base-2", false);
            }
        })
        .await
        .unwrap();
    assert_unseen(&report);
    assert_eq!(moves(&report), [("base-1", "base-2", "repull")]);
    assert_eq!(epochs(&report), [("base-1", 1), ("base-2", 2)]);
    let opens = network.opens("base-2");
    let sought = opens.iter().find_map(|open| match open.visit {
        Visit::Seek(progress) => Some(progress),
        _ => None,
    });
    let sought = sought.unwrap();
    assert!(sought.started && sought.epoch == 1 && sought.buffer == Span::from_secs(4));
    assert!(sought.position >= Span::from_millis(2_000), "{}", sought.position);
}
