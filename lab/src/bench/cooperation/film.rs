//! The film: small, so that two cores decode ten of it.

use super::{BenchError, CooperationError};
use encoder::{EncodeOptions, Metrics, Preset};
use media::Span;
use media::library::{Library, TitleFolder};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::process::Command;

/// Stops the encoder when nobody waits for it any more.
struct Cancel(std::sync::Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Scales a film down and encodes it, repeated until it is long enough.
pub(super) async fn make(film: &Path, folder: &Path, length: Span) -> Result<TitleFolder, CooperationError> {
    let small = folder.join("small.mp4");
    scale(film, &small).await?;
    let library = folder.join("library");
    let cancel = Cancel(std::sync::Arc::default());
    let cancelled = std::sync::Arc::clone(&cancel.0);
    let made = tokio::task::spawn_blocking(move || encode(small, &library, length, &cancelled)).await;
    made.map_err(|_| std::io::Error::other("the encoder broke off"))?
}

async fn scale(film: &Path, small: &Path) -> Result<(), BenchError> {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-y", "-i"]).arg(film);
    ffmpeg.args(["-vf", "scale=320:180", "-c:v", "libx264", "-preset", "veryfast", "-crf", "14"]);
    ffmpeg.args(["-pix_fmt", "yuv420p", "-c:a", "aac"]).arg(small).kill_on_drop(true);
    let output = ffmpeg.output().await.map_err(|source| BenchError::Missing { program: "ffmpeg", source })?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(BenchError::Program { program: "ffmpeg", why })
}

fn encode(
    small: PathBuf,
    library: &Path,
    length: Span,
    cancel: &AtomicBool,
) -> Result<TitleFolder, CooperationError> {
    let mut options = EncodeOptions::new(small, library);
    options.preset = Preset::Fast;
    options.metrics = Metrics::Off;
    options.to = Some(length);
    options.repeat_to = Some(length);
    encoder::encode(&options, &mut |_| (), cancel).map_err(BenchError::from)?;
    let opened = |error: &dyn std::fmt::Display| BenchError::Setting(format!("no title: {error}"));
    let library = Library::open(library).map_err(|error| opened(&error))?;
    let listing = library.titles().map_err(|error| opened(&error))?;
    let title =
        listing.titles.first().ok_or_else(|| BenchError::Setting("the encoder left no title".into()))?;
    Ok(library.title(&title.title).map_err(|error| opened(&error))?)
}
