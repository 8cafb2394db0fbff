//! What is in memory: manifests, whole chunks, and chunks on their way.

use crate::block::{Block, Growing};
use crate::following::Source;
use crate::upstream::Learnt;
use bytes::Bytes;
use media::{ChunkId, ChunkInfo, Hash, Manifest, TitleName};
use protocol::StreamRequest;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything a proxy has to give.
#[derive(Debug)]
pub(crate) struct Shelf {
    titles: BTreeMap<TitleName, Title>,
    blocks: Cache<ChunkId, Block, ByLength>,
    growing: BTreeMap<ChunkId, Arc<Growing>>,
}

#[derive(Debug)]
struct Title {
    manifest: Manifest,
    bytes: Bytes,
    hash: Hash,
}

/// A chunk weighs what it holds.
#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<ChunkId, Block> for ByLength {
    fn weight(&self, _: &ChunkId, block: &Block) -> u64 {
        block.length.max(1)
    }
}

impl Shelf {
    /// Holds at most `bytes` of whole chunks; titles and chunks on their way are
    /// bounded by the machine.
    pub(crate) fn new(bytes: u64) -> Self {
        // The number of entries is only a hint: chunks of about 64 KiB.
        let entries = usize::try_from(bytes / (64 * 1024)).unwrap_or(usize::MAX).clamp(16, 1_000_000);
        Self {
            titles: BTreeMap::new(),
            blocks: Cache::with_weighter(entries, bytes, ByLength),
            growing: BTreeMap::new(),
        }
    }

    /// Keeps a title in the place of an older one of its name.
    pub(crate) fn learn(&mut self, title: TitleName, learnt: Learnt) {
        let hash = learnt.shape.manifest_hash;
        self.titles.insert(title, Title { manifest: learnt.manifest, bytes: learnt.bytes, hash });
    }

    /// Drops a title; its chunks go when others need their room.
    pub(crate) fn forget(&mut self, title: &TitleName) {
        self.titles.remove(title);
    }

    /// What the manifest says of a chunk.
    pub(crate) fn info(&self, id: &ChunkId) -> Option<&ChunkInfo> {
        self.titles.get(&id.title)?.manifest.chunk(id.block, id.layer)
    }

    /// What is asked for, if it is in memory and still what the manifest says.
    pub(crate) fn held(&self, request: &StreamRequest) -> Option<Source> {
        match request {
            StreamRequest::Manifest(title) => {
                let title = self.titles.get(title)?;
                Some(Source::bytes(title.bytes.clone(), title.hash))
            }
            StreamRequest::Chunk(chunk) => {
                let block = self.blocks.get(&chunk.id)?;
                (self.info(&chunk.id)?.hash == block.hash).then_some(Source::Whole(block))
            }
        }
    }

    /// What is asked for, as it comes.
    pub(crate) fn follow(&self, request: &StreamRequest) -> Option<Source> {
        match request {
            StreamRequest::Manifest(_) => None,
            StreamRequest::Chunk(chunk) => {
                self.growing.get(&chunk.id).map(|growing| Source::growing(growing))
            }
        }
    }

    /// A chunk to be filled; the same one if it was begun before.
    pub(crate) fn grow(&mut self, id: &ChunkId) -> Option<Arc<Growing>> {
        if let Some(growing) = self.growing.get(id) {
            return Some(Arc::clone(growing));
        }
        let info = self.info(id)?;
        let growing = Arc::new(Growing::new(info.length, info.hash));
        self.growing.insert(id.clone(), Arc::clone(&growing));
        Some(growing)
    }

    /// A chunk is whole.
    pub(crate) fn keep(&mut self, id: &ChunkId, block: Block) {
        self.growing.remove(id);
        self.blocks.insert(id.clone(), block);
    }

    /// A chunk will not come.
    pub(crate) fn give_up(&mut self, id: &ChunkId) -> Option<Arc<Growing>> {
        self.growing.remove(id)
    }
}
