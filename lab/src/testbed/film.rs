//! What is shown: scaled, encoded once, and kept in the cache.

use super::TestbedError;
use super::scenario::{Film, FilmSize};
use crate::{demo::fingerprint, sample};
use encoder::{EncodeOptions, Metrics, Preset};
use media::library::{Library, TitleFolder};
use media::{Span, TitleName};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::process::Command;

/// Films are repeated until they last a multiple of this, so that scenarios share
/// what was encoded.
const STEP_SECS: u64 = 90;
/// What a film must last beyond its scenario.
const SPARE_SECS: u64 = 15;

/// A film ready to be shown.
#[derive(Debug)]
pub struct Title {
    /// The library it lies in.
    pub library: PathBuf,
    /// The title.
    pub folder: TitleFolder,
    /// The film it was made of, as large as it is shown.
    pub source: PathBuf,
}

impl Title {
    /// Its name.
    pub fn name(&self) -> TitleName {
        self.folder.manifest().title.clone()
    }
}

/// Ends the encoder when nobody waits for it any more.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Finds the film in the cache, or makes it. Paths begin at `folder`.
///
/// # Errors
/// It cannot be read, scaled or encoded, or the cache cannot be written.
pub async fn prepare(
    film: &Film,
    lasts: Span,
    folder: &Path,
    cache: &Path,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Title, TestbedError> {
    fs::create_dir_all(cache).map_err(|error| TestbedError::file(cache, error))?;
    // One at a time: who comes second finds what the first one made.
    let turn = cache.join("testbed.lock");
    let lock = fs::File::create(&turn).map_err(|error| TestbedError::file(&turn, error))?;
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
    let lock = lock.map_err(|error| TestbedError::Broken(error.to_string()))?;
    let _lock = lock.map_err(|error| TestbedError::file(&turn, error))?;
    let source = match film.is.as_str() {
        "sample" => sample::film(cache).map_err(|error| TestbedError::file(cache, error))?,
        path => folder.join(path),
    };
    let secs = (lasts.as_millis().div_ceil(1_000) + SPARE_SECS).next_multiple_of(STEP_SECS);
    let print = fingerprint(&source);
    let source = match film.size {
        None => source,
        Some(FilmSize(width, height)) => {
            // The file's name is that of the title.
            let folder = cache.join(format!("testbed-{print}-{width}x{height}"));
            fs::create_dir_all(&folder).map_err(|error| TestbedError::file(&folder, error))?;
            let small = folder.join(source.file_name().unwrap_or_default()).with_extension("mp4");
            if !small.is_file() {
                say(&format!("scaling the film to {width}x{height}, once"));
                scale(&source, (width, height), &small).await?;
            }
            small
        }
    };
    let library = cache.join(format!("testbed-{}-{secs}", fingerprint(&source)));
    if let Some(found) = kept(&library, secs) {
        return Ok(Title { library, folder: found, source });
    }
    say("encoding the film, once");
    let cancel = Cancel(Arc::default());
    let (flag, film, to) = (Arc::clone(&cancel.0), source.clone(), library.clone());
    let encoding = tokio::task::spawn_blocking(move || encode(&film, &to, secs, &flag));
    encoding.await.map_err(|error| TestbedError::Broken(error.to_string()))??;
    let found =
        kept(&library, secs).ok_or_else(|| TestbedError::Broken("the encoder left no title".into()))?;
    Ok(Title { library, folder: found, source })
}

async fn scale(film: &Path, (width, height): (u32, u32), to: &Path) -> Result<(), TestbedError> {
    let half = to.with_extension("part.mp4");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-y", "-i"]).arg(film);
    ffmpeg.args(["-vf", &format!("scale={width}:{height}"), "-c:v", "libx264", "-preset", "veryfast"]);
    ffmpeg.args(["-crf", "14", "-pix_fmt", "yuv420p", "-c:a", "aac"]).arg(&half).kill_on_drop(true);
    let output = ffmpeg.output().await.map_err(|error| TestbedError::Scale(error.to_string()))?;
    if !output.status.success() {
        return Err(TestbedError::Scale(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    fs::rename(&half, to).map_err(|error| TestbedError::file(to, error))
}

fn encode(film: &Path, library: &Path, secs: u64, cancel: &AtomicBool) -> Result<(), TestbedError> {
    let mut options = EncodeOptions::new(film, library);
    options.preset = Preset::Fast;
    options.metrics = Metrics::Off;
    options.to = Some(Span::from_secs(secs));
    options.repeat_to = Some(Span::from_secs(secs));
    options.replace = true;
    encoder::encode(&options, &mut |_| (), cancel)?;
    Ok(())
}

/// The title that an earlier run left, if it is whole.
fn kept(library: &Path, secs: u64) -> Option<TitleFolder> {
    let open = Library::open(library).ok()?;
    let listing = open.titles().ok()?;
    let folder = open.title(&listing.titles.first()?.title).ok()?;
    let whole = folder.layers().count() == folder.manifest().layers.len();
    // The last repetition may end a block early.
    let long = folder.manifest().span() + Span::from_secs(2) >= Span::from_secs(secs);
    (whole && long).then_some(folder)
}
