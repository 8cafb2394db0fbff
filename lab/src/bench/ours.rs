//! Our side of a comparison: a film through the whole encoder into a library
//! that lives as long as the bench.

use crate::bench::BenchError;
use crate::stored::StoredError;
use codec::Preset;
use encoder::{EncodeOptions, Metrics};
use media::Span;
use media::library::TitleFolder;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A film and how to encode it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Film<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// How much of it, in seconds from its start; all if none.
    pub(crate) seconds: Option<f64>,
    /// The encoder's preset.
    pub(crate) preset: Preset,
    /// The encoder's quality knob.
    pub(crate) quality: f32,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// The title.
    pub(crate) title: TitleFolder,
    /// From the call to the finished title on disk.
    pub(crate) took: Duration,
}

/// Encodes a film into the library at `folder` as `name`, in place of what was
/// there. `repeat_to` repeats its blocks to a longer programme.
pub(crate) fn encode(
    film: &Film<'_>,
    folder: &Path,
    name: &str,
    repeat_to: Option<Span>,
) -> Result<Encoded, BenchError> {
    let library = folder.join("library");
    let title: media::TitleName =
        name.parse().map_err(|error| BenchError::Setting(format!("no title {name:?}: {error}")))?;
    let path = library.join(title.as_str());
    let options = EncodeOptions {
        title: Some(title),
        preset: film.preset,
        quality: film.quality,
        to: film.seconds.map(|seconds| Span::from_nanos(nanos(seconds))),
        metrics: Metrics::Off,
        replace: true,
        repeat_to,
        ..EncodeOptions::new(film.path, library)
    };
    let start = Instant::now();
    encoder::encode(&options, &mut |_| {}, &AtomicBool::new(false))?;
    let took = start.elapsed();
    Ok(Encoded { title: TitleFolder::open(path).map_err(StoredError::from)?, took })
}

fn nanos(seconds: f64) -> u64 {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
