//! The chunks that are kept: which there are, and where each of them lies.
//!
//! Without a folder they lie in memory. With one, each is a file there, written
//! behind the scenes, and those asked for lately are in memory too. Nothing is
//! decided here: whoever owns the store looks at what is used and held, says
//! what is to be removed, and is told what was lost. What does not fit, or what
//! the disk cannot take in time, is not kept, and nobody waits for it.

mod folder;
mod read;
mod writer;

pub use folder::StoreError;
pub(crate) use read::Reading;
pub(crate) use writer::{Writes, Written};

use crate::block::Block;
use bytes::Bytes;
use folder::{Folder, Found};
use media::{ChunkId, ChunkInfo, Hash, Layer, Manifest, PackedManifest, TitleName};
use protocol::proxy::NotKept;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tracing::{info, warn};
use writer::Writer;

/// The most chunks that are kept: what the index takes stays below 200 MB.
const MAX_ENTRIES: usize = 1_000_000;
/// Chunks are expected to have about this many bytes; only a hint.
const USUAL_CHUNK: u64 = 64 * 1024;

/// What a title is: its manifest as it was sent.
#[derive(Debug)]
pub(crate) struct Title {
    pub(crate) manifest: Manifest,
    pub(crate) bytes: Bytes,
    hash: Hash,
    packed: OnceLock<PackedManifest>,
}

impl Title {
    pub(crate) fn new(manifest: Manifest, bytes: Bytes) -> Self {
        Self { manifest, hash: Hash::of(&bytes), bytes, packed: OnceLock::new() }
    }

    /// The manifest as it travels; computes the first time.
    pub(crate) fn packed(&self) -> PackedManifest {
        self.packed.get_or_init(|| PackedManifest::new(&self.bytes)).clone()
    }

    /// BLAKE3 of the manifest: the title's version.
    pub(crate) fn hash(&self) -> Hash {
        self.hash
    }
}

/// Everything that is kept.
#[derive(Debug)]
pub(crate) struct Store {
    titles: BTreeMap<TitleName, Kept>,
    capacity: u64,
    used: u64,
    entries: usize,
    next_serial: u64,
    disk: Option<Disk>,
}

/// A title with the chunks that are kept of it.
#[derive(Debug)]
struct Kept {
    title: Arc<Title>,
    chunks: BTreeMap<(u32, Layer), Entry>,
}

#[derive(Debug)]
struct Entry {
    /// Tells a chunk from an earlier one of its name.
    serial: u64,
    length: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Block),
    /// In memory until it is written.
    Queued(Block),
    Disk,
}

/// The folder, and what of it is in memory too.
#[derive(Debug)]
struct Disk {
    folder: Arc<Folder>,
    writer: Writer,
    recent: Cache<ChunkId, Block, ByLength>,
}

/// A chunk weighs what it holds.
#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<ChunkId, Block> for ByLength {
    fn weight(&self, _: &ChunkId, block: &Block) -> u64 {
        block.length.max(1)
    }
}

/// A chunk that is kept.
#[derive(Debug)]
pub(crate) enum Held {
    /// Here it is.
    Here(Block),
    /// It has to be read.
    OnDisk(Reading),
}

/// How full the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fullness {
    /// Chunks.
    pub(crate) chunks: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The most bytes there may be.
    pub(crate) capacity: u64,
    /// Bytes in memory of what is also on disk, or of everything.
    pub(crate) memory: u64,
    /// Bytes that wait to be written.
    pub(crate) unwritten: u64,
}

/// A hint for a cache of so many bytes.
pub(crate) fn expected_entries(bytes: u64) -> usize {
    usize::try_from(bytes / USUAL_CHUNK).unwrap_or(usize::MAX).clamp(16, MAX_ENTRIES)
}

impl Store {
    /// Keeps at most `capacity` bytes of chunks, all of them in memory.
    pub(crate) fn in_memory(capacity: u64) -> (Self, Writes) {
        let empty =
            Self { titles: BTreeMap::new(), capacity, used: 0, entries: 0, next_serial: 0, disk: None };
        (empty, Writes::none())
    }

    /// Keeps at most `capacity` bytes of chunks in `folder`, and of these at most
    /// `memory` bytes in memory too. What an earlier life left there is kept, but
    /// for what is damaged, half-written or foreign; it may be more than
    /// `capacity`, which the owner has to set right. Blocks on the disk.
    pub(crate) fn open(folder: &Path, capacity: u64, memory: u64) -> Result<(Self, Writes), StoreError> {
        let folder = Arc::new(Folder::open(folder)?);
        let found = folder.scan()?;
        let (writer, writes) = Writer::start(Arc::clone(&folder))?;
        let recent = Cache::with_weighter(expected_entries(memory), memory, ByLength);
        let (mut store, _) = Self::in_memory(capacity);
        store.disk = Some(Disk { folder, writer, recent });
        for Found { name, title, chunks } in found {
            let mut kept = Kept { title: Arc::new(title), chunks: BTreeMap::new() };
            for (block, layer) in chunks {
                let Some(info) = kept.title.manifest.chunk(block, layer) else { continue };
                let (serial, length) = (store.serial(), info.length);
                kept.chunks.insert((block, layer), Entry { serial, length, place: Place::Disk });
                store.used = store.used.saturating_add(length);
                store.entries = store.entries.saturating_add(1);
            }
            store.titles.insert(name, kept);
        }
        info!(titles = store.titles.len(), chunks = store.entries, bytes = store.used, "found in the cache");
        Ok((store, writes))
    }

    fn serial(&mut self) -> u64 {
        self.next_serial = self.next_serial.wrapping_add(1);
        self.next_serial
    }

    /// What is known of a title.
    pub(crate) fn title(&self, name: &TitleName) -> Option<&Arc<Title>> {
        self.titles.get(name).map(|kept| &kept.title)
    }

    /// What the manifest says of a chunk.
    pub(crate) fn info(&self, id: &ChunkId) -> Option<&ChunkInfo> {
        self.title(&id.title)?.manifest.chunk(id.block, id.layer)
    }

    /// Learns a title. If it was another one before, the chunks of that are gone:
    /// these.
    pub(crate) fn learn(&mut self, name: &TitleName, title: Arc<Title>) -> Vec<ChunkId> {
        if self.title(name).is_some_and(|known| known.hash() == title.hash()) {
            return Vec::new();
        }
        let gone = self.forget(name);
        if let Some(disk) = &mut self.disk {
            disk.writer.learn(name.clone(), title.bytes.clone());
        }
        self.titles.insert(name.clone(), Kept { title, chunks: BTreeMap::new() });
        gone
    }

    /// Drops a title with all its chunks: these.
    pub(crate) fn forget(&mut self, name: &TitleName) -> Vec<ChunkId> {
        let Some(kept) = self.titles.remove(name) else { return Vec::new() };
        let id =
            |(block, layer): &(u32, Layer)| ChunkId { title: name.clone(), block: *block, layer: *layer };
        let gone: Vec<ChunkId> = kept.chunks.keys().map(id).collect();
        let bytes = kept.chunks.values().fold(0_u64, |sum, entry| sum.saturating_add(entry.length));
        self.used = self.used.saturating_sub(bytes);
        self.entries = self.entries.saturating_sub(gone.len());
        if let Some(disk) = &mut self.disk {
            for id in &gone {
                disk.recent.remove(id);
            }
            disk.writer.forget(name.clone());
        }
        gone
    }

    /// Bytes of all chunks that are kept.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Whether a chunk is kept.
    pub(crate) fn holds(&self, id: &ChunkId) -> bool {
        self.entry(id).is_some()
    }

    /// All that is kept, in order, each with its length in bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChunkId, u64)> + '_ {
        self.titles.iter().flat_map(|(name, kept)| {
            let id = |block, layer| ChunkId { title: name.clone(), block, layer };
            kept.chunks.iter().map(move |(&(block, layer), entry)| (id(block, layer), entry.length))
        })
    }

    fn entry(&self, id: &ChunkId) -> Option<&Entry> {
        self.titles.get(&id.title)?.chunks.get(&(id.block, id.layer))
    }

    /// A chunk, if it is kept.
    pub(crate) fn get(&self, id: &ChunkId) -> Option<Held> {
        let kept = self.titles.get(&id.title)?;
        let entry = kept.chunks.get(&(id.block, id.layer))?;
        match (&entry.place, &self.disk) {
            (Place::Memory(block) | Place::Queued(block), _) => Some(Held::Here(block.clone())),
            (Place::Disk, Some(disk)) => {
                if let Some(block) = disk.recent.get(id) {
                    return Some(Held::Here(block.clone()));
                }
                let info = kept.title.manifest.chunk(id.block, id.layer)?;
                Some(Held::OnDisk(Reading::new(disk.folder.chunk_path(id), entry.serial, info)))
            }
            (Place::Disk, None) => None,
        }
    }

    /// Keeps a chunk. Nobody waits for the disk.
    ///
    /// # Errors
    /// Why it is not kept; nothing changed then.
    pub(crate) fn insert(&mut self, id: &ChunkId, block: Block) -> Result<(), NotKept> {
        let Some(kept) = self.titles.get(&id.title) else { return Err(NotKept::Unknown) };
        let right = kept.title.manifest.chunk(id.block, id.layer).is_some_and(|info| info.hash == block.hash);
        if !right {
            return Err(NotKept::Unknown);
        }
        if kept.chunks.contains_key(&(id.block, id.layer)) {
            return Ok(());
        }
        let (length, used) = (block.length, self.used.saturating_add(block.length));
        if used > self.capacity || self.entries >= MAX_ENTRIES {
            return Err(NotKept::NoRoom);
        }
        let serial = self.serial();
        let place = match &mut self.disk {
            None => Place::Memory(block),
            Some(disk) => {
                disk.writer.write(id, serial, block.bytes.clone())?;
                disk.recent.insert(id.clone(), block.clone());
                Place::Queued(block)
            }
        };
        let Some(kept) = self.titles.get_mut(&id.title) else { return Err(NotKept::Unknown) };
        kept.chunks.insert((id.block, id.layer), Entry { serial, length, place });
        self.used = used;
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }

    /// Removes a chunk; whether it was kept. Who is being sent it gets it whole.
    pub(crate) fn remove(&mut self, id: &ChunkId) -> bool {
        let Some(kept) = self.titles.get_mut(&id.title) else { return false };
        let Some(entry) = kept.chunks.remove(&(id.block, id.layer)) else { return false };
        self.used = self.used.saturating_sub(entry.length);
        self.entries = self.entries.saturating_sub(1);
        if let Some(disk) = &mut self.disk {
            disk.recent.remove(id);
            disk.writer.remove(id.clone());
        }
        true
    }

    /// A chunk was read from the disk: what is asked for often stays in memory.
    pub(crate) fn was_read(&mut self, id: &ChunkId, serial: u64, block: &Block) {
        if self.is_still(id, serial)
            && let Some(disk) = &mut self.disk
        {
            disk.recent.insert(id.clone(), block.clone());
        }
    }

    /// A chunk on the disk is not what it was: it is removed. Whether it was kept
    /// until now.
    pub(crate) fn was_bad(&mut self, id: &ChunkId, serial: u64) -> bool {
        self.is_still(id, serial) && self.remove(id)
    }

    /// A write is over. The chunk that was lost with it, if it failed.
    pub(crate) fn written(&mut self, written: Written) -> Option<ChunkId> {
        if let Some(disk) = &mut self.disk {
            disk.writer.done(&written);
        }
        let Written { id, serial, outcome, .. } = written;
        if !self.is_still(&id, serial) {
            return None;
        }
        match outcome {
            Ok(()) => {
                let kept = self.titles.get_mut(&id.title)?;
                kept.chunks.get_mut(&(id.block, id.layer))?.place = Place::Disk;
                None
            }
            Err(error) => {
                warn!(chunk = %id, %error, "a chunk cannot be written to the cache");
                self.remove(&id);
                Some(id)
            }
        }
    }

    fn is_still(&self, id: &ChunkId, serial: u64) -> bool {
        self.entry(id).is_some_and(|entry| entry.serial == serial)
    }

    /// How full it is.
    pub(crate) fn fullness(&self) -> Fullness {
        let (memory, unwritten) = match &self.disk {
            Some(disk) => (disk.recent.weight(), disk.writer.waiting_bytes()),
            None => (self.used, 0),
        };
        Fullness { chunks: self.entries, bytes: self.used(), capacity: self.capacity, memory, unwritten }
    }

    /// Waits until everything is written, and leaves the folder to others. Blocks
    /// on the disk.
    pub(crate) fn close(self) {
        if let Some(disk) = self.disk {
            disk.writer.finish();
        }
    }
}

#[cfg(test)]
mod tests;
