//! What was seen: `report.json`, tables and a page, in one folder.

use super::audience::Seat;
use super::summary::Summary;
use super::{Options, Read, Title, page, tables};
use crate::bench::machine::Machine;
use player::PlayReport;
use player::report::{Failover, Freezes, Transition};
use protocol::Sla;
use serde::{Deserialize, Serialize};
use sim::eval::statistics::float;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;

/// The version of `report.json`.
const REPORT_VERSION: u32 = 1;
/// Two samples a second are kept of the player's ten.
const THINNING: usize = 5;

/// A scenario, played once or more.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format: 1.
    pub version: u32,
    /// The scenario's name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// Its file, as it was read.
    pub scenario: String,
    /// The title, its size and its layers.
    pub title: String,
    /// The seed of the first run; each further one has the next.
    pub seed: u64,
    /// Where and with what.
    pub machine: Machine,
    /// The most programme ahead of the picture.
    pub buffer_ms: u64,
    /// How long each run lasted.
    pub lasts_ms: u64,
    /// Means over all runs, with 95 % intervals.
    pub summary: Summary,
    /// The runs.
    pub runs: Vec<RunReport>,
    /// Whether every run met what was expected.
    pub holds: bool,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunReport {
    /// What was decided by lot was decided by this.
    pub seed: u64,
    /// The 99th percentile of the relay's own lateness, in milliseconds.
    pub late_ms: f64,
    /// Datagrams that the relay had no room for.
    pub turned_away: u64,
    /// Processes that wanted to run in the last minute.
    pub load: f64,
    /// Whether the relay had real-time priority.
    pub real_time: bool,
    /// Whether the relay kept up; if not, the machine was measured.
    pub kept_up: bool,
    /// Who sent how much.
    pub bytes: Bytes,
    /// What each viewer saw.
    pub viewers: Vec<Seen>,
    /// What went wrong.
    pub faults: Vec<FaultSeen>,
    /// What of the expected did not come true.
    pub missed: Vec<String>,
}

/// Who sent how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Chunks that viewers had from the origin.
    pub origin: u64,
    /// Chunks that viewers had from other nodes.
    pub nodes: u64,
    /// Chunks that viewers had from proxies.
    pub proxies: u64,
    /// What went from nodes to proxies, by the links.
    pub proxies_from_nodes: u64,
    /// What went between proxies, by the links.
    pub proxies_from_peers: u64,
    /// What proxies gave without fetching it for that.
    pub cache: u64,
}

/// Something that was done to the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSeen {
    /// When, counted from the moment the network stood.
    pub at_ms: u64,
    /// What.
    pub did: String,
    /// To whom.
    pub nodes: Vec<String>,
    /// Viewers that these served Base to.
    pub struck: Vec<Struck>,
}

/// A viewer whose Base node something was done to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Struck {
    /// Which.
    pub viewer: String,
    /// What lay in its buffer.
    pub buffer_ms: u64,
}

/// What a viewer saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// `vip` or `normal`.
    pub class: String,
    /// The best quality wanted.
    pub wanted: String,
    /// Whether nothing was decoded.
    pub light: bool,
    /// Where it knocked.
    pub at: String,
    /// When it came, counted from the moment the network stood.
    pub came_ms: u64,
    /// When its first picture was seen, counted in the same way.
    pub first_ms: Option<u64>,
    /// How it ended.
    pub outcome: String,
    /// Whether it saw nothing, or not to the end.
    pub lost: bool,
    /// From the order to play to the first picture.
    pub startup_ms: Option<u64>,
    /// From the first picture to the end.
    pub watched_ms: u64,
    /// When the picture stood.
    pub freezes: Freezes,
    /// Seconds at each quality.
    pub seconds_at_quality: BTreeMap<String, f64>,
    /// Layers shown over layers wanted.
    pub quality: f64,
    /// Changes of quality.
    pub transitions: Vec<Transition>,
    /// Layers that came from somebody else.
    pub failovers: Vec<Failover>,
    /// Blocks that were not what the encoder made.
    pub wrong_blocks: usize,
    /// Chunk bytes, by who sent them.
    pub sources: BTreeMap<String, u64>,
    /// Moments after the first picture, buffer, layers shown; twice a second.
    pub samples: Vec<(u64, u64, u8)>,
}

impl Seen {
    /// What a viewer's report says, if there is one.
    pub(super) fn of(seat: &Seat, first_ms: Option<u64>, report: Result<PlayReport, String>) -> Self {
        let class = if seat.class == Sla::Vip { "vip" } else { "normal" };
        let seen = Self {
            name: seat.name.clone(),
            class: class.into(),
            wanted: seat.quality.to_string(),
            light: seat.light,
            at: seat.at.to_string(),
            came_ms: seat.comes.as_millis(),
            first_ms,
            ..Self::default()
        };
        let report = match report {
            Ok(report) => report,
            Err(why) => return Self { outcome: why, lost: true, ..seen },
        };
        let ended = matches!(report.outcome.as_str(), "ended" | "stopped");
        Self {
            lost: !ended || report.startup_ms.is_none(),
            quality: quality(&report).unwrap_or(0.0),
            sources: report.sources.iter().map(|source| (source.node.clone(), source.bytes)).collect(),
            samples: report
                .samples
                .iter()
                .step_by(THINNING)
                .map(|sample| (sample.at_ms, sample.buffer_ms, layers(&sample.quality)))
                .collect(),
            wrong_blocks: report.hash_mismatches.len(),
            outcome: report.outcome,
            startup_ms: report.startup_ms,
            watched_ms: report.watched_ms,
            freezes: report.freezes,
            seconds_at_quality: report.seconds_at_quality,
            transitions: report.transitions,
            failovers: report.failovers,
            ..seen
        }
    }
}

pub(super) fn layers(quality: &str) -> u8 {
    quality.parse::<media::Quality>().map_or(0, media::Quality::layers)
}

/// Layers shown over layers wanted, by programme.
fn quality(report: &PlayReport) -> Option<f64> {
    let wanted = f64::from(layers(&report.wanted));
    let all: f64 = report.seconds_at_quality.values().sum();
    let shown: f64 =
        report.seconds_at_quality.iter().map(|(name, seconds)| f64::from(layers(name)) * seconds).sum();
    (all > 0.0 && wanted > 0.0).then_some(shown / all / wanted)
}

/// The share of what was watched in which the picture stood.
pub(super) fn share_frozen(viewers: &[Seen]) -> f64 {
    let sum = |of: fn(&Seen) -> u64| viewers.iter().map(of).map(millis).sum::<f64>();
    let watched = sum(|seen| seen.watched_ms);
    if watched > 0.0 { sum(|seen| seen.freezes.total_ms) / watched } else { 0.0 }
}

pub(super) fn millis(value: u64) -> f64 {
    float(usize::try_from(value).unwrap_or(0))
}

impl RunReport {
    /// Viewers that saw nothing, or not to the end.
    pub fn lost(&self) -> u64 {
        u64::try_from(self.viewers.iter().filter(|seen| seen.lost).count()).unwrap_or(u64::MAX)
    }

    /// Freezes of those viewers that `of` accepts.
    pub fn freezes(&self, of: impl Fn(&Seen) -> bool) -> u64 {
        self.viewers.iter().filter(|seen| of(seen)).map(|seen| seen.freezes.count).sum()
    }

    /// Layers shown over layers wanted, on average over those that saw something.
    pub fn quality(&self) -> f64 {
        let all: Vec<f64> = self.viewers.iter().filter(|seen| !seen.lost).map(|seen| seen.quality).collect();
        if all.is_empty() { 0.0 } else { all.iter().sum::<f64>() / float(all.len()) }
    }
}

impl Report {
    pub(super) fn of(read: &Read, title: &Title, options: &Options, runs: Vec<RunReport>) -> Self {
        let manifest = title.folder.manifest();
        Self {
            version: REPORT_VERSION,
            name: read.name.clone(),
            about: read.scenario.about.clone(),
            scenario: read.text.clone(),
            title: format!(
                "{}, {}x{}, {} layers",
                manifest.title,
                manifest.width,
                manifest.height,
                manifest.layers.len()
            ),
            seed: options.seed,
            machine: Machine::look(),
            buffer_ms: read.scenario.buffer.0.as_millis(),
            lasts_ms: read.scenario.lasts.0.as_millis(),
            summary: Summary::of(&runs),
            holds: runs.iter().all(|run| run.missed.is_empty()),
            runs,
        }
    }

    /// Writes `report.json`, the tables and `index.html` into a folder, which is made
    /// if need be. Each file appears whole or not at all.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let json = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        put(folder, "viewers.csv", &tables::viewers(self))?;
        put(folder, "samples.csv", &tables::samples(self))?;
        put(folder, "recoveries.csv", &tables::recoveries(self))?;
        put(folder, "faults.csv", &tables::faults(self))?;
        put(folder, "index.html", &page::page(self))?;
        put(folder, "report.json", &json)
    }
}

fn put(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut half = tempfile::NamedTempFile::new_in(folder)?;
    half.write_all(text.as_bytes())?;
    half.as_file().sync_all()?;
    half.persist(folder.join(name))?;
    Ok(())
}

impl fmt::Display for FaultSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.nodes.is_empty() { "viewers".to_owned() } else { self.nodes.join(", ") };
        write!(f, "{:>7.1} s  {who}: {}", millis(self.at_ms) / 1_000.0, self.did)?;
        if !self.struck.is_empty() {
            let each = self.struck.iter();
            let each =
                each.map(|one| format!("{} with {:.1} s", one.viewer, millis(one.buffer_ms) / 1_000.0));
            write!(f, "; it served {}", each.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let startup: Vec<u64> = self.viewers.iter().filter_map(|seen| seen.startup_ms).collect();
        write!(
            f,
            "seed {}: {} viewers, {} lost, {} freezes ({:.2} % of what was watched), {:.1} % of the layers, \
             start-up at most {} ms, relay {:.1} ms late at p99, load {:.1}",
            self.seed,
            self.viewers.len(),
            self.lost(),
            self.freezes(|_| true),
            share_frozen(&self.viewers) * 100.0,
            self.quality() * 100.0,
            startup.iter().max().copied().unwrap_or(0),
            self.late_ms,
            self.load,
        )?;
        for missed in &self.missed {
            write!(f, "\n  NOT as expected: {missed}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.about)?;
        write!(f, "{}", self.machine)?;
        writeln!(f, "title      {}, buffer {} ms, {} runs", self.title, self.buffer_ms, self.runs.len())?;
        write!(f, "{}", self.summary)?;
        for run in self.runs.iter().filter(|run| !run.missed.is_empty()) {
            writeln!(f, "NOT as expected, seed {}: {}", run.seed, run.missed.join("; "))?;
        }
        if self.holds { writeln!(f, "all as expected") } else { Ok(()) }
    }
}
