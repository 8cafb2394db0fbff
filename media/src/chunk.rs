//! The chunk: the unit of storage, transfer, caching, checksum and quality.

use crate::hash::Hash;
use crate::layer::Layer;
use crate::title::TitleName;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest chunk anybody may announce: 64 MiB holds one second of any film
/// we encode many times over, and bounds what a liar can make us allocate.
pub const MAX_CHUNK_BYTES: u64 = 64 * 1024 * 1024;

/// The name of a chunk: one layer of one block of one title.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChunkId {
    /// The title it belongs to.
    pub title: TitleName,
    /// Index of the block, from 0.
    pub block: u32,
    /// The layer.
    pub layer: Layer,
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}/{}", self.title, self.block, self.layer)
    }
}

/// A whole chunk whose bytes were checked against the hash of its manifest.
/// There is no other way to make one, so that who holds a `Chunk` need not
/// check again. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk {
    id: ChunkId,
    bytes: Bytes,
}

impl Chunk {
    /// Checks `bytes` against the length and hash that the manifest states.
    pub fn verify(id: ChunkId, bytes: Bytes, length: u64, hash: &Hash) -> Result<Self, ChunkError> {
        let got = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if got != length {
            return Err(ChunkError::Length { id, want: length, got });
        }
        if Hash::of(&bytes) != *hash {
            return Err(ChunkError::Hash { id });
        }
        Ok(Self { id, bytes })
    }

    /// The chunk's name.
    pub fn id(&self) -> &ChunkId {
        &self.id
    }

    /// The bytes as they lie on disk: one `moof` and one `mdat`.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Gives the bytes away.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({}, {} bytes)", self.id, self.bytes.len())
    }
}

/// Why bytes are not the chunk they claim to be. Nothing was kept of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The length differs from the manifest's: cut short or padded.
    #[error("chunk {id} has {got} bytes instead of {want}")]
    Length {
        /// The chunk that was wanted.
        id: ChunkId,
        /// Length by the manifest.
        want: u64,
        /// Length of what came.
        got: u64,
    },
    /// The hash differs from the manifest's.
    #[error("chunk {id} does not match its hash")]
    Hash {
        /// The chunk that was wanted.
        id: ChunkId,
    },
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_bytes_become_a_chunk() {
        let id = ChunkId { title: "film".parse().unwrap(), block: 7, layer: Layer::ENH1 };
        let hash = Hash::of(b"payload");
        let chunk = Chunk::verify(id.clone(), Bytes::from_static(b"payload"), 7, &hash).unwrap();
        assert_eq!(chunk.id().to_string(), "film#7/enh1");
        let short = Chunk::verify(id.clone(), Bytes::from_static(b"payloa"), 7, &hash);
        assert_eq!(short, Err(ChunkError::Length { id: id.clone(), want: 7, got: 6 }));
        let wrong = Chunk::verify(id.clone(), Bytes::from_static(b"pAyload"), 7, &hash);
        assert_eq!(wrong, Err(ChunkError::Hash { id }));
    }
}
