//! Who is let in by a node that runs is who the exact formulas say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use media::{Quality, TitleClass};
use player::{Command as Order, PlayerEvent};
use protocol::{Message, Open, Progress, Refusal, UserId, Visit};
use sim::theory::{Load, System};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use support::{Dice, Node, Viewer, authority, lamina, peer, said, small_title};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use transport::{Connection, Endpoint, EndpointConfig, Inbox, Keys};

/// C, the threshold of ad-hoc titles, and the erlangs of each class.
const SERVERS: u32 = 20;
const THRESHOLD: u32 = 4;
const ERLANGS: f64 = 7.5;
/// The mean time that a viewer stays, instead of an hour.
const STAYS: Duration = Duration::from_millis(250);
/// Ten batches, and before them as much time as the node needs to fill.
const BATCHES: usize = 10;
const BATCH: usize = 210;
const FILL: usize = 150;
/// Student's t for 9 degrees of freedom at 99 %.
const T_99: f64 = 3.250;
const PATIENCE: Duration = Duration::from_secs(10);

const SETTINGS: &str = r#"
level = "base"
library = "library"
keys = "keys"
capacity = 20
redirects = 0
downgrade = false
bottom_line_for_primaries = false
new_may_displace_backups = true
[thresholds]
ad-hoc = 4
"#;

/// One viewer: when it comes, for which class, how long it would stay.
#[derive(Clone, Copy)]
struct Arrival {
    at: Duration,
    class: TitleClass,
    stays: Duration,
}

/// Poisson arrivals with exponential times, decided by the seed.
fn arrivals(seed: u64, count: usize) -> Vec<Arrival> {
    let mut dice = Dice::new(seed);
    let mut exponential = |mean: f64| {
        let lot = u32::try_from(dice.below(u64::from(u32::MAX))).unwrap();
        let time = -mean * ((f64::from(lot) + 0.5) / f64::from(u32::MAX)).ln();
        (time, lot)
    };
    let between = STAYS.as_secs_f64() / (3.0 * ERLANGS);
    let mut at = 0.0;
    let arrival = |_| {
        at += exponential(between).0;
        let (stays, _) = exponential(STAYS.as_secs_f64());
        let class = TitleClass::ALL[usize::try_from(exponential(1.0).1 % 3).unwrap()];
        Arrival { at: Duration::from_secs_f64(at), class, stays: Duration::from_secs_f64(stays) }
    };
    (0..count).map(arrival).collect()
}

/// Makes a title of each class of the one that is there.
fn class_titles(folder: &Path) {
    let small = small_title(folder, 2);
    for class in TitleClass::ALL {
        let copy = folder.join("library").join(class.name());
        std::fs::create_dir(&copy).unwrap();
        for file in std::fs::read_dir(small.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        let mut manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(copy.join("title.json")).unwrap()).unwrap();
        (manifest["title"], manifest["class"]) = (class.name().into(), class.name().into());
        std::fs::write(copy.join("title.json"), manifest.to_string()).unwrap();
    }
}

type Line = (Connection, Inbox);

/// Opens the title, stays until its time is over, and closes. Why it was refused.
async fn view(line: &mut Line, user: u64, class: TitleClass, until: Instant) -> Option<Refusal> {
    let visit = Visit::Seek(Progress::default());
    let title = class.name().parse().unwrap();
    let request = u32::try_from(user).unwrap();
    line.0.send(Message::Open(Open::new(request, title, Quality::BRONZE, UserId(user), visit))).unwrap();
    loop {
        match timeout(PATIENCE, line.1.recv()).await.expect("an answer in time").unwrap() {
            Message::Opened(opened) if opened.request == request => {
                sleep_until(until).await;
                line.0.send(Message::Close(opened.session)).unwrap();
                return None;
            }
            Message::Refused { request: of, why } if of == request => return Some(why),
            _ => {}
        }
    }
}

/// All of them, each on a connection that nobody else uses meanwhile.
async fn views(address: &str, keys: &Path, all: &[Arrival]) -> Vec<Option<Refusal>> {
    let config = EndpointConfig::viewer(peer("viewer"), authority(keys));
    let endpoint = Endpoint::open(&config).unwrap();
    let (free, mut idle) = mpsc::channel::<Line>(64);
    for _ in 0..64 {
        let line = endpoint.dial(address.parse().unwrap(), None, PATIENCE).await.unwrap();
        free.send(line).await.unwrap();
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (user, arrival) in (1..).zip(all.iter().copied()) {
        sleep_until(start + arrival.at).await;
        let mut line = idle.recv().await.unwrap();
        let free = free.clone();
        tasks.push(tokio::spawn(async move {
            let until = start + arrival.at + arrival.stays;
            let why = view(&mut line, user, arrival.class, until).await;
            free.send(line).await.unwrap();
            why
        }));
    }
    let mut told = Vec::new();
    for task in tasks {
        told.push(task.await.unwrap());
    }
    endpoint.close().await;
    told
}

fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let count = f64::from(u32::try_from(values.len()).unwrap());
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, T_99 * (squares / (count - 1.0) / count).sqrt())
}

/// The share of a class that was refused, in each batch.
fn refused(all: &[(Arrival, Option<Refusal>)], class: TitleClass) -> Vec<f64> {
    let share = |batch: &[(Arrival, Option<Refusal>)]| {
        let of = batch.iter().filter(|(arrival, _)| arrival.class == class);
        let (count, refused) = of.fold((0_u32, 0_u32), |(count, refused), (_, why)| {
            (count + 1, refused + u32::from(why.is_some()))
        });
        f64::from(refused) / f64::from(count)
    };
    all.chunks(BATCH).map(share).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_refuses_as_many_of_each_class_as_the_exact_formula_says() {
    let folder = tempfile::tempdir().unwrap();
    class_titles(folder.path());
    let keys = folder.path().join("keys");
    Keys::init(&keys).unwrap();
    std::fs::write(folder.path().join("node.toml"), SETTINGS).unwrap();
    let node = Node::start(folder.path(), &["--config", "node.toml"]);
    // Of a hundred seeds three may fall out of their intervals: this one does not.
    let named = std::env::var("LAMINA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = named.unwrap_or(20_261_130);
    println!("LAMINA_SEED={seed} ./x test a_running_node_refuses");
    let all = arrivals(seed, FILL + BATCHES * BATCH);
    let told = views(&node.address, &keys, &all).await;

    let loads = TitleClass::ALL.map(|class| Load {
        erlangs: ERLANGS,
        servers: 1,
        threshold: (class == TitleClass::AdHoc).then_some(THRESHOLD),
    });
    let exact = System::new(SERVERS, loads.to_vec()).unwrap().blocking();
    let mut by_reason: BTreeMap<(TitleClass, Refusal), u64> = BTreeMap::new();
    for (arrival, why) in all.iter().zip(&told) {
        if let Some(why) = why {
            *by_reason.entry((arrival.class, *why)).or_default() += 1;
        }
    }
    println!("refused: {by_reason:?}");
    let counted: Vec<(Arrival, Option<Refusal>)> = all.iter().copied().zip(told).skip(FILL).collect();
    for (class, exact) in TitleClass::ALL.into_iter().zip(exact) {
        let (mean, half) = mean_and_half_width(&refused(&counted, class));
        println!("{class}: {mean:.4} +- {half:.4}, exactly {exact:.4}");
        assert!((mean - exact).abs() <= half, "{class}: {mean} +- {half} and not {exact}");
    }
    let thresholds = by_reason.keys().filter(|(_, why)| *why == Refusal::Threshold);
    assert!(thresholds.map(|(class, _)| *class).eq([TitleClass::AdHoc]), "{by_reason:?}");

    // The node counted the same, and everything came back.
    let asked = lamina(&["status", &node.address, "--keys", "keys", "--json"], folder.path());
    assert!(asked.status.success(), "{}", said(&asked));
    let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(status["slots"]["used"], 0, "{status}");
    let counts = status["admission"]["refused"].as_array().unwrap();
    assert_eq!(
        counts.iter().map(|line| line["count"].as_u64().unwrap()).sum::<u64>(),
        by_reason.values().sum::<u64>()
    );
    let viewings = status["admission"]["classes"].as_array().unwrap();
    assert!(viewings.iter().all(|line| line["viewings"] == 0), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_that_has_paused_for_long_gives_its_slot_back_and_is_let_in_again() {
    let folder = tempfile::tempdir().unwrap();
    let title = small_title(folder.path(), 30);
    let keys = folder.path().join("keys");
    Keys::init(&keys).unwrap();
    let settings = "level = \"origin\"\nlibrary = \"library\"\nkeys = \"keys\"\npause_ms = 500\n";
    std::fs::write(folder.path().join("node.toml"), settings).unwrap();
    let node = Node::start(folder.path(), &["--config", "node.toml"]);
    let used = || {
        let asked = lamina(&["status", &node.address, "--keys", "keys", "--json"], folder.path());
        let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
        status["slots"]["used"].as_u64().unwrap()
    };
    let address = (None, node.address.parse().unwrap());
    let mut viewer = Viewer::start(address, &title.manifest().title, &keys, Quality::BRONZE);
    let begun = |event: &PlayerEvent| matches!(event, PlayerEvent::FirstPicture { .. });
    viewer.wait(begun).await.expect("a first picture");
    assert_eq!(used(), 1);
    viewer.orders.send(Order::Pause).await.unwrap();
    let end = Instant::now() + PATIENCE;
    while used() > 0 {
        assert!(Instant::now() < end, "the slot is not given back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    viewer.orders.send(Order::Resume).await.unwrap();
    let mut lines = Vec::new();
    let sought = |event: &PlayerEvent| {
        lines.extend(lab::demo::told(event));
        matches!(event, PlayerEvent::Repull { .. })
    };
    viewer.wait(sought).await.expect("service is sought anew");
    assert!(lines.last().is_some_and(|line| line.contains("looking for service")), "{lines:?}");
    while used() == 0 {
        assert!(Instant::now() < end, "the viewer is not let in again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let report = viewer.stop().await;
    assert!(report.hash_mismatches.is_empty(), "{report:?}");
}
