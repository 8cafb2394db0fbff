//! The page as people use it: in a browser, by clicks and keys, through the tour,
//! while nodes die; and what stays of it when the demonstration is started again.
//!
//! Pictures of each step stay in `target/page`. `LAMINA_PAGE_FILM=sample` shows the
//! sample film, and writes the pictures of the README.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use support::browser::{Browser, request};
use support::{LAMINA, film, kept_folder};

/// The demonstration, killed when dropped.
struct Demo {
    child: Child,
    url: String,
    marker: String,
}

impl Demo {
    fn start(folder: &Path, film: Option<&Path>, listen: &str) -> Self {
        let mut command = Command::new(LAMINA);
        command.args(["demo", "--web", "--listen", listen]);
        if let Some(film) = film {
            command.arg("--video").arg(film);
        }
        let mut child = command
            .env("TMPDIR", folder)
            .env("XDG_CACHE_HOME", kept_folder())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { child, url, marker: folder.display().to_string() }
    }

    fn port(&self) -> u16 {
        self.url.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Ctrl-C: it ends well and leaves nothing.
    fn stop(mut self) {
        let pid = self.child.id();
        assert!(Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let late = Instant::now() + std::time::Duration::from_secs(5);
        while !self.left().is_empty() {
            assert!(Instant::now() < late, "still running: {:?}", self.left());
            std::thread::yield_now();
        }
    }

    /// Processes that still run; their command lines name our folder.
    fn left(&self) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(&self.marker)).collect()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Notes twice a second what anna sees, as a number; and how often it froze.
const WATCH: &str = "
    window.hashes = [];
    const own = new OffscreenCanvas(120, 68).getContext('2d', { willReadFrequently: true });
    setInterval(() => {
      const canvas = document.querySelector('.card[data-viewer=anna] canvas');
      if (!canvas) return;
      own.drawImage(canvas, 0, 0, 120, 68);
      let hash = 2166136261;
      for (const byte of own.getImageData(0, 0, 120, 68).data) hash = Math.imul(hash ^ byte, 16777619);
      window.hashes.push(hash);
    }, 500);";
const SAFE: &str = "const anna = window.lamina?.viewers.anna;
    return lamina.ready && anna?.shows === 'gold' && anna.backup && anna.buffer_ms > 2500 && anna.sources.enh2";

/// Steps whose pictures stand in the README.
const README: [(u8, &str); 2] = [(3, "page-base-dies"), (5, "page-layer-back")];

fn shows_the_sample() -> bool {
    std::env::var_os("LAMINA_PAGE_FILM").is_some_and(|film| film == "sample")
}

/// Makes a picture small enough for the README.
fn for_the_readme(number: u8, name: &str) {
    let from = folder_of_pictures().join(format!("step-{number}.png"));
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("assets/{name}.webp"));
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-i"])
        .arg(from)
        .args(["-vf", "scale=1280:-1:flags=lanczos", "-quality", "80"])
        .arg(&to)
        .status()
        .unwrap();
    assert!(made.success() && to.metadata().unwrap().len() < 200_000, "{}", to.display());
}

fn folder_of_pictures() -> PathBuf {
    let folder = kept_folder().parent().unwrap().join("page");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// How often anna's picture stood still, and the layers it had, as the page shows it.
fn freezes(browser: &Browser) -> u64 {
    browser
        .js("return Number(document.querySelector('.card[data-viewer=anna]').dataset.freezes)")
        .as_u64()
        .unwrap()
}

/// The log as it stands on the page.
fn told(browser: &Browser) -> String {
    let lines = browser
        .js("return [...document.querySelectorAll('#log li')].map((line) => line.textContent).join('\\n')");
    lines.as_str().unwrap().to_owned()
}

fn strip(browser: &Browser) -> String {
    let steps = browser.js("return document.querySelector('.card[data-viewer=anna] .strip').dataset.steps");
    steps.as_str().unwrap().to_owned()
}

/// Does a step of the tour, waits for its end, and keeps a picture.
fn step(browser: &Browser, number: u8) {
    browser.click(&format!("#tour-steps li:nth-child({number}) button"));
    browser.until(10, "return !document.getElementById('tour-go').disabled");
    browser.click("#tour-go");
    browser.until(20, &format!("return lamina.tour.step === {number}"));
    browser.until(95, "return !lamina.tour.busy");
    let says = browser.js("return lamina.tour.says");
    println!("step {number}: {says}");
    browser.screenshot(&folder_of_pictures().join(format!("step-{number}.png")));
    if let Some((_, name)) = README.iter().find(|(step, _)| *step == number && shows_the_sample()) {
        for_the_readme(number, name);
    }
    let done = browser.js(&format!("return lamina.tour.done.includes({number})"));
    assert_eq!(done, true, "step {number}: {says}\n{}", told(browser));
}

#[test]
fn the_page_shows_a_network_that_breaks_and_mends() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("small.mp4");
    film(&source, "320x180", "25", 5, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    let source = (!shows_the_sample()).then_some(source);
    let demo = Demo::start(folder.path(), source.as_deref(), "127.0.0.1:0");
    let browser = Browser::start(1920, 1080);
    browser.open(&demo.url);
    browser.until(60, SAFE);
    browser.js(WATCH);
    assert_eq!(strip(&browser), "3");

    for number in 1..=4 {
        step(&browser, number);
        assert_eq!(strip(&browser), "3", "no step while a node with each layer is left\n{}", told(&browser));
    }
    step(&browser, 5);
    assert_eq!(strip(&browser), "3 2 3", "a step when the last one dies, and back\n{}", told(&browser));
    step(&browser, 6);
    assert_eq!(freezes(&browser), 0, "{}", told(&browser));

    a_node_dies_by_a_click_and_comes_back_by_keys(&browser);
    assert_eq!(freezes(&browser), 0, "{}", told(&browser));
    let still =
        browser.js("return hashes.slice(1).filter((hash, n) => hash === hashes[n]).length").as_u64().unwrap();
    let looks = browser.js("return hashes.length").as_u64().unwrap();
    println!("{looks} looks, {still} without a new picture");
    assert!(looks > 60 && still * 50 <= looks, "{still} of {looks} looks saw the picture of the look before");
    for (width, height) in [(1280, 720), (390, 844)] {
        browser.resize(width, height);
        browser.screenshot(&folder_of_pictures().join(format!("{width}x{height}.png")));
    }
    strangers_are_refused(&demo);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    it_survives_a_restart(&browser, demo, folder.path(), source.as_deref());
}

fn a_node_dies_by_a_click_and_comes_back_by_keys(browser: &Browser) {
    browser.click("#mend");
    browser.until(
        20,
        "return Object.values(lamina.nodes).every((node) => node.life === 'up' && !node.thought_dead)",
    );
    browser.until(30, SAFE);
    let victim = browser.js("return lamina.viewers.anna.sources.base.node");
    let victim = victim.as_str().unwrap();
    let node = format!("[data-node={victim}]");
    browser.click(&node);
    browser.click("#menu [data-do=kill]");
    browser.until(10, &format!("return lamina.nodes['{victim}'].life === 'dead'"));
    browser.until(
        20,
        &format!(
            "return lamina.viewers.anna.sources.base && lamina.viewers.anna.sources.base.node !== '{victim}'"
        ),
    );
    // Enter opens the menu, Enter again takes its first line: to revive.
    browser.press(&node, "\u{e007}");
    browser.press("#menu button", "\u{e007}");
    browser.until(20, &format!("return lamina.nodes['{victim}'].life === 'up'"));
    let focus = browser.js("return document.activeElement.dataset.node");
    assert_eq!(focus, victim, "the focus is given back");
}

/// Only the page itself may do anything.
fn strangers_are_refused(demo: &Demo) {
    let port = demo.port();
    let deed = r#"{"deed":"kill","node":"base-1"}"#;
    let ours = format!("http://127.0.0.1:{port}");
    assert_eq!(request(port, "POST", "/deed", &[("Origin", "http://evil.example")], deed).0, 403);
    assert_eq!(request(port, "POST", "/deed", &[], deed).0, 403);
    assert_eq!(request(port, "GET", "/", &[("Host", "evil.example")], "").0, 403);
    assert_eq!(request(port, "GET", "/live", &[("Origin", "http://evil.example")], "").0, 403);
    assert_eq!(request(port, "POST", "/deed", &[("Origin", &ours)], "{}").0, 400);
    let nobody = r#"{"deed":"kill","node":"base-99"}"#;
    let (status, why) = request(port, "POST", "/deed", &[("Origin", &ours)], nobody);
    assert_eq!((status, why.as_str()), (409, "there is nobody called base-99"));
    let long = format!(r#"{{"deed":"kill","node":"{}"}}"#, "x".repeat(5_000));
    assert_eq!(request(port, "POST", "/deed", &[("Origin", &ours)], &long).0, 413);
}

fn it_survives_a_restart(browser: &Browser, demo: Demo, folder: &Path, film: Option<&Path>) {
    let (listen, run) = (format!("127.0.0.1:{}", demo.port()), browser.js("return lamina.run"));
    demo.stop();
    browser.until(10, "return document.getElementById('line').textContent.includes('not there')");
    let demo = Demo::start(folder, film, &listen);
    browser.until(60, &format!("return lamina.run !== {run} && Object.keys(lamina.viewers).join() !== ''"));
    assert_eq!(browser.js("return lamina.tour.step"), 0, "it begins anew");
    browser.until(60, SAFE);
    browser.until(10, "return hashes.length > 2 && hashes.at(-1) !== hashes.at(-2)");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    demo.stop();
}
