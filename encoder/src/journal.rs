//! The journal of a title being written: what the next process needs to go on
//! with it, or to join it with others.
//!
//! One line of JSON says what is made of which film, then one line follows for
//! each block whose chunks are in the layers' files, and a last one when there
//! are no more. A line is written after the chunks that it speaks of. What a
//! killed process left half-written is known by its missing or broken line, and
//! what a power failure spoilt by the hashes.

use crate::error::EncodeError;
use crate::report::Measured;
use media::library::LibraryError;
use media::manifest::Manifest;
use media::{BlockInfo, Library};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The name of the journal in the folder that is being filled.
const FILE: &str = "journal";
/// The longest line that is read: a manifest with its init segments is far shorter.
const MAX_LINE: u64 = 1 << 22;

/// What is made of which film; equal for all processes that work on one title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// See `Input::identity`.
    pub(crate) film: String,
    /// Start and end of what is taken, in nanoseconds.
    pub(crate) taken: (Option<u64>, Option<u64>),
    /// Without init segments, blocks and duration.
    pub(crate) manifest: Manifest,
    /// Base's `AVCDecoderConfigurationRecord`.
    pub(crate) config: Vec<u8>,
    /// Grey key frame of each enhancement.
    pub(crate) keys: Vec<Vec<u8>>,
}

/// One block whose chunks were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) index: u32,
    pub(crate) block: BlockInfo,
    pub(crate) audio_bytes: u64,
    pub(crate) measured: Measured,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header(Box<Header>),
    Block(Box<Record>),
    /// The number of blocks of the whole film.
    Complete(u32),
}

/// What a journal says.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) header: Option<Header>,
    pub(crate) records: Vec<Record>,
    pub(crate) complete: Option<u32>,
    /// How far the journal is well formed, in bytes, after each record.
    ends: Vec<u64>,
    /// The same after the header.
    begun: u64,
}

/// A journal being written. As long as it lives nobody else writes it.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> EncodeError {
    let path = path.to_owned();
    move |source| LibraryError::Io { action, path, source }.into()
}

/// Reads the journal in a folder up to its first line that is not whole.
pub(crate) fn read(folder: &Path) -> Result<Story, EncodeError> {
    let path = folder.join(FILE);
    let file = File::open(&path).map_err(io("open", &path))?;
    let mut reader = BufReader::new(file);
    let (mut story, mut at) = (Story::default(), 0_u64);
    loop {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut reader, MAX_LINE);
        limited.read_until(b'\n', &mut line).map_err(io("read", &path))?;
        let whole = line.last() == Some(&b'\n');
        let Some(said) = whole.then(|| serde_json::from_slice::<Line>(&line).ok()).flatten() else { break };
        at += u64::try_from(line.len()).unwrap_or(0);
        match said {
            Line::Header(header) => {
                story.header = Some(*header);
                story.begun = at;
            }
            Line::Block(record) => {
                story.records.push(*record);
                story.ends.push(at);
            }
            Line::Complete(blocks) => story.complete = Some(blocks),
        }
    }
    Ok(story)
}

impl Story {
    /// Leaves out all records but the first `count`.
    pub(crate) fn keep(&mut self, count: usize) {
        self.records.truncate(count);
        self.ends.truncate(count);
        self.complete = None;
    }

    fn length(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.begun)
    }
}

impl Journal {
    /// Opens the journal in a folder, or starts one.
    ///
    /// # Errors
    /// [`EncodeError::Busy`] if another process is writing it.
    pub(crate) fn open(folder: &Path, library: &Library) -> Result<Self, EncodeError> {
        let path = folder.join(FILE);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => Err(EncodeError::Busy { library: library.path().to_owned() }),
            Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
        }
    }

    /// Forgets what stands behind a story, or all.
    pub(crate) fn cut(&mut self, story: Option<&Story>) -> Result<(), EncodeError> {
        let length = story.map_or(0, Story::length);
        self.file.set_len(length).map_err(io("write", &self.path))?;
        self.file.seek(SeekFrom::End(0)).map(|_| ()).map_err(io("write", &self.path))
    }

    pub(crate) fn header(&mut self, header: &Header) -> Result<(), EncodeError> {
        self.line(&Line::Header(Box::new(header.clone())))
    }

    pub(crate) fn record(&mut self, record: Record) -> Result<(), EncodeError> {
        self.line(&Line::Block(Box::new(record)))
    }

    pub(crate) fn complete(&mut self, blocks: u32) -> Result<(), EncodeError> {
        self.line(&Line::Complete(blocks))
    }

    /// Deletes it: the title is whole.
    pub(crate) fn remove(self) -> Result<(), EncodeError> {
        std::fs::remove_file(&self.path).map_err(io("delete", &self.path))
    }

    fn line(&mut self, line: &Line) -> Result<(), EncodeError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| EncodeError::Option(error.to_string()))?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(io("write", &self.path))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_believed_up_to_its_first_broken_line_and_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::create(folder.path()).unwrap();
        let mut journal = Journal::open(folder.path(), &library).unwrap();
        assert!(matches!(Journal::open(folder.path(), &library), Err(EncodeError::Busy { .. })));
        for index in 0..3_u32 {
            let block = BlockInfo {
                start: u64::from(index) * 10,
                duration: 10,
                frames: 1,
                base_hash: media::Hash::of(b"b"),
                quality_hashes: Vec::new(),
                chunks: Vec::new(),
                halves: Vec::new(),
            };
            journal.record(Record { index, block, audio_bytes: 7, measured: Measured::default() }).unwrap();
        }
        let mut story = read(folder.path()).unwrap();
        assert_eq!(story.records.len(), 3);
        story.keep(2);
        journal.cut(Some(&story)).unwrap();
        journal.file.write_all(b"{\"block\":{\"ind").unwrap();
        let again = read(folder.path()).unwrap();
        assert_eq!(again.records, story.records);
        journal.cut(Some(&again)).unwrap();
        journal.complete(2).unwrap();
        assert_eq!(read(folder.path()).unwrap().complete, Some(2));
    }
}
