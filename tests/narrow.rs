//! Gold is asked for over a link that hardly carries Base: Base never waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use lab::demo::DemoOptions;
use media::library::Library;
use media::{Layer, Quality, Span};
use player::{PlayOptions, SinkKind};
use protocol::NodeAddress;
use proxy::{ProxyConfig, UpstreamFlag};
use server::ServeConfig;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use support::relay::Relay;
use support::{Viewer, authority, kept_folder, peer};
use transport::Keys;

const WATCHED: Span = Span::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_of_gold_over_one_and_a_third_of_base_does_not_freeze() {
    let folder = tempfile::tempdir().unwrap();
    let options = DemoOptions {
        program: support::LAMINA.into(),
        video: None,
        cache: kept_folder(),
        sink: SinkKind::Headless,
        report: folder.path().to_owned(),
    };
    let film = lab::demo::prepare(&options, &mut |_| (), &AtomicBool::new(false)).unwrap();
    let library = Library::create(folder.path().join("library")).unwrap();
    let longer = Span::from_secs(70);
    encoder::repeat(&film.folder, &library, longer, true, &AtomicBool::new(false)).unwrap();
    Keys::init(&folder.path().join("keys")).unwrap();

    let shallow = Duration::from_millis(120);
    let deep = Duration::from_secs(2);
    // At a node; where a proxy decides what the link carries; behind a long queue.
    let viewings = [(shallow, false), (shallow, true), (deep, false)].map(|(queue, proxied)| {
        let folder = folder.path().to_owned();
        tokio::spawn(async move { watch_over(&folder, queue, proxied).await })
    });
    for viewing in viewings {
        viewing.await.unwrap();
    }
}

/// Watches gold over a link of 1.3 times the rate of Base, behind such a queue; the
/// link leads to a node, or to a proxy beside it.
async fn watch_over(folder: &Path, queue: Duration, proxied: bool) {
    let library = Library::open(folder.join("library")).unwrap();
    let name = library.titles().unwrap().titles.remove(0).title;
    let title = library.title(&name).unwrap();
    let base = title.manifest().nominal_rate(Layer::BASE);
    let rate = base.0 * 13 / 10;

    let keys = folder.join("keys");
    // The node must know the relay's address before it starts, so its own is fixed first.
    let address = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let link = Relay::start(address, rate, queue);
    let config = ServeConfig {
        peer: Some(peer("origin")),
        library: library.path().to_owned(),
        keys: Some(keys.clone()),
        ..ServeConfig::default()
    };
    // What it says of itself must lead over the link too.
    let config = if proxied {
        config
    } else {
        ServeConfig { listen: address, advertise: Some(link.address()), ..config }
    };
    let node = server::serve(config, |_| ()).await.unwrap();
    let proxy = if proxied {
        let at = NodeAddress { peer: peer("origin"), address: node.address() };
        let config = ProxyConfig {
            peer: Some(peer("proxy-1")),
            listen: address,
            advertise: Some(link.address()),
            upstream: vec![UpstreamFlag(at.into())],
            keys: Some(keys.clone()),
            ..ProxyConfig::default()
        };
        Some(proxy::start(config, |_| ()).await.unwrap())
    } else {
        None
    };
    let door = peer(if proxied { "proxy-1" } else { "origin" });
    let title_name = title.manifest().title.clone();
    let mut options = PlayOptions::new(link.address(), title_name, authority(&keys), peer("viewer"));
    options.addresses = vec![(Some(door), link.address())];
    options.quality = Quality::GOLD;
    options.limit = Some(WATCHED);
    let report = Viewer::with(options).report().await;
    drop((node, proxy));
    println!(
        "Base {base}, link {} kbit/s, queue {queue:?}: {:?}, start-up {:?} ms, {} datagrams dropped, qualities {:?}, steps {:?}",
        rate / 1_000,
        report.freezes,
        report.startup_ms,
        link.dropped(),
        report.seconds_at_quality,
        report.transitions.len()
    );
    assert_eq!(report.freezes.count, 0, "{:?}", report.freezes);
    assert!(report.watched_ms >= 59_000, "{} ms watched", report.watched_ms);
    assert_eq!(report.hash_mismatches, []);
    assert!(!proxied || report.transitions.len() <= 2, "{:?}", report.transitions);
    assert!(report.seconds_at_quality["bronze"] > 30.0, "the link carries little more than Base");
}
