//! From a title to a file that any player opens.

mod hls;
mod recode;

pub use hls::export_hls;

use crate::error::EncodeError;
use bytes::Bytes;
use media::container::random_access_index;
use media::library::{LibraryError, TitleFolder};
use media::{Layer, Quality};
use recode::Recoder;
use serde::Serialize;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What to make of a title.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// What is shown of it. Bronze is copied, the others are encoded again.
    pub quality: Quality,
    /// The file to write.
    pub file: PathBuf,
    /// Rate factor of H.264 where it is encoded (x264 CRF, 0..=50).
    pub crf: u32,
    /// Whether a file of that name may be replaced.
    pub replace: bool,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportReport {
    /// The file, or the playlist.
    pub written: String,
    /// What is shown.
    pub quality: String,
    /// Whether the pictures are those of Base, not encoded again.
    pub copied: bool,
    /// Their number.
    pub pictures: u64,
    /// Length of the programme in seconds.
    pub seconds: f64,
    /// Mean rate with the sound in kbit/s.
    pub kbit_s: f64,
}

/// Writes a title as one MP4 file: H.264 with the title's sound as it is, one
/// fragment for each block. `progress` hears how many blocks are done.
///
/// # Errors
/// The file exists, a layer that is needed is missing or damaged, or the disk
/// refuses. Nothing is left then, and no file is touched.
pub fn export(
    title: &TitleFolder,
    options: &ExportOptions,
    progress: &dyn Fn(u32),
    cancel: &AtomicBool,
) -> Result<ExportReport, EncodeError> {
    crate::init()?;
    refuse_existing(&options.file, options.replace)?;
    let layers = usize::from(options.quality.layers());
    if title.layers().take(layers).zip(0_u8..).filter(|(layer, n)| layer.0 == *n).count() < layers {
        return Err(EncodeError::Option(format!("{} needs layers that are not kept here", options.quality)));
    }
    let mut draft = Draft::create(&options.file)?;
    let copied = options.quality == Quality::BRONZE;
    if copied {
        copy_base(title, &mut draft, progress, cancel)?;
    } else {
        recode(title, options, &mut draft, progress, cancel)?;
    }
    let bytes = draft.finish(options.replace)?;
    Ok(report(title, options.quality, &options.file, copied, bytes))
}

fn report(title: &TitleFolder, quality: Quality, written: &Path, copied: bool, bytes: u64) -> ExportReport {
    let manifest = title.manifest();
    let seconds = manifest.span().as_secs_f64();
    ExportReport {
        written: written.display().to_string(),
        quality: quality.to_string(),
        copied,
        pictures: manifest.blocks.iter().map(|block| u64::from(block.frames)).sum(),
        seconds,
        kbit_s: crate::report::to_f64(bytes) * 8.0 / 1_000.0 / seconds.max(1e-9),
    }
}

/// The chunk of a block, whole and right by its hash.
fn chunk(title: &TitleFolder, block: u32, layer: Layer) -> Result<Bytes, EncodeError> {
    let bytes = title.read_chunk(block, layer)?;
    let chunk = title.verified(block, layer, bytes);
    chunk.map(media::Chunk::into_bytes).map_err(|error| EncodeError::Damaged(error.to_string()))
}

/// Init segment, chunks and index of Base, each chunk checked.
fn copy_base(
    title: &TitleFolder,
    draft: &mut Draft,
    progress: &dyn Fn(u32),
    cancel: &AtomicBool,
) -> Result<(), EncodeError> {
    let manifest = title.manifest();
    let Some(base) = manifest.layers.first() else { return Err(EncodeError::Empty) };
    draft.append(&base.init)?;
    let mut places = Vec::new();
    for (index, block) in (0..).zip(&manifest.blocks) {
        if cancel.load(Ordering::Relaxed) {
            return Err(EncodeError::Cancelled);
        }
        places.push((block.start, draft.append(&chunk(title, index, Layer::BASE)?)?));
        progress(index + 1);
    }
    draft.append(&random_access_index(base.delay, places)?)?;
    Ok(())
}

/// Encodes as many blocks side by side as there are cores, and writes them in order.
fn recode(
    title: &TitleFolder,
    options: &ExportOptions,
    draft: &mut Draft,
    progress: &dyn Fn(u32),
    cancel: &AtomicBool,
) -> Result<(), EncodeError> {
    let recoder = Recoder::new(title, options.quality, options.crf)?;
    let cores = u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(1);
    let mut config: Option<Vec<u8>> = None;
    let mut places = Vec::new();
    let count = title.manifest().block_count();
    let mut next = 0;
    while next < count {
        if cancel.load(Ordering::Relaxed) {
            return Err(EncodeError::Cancelled);
        }
        let batch = next..next.saturating_add(cores).min(count);
        let coded: Vec<Result<recode::Recoded, EncodeError>> = std::thread::scope(|scope| {
            let work: Vec<_> = batch
                .clone()
                .map(|block| {
                    scope.spawn({
                        let recoder = &recoder;
                        move || recoder.block(block)
                    })
                })
                .collect();
            work.into_iter()
                .map(|work| work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for coded in coded {
            let coded = coded?;
            match &config {
                None => {
                    draft.append(&recoder.init(&coded.config)?)?;
                    config = Some(coded.config);
                }
                Some(config)
                    if crate::nal::parameter_sets(config) == crate::nal::parameter_sets(&coded.config) => {}
                Some(_) => {
                    return Err(EncodeError::Option("two blocks have different parameter sets".into()));
                }
            }
            places.push((coded.start, draft.append(&coded.chunk)?));
        }
        next = batch.end;
        progress(next);
    }
    draft.append(&random_access_index(recoder.delay(), places)?)?;
    Ok(())
}

fn refuse_existing(file: &Path, replace: bool) -> Result<(), EncodeError> {
    if file.symlink_metadata().is_ok() && !replace {
        return Err(EncodeError::FileExists(file.to_owned()));
    }
    Ok(())
}

/// A file being written beside its place; removed unless it is finished.
struct Draft {
    path: PathBuf,
    target: PathBuf,
    file: File,
    length: u64,
    finished: bool,
}

impl Draft {
    fn create(target: &Path) -> Result<Self, EncodeError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.{}", std::process::id()));
        let file = File::create(&path).map_err(refused("make", &path))?;
        Ok(Self { path, target: target.to_owned(), file, length: 0, finished: false })
    }

    /// Appends bytes and returns the offset of the first.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, EncodeError> {
        self.file.write_all(bytes).map_err(refused("write", &self.target))?;
        let offset = self.length;
        self.length += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(offset)
    }

    fn finish(mut self, replace: bool) -> Result<u64, EncodeError> {
        self.file.sync_all().map_err(refused("write", &self.target))?;
        refuse_existing(&self.target, replace)?;
        std::fs::rename(&self.path, &self.target).map_err(refused("write", &self.target))?;
        self.finished = true;
        Ok(self.length)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.finished {
            // It is hidden; if it cannot be removed it does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn refused(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> EncodeError {
    let path = path.to_owned();
    move |source| LibraryError::Io { action, path, source }.into()
}
