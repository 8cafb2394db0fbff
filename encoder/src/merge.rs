//! Joining the parts of a title that several processes or machines encoded.

use crate::assemble::{Assembler, Finished, Written};
use crate::encode::summary::{self, Made};
use crate::error::EncodeError;
use crate::journal::{self, Header, Record};
use crate::options::Progress;
use crate::report::{EncodeReport, Measured};
use crate::work::{Work, read_at};
use bytes::Bytes;
use media::Hash;
use media::library::{Library, LibraryError};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// One part, opened for reading.
struct Part {
    folder: PathBuf,
    files: Vec<File>,
}

/// All parts in the order of their blocks.
struct Parts {
    header: Header,
    sources: Vec<Part>,
    /// The block with this index, and the part that it lies in.
    blocks: BTreeMap<u32, (usize, Record)>,
}

fn wrong<T>(why: String) -> Result<T, EncodeError> {
    Err(EncodeError::Parts(why))
}

/// Joins parts that were encoded with [`EncodeOptions::share`](crate::EncodeOptions::share)
/// into a title of `library`: the same bytes as if one process had encoded the
/// whole film. The parts stay.
///
/// # Errors
/// [`EncodeError::Parts`] if they are not the parts of one film with the same
/// settings, or not all of them, or one is damaged; what the disk refuses. The
/// library is as before then.
pub fn merge(
    parts: &[PathBuf],
    library: &Path,
    replace: bool,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<EncodeReport, EncodeError> {
    let started = Instant::now();
    let Parts { header, sources, blocks } = Parts::open(parts)?;
    let library = Library::create(library)?;
    let title = header.manifest.title.clone();
    if library.contains(&title) && !replace {
        return Err(LibraryError::Exists { title, library: library.path().to_owned() }.into());
    }
    let (work, guard) = Work::open(&library, title.as_str(), replace, false)?;
    let mut assembler = Assembler::take_up(work, &header)?;
    for (index, (number, record)) in blocks {
        if cancel.load(Ordering::Relaxed) {
            return Err(EncodeError::Cancelled);
        }
        let Some(part) = sources.get(number) else { continue };
        let chunks = part.chunks(&record)?;
        let Record { block, audio_bytes, measured, .. } = record;
        assembler.append(index, Written { block, chunks, audio_bytes, measured })?;
        let (done, pictures) = (assembler.span(), assembler.pictures());
        progress(Progress::Block { index, done, pictures, elapsed: started.elapsed(), left: None });
    }
    let (measured, pictures): (Measured, u64) = (assembler.measured().clone(), assembler.pictures());
    let by_block = assembler.by_block().to_vec();
    let Finished { title, audio_bytes } = assembler.finish()?;
    guard.finished();
    let work = summary::Work { measured, by_block, pictures, elapsed: started.elapsed() };
    Ok(summary::report(&Made { manifest: title.manifest(), folder: title.path(), audio_bytes }, &[], &work))
}

impl Parts {
    fn open(folders: &[PathBuf]) -> Result<Self, EncodeError> {
        let mut header: Option<Header> = None;
        let (mut blocks, mut sources, mut count) = (BTreeMap::new(), Vec::new(), None);
        for (number, folder) in folders.iter().enumerate() {
            let shown = folder.display();
            let story = journal::read(folder)?;
            let Some(complete) = story.complete else { return wrong(format!("{shown} is not complete")) };
            if *count.get_or_insert(complete) != complete {
                return wrong(format!("{shown} is of a film with {complete} blocks"));
            }
            let mut files = Vec::new();
            if let Some(found) = story.header {
                for layer in &found.manifest.layers {
                    let path = folder.join(&layer.file);
                    let open = File::open(&path);
                    files.push(open.map_err(|source| LibraryError::Io { action: "open", path, source })?);
                }
                if header.get_or_insert_with(|| found.clone()) != &found {
                    return wrong(format!("{shown} is of another film or was made with other settings"));
                }
            }
            sources.push(Part { folder: folder.clone(), files });
            for record in story.records {
                blocks.insert(record.index, (number, record));
            }
        }
        let Some(header) = header else { return wrong("there is no block in them".into()) };
        let missing = (0..count.unwrap_or(0)).find(|index| !blocks.contains_key(index));
        match missing {
            Some(index) => wrong(format!("block {index} is in none of them")),
            None => Ok(Self { header, sources, blocks }),
        }
    }
}

impl Part {
    /// The chunks of a block, as its journal knows them.
    fn chunks(&self, record: &Record) -> Result<Vec<Bytes>, EncodeError> {
        let damaged =
            || EncodeError::Parts(format!("block {} in {} is damaged", record.index, self.folder.display()));
        if record.block.chunks.len() != self.files.len() {
            return Err(damaged());
        }
        let read = record.block.chunks.iter().zip(&self.files).map(|(chunk, file)| {
            read_at(file, chunk.offset, chunk.length)
                .filter(|bytes| Hash::of(bytes) == chunk.hash)
                .map(Bytes::from)
                .ok_or_else(damaged)
        });
        read.collect()
    }
}
