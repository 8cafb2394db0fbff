//! Encoding speed: our encoder from the film to the title on disk, against
//! x264 from a file of the same decoded pictures to an elementary stream. Both
//! as people run them, with all cores; ours also on one, to see what more bring.

use crate::bench::cores;
use crate::bench::ours::{self, Film};
use crate::bench::stats::Median;
use crate::bench::table::Table;
use crate::bench::tiers::Sources;
use crate::bench::{BenchError, Machine, Say, x264};
use codec::{Preset, Settings};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The yardstick's rate factor: its default.
const CRF: u32 = 23;

/// How the bench is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Presets of our encoder.
    pub presets: Vec<Preset>,
    /// How often everything is done, in turns; from six on the intervals hold
    /// with 95 %.
    pub repeats: u32,
    /// How much of the clip is used, in seconds from its start.
    pub seconds: f64,
    /// The `lamina` that is run on one core and on all; left out if none.
    pub program: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { presets: vec![Preset::Default, Preset::Fast], repeats: 6, seconds: 12.0, program: None }
    }
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// The file's stem.
    pub clip: String,
    /// Width of the picture.
    pub width: u32,
    /// Height of the picture.
    pub height: u32,
    /// Pictures encoded each time.
    pub pictures: u32,
    /// Times that everything was done.
    pub repeats: u32,
    /// x264's pictures a second.
    pub x264: Median,
    /// Ours.
    pub presets: Vec<Ours>,
}

/// One preset of our encoder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// The preset.
    pub preset: String,
    /// Pictures a second.
    pub rate: Median,
    /// The same over x264's of the same round.
    pub ratio: Median,
    /// Time on one core over that on all, of the same round.
    pub scaling: Option<Median>,
    /// The most memory on all cores in any round, in MB.
    pub peak_mb: Option<f64>,
}

/// What is measured of a preset, round by round.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    scalings: Vec<f64>,
    peak_mb: f64,
}

/// Runs the bench on one clip.
pub fn run(clip: &Path, options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    let folder = tempfile::Builder::new().prefix("lamina-encode-").tempdir();
    let folder = folder.map_err(|error| BenchError::file("making", std::env::temp_dir(), error))?;
    let folder = folder.path();
    let film = |preset| Film {
        path: clip,
        seconds: Some(options.seconds),
        preset,
        quality: Settings::DEFAULT_QUALITY,
    };
    say("the pictures, decoded once, and a first round to warm up");
    let first = ours::encode(&film(Preset::Fast), folder, "film", None)?.title;
    let source = Sources::decode(clip, &first, folder)?.full;
    let pictures = f64::from(source.pictures);
    let coded = folder.join("yardstick.264");
    x264::encode(&source, CRF, None, &coded)?;

    let mut yardstick = Vec::new();
    let mut ours: Vec<Rounds> = options.presets.iter().map(|_| Rounds::default()).collect();
    for round in 1..=options.repeats {
        say(&format!("round {round} of {}", options.repeats));
        let start = Instant::now();
        x264::encode(&source, CRF, None, &coded)?;
        yardstick.push(pictures / start.elapsed().as_secs_f64());
        for (&preset, rounds) in options.presets.iter().zip(&mut ours) {
            let took = ours::encode(&film(preset), folder, "film", None)?.took;
            rounds.rates.push(pictures / took.as_secs_f64());
            if let Some(program) = &options.program {
                let one = process(program, clip, options.seconds, preset, folder, true)?;
                let all = process(program, clip, options.seconds, preset, folder, false)?;
                rounds.scalings.push(one.seconds / all.seconds);
                rounds.peak_mb = rounds.peak_mb.max(all.peak_mb);
            }
        }
    }
    let none = || BenchError::Setting("nothing is measured in no round".to_owned());
    let presets = options.presets.iter().zip(&ours).map(|(preset, rounds)| {
        let rates = &rounds.rates;
        let ratios: Vec<f64> = rates.iter().zip(&yardstick).map(|(ours, x264)| ours / x264).collect();
        let (rate, ratio) = Median::of(rates).zip(Median::of(&ratios)).ok_or_else(none)?;
        let scaling = Median::of(&rounds.scalings);
        let peak_mb = scaling.as_ref().map(|_| rounds.peak_mb);
        Ok(Ours { preset: preset.to_string(), rate, ratio, scaling, peak_mb })
    });
    Ok(Report {
        machine: Machine::look(),
        clip: clip.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        width: first.manifest().width,
        height: first.manifest().height,
        pictures: source.pictures,
        repeats: options.repeats,
        x264: Median::of(&yardstick).ok_or_else(none)?,
        presets: presets.collect::<Result<_, BenchError>>()?,
    })
}

/// One run of the program, from its start to its end.
fn process(
    program: &Path,
    clip: &Path,
    seconds: f64,
    preset: Preset,
    folder: &Path,
    one_core: bool,
) -> Result<cores::Run, BenchError> {
    let (library, clip) = (folder.join("alone"), clip.to_string_lossy());
    let (library, preset, to) = (library.to_string_lossy(), preset.to_string(), seconds.to_string());
    let arguments = [
        "encode",
        &clip,
        "-o",
        &library,
        "--title",
        "film",
        "--replace",
        "--metrics",
        "off",
        "--preset",
        &preset,
        "--to",
        &to,
    ];
    cores::run(program, &arguments, folder, one_core)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, clip, width, height, pictures, repeats, .. } = self;
        write!(f, "{machine}")?;
        writeln!(f, "clip       {clip}: {width}x{height}, {pictures} pictures; {repeats} rounds in turns")?;
        writeln!(f, "ours       film -> decoded -> layers -> title on disk, default quality, all cores")?;
        writeln!(
            f,
            "x264       {} (N = {CRF}), y4m file -> stream on disk, default threads\n",
            x264::SETTINGS
        )?;
        let mut table = Table::new(&["encoder", "pictures/s", "interval", "over x264", "interval"]);
        let interval = |it: &Median, digits: usize| {
            format!("{:.digits$}..{:.digits$} ({:.0} %)", it.low, it.high, 100.0 * it.confidence)
        };
        let rate = |it: &Median| [format!("{:.2}", it.median), interval(it, 2)];
        table.row([&["x264 medium".to_owned()], &rate(&self.x264)[..], &["1".to_owned()]].concat());
        for Ours { preset, rate: speed, ratio, .. } in &self.presets {
            let name = format!("lamina {preset}");
            let over = [format!("{:.3}", ratio.median), interval(ratio, 3)];
            table.row([&[name], &rate(speed)[..], &over[..]].concat());
        }
        write!(f, "{table}")?;
        for Ours { preset, scaling, peak_mb, .. } in &self.presets {
            if let (Some(scaling), Some(peak)) = (scaling, peak_mb) {
                let Median { median, .. } = scaling;
                writeln!(
                    f,
                    "{preset}: {} cores are {median:.2} times as fast as one ({}); {peak:.0} MB at most",
                    machine.cores,
                    interval(scaling, 2)
                )?;
            }
        }
        Ok(())
    }
}
