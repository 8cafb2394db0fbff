//! The film to be shown: encoded once, long enough for the whole story.

use super::{DemoError, DemoOptions};
use crate::sample;
use encoder::{EncodeOptions, Metrics, Preset, Progress};
use media::library::{Library, TitleFolder};
use media::{Hasher, Span};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

/// The story needs this much programme; shorter films are repeated.
pub(super) const PROGRAMME: Span = Span::from_secs(45);
/// Of longer films no more than this is encoded.
const EXCERPT: Span = Span::from_secs(60);

/// A film ready to be served.
#[derive(Debug)]
pub struct DemoFilm {
    /// The library it lies in.
    pub library: PathBuf,
    /// The title.
    pub folder: TitleFolder,
    /// Whether it was encoded before.
    pub kept: bool,
    /// Whose film it is, if it is the sample.
    pub attribution: Option<&'static str>,
}

/// Finds the encoded film in the cache, or encodes it.
///
/// # Errors
/// The film cannot be read or encoded, or the cache cannot be written.
pub fn prepare(
    options: &DemoOptions,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<DemoFilm, DemoError> {
    let write = |path: &Path, source| DemoError::Write { path: path.to_owned(), source };
    // One at a time: who comes second finds what the first one made.
    let turn = options.cache.join("demo.lock");
    fs::create_dir_all(&options.cache).map_err(|error| write(&options.cache, error))?;
    let lock = fs::File::create(&turn).map_err(|error| write(&turn, error))?;
    lock.lock().map_err(|error| write(&turn, error))?;
    let attribution = options.video.is_none().then_some(sample::ATTRIBUTION);
    let film = match &options.video {
        Some(film) => film.clone(),
        None => sample::film(&options.cache).map_err(|error| write(&options.cache, error))?,
    };
    let library = options.cache.join(format!("demo-{}", fingerprint(&film)));
    let mut settings = EncodeOptions::new(&film, &library);
    settings.preset = Preset::Fast;
    settings.to = Some(EXCERPT);
    settings.repeat_to = Some(PROGRAMME);
    settings.metrics = Metrics::Off;
    settings.replace = true;
    if let Some(folder) = kept(&library) {
        return Ok(DemoFilm { library, folder, kept: true, attribution });
    }
    encoder::encode(&settings, progress, cancel)?;
    let listing = Library::open(&library)?.titles()?;
    let title = listing.titles.first().map(|title| title.title.clone());
    let title = title.ok_or_else(|| DemoError::Broken("the encoder left no title".into()))?;
    let folder = Library::open(&library)?.title(&title)?;
    Ok(DemoFilm { library, folder, kept: false, attribution })
}

/// The title that an earlier run left, if it is whole.
fn kept(library: &Path) -> Option<TitleFolder> {
    let open = Library::open(library).ok()?;
    let listing = open.titles().ok()?;
    let folder = open.title(&listing.titles.first()?.title).ok()?;
    let whole = folder.layers().count() == folder.manifest().layers.len();
    let long = folder.manifest().span() >= PROGRAMME;
    (whole && long).then_some(folder)
}

/// Tells films apart without reading them whole: path, length, time of change,
/// and the version that encodes them. 16 hexadecimal digits.
pub fn fingerprint(film: &Path) -> String {
    let mut hasher = Hasher::new();
    let path = fs::canonicalize(film).unwrap_or_else(|_| film.to_owned());
    hasher.update(path.as_os_str().as_encoded_bytes());
    if let Ok(metadata) = fs::metadata(film) {
        hasher.update(&metadata.len().to_le_bytes());
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        hasher.update(&changed.unwrap_or_default().as_nanos().to_le_bytes());
    }
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(&media::manifest::MANIFEST_VERSION.to_le_bytes());
    let name = hasher.finish().to_string();
    name.chars().take(16).collect()
}
