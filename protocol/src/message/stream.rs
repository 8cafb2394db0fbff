//! What is said on a stream of its own: a request for a manifest or for a chunk, whole
//! or by its first half, and the answer.

use super::Refusal;
use media::{ChunkId, Hash, TitleName};
use serde::{Deserialize, Serialize};

/// The first thing on a stream of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamRequest {
    /// The manifest of a title.
    Manifest(TitleName),
    /// One chunk.
    Chunk(ChunkRequest),
}

impl StreamRequest {
    /// The title that it is about.
    pub fn title(&self) -> &TitleName {
        match self {
            Self::Manifest(title) => title,
            Self::Chunk(chunk) => &chunk.id.title,
        }
    }
}

/// A request for one chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkRequest {
    /// The chunk.
    pub id: ChunkId,
    /// In how many milliseconds it is no longer of use.
    pub deadline_ms: u32,
    /// How much of it. Of a title that does not come in halves there is no first one.
    pub part: Part,
}

impl ChunkRequest {
    /// A request for all of a chunk.
    pub fn whole(id: ChunkId, deadline_ms: u32) -> Self {
        Self { id, deadline_ms, part: Part::Whole }
    }
}

/// How much of a chunk; less comes before more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// Its `a` half: the first bytes of an enhancement's chunk, with the even pictures
    /// and a hash of their own ([`media::Half`]).
    First,
    /// All of it.
    Whole,
}

/// The answer on a stream of its own; after all but `Refused` comes the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamReply {
    /// The payload follows and has this length and hash.
    Granted {
        /// Length in bytes.
        length: u64,
        /// BLAKE3 of the payload.
        hash: Hash,
    },
    /// Nothing follows.
    Refused(Refusal),
    /// As `Granted`, but the payload, the chunk or its first half, is not to be shown: a
    /// proxy tries whether the line carries one layer more.
    Trial {
        /// Length in bytes.
        length: u64,
        /// BLAKE3 of the payload.
        hash: Hash,
    },
    /// As `Granted`, but what follows is the first half of the chunk: a proxy leaves out
    /// the rest of the topmost layer, or no more was asked for.
    Half {
        /// Length in bytes.
        length: u64,
        /// BLAKE3 of the half.
        hash: Hash,
    },
    /// As `Granted`, but only the first half of the chunk is to be shown: a proxy tries
    /// whether the line carries the rest.
    HalfTrial {
        /// Length of the chunk in bytes.
        length: u64,
        /// BLAKE3 of the chunk.
        hash: Hash,
    },
    /// A manifest follows, deflated (RFC 1950).
    Packed {
        /// Length of what follows in bytes.
        packed: u64,
        /// Length of the manifest in bytes.
        length: u64,
        /// BLAKE3 of the manifest.
        hash: Hash,
    },
}
