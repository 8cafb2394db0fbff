//! One run after the other: raise the network, let people come, let things go wrong,
//! ask everybody what they saw.

use super::audience::{Audience, Seat, Watched, seats};
use super::city::City;
use super::deeds::{Hand, plan};
use super::report::{Bytes, FaultSeen, Report, RunReport, Seen, share_frozen};
use super::{Options, Progress, Read, TestbedError, Title};
use crate::links::Counts;
use crate::stage::StageError;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::{Instant as TokioInstant, sleep_until};

/// A relay later than this measures itself.
const LATE_MS: f64 = 25.0;
/// How often a network is raised that does not come to stand in time.
const TRIES: u32 = 3;
/// How often those who wait are told how far it is.
const TICK: Duration = Duration::from_millis(500);

/// Plays a scenario as often as the options say. Dropping the future ends every
/// process.
///
/// # Errors
/// See [`TestbedError`]; nothing is left running.
pub async fn run(
    options: &Options,
    read: &Read,
    title: &Title,
    say: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, TestbedError> {
    let mut runs = Vec::new();
    for run in 1..=options.repeats.max(1) {
        let seed = options.seed.wrapping_add(u64::from(run) - 1);
        let mut tries = 1;
        let told = loop {
            let folder = tempfile::Builder::new()
                .prefix("lamina-testbed-")
                .tempdir()
                .map_err(|error| TestbedError::file(std::env::temp_dir(), error))?;
            match once(options, read, title, (run, seed), folder.path(), say).await {
                // A busy machine may not get all of them to run in time.
                Err(TestbedError::Stage(error)) if tries < TRIES && is_slowness(&error) => {
                    say(Progress::Said(format!("{error}; once more")));
                    tries += 1;
                }
                told => break told?,
            }
        };
        say(Progress::Said(told.to_string()));
        runs.push(told);
    }
    Ok(Report::of(read, title, options, runs))
}

fn is_slowness(error: &StageError) -> bool {
    matches!(error, StageError::NotSpread(_) | StageError::NotReady { .. } | StageError::Ask { .. })
}

async fn once(
    options: &Options,
    read: &Read,
    title: &Title,
    (run, seed): (u32, u64),
    folder: &Path,
    say: &mut (dyn FnMut(Progress) + Send),
) -> Result<RunReport, TestbedError> {
    let scenario = &read.scenario;
    let seats = seats(scenario, seed)?;
    let mut city = City::raise(options, (scenario, &read.folder), title, seed, folder).await?;
    let zero = Instant::now();
    let audience = Audience::invite(&options.program, (scenario, title), &city, &seats, zero, folder)?;
    let deeds = plan(scenario, &|layer| city.level(layer), seed);
    let (mut hand, mut faults) = (Hand::new(seed), Vec::new());
    let mut next = deeds.iter().peekable();
    let lasts = Duration::from(scenario.lasts.0);
    let mut tick = Duration::ZERO;
    loop {
        let due = next.peek().map(|deed| Duration::from(deed.at));
        let wake = due.map_or(tick, |due| due.min(tick)).min(lasts);
        sleep_until(TokioInstant::from_std(zero + wake)).await;
        let at = zero.elapsed();
        if at >= lasts {
            break;
        }
        while let Some(deed) = next.next_if(|deed| Duration::from(deed.at) <= at) {
            let at_ms = millis(zero.elapsed());
            let seen = hand.act(deed, &mut city, &audience.board, at_ms).await?;
            say(Progress::Said(seen.to_string()));
            faults.push(seen);
        }
        if at >= tick {
            tick = at + TICK;
            let of = options.repeats.max(1);
            say(Progress::Running { run, of, at_ms: millis(at), lasts_ms: millis(lasts) });
        }
    }
    hand.release(&mut city).await;
    let live = audience.board.now();
    let watched = audience.leave().await?;
    let first = |number: usize| live.get(number).and_then(|live| live.first).map(|at| millis(at - zero));
    let seen = seats.iter().zip(watched).map(|(seat, watched)| {
        let Watched { number, report } = watched;
        saw(seat, first(number), report)
    });
    Ok(conclude(read, &city, seed, seen.collect(), faults))
}

fn saw(seat: &Seat, first_ms: Option<u64>, report: Result<player::PlayReport, String>) -> Seen {
    Seen::of(seat, first_ms, report)
}

fn conclude(read: &Read, city: &City, seed: u64, viewers: Vec<Seen>, faults: Vec<FaultSeen>) -> RunReport {
    let late_ms = city.links.lateness().permille(990).as_secs_f64() * 1_000.0;
    let turned_away = city.links.turned_away();
    let mut run = RunReport {
        seed,
        late_ms,
        turned_away,
        load: load(),
        real_time: city.hurried,
        kept_up: late_ms <= LATE_MS && turned_away == 0,
        bytes: bytes(city, &viewers),
        viewers,
        faults,
        missed: Vec::new(),
    };
    run.missed = missed(read, &run);
    run
}

/// What of the expected did not come true.
fn missed(read: &Read, run: &RunReport) -> Vec<String> {
    let (expect, mut missed) = (read.scenario.expect, Vec::new());
    let mut at_most = |what: &str, is: u64, most: u64| {
        if is > most {
            missed.push(format!("{what}: {is}, at most {most} expected"));
        }
    };
    at_most("viewers lost", run.lost(), expect.lost);
    if let Some(most) = expect.freezes {
        at_most("freezes", run.freezes(|_| true), most);
    }
    if let Some(most) = expect.freezes_of_vips {
        at_most("freezes of VIPs", run.freezes(|seen| seen.class == "vip"), most);
    }
    if let Some(most) = expect.frozen
        && share_frozen(&run.viewers) > most.0
    {
        let is = share_frozen(&run.viewers) * 100.0;
        missed
            .push(format!("frozen: {is:.2} % of what was watched, at most {:.2} % expected", most.0 * 100.0));
    }
    if let Some(least) = expect.quality
        && run.quality() < least.0
    {
        missed.push(format!(
            "layers shown: {:.1} %, at least {:.1} % expected",
            run.quality() * 100.0,
            least.0 * 100.0
        ));
    }
    if !run.kept_up {
        missed.push(format!("the relay of the links kept up: p99 {:.1} ms late", run.late_ms));
    }
    missed
}

/// Where bytes came from: by what viewers got from whom, and what links carried.
fn bytes(city: &City, viewers: &[Seen]) -> Bytes {
    let of = |kind: fn(&str) -> bool| {
        let sources = viewers.iter().flat_map(|seen| &seen.sources);
        sources.filter(|(node, _)| kind(node)).map(|(_, bytes)| bytes).sum()
    };
    let towards = |counts: Counts| counts.back.bytes;
    let proxies_from_nodes =
        city.proxy_lines.values().map(|(link, _)| towards(city.links.counts(*link))).sum();
    let peers = city.pairs.iter().filter(|((one, _), _)| one.as_str().starts_with("proxy"));
    let proxies_from_peers = peers
        .map(|(_, (link, _))| {
            let counts = city.links.counts(*link);
            counts.there.bytes + counts.back.bytes
        })
        .sum();
    let proxies: u64 = of(|node| node.starts_with("proxy"));
    Bytes {
        origin: of(|node| node.starts_with("origin")),
        nodes: of(|node| !node.starts_with("origin") && !node.starts_with("proxy")),
        proxies,
        proxies_from_nodes,
        proxies_from_peers,
        cache: proxies.saturating_sub(proxies_from_nodes).saturating_sub(proxies_from_peers),
    }
}

/// Processes that want to run, on average over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
