//! Decoding speed: gold through the player's pipeline (H.264, up-scaling,
//! injection, VP9 twice) as fast as it goes, in multiples of real time.

use crate::bench::ours::{self, Film};
use crate::bench::stats::Median;
use crate::bench::table::Table;
use crate::bench::{BenchError, Machine, Say};
use crate::stored::StoredError;
use codec::{Preset, Settings};
use media::Span;
use media::library::TitleFolder;
use media::manifest::{MANIFEST_FILE, Manifest};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the bench is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Preset for clips that are encoded first.
    pub preset: Preset,
    /// How often each title is played; from six on the intervals hold with 95 %.
    pub repeats: u32,
    /// Whether a 1920x1080 version of the first clip is made and played too.
    pub full_hd: bool,
    /// Clips are repeated to this many seconds, so that starting counts little.
    pub seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { preset: Preset::Fast, repeats: 6, full_hd: true, seconds: 20 }
    }
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Preset of the clips that were encoded first.
    pub preset: String,
    /// Times that each title was played.
    pub repeats: u32,
    /// Title by title.
    pub titles: Vec<Played>,
}

/// One title.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Played {
    /// Its name, or the clip's.
    pub name: String,
    /// Width of the picture.
    pub width: u32,
    /// Height of the picture.
    pub height: u32,
    /// Its pictures a second when played in real time.
    pub nominal: f64,
    /// Pictures played each time.
    pub pictures: u64,
    /// Pictures a second.
    pub rate: Median,
    /// The same over the nominal rate.
    pub real_time: Median,
}

/// Runs the bench over titles (folders) and clips (films, encoded first).
pub fn run(inputs: &[PathBuf], options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    let folder = tempfile::Builder::new().prefix("lamina-combine-").tempdir();
    let folder = folder.map_err(|error| BenchError::file("making", std::env::temp_dir(), error))?;
    let mut inputs = inputs.to_vec();
    let film = inputs.iter().find(|input| !input.join(MANIFEST_FILE).exists()).cloned();
    if let Some(film) = film.filter(|_| options.full_hd) {
        say("a 1920x1080 version of the first clip");
        inputs.push(enlarge(&film, folder.path())?);
    }
    let mut titles = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let name = input.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let title = if input.join(MANIFEST_FILE).exists() {
            TitleFolder::open(input).map_err(StoredError::from)?
        } else {
            say(&format!("{name}: encoding (preset {})", options.preset));
            let film = Film {
                path: input,
                seconds: None,
                preset: options.preset,
                quality: Settings::DEFAULT_QUALITY,
            };
            let repeat_to = Some(Span::from_secs(options.seconds));
            ours::encode(&film, folder.path(), &format!("film {number}"), repeat_to)?.title
        };
        say(&format!("{name}: playing it {} times", options.repeats));
        titles.push(play(name, &title, options.repeats)?);
    }
    Ok(Report {
        machine: Machine::look(),
        preset: options.preset.to_string(),
        repeats: options.repeats,
        titles,
    })
}

fn play(name: String, title: &TitleFolder, repeats: u32) -> Result<Played, BenchError> {
    let manifest = title.manifest();
    let expected: u64 = manifest.blocks.iter().map(|block| u64::from(block.frames)).sum();
    let mut rates = Vec::new();
    for _ in 0..repeats {
        let run = player::pipeline::bench::combine(title)?;
        if run.frames != expected {
            return Err(BenchError::Differ {
                what: format!("pictures of {name} when played"),
                expected: expected.to_string(),
                found: run.frames.to_string(),
            });
        }
        rates.push(run.frames_per_second());
    }
    let nominal = nominal(manifest);
    let times: Vec<f64> = rates.iter().map(|rate| rate / nominal).collect();
    let none = || BenchError::Setting("nothing is measured in no repeat".to_owned());
    Ok(Played {
        name,
        width: manifest.width,
        height: manifest.height,
        nominal,
        pictures: expected,
        rate: Median::of(&rates).ok_or_else(none)?,
        real_time: Median::of(&times).ok_or_else(none)?,
    })
}

fn nominal(manifest: &Manifest) -> f64 {
    f64::from(manifest.frame_rate.num) / f64::from(manifest.frame_rate.den.max(1))
}

/// Scales a film up with ffmpeg: real content of that size is not at hand.
fn enlarge(film: &Path, folder: &Path) -> Result<PathBuf, BenchError> {
    let stem = film.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let large = folder.join(format!("{stem} 1080p25.mp4"));
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(film)
        .args(["-t", "12", "-an", "-vf", "scale=1920:1080:flags=lanczos", "-r", "25", "-pix_fmt", "yuv420p"])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "14"])
        .arg(&large)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| BenchError::Missing { program: "ffmpeg", source })?;
    if output.status.success() {
        return Ok(large);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = said.lines().last().unwrap_or("it said nothing").to_owned();
    Err(BenchError::Program { program: "ffmpeg", why })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, preset, repeats, .. } = self;
        write!(f, "{machine}")?;
        writeln!(
            f,
            "titles     clips encoded with preset {preset}, default quality; each played {repeats} times"
        )?;
        writeln!(f, "player     H.264, up-scaling and both VP9 layers (gold), no clock, nothing shown\n")?;
        let mut table =
            Table::new(&["title", "size", "pictures", "pictures/s", "interval", "x real time", "x of 30/s"]);
        for it in &self.titles {
            let Median { median, low, high, confidence } = it.rate;
            table.row(vec![
                it.name.clone(),
                format!("{}x{} {:.2}/s", it.width, it.height, it.nominal),
                it.pictures.to_string(),
                format!("{median:.1}"),
                format!("{low:.1}..{high:.1} ({:.0} %)", 100.0 * confidence),
                format!("{:.2}", it.real_time.median),
                format!("{:.2}", median / 30.0),
            ]);
        }
        write!(f, "{table}")
    }
}
