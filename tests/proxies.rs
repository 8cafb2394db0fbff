//! Clients behind a proxy, in a network of processes, while the node that serves
//! them is killed, and then the proxy itself.
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
use media::{Layer, Manifest, Quality, Span};
use player::{PlayOptions, PlayReport, PlayerEvent};
use protocol::message::Progress;
use protocol::status::ProxyStatus;
use protocol::{Message, Open, UserId, Visit};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::theatre::ONE_AT_A_TIME;
use support::{Node, Viewer, peer, plan, small_title};
use tokio::time::{sleep, sleep_until, timeout};
use transport::{Authority, Endpoint, EndpointConfig, Identity};

const PATIENCE: Duration = Duration::from_secs(20);
/// How far ahead of its picture a light client asks.
const AHEAD: u32 = 4;

/// How long one picture of the film is shown.
const PICTURE: Duration = Duration::from_millis(40);

/// A client without a picture: it asks for two layers of each block in time, and
/// notes how long each block of Base came after it should have been shown.
async fn light(
    address: (&str, SocketAddr),
    keys: std::path::PathBuf,
    manifest: Arc<Manifest>,
    user: u64,
    blocks: u32,
) -> Vec<Duration> {
    let authority = Authority::load(&keys).unwrap();
    let endpoint = Endpoint::open(&EndpointConfig::viewer(peer("light"), authority)).unwrap();
    let (connection, mut inbox) = endpoint.dial(address.1, Some(peer(address.0)), PATIENCE).await.unwrap();
    let progress = Progress { buffer: Span::from_secs(AHEAD.into()), ..Progress::default() };
    let open = Open::new(1, manifest.title.clone(), Quality::SILVER, UserId(user), Visit::Seek(progress));
    connection.send(Message::Open(open)).unwrap();
    let opened = timeout(PATIENCE, inbox.recv()).await.unwrap().unwrap();
    assert!(matches!(opened, Message::Opened(_)), "{opened:?}");
    // The first block is there, and its picture begins.
    let first = (manifest.chunk_id(0, Layer::BASE), *manifest.chunk(0, Layer::BASE).unwrap());
    connection.request_chunk(&first.0, &first.1, PATIENCE).await.unwrap();
    let began = Instant::now();
    let due = move |block: u32| began + Duration::from_secs(block.into());
    let mut asked = tokio::task::JoinSet::new();
    for block in 1..blocks {
        sleep_until(due(block.saturating_sub(AHEAD)).into()).await;
        let (connection, manifest) = (connection.clone(), Arc::clone(&manifest));
        asked.spawn(async move {
            let chunk = |layer| (manifest.chunk_id(block, layer), *manifest.chunk(block, layer).unwrap());
            let (id, info) = chunk(Layer::BASE);
            // Without Base there is no picture: it is asked for until it comes.
            while let Err(error) = connection.request_chunk(&id, &info, PATIENCE).await {
                println!("{user} {block}: {error}");
                assert!(began.elapsed() < Duration::from_secs(90), "block {block} never came");
                sleep(Duration::from_millis(200)).await;
            }
            let late = Instant::now().saturating_duration_since(due(block));
            let (id, info) = chunk(Layer::ENH1);
            let _ = connection.request_chunk(&id, &info, Duration::from_secs(3)).await;
            late
        });
    }
    let late = asked.join_all().await;
    connection.part().await;
    late
}

async fn stage(folder: &Path, title: &TitleFolder) -> Stage {
    Stage::start(&plan(folder, title, Size::SMALL, false)).await.expect("the network starts")
}

fn options(stage: &Stage, title: &TitleFolder, at: (&str, SocketAddr)) -> PlayOptions {
    let authority = support::authority(stage.keys());
    let name = title.manifest().title.clone();
    let mut options = PlayOptions::new(at.1, name, authority, peer("viewer"));
    options.addresses = vec![(Some(peer(at.0)), at.1)];
    options.quality = Quality::GOLD;
    options
}

/// How many users each Base node serves.
async fn served(stage: &Stage) -> Vec<(String, usize)> {
    let mut served = Vec::new();
    for number in 1..=Size::SMALL.base {
        let name = format!("base-{number}");
        let status = stage.inquiry(peer(&name)).await.unwrap().status().await.unwrap();
        served.push((name, usize::try_from(status.slots.normal + status.slots.vip).unwrap()));
    }
    served
}

/// What the proxy at this address says of itself.
async fn proxy_status(stage: &Stage, at: SocketAddr) -> ProxyStatus {
    let authority = support::authority(stage.keys());
    let identity = Identity::obtain(stage.keys(), peer("operator")).unwrap();
    let endpoint = Endpoint::open(&EndpointConfig::operator(&identity, authority)).unwrap();
    let (connection, mut inbox) = endpoint.dial(at, None, PATIENCE).await.unwrap();
    connection.send(Message::AskStatus).unwrap();
    match timeout(PATIENCE, inbox.recv()).await.unwrap().unwrap() {
        Message::ProxyStatus(status) => *status,
        other => panic!("{other:?}"),
    }
}

fn whole(report: &PlayReport) {
    assert_eq!(report.hash_mismatches, []);
    assert_eq!((report.sequence.missing, report.sequence.repeated), (0, 0), "{:?}", report.sequence);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_clients_behind_a_proxy_do_not_notice_that_their_base_node_is_killed() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 30);
    let mut stage = stage(folder.path(), &title).await;
    let proxy = stage.address(peer("proxy-1")).unwrap();
    let manifest = Arc::clone(title.manifest());
    let blocks = manifest.block_count().min(22);
    let mut clients = tokio::task::JoinSet::new();
    for user in 1..=9 {
        clients.spawn(light(
            ("proxy-1", proxy),
            stage.keys().to_owned(),
            Arc::clone(&manifest),
            user,
            blocks,
        ));
    }
    let mut viewer = Viewer::with(options(&stage, &title, ("proxy-1", proxy)));
    let first = viewer.wait(|event| matches!(event, PlayerEvent::FirstPicture { .. })).await;
    assert!(first.is_some());
    sleep(Duration::from_secs(6)).await;
    let before = served(&stage).await;
    assert_eq!(before.iter().map(|(_, users)| users).sum::<usize>(), 10, "each is a user: {before:?}");
    let (victim, users) = before.iter().max_by_key(|(_, users)| *users).unwrap().clone();
    let killed = Instant::now();
    stage.process(peer(&victim)).unwrap().kill().await.unwrap();
    let late: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    let report = viewer.report().await;
    println!(
        "{victim} killed with {users} of 10 users, {:?} after the first picture; {} blocks at the clients, the latest {:?} late; \
         freezes {:?}, transitions {:?}",
        killed.elapsed(),
        late.len(),
        late.iter().max().unwrap(),
        report.freezes,
        report.transitions,
    );
    assert_eq!(late.len(), 9 * usize::try_from(blocks - 1).unwrap(), "no hole");
    assert!(*late.iter().max().unwrap() < PICTURE, "every block is there before its picture");
    whole(&report);
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_its_proxy_is_killed_a_client_turns_to_the_other_proxy_and_then_to_the_nodes() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 45);
    let mut stage = stage(folder.path(), &title).await;
    let first = stage.address(peer("proxy-1")).unwrap();
    let keys = stage.keys().display().to_string();
    let upstream = format!("base-2@{}", stage.address(peer("base-2")).unwrap());
    let peers = format!("proxy-1@{first}");
    let flags = ["--peer", "proxy-2", "--keys", &keys, "--upstream", &upstream, "--peers", &peers];
    let second = Node::start_as("proxy", folder.path(), &flags);
    let at = ("proxy-2", second.address.parse().unwrap());
    let mut viewer = Viewer::with(options(&stage, &title, at));
    let start = viewer.wait(|event| matches!(event, PlayerEvent::FirstPicture { .. })).await;
    assert!(start.is_some());
    let deep =
        |event: &PlayerEvent| matches!(event, PlayerEvent::Status { buffer_ms, .. } if *buffer_ms > 2_400);
    viewer.wait(deep).await.unwrap();
    drop(second);
    let moved =
        |event: &PlayerEvent| matches!(event, PlayerEvent::FailedOver { layer, .. } if layer == "base");
    let Some(PlayerEvent::FailedOver { to, recovered_ms, .. }) = viewer.wait(moved).await else {
        unreachable!()
    };
    println!("proxy-2 killed: {to} after {recovered_ms} ms");
    assert_eq!(to, "proxy-1", "a peer comes before the nodes");
    viewer.wait(deep).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    stage.process(peer("proxy-1")).unwrap().kill().await.unwrap();
    let Some(PlayerEvent::FailedOver { to, recovered_ms, .. }) = viewer.wait(moved).await else {
        unreachable!()
    };
    println!("proxy-1 killed: {to} after {recovered_ms} ms");
    assert!(to.starts_with("base-"), "{to}");
    let report = viewer.report().await;
    println!(
        "freezes {:?}, transitions {:?}, epochs {:?}",
        report.freezes, report.transitions, report.epochs
    );
    whole(&report);
    // The buffer was deeper than the recovery.
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_clients_behind_a_proxy_do_not_notice_that_its_peer_is_killed() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 24);
    let stage = stage(folder.path(), &title).await;
    let first = stage.address(peer("proxy-1")).unwrap();
    let keys = stage.keys().display().to_string();
    let upstream = format!("base-2@{}", stage.address(peer("base-2")).unwrap());
    let peers = format!("proxy-1@{first}");
    let flags = ["--peer", "proxy-2", "--keys", &keys, "--upstream", &upstream, "--peers", &peers];
    let second = Node::start_as("proxy", folder.path(), &flags);
    let manifest = Arc::clone(title.manifest());
    let blocks = manifest.block_count().min(16);
    // The peer has a client of its own, a little ahead of all others.
    let ahead = light(("proxy-1", first), stage.keys().to_owned(), Arc::clone(&manifest), 1, blocks);
    let ahead = tokio::spawn(ahead);
    sleep(Duration::from_secs(2)).await;
    let mut clients = tokio::task::JoinSet::new();
    let second_at: SocketAddr = second.address.parse().unwrap();
    for user in 2..=11 {
        let (keys, manifest): (_, Arc<Manifest>) = (stage.keys().to_owned(), Arc::clone(&manifest));
        clients.spawn(light(("proxy-2", second_at), keys, manifest, user, blocks));
    }
    sleep(Duration::from_secs(6)).await;
    let status = proxy_status(&stage, second_at).await;
    let mut stage = stage;
    stage.process(peer("proxy-1")).unwrap().kill().await.unwrap();
    ahead.abort();
    let late: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    println!("before: {:?}; {} blocks, the latest {:?} late", status.proxy, late.len(), late.iter().max());
    assert!(status.proxy.bytes_from_peers > 0, "{:?}", status.proxy);
    assert_eq!(late.len(), 10 * usize::try_from(blocks - 1).unwrap(), "no hole");
    assert!(*late.iter().max().unwrap() < PICTURE, "every block is there before its picture");
}
