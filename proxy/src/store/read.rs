//! Reading one chunk back, and believing it only if its hash is right.

use crate::block::Block;
use bytes::Bytes;
use media::{ChunkInfo, Hash};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

/// A chunk that is to be read.
#[derive(Debug)]
pub(crate) struct Reading {
    path: PathBuf,
    /// Which one of its name it is.
    pub(crate) serial: u64,
    length: u64,
    hash: Hash,
}

/// A file that is not the chunk that was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRead {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it has another length")]
    Length,
    #[error("it does not match its hash")]
    Hash,
}

impl Reading {
    pub(super) fn new(path: PathBuf, serial: u64, info: &ChunkInfo) -> Self {
        Self { path, serial, length: info.length, hash: info.hash }
    }

    /// Reads and checks it, every time: a disk may fail at any. Blocks.
    pub(crate) fn read(&self) -> Result<Block, BadRead> {
        let file = File::open(&self.path)?;
        let capacity = usize::try_from(self.length).map_err(|_| BadRead::Length)?;
        // One more, so that a file that grew is noticed, and nothing is moved for it.
        let mut bytes = Vec::with_capacity(capacity.saturating_add(1));
        file.take(self.length.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() != capacity {
            return Err(BadRead::Length);
        }
        if Hash::of(&bytes) != self.hash {
            return Err(BadRead::Hash);
        }
        Ok(Block { bytes: Bytes::from(bytes), length: self.length, hash: self.hash })
    }
}
