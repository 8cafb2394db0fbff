//! What a proxy has to give: titles, chunks that are kept, and chunks on their
//! way.

use crate::block::{Block, Growing};
use crate::following::Source;
use crate::store::{Held, Reading, Store, Title, Written};
use media::{ChunkId, ChunkInfo, Half, Quality, TitleName};
use protocol::StreamRequest;
use protocol::proxy::NotKept;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::info;

/// Everything a proxy has to give.
#[derive(Debug)]
pub(crate) struct Shelf {
    store: Store,
    capacity: u64,
    growing: BTreeMap<ChunkId, Arc<Growing>>,
    /// Chunks that are whole, until it is decided whether they are kept.
    landed: BTreeMap<ChunkId, Block>,
}

/// What is asked for, if it is kept.
#[derive(Debug)]
pub(crate) enum Find {
    /// It is here.
    Here(Source),
    /// It has to be read first.
    OnDisk(Reading),
    /// It is not kept.
    Nowhere,
}

/// A title that was found, with how many layers of which blocks.
pub(crate) type Found = (TitleName, Arc<Title>, Vec<(u32, Quality)>);

impl Shelf {
    /// Keeps at most `capacity` bytes of chunks in `store`; titles and chunks on
    /// their way are bounded by the machine.
    pub(crate) fn new(store: Store, capacity: u64) -> Self {
        let mut shelf = Self { store, capacity, growing: BTreeMap::new(), landed: BTreeMap::new() };
        shelf.fit();
        shelf
    }

    /// An earlier life may have had more room: the ends of titles go first, and of
    /// a block its upper layers.
    fn fit(&mut self) {
        let mut found: Vec<ChunkId> = self.store.iter().map(|(id, _)| id).collect();
        found.sort_by_key(|id| (id.block, id.layer));
        while self.store.used() > self.capacity
            && let Some(last) = found.pop()
        {
            self.store.remove(&last);
        }
    }

    /// What an earlier life left: titles, each with the blocks of which something is
    /// there, and how many layers without a gap. Layers above a gap are removed.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        let mut found: BTreeMap<TitleName, BTreeMap<u32, Quality>> = BTreeMap::new();
        let all: Vec<ChunkId> = self.store.iter().map(|(id, _)| id).collect();
        for id in all {
            let block = found.entry(id.title.clone()).or_default().entry(id.block).or_default();
            if block.layers() == id.layer.0 {
                *block = Quality(id.layer.0.saturating_add(1));
            } else {
                self.store.remove(&id);
            }
        }
        let title = |(name, blocks): (TitleName, BTreeMap<u32, Quality>)| {
            let title = self.store.title(&name)?;
            Some((name, Arc::clone(title), blocks.into_iter().collect()))
        };
        found.into_iter().filter_map(title).collect()
    }

    /// What is known of a title.
    pub(crate) fn title(&self, name: &TitleName) -> Option<Arc<Title>> {
        self.store.title(name).cloned()
    }

    /// Keeps a title in the place of an older one of its name, whose chunks are
    /// gone then.
    pub(crate) fn learn(&mut self, name: &TitleName, title: Arc<Title>) {
        self.store.learn(name, title);
    }

    /// Drops a title with its chunks.
    pub(crate) fn forget(&mut self, name: &TitleName) {
        self.store.forget(name);
        self.landed.retain(|id, _| id.title != *name);
    }

    /// What the manifest says of a chunk.
    pub(crate) fn info(&self, id: &ChunkId) -> Option<&ChunkInfo> {
        self.store.info(id)
    }

    /// What the manifest says of the first half of a chunk that is asked for.
    pub(crate) fn half(&self, request: &StreamRequest) -> Option<Half> {
        let StreamRequest::Chunk(chunk) = request else { return None };
        let title = self.store.title(&chunk.id.title)?;
        title.manifest.half(chunk.id.block, chunk.id.layer).copied()
    }

    /// What is asked for, if it is kept.
    pub(crate) fn find(&self, request: &StreamRequest) -> Find {
        match request {
            StreamRequest::Manifest(name) => match self.store.title(name) {
                Some(title) => Find::Here(Source::bytes(title.bytes.clone(), title.hash)),
                None => Find::Nowhere,
            },
            StreamRequest::Chunk(chunk) => {
                if let Some(block) = self.landed.get(&chunk.id) {
                    return Find::Here(Source::Whole(block.clone()));
                }
                match self.store.get(&chunk.id) {
                    Some(Held::Here(block)) => Find::Here(Source::Whole(block)),
                    Some(Held::OnDisk(reading)) => Find::OnDisk(reading),
                    None => Find::Nowhere,
                }
            }
        }
    }

    /// A chunk was read from the disk.
    pub(crate) fn was_read(&mut self, id: &ChunkId, serial: u64, block: &Block) {
        self.store.was_read(id, serial, block);
    }

    /// What was read is not the chunk that was kept; whether it was kept until now.
    pub(crate) fn was_bad(&mut self, id: &ChunkId, serial: u64) -> bool {
        self.store.was_bad(id, serial)
    }

    /// What is asked for, as it comes.
    pub(crate) fn follow(&mut self, request: &StreamRequest) -> Option<Source> {
        match request {
            StreamRequest::Manifest(_) => None,
            StreamRequest::Chunk(chunk) => self.grow(&chunk.id).map(|growing| Source::growing(&growing)),
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

    /// A chunk is whole; it is here until it is decided whether it is kept.
    pub(crate) fn land(&mut self, id: &ChunkId, block: Block) {
        self.growing.remove(id);
        self.landed.insert(id.clone(), block);
    }

    /// A chunk that is here is kept from now on, if that can be done.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn keep(&mut self, id: &ChunkId) -> Result<(), NotKept> {
        match self.landed.remove(id) {
            Some(block) => self.store.insert(id, block),
            None if self.store.holds(id) => Ok(()),
            None => Err(NotKept::Unknown),
        }
    }

    /// A chunk that is here is not kept.
    pub(crate) fn discard(&mut self, id: &ChunkId) {
        self.landed.remove(id);
    }

    /// A chunk is not kept any more.
    pub(crate) fn remove(&mut self, id: &ChunkId) {
        self.store.remove(id);
    }

    /// A write is over. The chunk that was lost with it, if it failed.
    pub(crate) fn written(&mut self, written: Written) -> Option<ChunkId> {
        self.store.written(written)
    }

    /// A chunk will not come.
    pub(crate) fn give_up(&mut self, id: &ChunkId) -> Option<Arc<Growing>> {
        self.growing.remove(id)
    }

    /// Writes what waits and leaves the cache as it is. Blocks on the disk.
    pub(crate) fn close(self) {
        let fullness = self.store.fullness();
        info!(?fullness, "the cache is left");
        self.store.close();
    }
}
