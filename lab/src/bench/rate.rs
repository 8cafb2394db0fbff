//! What layering costs in rate: gold against single-layer x264, and all layers
//! against separate files of the same tiers (simulcast).
//!
//! For each clip, our encoder makes a title at each step of its quality knob.
//! Its tiers are scored against the source; the rate is the bytes of coded
//! pictures, without boxes and sound. x264 encodes the same pictures at rising
//! rate factors until its scores enclose ours, at full size and at Base's; its
//! rate is the length of the elementary stream, its score comes from the same
//! meter. x264's rate at one of our scores is read off the curve through its
//! points (piecewise cubic, log rate).

mod report;

pub use report::{Clip, Report, Step, Yardstick};

use crate::bench::bjontegaard::{self, Curve, CurveError, Point};
use crate::bench::ours::{self, Film};
use crate::bench::score::Score;
use crate::bench::tiers::{self, Measured, Sources};
use crate::bench::{BenchError, Machine, Say, x264};
use codec::Preset;
use std::path::{Path, PathBuf};

/// How the bench is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Preset of our encoder.
    pub preset: Preset,
    /// Steps of our encoder's quality knob; at least two, and so far apart that
    /// gold spans [`LEAST_SPAN`].
    pub steps: Vec<f32>,
    /// How much of each clip is used, in seconds from its start.
    pub seconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { preset: Preset::Default, steps: vec![25.0, 30.0, 35.0, 40.0], seconds: 12.0 }
    }
}

/// Gold must span this many dB for a figure to mean anything.
pub const LEAST_SPAN: f64 = 6.0;

/// Runs the bench over clips, one after another, each on all cores.
pub fn run(clips: &[PathBuf], options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    if options.steps.len() < 2 {
        return Err(BenchError::Setting("a rate curve needs at least two quality steps".to_owned()));
    }
    let clips = clips.iter().map(|clip| run_clip(clip, options, say)).collect::<Result<Vec<_>, _>>()?;
    Ok(Report {
        machine: Machine::look(),
        preset: options.preset.to_string(),
        x264: x264::SETTINGS.to_owned(),
        means: report::Means::over(&clips),
        clips,
    })
}

fn run_clip(path: &Path, options: &Options, say: Say<'_>) -> Result<Clip, BenchError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = tempfile::Builder::new().prefix("lamina-rate-").tempdir();
    let folder = folder.map_err(|error| BenchError::file("making", std::env::temp_dir(), error))?;
    let mut sources = None;
    let mut made = Vec::new();
    for (number, &quality) in (1..).zip(&options.steps) {
        say(&format!("{name}: our encoder, step {number} of {} (quality {quality})", options.steps.len()));
        let film = Film { path, seconds: Some(options.seconds), preset: options.preset, quality };
        let title = ours::encode(&film, folder.path(), &format!("step {number}"), None)?.title;
        let sources = match &mut sources {
            Some(sources) => sources,
            none => none.insert(Sources::decode(path, &title, folder.path())?),
        };
        let measured = tiers::measure(&title, sources)?;
        made.push((quality, title.manifest().clone(), measured));
        std::fs::remove_dir_all(title.path())
            .map_err(|error| BenchError::file("removing", title.path(), error))?;
    }
    let Some(sources) = sources else {
        return Err(BenchError::Setting("no quality step was encoded".to_owned()));
    };
    let measured: Vec<&Measured> = made.iter().map(|(_, _, measured)| measured).collect();
    say(&format!("{name}: x264 at full size"));
    let full = yardstick(&sources.full, &shown_range(&measured), folder.path())?;
    say(&format!("{name}: x264 at the size of Base"));
    let base_scores: Vec<f64> = measured.iter().map(|measured| measured.base.psnr_y).collect();
    let base = yardstick(&sources.base, &base_scores, folder.path())?;
    let steps = made.iter().map(|(quality, manifest, measured)| {
        report::step(*quality, &manifest.made, measured, sources.full.seconds, [&full.curve, &base.curve])
    });
    let steps: Vec<Step> = steps.collect();
    let manifest = made.first().map(|(_, manifest, _)| manifest.clone());
    let (width, height) = manifest.map_or((0, 0), |manifest| (manifest.width, manifest.height));
    compare(Clip {
        name,
        width,
        height,
        pictures: sources.full.pictures,
        seconds: sources.full.seconds,
        steps,
        full: full.encodings,
        base: base.encodings,
        ..Clip::default()
    })
}

/// x264's encodings of a source that enclose some scores, and their curve.
struct Enclosing {
    encodings: Vec<Yardstick>,
    curve: Curve,
}

fn yardstick(source: &x264::Source, scores: &[f64], folder: &Path) -> Result<Enclosing, BenchError> {
    let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let encodings = x264::ladder(source, low, high, folder)?;
    let curve = x264::curve(&encodings, |score| score.psnr_y).map_err(named("x264"))?;
    Ok(Enclosing { encodings, curve })
}

/// PSNR-Y of all tiers above Base, which x264 is asked for at full size.
fn shown_range(measured: &[&Measured]) -> Vec<f64> {
    let above = measured.iter().flat_map(|measured| measured.shown.iter().skip(1));
    above.map(|score| score.psnr_y).collect()
}

/// Fills in the distances between gold's curve and x264's.
fn compare(mut clip: Clip) -> Result<Clip, BenchError> {
    let distance = |pick: fn(&Score) -> f64| {
        let gold = clip
            .steps
            .iter()
            .filter_map(|step| Some(Point { rate: step.gold_kbit(), score: pick(step.shown.last()?) }));
        let gold = Curve::new(&gold.collect::<Vec<_>>())?;
        let anchor = x264::curve(&clip.full, pick)?;
        Ok((bjontegaard::bd_rate(&anchor, &gold)?, bjontegaard::bd_score(&anchor, &gold)?))
    };
    let wrong = named(&clip.name);
    let (bd_rate, bd_psnr) = distance(|score| score.psnr_y).map_err(&wrong)?;
    let (bd_rate_ssim, bd_ssim) = distance(|score| score.ssim_y).map_err(&wrong)?;
    let (bd_rate_global, _) = distance(|score| score.psnr_y_global).map_err(&wrong)?;
    let gold = clip.steps.iter().filter_map(|step| step.shown.last()).map(|score| score.psnr_y);
    let (low, high) =
        gold.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    clip.gold_span_db = high - low;
    clip.storage = report::mean(clip.steps.iter().filter_map(|step| step.storage));
    clip.silver_at = report::mean(clip.steps.iter().filter_map(|step| step.silver_at));
    (clip.bd_rate, clip.bd_psnr, clip.bd_ssim) = (bd_rate, bd_psnr, bd_ssim);
    (clip.bd_rate_ssim, clip.bd_rate_global) = (bd_rate_ssim, bd_rate_global);
    Ok(clip)
}

fn named(what: &str) -> impl Fn(CurveError) -> BenchError + use<> {
    let what = what.to_owned();
    move |source| BenchError::Curve { what: what.clone(), source }
}
