//! The folder in which a title or a part of one is made. It outlives the process
//! that fills it, so that another one can go on.

use crate::error::EncodeError;
use crate::journal::{self, Header, Journal, Story};
use crate::options::Share;
use media::Hash;
use media::library::{Library, LibraryError};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Work on a title, begun or not.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) library: Library,
    pub(crate) replace: bool,
    pub(crate) folder: PathBuf,
    pub(crate) journal: Journal,
    /// What was done before.
    pub(crate) story: Story,
}

/// Removes the folder when dropped, unless it shall be kept and holds a block.
#[derive(Debug)]
pub(crate) struct Guard {
    folder: PathBuf,
    keep: bool,
    finished: bool,
}

impl Guard {
    /// The folder has another name now.
    pub(crate) fn finished(mut self) {
        self.finished = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let begun = || journal::read(&self.folder).is_ok_and(|story| !story.records.is_empty());
        if !(self.finished || self.keep && begun()) {
            // It is hidden; if it cannot be removed it does no harm.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl Work {
    /// Opens the folder for work of this name, with what was done in it if
    /// `resume` asks for that.
    ///
    /// # Errors
    /// [`EncodeError::Busy`] if another process works there; what the disk refuses.
    pub(crate) fn open(
        library: &Library,
        name: &str,
        replace: bool,
        resume: bool,
    ) -> Result<(Self, Guard), EncodeError> {
        let folder = library.path().join(format!(".work-{name}"));
        std::fs::create_dir_all(&folder).map_err(|source| {
            EncodeError::from(LibraryError::Io { action: "make", path: folder.clone(), source })
        })?;
        let mut journal = Journal::open(&folder, library)?;
        let guard = Guard { folder: folder.clone(), keep: resume, finished: false };
        let story = if resume {
            journal::read(&folder)?
        } else {
            journal.cut(None)?;
            Story::default()
        };
        Ok((Self { library: library.clone(), replace, folder, journal, story }, guard))
    }

    /// Looks whether what was done is part of what shall be done, and keeps it as
    /// far as its chunks are what the journal says.
    ///
    /// # Errors
    /// [`EncodeError::Resume`] if it was made of another film or otherwise.
    pub(crate) fn check(
        &mut self,
        share: Share,
        wanted: impl Fn(&Header) -> Header,
    ) -> Result<(), EncodeError> {
        let Some(header) = &self.story.header else {
            self.story = Story::default();
            return Ok(());
        };
        let other = |what: &str| Err(EncodeError::Resume(format!("it was made {what}")));
        let wanted = wanted(header);
        if wanted.film != header.film {
            return other("of another film");
        }
        if wanted != *header {
            return other("with other settings");
        }
        let files = header.manifest.layers.iter().map(|layer| File::open(self.folder.join(&layer.file)).ok());
        let files: Option<Vec<File>> = files.collect();
        let whole = |files: &[File]| {
            let sound = (0..).zip(&self.story.records).take_while(|(n, record)| {
                let chunks = record.block.chunks.iter();
                record.index == share.nth(*n)
                    && record.block.chunks.len() == files.len()
                    && chunks.zip(files).all(|(chunk, file)| {
                        read_at(file, chunk.offset, chunk.length)
                            .is_some_and(|bytes| Hash::of(&bytes) == chunk.hash)
                    })
            });
            sound.count()
        };
        let count = files.map_or(0, |files| whole(&files));
        self.story.keep(count);
        Ok(())
    }
}

/// Bytes of a file, if they are there and not more than a chunk may have.
pub(crate) fn read_at(file: &File, offset: u64, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|_| length <= media::chunk::MAX_CHUNK_BYTES)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// The folder of a part with no block in it: a film shorter than the number of
/// its parts has such.
pub(crate) fn empty_part(mut work: Work, name: &str, blocks: u32) -> Result<PathBuf, EncodeError> {
    work.journal.cut(None)?;
    work.journal.complete(blocks)?;
    let target = work.library.path().join(name);
    rename(&work.folder, &target)?;
    Ok(target)
}

fn rename(from: &Path, to: &Path) -> Result<(), EncodeError> {
    let refused =
        |source| EncodeError::from(LibraryError::Io { action: "write", path: to.to_owned(), source });
    if to.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(to).map_err(refused)?;
    }
    std::fs::rename(from, to).map_err(refused)
}
