//! The yardstick: single-layer x264, as a whole process of its own.

use crate::bench::BenchError;
use crate::bench::bjontegaard::{Curve, CurveError, Point};
use crate::bench::score::{Meter, Score};
use crate::bench::yuv::{Film, Reader};
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the yardstick is set, for reports. `--tune psnr` is `--no-psy --aq-mode 0`.
pub const SETTINGS: &str = "--preset medium --tune psnr --scenecut 0 --keyint 1s --min-keyint 1s --crf N";
/// Rate factors are tried in these steps, from [`START`] both ways.
const STEP: u32 = 3;
const START: u32 = 26;
const LOWEST: u32 = 5;
const HIGHEST: u32 = 50;

/// Decoded pictures in a file, the source of an encoding.
#[derive(Debug, Clone)]
pub struct Source {
    /// YUV4MPEG2.
    pub path: PathBuf,
    /// Pictures between two key pictures.
    pub keyint: u32,
    /// Length of the programme in seconds.
    pub seconds: f64,
    /// Number of pictures.
    pub pictures: u32,
}

/// One encoding by x264.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Encoding {
    /// Constant rate factor.
    pub crf: u32,
    /// Rate of the elementary stream in kbit/s.
    pub kbit: f64,
    /// How close it is to its source.
    #[serde(flatten)]
    pub score: Score,
}

/// Encodes to an elementary stream and gives its length in bytes. `threads`
/// none leaves the number to x264.
pub fn encode(source: &Source, crf: u32, threads: Option<u32>, output: &Path) -> Result<u64, BenchError> {
    let keyint = source.keyint.to_string();
    let mut command = Command::new("x264");
    command.args(["--quiet", "--no-progress", "--preset", "medium", "--tune", "psnr", "--scenecut", "0"]);
    command.args(["--keyint", &keyint, "--min-keyint", &keyint, "--crf", &crf.to_string()]);
    if let Some(threads) = threads {
        command.args(["--threads", &threads.to_string()]);
    }
    command.args(["--demuxer", "y4m", "--muxer", "raw", "-o"]).arg(output).arg(&source.path);
    let ended = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| BenchError::Missing { program: "x264", source })?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let why = said.lines().last().unwrap_or("it said nothing").to_owned();
        return Err(BenchError::Program { program: "x264", why });
    }
    let length = std::fs::metadata(output).map_err(|error| BenchError::file("reading", output, error))?;
    Ok(length.len())
}

/// Encodes, decodes again with ffmpeg and compares. One thread: frame threads
/// of x264 change its decisions, so figures would depend on the machine.
pub fn measure(source: &Source, crf: u32, folder: &Path) -> Result<Encoding, BenchError> {
    let stem = source.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let output = folder.join(format!("{stem}-{crf}.264"));
    let bytes = encode(source, crf, Some(1), &output)?;
    let meter = compare(&source.path, &output)?;
    std::fs::remove_file(&output).map_err(|error| BenchError::file("removing", &output, error))?;
    if meter.pictures() != source.pictures {
        return Err(BenchError::Differ {
            what: format!("pictures after x264 of {stem}"),
            expected: source.pictures.to_string(),
            found: meter.pictures().to_string(),
        });
    }
    Ok(Encoding { crf, kbit: kbit(bytes, source.seconds), score: meter.score() })
}

/// A rate in kbit/s.
pub fn kbit(bytes: u64, seconds: f64) -> f64 {
    // Exact up to 2^32 bytes; what is longer is no clip for a bench.
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) * 8.0 / 1000.0 / seconds
}

fn compare(source: &Path, coded: &Path) -> Result<Meter, BenchError> {
    let wrap = BenchError::pictures(source);
    let file = File::open(source).map_err(|error| BenchError::file("opening", source, error))?;
    let mut pictures = Reader::new(file).map_err(&wrap)?;
    let mut film = Film::open(coded)?;
    let mut meter = Meter::default();
    while let (Some(source), Some(decoded)) = (pictures.picture().map_err(&wrap)?, film.picture()?) {
        meter.add(&source, &decoded)?;
    }
    Ok(meter)
}

/// Encodings of one source at rising rate factors that span a range of PSNR-Y
/// (dB), as far as x264 goes. Both directions at the same time.
pub fn ladder(source: &Source, from: f64, to: f64, folder: &Path) -> Result<Vec<Encoding>, BenchError> {
    let walk = |start: u32, next: fn(u32) -> Option<u32>, enough: &dyn Fn(f64) -> bool| {
        let mut steps = Vec::new();
        let mut crf = Some(start);
        while let Some(step) = crf {
            let encoding = measure(source, step, folder)?;
            steps.push(encoding);
            crf = next(step).filter(|_| !enough(encoding.score.psnr_y));
        }
        Ok(steps)
    };
    let finer = |crf: u32| crf.checked_sub(STEP).filter(|&crf| crf >= LOWEST);
    let coarser = |crf: u32| Some(crf + STEP).filter(|&crf| crf <= HIGHEST);
    let (fine, coarse): (Result<Vec<Encoding>, BenchError>, Result<Vec<Encoding>, BenchError>) =
        std::thread::scope(|scope| {
            let fine = scope.spawn(|| walk(START, finer, &|psnr| psnr > to));
            let coarse = walk(START + STEP, coarser, &|psnr| psnr < from);
            let fine = fine.join().unwrap_or_else(|_| {
                Err(BenchError::Program { program: "x264", why: "its thread ended early".to_owned() })
            });
            (fine, coarse)
        });
    let mut ladder = fine?;
    ladder.reverse();
    ladder.extend(coarse?);
    Ok(ladder)
}

/// The curve of encodings over the score that `pick` takes.
pub fn curve(encodings: &[Encoding], pick: fn(&Score) -> f64) -> Result<Curve, CurveError> {
    let points = encodings.iter().map(|it| Point { rate: it.kbit, score: pick(&it.score) });
    Curve::new(&points.collect::<Vec<_>>())
}
