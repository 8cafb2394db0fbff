//! What the network's own talk costs: survival signals and agents against the
//! film that a node serves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use lab::stage::{Size, Stage};
use media::library::TitleFolder;
use media::{Layer, Quality, Span};
use protocol::{Message, Open, Progress, UserId, Visit};
use std::time::{Duration, Instant};
use support::{authority, peer, plan, small_title};
use tokio::time::{sleep_until, timeout};
use transport::{Endpoint, EndpointConfig};

const SESSIONS: u64 = 30;
const BITS_PER_SECOND: u64 = 1_000_000;
const WATCHED: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for Base at 1 Mbit/s and throws it away, reporting each second as a
/// player does.
async fn watch(stage: &Stage, title: &TitleFolder, user: u64) -> tokio::task::JoinHandle<u64> {
    let (door, name) = (peer("base-1"), format!("viewer-{user}"));
    let config = EndpointConfig::viewer(peer(&name), authority(stage.keys()));
    let endpoint = Endpoint::open(&config).unwrap();
    let address = stage.address(door).unwrap();
    let (connection, mut inbox) = endpoint.dial(address, Some(door), PATIENCE).await.unwrap();
    let manifest = title.manifest().clone();
    let user = UserId(user);
    let visit = Visit::Seek(Progress::default());
    let open = Open::new(1, manifest.title.clone(), Quality::BRONZE, user, visit);
    connection.send(Message::Open(open)).unwrap();
    let answer = timeout(PATIENCE, inbox.recv()).await.unwrap().unwrap();
    assert!(matches!(answer, Message::Opened(_)), "{answer:?}");
    tokio::spawn(async move { while inbox.recv().await.is_ok() {} });
    tokio::spawn(async move {
        let (start, mut bytes, mut reported) = (Instant::now(), 0_u64, 0);
        for block in (0..manifest.block_count()).cycle() {
            let due = start + Duration::from_micros(bytes * 8_000_000 / BITS_PER_SECOND);
            sleep_until(due.into()).await;
            if start.elapsed() >= WATCHED {
                break;
            }
            if start.elapsed().as_secs() > reported {
                reported = start.elapsed().as_secs();
                let (position, buffer) = (Span::from_secs(reported), Span::from_secs(4));
                connection.send(Message::Position { user, position, buffer, paused: false }).unwrap();
            }
            let info = manifest.chunk(block, Layer::BASE).unwrap();
            let id = manifest.chunk_id(block, Layer::BASE);
            let chunk = connection.request_chunk(&id, info, PATIENCE).await.expect("a chunk in time");
            bytes += u64::try_from(chunk.bytes().len()).unwrap();
        }
        drop(endpoint);
        bytes
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_sessions_of_a_megabit_cost_less_than_a_hundredth_in_talk() {
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 20);
    let mut plan = plan(folder.path(), &title, Size::DEMO, false);
    // The small title is asked for at several times its own rate, so that it takes
    // as many bytes as one of a megabit: no slot allows that.
    let settings = folder.path().join("unpaced.toml");
    std::fs::write(&settings, "slot_rate = 0\n").unwrap();
    plan.arguments.extend(["--config".to_owned(), settings.to_str().unwrap().to_owned()]);
    let stage = Stage::start(&plan).await.expect("the network starts");
    let mut inquiry = stage.inquiry(peer("base-1")).await.unwrap();
    let before = inquiry.status().await.unwrap().traffic;
    let mut viewers = Vec::new();
    for user in 1..=SESSIONS {
        viewers.push(watch(&stage, &title, user).await);
    }
    let mut watched = 0;
    for viewer in viewers {
        watched += viewer.await.unwrap();
    }
    let status = inquiry.status().await.unwrap();
    let (media, signals, agents) = (
        status.traffic.media - before.media,
        status.traffic.signals - before.signals,
        status.traffic.agents - before.agents,
    );
    let percent = |bytes: u64| {
        f64::from(u32::try_from(bytes).unwrap()) * 100.0 / f64::from(u32::try_from(media).unwrap())
    };
    println!(
        "{SESSIONS} sessions: media {media} bytes, signals {signals} ({:.3} %), agents and other talk {agents} ({:.3} %)",
        percent(signals),
        percent(agents)
    );
    let wanted = SESSIONS * BITS_PER_SECOND / 8 * WATCHED.as_secs();
    assert!(watched * 10 >= wanted * 9, "{watched} of {wanted} bytes came");
    assert!(percent(signals + agents) < 1.0);
}
