//! The same film, the same line, the same death of a server: Lamina beside what
//! people use instead.
//!
//! * HLS from two nginx servers, played by hls.js in Chromium, with a playlist that
//!   names every stream at both servers, so that it may fail over;
//! * a film as one file, played by Chromium's `<video>`, from two nginx servers behind
//!   a third that asks the second when the first fails.
//!
//! Two rows: every buffer bounded to four seconds, and everybody as it comes. Freezes
//! are found in the times of pictures by one definition; so is everything else.

mod browser;
mod films;
mod report;
mod servers;
mod wire;

pub use browser::Viewing;
pub use report::{Comparison, Repeat, Verdict};

use super::scenario::FilmSize;
use super::{Film, Options, Progress, Seen, TestbedError, Title};
use films::Films;
use media::{BitRate, Span};
use serde::{Deserialize, Serialize};
use servers::{Nginx, Task};
use sim::eval::statistics::float;
use sim::{PipeShape, Rng};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::Wire;

/// The film's size.
const SIZE: (u32, u32) = (640, 360);
/// The viewer's line: 6 Mbit/s and 20 ms each way, with 300 ms of queue.
const LINE: PipeShape = PipeShape {
    rate: Some(BitRate(6_000_000)),
    delay: Span::from_millis(20),
    queue: Span::from_millis(300),
    ..PipeShape::OPEN
};
/// Seconds of film that browsers are given.
const FILM_SECS: u64 = 90;
/// How often a viewing is tried that says nothing.
const TRIES: u32 = 5;
/// The matched buffer in seconds.
const BUFFER_SECS: u64 = 4;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Player {
    /// Ours.
    Lamina,
    /// hls.js in Chromium.
    Hls,
    /// `<video>` in Chromium.
    Video,
}

impl Player {
    /// All, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Lamina, Self::Hls, Self::Video];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lamina => "(a) Lamina",
            Self::Hls => "(b) HLS, hls.js",
            Self::Video => "(c) <video>",
        }
    }
}

/// How deep buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// Four seconds for everybody, in segments of one second.
    Matched,
    /// As everybody comes: 4 s for us; for hls.js its own settings, with segments of
    /// six seconds; for `<video>` what the browser takes.
    Defaults,
}

/// How a server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Death {
    /// Its process is killed; the system closes its connections, which browsers hear
    /// at once. Ours hear nothing: a datagram has no connection to close.
    Process,
    /// Its machine loses power: nobody hears anything.
    Power,
}

/// What a comparison is given.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The `lamina` program.
    pub program: PathBuf,
    /// How often.
    pub repeats: u32,
    /// Decides when the server dies.
    pub seed: u64,
    /// Which rows.
    pub rows: Vec<Row>,
    /// How the server dies.
    pub death: Death,
    /// What can be made again.
    pub cache: PathBuf,
}

/// Why nothing could be compared. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Our own side.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A program that is needed is missing or refuses.
    #[error("{program} does not do what it should: {why}")]
    Program {
        /// Which.
        program: &'static str,
        /// What it says.
        why: String,
    },
    /// A file or folder.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The package of hls.js is not the one that is meant.
    #[error("the package of hls.js has the hash {found}, which is not the pinned one; it was removed")]
    WrongPackage {
        /// What it has.
        found: String,
    },
}

impl CompareError {
    fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { path: path.into(), source }
    }

    /// What would help.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Testbed(error) => error.hint(),
            Self::Program { .. } => {
                "chromium, nginx, curl and ffmpeg must be installed: `./x testbed compare base-death` sees to it"
            }
            Self::File { .. } => "XDG_CACHE_HOME names a folder that can be written",
            Self::WrongPackage { .. } => "try again; if it stays so the registry gives something else",
        }
    }
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { float(part) / float(of) }
}

/// Compares. Dropping the future ends everything that was started.
///
/// # Errors
/// See [`CompareError`].
pub async fn compare(
    options: &CompareOptions,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Comparison, CompareError> {
    let film = Film { is: "sample".into(), size: Some(FilmSize(SIZE.0, SIZE.1)) };
    let title = super::prepare(&film, Span::from_secs(60), Path::new("."), &options.cache, say).await?;
    let films = films::make(&title.source, SIZE, FILM_SECS, &options.cache, say).await?;
    let script = films::hls_js(&options.cache).await?;
    let mut repeats = Vec::new();
    for number in 0..options.repeats.max(1) {
        let seed = options.seed.wrapping_add(number.into());
        let at = Span::from_millis(6_000 + Rng::stream(seed, 4_000).below_wide(3_000));
        for row in &options.rows {
            for player in Player::ALL {
                let folder = tempfile::Builder::new().prefix("lamina-compare-").tempdir();
                let folder = folder.map_err(|error| CompareError::file(std::env::temp_dir(), error))?;
                let act = Act { options, row: *row, at, seed, folder: folder.path() };
                let viewing = match player {
                    Player::Lamina => act.patiently(&title, say).await?,
                    Player::Hls | Player::Video => act.browser(player, &films, &script).await?,
                };
                let repeat = Repeat { seed, row: *row, player, died_ms: at.as_millis(), viewing };
                say(&repeat.to_string());
                repeats.push(repeat);
            }
        }
    }
    Ok(Comparison::of(options, &title, films.rate, repeats))
}

/// One viewing of one player.
struct Act<'a> {
    options: &'a CompareOptions,
    row: Row,
    /// When the server dies, after the first picture or thereabouts.
    at: Span,
    seed: u64,
    folder: &'a Path,
}

impl Act<'_> {
    /// From the death on enough for the longest of hls.js's pauses that matter.
    fn lasts(&self) -> Duration {
        Duration::from(self.at) + Duration::from_secs(if self.row == Row::Matched { 14 } else { 34 })
    }

    /// Ours, played again if the machine was too slow to say anything.
    async fn patiently(
        &self,
        title: &Title,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Viewing, CompareError> {
        for _ in 0..TRIES {
            if let Some(viewing) = self.lamina(title).await? {
                return Ok(viewing);
            }
            say("this machine was too slow for that one; once more");
        }
        Err(TestbedError::CannotKeepUp(format!("the relay was late {TRIES} times")).into())
    }

    /// Nothing if the machine was measured instead.
    async fn lamina(&self, title: &Title) -> Result<Option<Viewing>, CompareError> {
        let text = format!(
            "about = \"the Base node dies\"\nlasts = \"{} ms\"\nbuffer = \"{BUFFER_SECS} s\"\n\
             [film]\nsize = \"{}x{}\"\n[nodes]\nbase = 2\nenh1 = 2\nenh2 = 2\n\
             [links]\nviewers = {{ rate = \"6 Mbit/s\", delay = \"20 ms\", queue = \"300 ms\" }}\n\
             [[viewers]]\ncount = 1\n[[fault]]\nat = \"{} ms\"\nkill = \"serving base\"\n",
            self.lasts().as_millis(),
            SIZE.0,
            SIZE.1,
            self.at.as_millis()
        );
        let broken = |error: &dyn std::fmt::Display| TestbedError::Broken(error.to_string());
        let read = super::parse("compare", &text, Path::new(".")).map_err(|error| broken(&error))?;
        let options =
            Options { program: self.options.program.clone(), repeats: 1, seed: self.seed, hosts: None };
        let report = super::run(&options, &read, title, &mut |_: Progress| ()).await?;
        let run = report.runs.into_iter().next().ok_or_else(|| broken(&"nothing was played"))?;
        if !run.kept_up {
            return Ok(None);
        }
        let struck = run.faults.iter().flat_map(|fault| &fault.struck).map(|one| one.buffer_ms).next();
        let bytes = run.bytes.origin + run.bytes.nodes;
        let seen = run.viewers.into_iter().next().ok_or_else(|| broken(&"nobody watched"))?;
        Ok(Some(viewing(&seen, bytes, struck, self.at.as_millis())))
    }

    async fn browser(&self, player: Player, films: &Films, script: &Path) -> Result<Viewing, CompareError> {
        let line = Wire::new(LINE);
        let open = Wire::new(PipeShape::OPEN);
        let task = match (player, self.row) {
            (Player::Video, Row::Matched) => {
                let rate = films.rate / 8;
                Task::Paced(&films.folder, rate * BUFFER_SECS, rate * 11 / 10)
            }
            _ => Task::Files(&films.folder),
        };
        let failed =
            |error: std::io::Error| CompareError::Program { program: "the line", why: error.to_string() };
        let mut first = Nginx::start(task, &self.folder.join("one")).await?;
        let second = Nginx::start(task, &self.folder.join("two")).await?;
        // Where the first one can fall silent, whoever asks it.
        let gate = open.door(first.address).await.map_err(failed)?;
        let front =
            Nginx::start(Task::Before([gate.address, second.address]), &self.folder.join("front")).await?;
        let doors = [
            line.door(gate.address).await.map_err(failed)?,
            line.door(second.address).await.map_err(failed)?,
            line.door(front.address).await.map_err(failed)?,
        ];
        let [to_first, to_second, to_front] = &doors;
        let (settings, list) = match player {
            Player::Video => (settings(false, &format!("http://{}/full.mp4", to_front.address), ""), None),
            Player::Lamina | Player::Hls => {
                let (seconds, own) = match self.row {
                    Row::Matched => {
                        (1, format!("maxBufferLength:{BUFFER_SECS},maxMaxBufferLength:{BUFFER_SECS}"))
                    }
                    Row::Defaults => (6, String::new()),
                };
                let list = films.playlist(seconds, [to_first.address, to_second.address]);
                (settings(true, "film.m3u8", &own), Some(list))
            }
        };
        let page = self.page(&settings, list, script).await?;
        let url = format!("http://{}/index.html", page.address);
        let viewing = browser::watch(&url, self.folder, self.lasts(), self.at.into(), async || {
            if self.options.death == Death::Power {
                gate.fall_silent();
                to_first.fall_silent();
            }
            first.kill().await
        });
        let viewing = viewing.await?;
        Ok(Viewing { bytes: line.bytes(), ..viewing })
    }

    /// The page and what it needs, from a server of its own that does not die.
    async fn page(&self, settings: &str, list: Option<String>, script: &Path) -> Result<Nginx, CompareError> {
        let folder = self.folder.join("page");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(|error| CompareError::file(path, error))
        };
        std::fs::create_dir_all(&folder).map_err(|error| CompareError::file(&folder, error))?;
        write("index.html", include_str!("compare/page.html").replace("SETTINGS", settings).as_bytes())?;
        let bytes = std::fs::read(script).map_err(|error| CompareError::file(script, error))?;
        write("hls.min.js", &bytes)?;
        if let Some(list) = list {
            write("film.m3u8", list.as_bytes())?;
        }
        Nginx::start(Task::Files(&folder), &self.folder.join("page-server")).await
    }
}

fn settings(hls: bool, url: &str, options: &str) -> String {
    format!("{{ hls: {hls}, url: \"{url}\", options: {{ {options} }} }}")
}

/// What our viewer saw, in the words of all.
fn viewing(seen: &Seen, bytes: u64, buffer: Option<u64>, died_ms: u64) -> Viewing {
    let all: f64 = seen.seconds_at_quality.values().sum();
    let best = seen.seconds_at_quality.get(&seen.wanted).copied().unwrap_or(0.0);
    let mut quality = Vec::new();
    for (at, _, layers) in &seen.samples {
        let second = usize::try_from(at / 1_000).unwrap_or(usize::MAX).min(3_600);
        quality.resize(quality.len().max(second + 1), 0);
        if let Some(slot) = quality.get_mut(second) {
            *slot = u32::from(*layers);
        }
    }
    let mut notes = Vec::new();
    for over in seen.failovers.iter().take(20) {
        let mut note = format!("{} from {} instead of {}", over.layer, over.to, over.node);
        // Writing into a string cannot fail.
        let _ = write!(note, ", {} ms after its last word", over.recovered_ms);
        notes.push(note);
    }
    Viewing {
        startup_ms: seen.startup_ms,
        watched_ms: seen.watched_ms,
        freezes: seen.freezes.count,
        frozen_ms: seen.freezes.total_ms,
        longest_ms: seen.freezes.longest_ms,
        before_ms: {
            let list = seen.freezes.list.iter();
            list.filter(|freeze| freeze.at_ms < died_ms).map(|freeze| freeze.length_ms).sum()
        },
        pictures: 0,
        best: if all > 0.0 { best / all } else { 0.0 },
        quality,
        bytes,
        buffer_ms: buffer.unwrap_or(0),
        notes,
    }
}
