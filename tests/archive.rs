//! A title that was not placed on a node is fetched from the origin's archive while
//! it is watched, once, and stays within the bounds of link and store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use media::library::Library;
use media::{Quality, Span, TitleClass};
use player::{PlayOptions, PlayerEvent};
use protocol::{Message, Open, Progress, Refusal, SessionId, UserId, Visit};
use serde_json::Value;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use support::relay::Relay;
use support::{Node, Viewer, authority, lamina, peer, said, small_title};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};
use transport::{Connection, Endpoint, EndpointConfig, Inbox, Keys};

const PATIENCE: Duration = Duration::from_secs(20);
/// The link to the archive.
const LINK: u64 = 5_000_000;

/// A film of twenty seconds, encoded once for all sites: its files, by name.
struct Film {
    files: Vec<(OsString, Vec<u8>)>,
    /// What it takes on disk, and what it takes of a link.
    size: u64,
    rate: u64,
    /// What Base alone takes of a link.
    base: u64,
}

impl Film {
    fn get() -> &'static Self {
        static FILM: OnceLock<Film> = OnceLock::new();
        FILM.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let small = small_title(folder.path(), 20);
            let manifest = small.manifest();
            let inits: usize = manifest.layers.iter().map(|layer| layer.init.len()).sum();
            let chunks = manifest.blocks.iter().flat_map(|block| &block.chunks);
            let size = chunks.map(|chunk| chunk.length).sum::<u64>() + u64::try_from(inits).unwrap();
            let nanos = manifest.summary().duration.as_nanos();
            let base: u64 = manifest.blocks.iter().map(|block| block.chunks[0].length).sum();
            let entries = std::fs::read_dir(small.path()).unwrap().map(Result::unwrap);
            let files = entries.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect();
            let of_a_second = |bytes: u64| bytes * 8 * 1_000_000_000 / nanos;
            Self { files, size, rate: of_a_second(size), base: of_a_second(base) }
        })
    }

    fn copy_as(&self, to: &Path, title: &str, class: TitleClass) {
        std::fs::create_dir_all(to).unwrap();
        for (name, bytes) in &self.files {
            std::fs::write(to.join(name), bytes).unwrap();
        }
        let path = to.join("title.json");
        let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (manifest["title"], manifest["class"]) = (title.into(), class.name().into());
        std::fs::write(path, manifest.to_string()).unwrap();
    }
}

/// An origin with titles, and a site that begins with nothing.
struct Site {
    folder: TempDir,
    origin: Option<Node>,
    film: &'static Film,
}

impl Site {
    /// Titles of these names and classes, all alike.
    fn new(titles: &[(&str, TitleClass)]) -> Self {
        let (folder, film) = (tempfile::tempdir().unwrap(), Film::get());
        for (title, class) in titles {
            film.copy_as(&folder.path().join("library").join(title), title, *class);
        }
        Keys::init(&folder.path().join("keys")).unwrap();
        let origin =
            Node::start(folder.path(), &["--level", "origin", "--library", "library", "--keys", "keys"]);
        Self { folder, origin: Some(origin), film }
    }

    fn keys(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    /// A Base node of this name that knows nobody but the archive.
    fn node(&self, name: &str, archive: &str, flags: &[&str]) -> Node {
        let fixed =
            ["--level", "base", "--peer", name, "--library", name, "--keys", "keys", "--redirects", "0"];
        let flags = [&fixed[..], &["--archive", archive], flags].concat();
        Node::start(self.folder.path(), &flags)
    }

    fn archive(&self) -> String {
        self.origin.as_ref().unwrap().address.clone()
    }

    fn status(&self, node: &Node) -> Value {
        let asked = lamina(&["status", &node.address, "--keys", "keys", "--json"], self.folder.path());
        assert!(asked.status.success(), "{}", said(&asked));
        serde_json::from_slice(&asked.stdout).unwrap()
    }

    /// The titles in a node's store, and whether all of them are whole.
    fn stored(&self, node: &Node) -> (Vec<String>, bool) {
        let status = self.status(node);
        let lines = status["admission"]["stored"].as_array().unwrap();
        let names = lines.iter().map(|line| line["title"].as_str().unwrap().to_owned()).collect();
        (names, lines.iter().all(|line| line["whole"] == true))
    }

    async fn until_whole(&self, node: &Node) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.stored(node) {
                (names, true) if !names.is_empty() => return names,
                seen => assert!(Instant::now() < end, "{seen:?}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn options(&self, node: &Node, title: &str) -> PlayOptions {
        let address: SocketAddr = node.address.parse().unwrap();
        let mut options =
            PlayOptions::new(address, title.parse().unwrap(), authority(&self.keys()), peer("viewer"));
        options.quality = Quality::GOLD;
        options.limit = Some(Span::from_secs(3));
        options
    }

    /// Plays the beginning of a title on a real player.
    async fn play(&self, node: &Node, title: &str) -> player::PlayReport {
        let report = Viewer::with(self.options(node, title)).report().await;
        assert!(report.blocks_checked > 0 && report.hash_mismatches.is_empty(), "{report:?}");
        report
    }
}

/// One who only opens titles.
struct Guest {
    line: (Connection, Inbox),
    opened: u32,
}

impl Guest {
    async fn at(site: &Site, node: &Node) -> Self {
        let endpoint =
            Endpoint::open(&EndpointConfig::viewer(peer("viewer"), authority(&site.keys()))).unwrap();
        let line = endpoint.dial(node.address.parse().unwrap(), None, PATIENCE).await.unwrap();
        Self { line, opened: 0 }
    }

    async fn open(&mut self, title: &str, quality: Quality) -> Result<SessionId, Refusal> {
        self.opened += 1;
        let (request, visit) = (self.opened, Visit::Seek(Progress::default()));
        let user = UserId(u64::from(request));
        let open = Open::new(request, title.parse().unwrap(), quality, user, visit);
        self.line.0.send(Message::Open(open)).unwrap();
        loop {
            match timeout(PATIENCE, self.line.1.recv()).await.expect("an answer in time").unwrap() {
                Message::Opened(opened) if opened.request == request => return Ok(opened.session),
                Message::Refused { request: of, why } if of == request => return Err(why),
                _ => {}
            }
        }
    }

    fn close(&self, session: SessionId) {
        self.line.0.send(Message::Close(session)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_viewer_watches_while_the_title_comes_and_the_second_needs_no_origin() {
    let mut site = Site::new(&[("lesson", TitleClass::Archived)]);
    let (origin, patience) = (site.archive().parse().unwrap(), Duration::from_millis(200));
    let relay = Relay::start(origin, LINK, patience);
    let (link, limit) = (LINK.to_string(), "10000000");
    let flags = ["--store-limit", limit, "--origin-rate", &link];
    let node = site.node("site", &relay.address().to_string(), &flags);
    let report = site.play(&node, "lesson").await;
    let startup = report.startup_ms.unwrap();
    println!("{} bytes over {LINK} bit/s: the first picture after {startup} ms", site.film.size);
    if !cfg!(debug_assertions) {
        assert!(startup < 1500, "{startup} ms");
    }
    assert_eq!(site.until_whole(&node).await, ["lesson"]);
    // Each chunk came once, whoever asked.
    let status = site.status(&node);
    let chunks = status["traffic"]["archive"].as_u64().unwrap();
    assert!(chunks < site.film.size && chunks > site.film.size * 9 / 10, "{chunks} of {}", site.film.size);
    assert_eq!(status["titles"].as_array().unwrap().len(), 0, "nothing was placed here");

    // Without an origin, and after a restart too.
    drop(site.origin.take());
    site.play(&node, "lesson").await;
    assert_eq!(site.status(&node)["traffic"]["archive"], chunks, "nothing more came");
    drop(node);
    let node = site.node("site", &relay.address().to_string(), &flags);
    site.play(&node, "lesson").await;
    assert_eq!(site.status(&node)["traffic"]["archive"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_title_is_copied_before_it_is_watched_the_viewer_is_told_and_waits() {
    let site = Site::new(&[("lesson", TitleClass::Archived)]);
    // As much as the whole title in three seconds; the link is taken as long as it is
    // watched.
    let rate = site.film.size * 8 / 3;
    let settings = format!(
        "archive_first = true\norigin_hold = \"session\"\nstore_limit = 10000000\norigin_rate = {rate}\n"
    );
    std::fs::write(site.folder.path().join("site.toml"), settings).unwrap();
    let node = site.node("site", &site.archive(), &["--config", "site.toml"]);
    let mut viewer = Viewer::with(site.options(&node, "lesson"));
    let told = viewer.wait(|event| matches!(event, PlayerEvent::Coming { .. })).await.expect("it is told");
    let line = lab::demo::told(&told).unwrap();
    assert!(line.contains("is being fetched from the archive to site; it begins once all"), "{line}");
    let taken = |node: &Node| site.status(node)["admission"]["to_origin"].as_u64().unwrap();
    // But for the rounding of each layer.
    let all_of_it = site.film.rate * 99 / 100..=site.film.rate;
    assert!(!site.stored(&node).1 && all_of_it.contains(&taken(&node)), "{} {all_of_it:?}", taken(&node));
    let (mut again, mut transitions) = (0, 0);
    let begun = viewer.wait(|event| {
        again += i32::from(matches!(event, PlayerEvent::Coming { .. }));
        transitions += i32::from(matches!(event, PlayerEvent::Transition { .. }));
        matches!(event, PlayerEvent::FirstPicture { .. })
    });
    let Some(PlayerEvent::FirstPicture { startup_ms }) = begun.await else { panic!("it begins") };
    assert!(site.stored(&node).1 && startup_ms > 2_000, "all of it is there, after {startup_ms} ms");
    assert_eq!((again, transitions), (0, 0), "it is told once, and begins in gold");
    assert!(all_of_it.contains(&taken(&node)), "as long as it is watched");
    let report = viewer.report().await;
    assert!(report.hash_mismatches.is_empty() && report.frames_shown > 0, "{report:?}");
    let end = Instant::now() + PATIENCE;
    while taken(&node) > 0 {
        assert!(Instant::now() < end, "the link is not given back");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_half_way_is_never_seen_and_the_title_is_fetched_again() {
    let site = Site::new(&[("lesson", TitleClass::Archived)]);
    let flags = ["--store-limit", "10000000", "--origin-rate"];
    let slow = (site.film.rate * 2).to_string();
    let node = site.node("site", &site.archive(), &[&flags[..], &[&slow]].concat());
    Guest::at(&site, &node).await.open("lesson", Quality::GOLD).await.unwrap();
    let store = site.folder.path().join("site/.archive");
    let end = Instant::now() + PATIENCE;
    let half = |folder: &Path| {
        let mut entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.find_map(|path| Some(path.join("base.mp4").metadata().ok()?.len()))
    };
    while half(&store).is_none_or(|length| length < 10_000) {
        assert!(Instant::now() < end, "nothing comes");
        sleep(Duration::from_millis(10)).await;
    }
    // Killed by the signal that nobody can catch.
    drop(node);
    assert!(!store.join("lesson").exists() && half(&store).is_some(), "half of it lies there, out of sight");

    let node = site.node("site", &site.archive(), &["--store-limit", "10000000"]);
    assert_eq!(std::fs::read_dir(&store).unwrap().count(), 0, "and is gone when the node starts again");
    Guest::at(&site, &node).await.open("lesson", Quality::GOLD).await.unwrap();
    site.until_whole(&node).await;
    let lesson = Library::open(&store).unwrap().title(&"lesson".parse().unwrap()).unwrap();
    let manifest = lesson.manifest();
    for layer in media::Layer::first(manifest.top_quality().layers()) {
        for block in 0..manifest.block_count() {
            lesson.verified(block, layer, lesson.read_chunk(block, layer).unwrap()).unwrap();
        }
        let file = &manifest.layers[layer.index()].file;
        let original = std::fs::read(site.folder.path().join("library/lesson").join(file)).unwrap();
        assert_eq!(std::fs::read(store.join("lesson").join(file)).unwrap(), original, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_lets_ad_hoc_titles_go_before_archived_ones_and_first_time_titles_last() {
    use TitleClass::{AdHoc, Archived, FirstTime};
    let titles = [("a", AdHoc), ("b", Archived), ("c", FirstTime), ("x", FirstTime), ("y", FirstTime)];
    let site = Site::new(&[&titles[..], &[("z", FirstTime)]].concat());
    let limit = (site.film.size * 3).to_string();
    let node = site.node("site", &site.archive(), &["--store-limit", &limit]);
    let mut guest = Guest::at(&site, &node).await;
    for (title, after) in
        [("c", "c"), ("b", "b c"), ("a", "a b c"), ("x", "b c x"), ("y", "c x y"), ("z", "x y z")]
    {
        let session = guest.open(title, Quality::BRONZE).await.unwrap();
        assert_eq!(site.until_whole(&node).await.join(" "), after, "{title} came");
        guest.close(session);
    }
    let end = Instant::now() + PATIENCE;
    let lie_there = || {
        let entries = std::fs::read_dir(site.folder.path().join("site/.archive")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(" ")
    };
    while lie_there() != "x y z" {
        assert!(Instant::now() < end, "{} lie there", lie_there());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_over_one_limit_is_told_that_one() {
    let site = Site::new(&[("a", TitleClass::AdHoc), ("b", TitleClass::AdHoc)]);
    let (store, small) = (site.film.size * 4, site.film.size * 3 / 2);
    let (half_more, base) = ((site.film.rate * 3 / 2).to_string(), (site.film.base * 3 / 2).to_string());
    let (store, small) = (store.to_string(), small.to_string());
    for (name, flags, why) in [
        ("threshold", ["--threshold", "ad-hoc=1"], Refusal::Threshold),
        ("slots", ["--capacity", "1"], Refusal::Full),
        ("viewer-link", ["--link-rate", &base], Refusal::ViewerLink),
        ("origin-link", ["--origin-rate", &half_more], Refusal::OriginLink),
        ("storage", ["--store-limit", &small], Refusal::Storage),
    ] {
        let room = if name == "storage" { &[][..] } else { &["--store-limit", &store][..] };
        let node = site.node(name, &site.archive(), &[&flags[..], room].concat());
        let mut guest = Guest::at(&site, &node).await;
        guest.open("a", Quality::BRONZE).await.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(guest.open("b", Quality::BRONZE).await.err(), Some(why), "{name}");
        // Whoever plays is told so in one line.
        if name == "origin-link" {
            let url = format!("lamina://{}/b", node.address);
            let bronze = ["--quality", "bronze", "--headless", "--keys", "keys"];
            let played = lamina(&[&["play", &url], &bronze[..]].concat(), site.folder.path());
            let told = said(&played);
            assert_eq!(told.lines().filter(|line| line.contains(&why.to_string())).count(), 1, "{told}");
            assert_eq!(played.status.code(), Some(2), "{told}");
            continue;
        }
        let status = site.status(&node);
        let refused = &status["admission"]["refused"];
        assert_eq!((&refused[0]["reason"], &refused[0]["count"]), (&name.into(), &1.into()), "{status}");
        assert_eq!(refused.as_array().unwrap().len(), 1, "{status}");
    }
}
