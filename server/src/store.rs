//! The library as the node serves it: titles found, chunks read and checked.

use crate::archive::Arriving;
use bytes::Bytes;
use media::library::{Library, LibraryError, TitleFolder};
use media::manifest::MANIFEST_FILE;
use media::{BlockInfo, ByteCount, ChunkId, Hash, Layer, Manifest, PackedManifest, Span, TitleName};
use protocol::node::{ChunkLengths, Held};
use protocol::{ChunkRequest, Part, Refusal, StreamRequest};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tracing::{error, warn};

/// The most folders of a library that are looked into.
const MAX_TITLES: usize = protocol::message::MAX_TITLES;
/// The most replaced titles that are kept open.
const MAX_FORMER: usize = 64;

/// Titles on disk, opened once and read by many.
#[derive(Debug)]
pub struct Store {
    library: Library,
    titles: RwLock<BTreeMap<TitleName, Arc<Title>>>,
    /// Titles that were replaced, open until nobody watches them any more.
    former: RwLock<BTreeMap<(TitleName, Hash), Arc<Title>>>,
    archive: Option<Library>,
    /// Titles from the origin's archive.
    archived: RwLock<Titles>,
    /// Those on their way here.
    arriving: RwLock<BTreeMap<TitleName, Arc<Arriving>>>,
    recent: Cache<ChunkId, (Hash, Bytes), ByLength>,
}

/// By name.
type Titles = BTreeMap<TitleName, Arc<Title>>;

/// One title, opened.
#[derive(Debug)]
struct Title {
    folder: TitleFolder,
    manifest_hash: Hash,
    lengths: Arc<ChunkLengths>,
    stamp: Stamp,
    /// Those of the layers' files, of which some are not here.
    files: Vec<Option<Stamp>>,
    /// For each layer and block, whether the chunk was read once and was right.
    verified: Vec<Vec<AtomicBool>>,
}

/// What changes when a file is replaced by another of its name, or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

/// A chunk weighs what it holds.
#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<ChunkId, (Hash, Bytes)> for ByLength {
    fn weight(&self, _: &ChunkId, (_, bytes): &(Hash, Bytes)) -> u64 {
        u64::try_from(bytes.len()).unwrap_or(u64::MAX).max(1)
    }
}

/// A library that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read at all.
    #[error("the library cannot be read")]
    Library(#[from] LibraryError),
}

impl Store {
    /// Opens a library and looks through it; keeps at most `cache_bytes` of
    /// chunks in memory. Blocks on the disk.
    pub fn open(library: Library, cache_bytes: u64) -> Result<Self, StoreError> {
        Self::open_with(library, None, cache_bytes)
    }

    /// As [`Self::open`], with the folder of titles from the origin's archive.
    pub(crate) fn open_with(
        library: Library,
        archive: Option<Library>,
        cache_bytes: u64,
    ) -> Result<Self, StoreError> {
        // The number of entries is only a hint: chunks of about 64 KiB.
        let entries = usize::try_from(cache_bytes / (64 * 1024)).unwrap_or(usize::MAX).clamp(16, 65_536);
        let recent = Cache::with_weighter(entries, cache_bytes, ByLength);
        let (titles, former) = (RwLock::default(), RwLock::default());
        let (archived, arriving) = (RwLock::default(), RwLock::default());
        let store = Self { library, titles, former, archive, archived, arriving, recent };
        store.refresh()?;
        Ok(store)
    }

    /// Looks through the library again. What did not change stays open; what
    /// cannot be read is reported and hides nothing else. Blocks on the disk.
    pub fn refresh(&self) -> Result<(), StoreError> {
        let known = self.titles();
        let found = look_through(&self.library, &known)?;
        self.keep_replaced(&known, &found);
        *self.titles.write().unwrap_or_else(PoisonError::into_inner) = found;
        if let Some(archive) = &self.archive {
            let known = self.archived.read().unwrap_or_else(PoisonError::into_inner).clone();
            let found = look_through(archive, &known)?;
            // What is whole has all layers; other folders are none of ours.
            let whole = |title: &Title| title.files.iter().all(Option::is_some);
            let found = found.into_iter().filter(|(_, title)| whole(title)).collect();
            *self.archived.write().unwrap_or_else(PoisonError::into_inner) = found;
        }
        Ok(())
    }

    /// Where titles from the archive lie, if there is a store for them.
    pub(crate) fn archive(&self) -> Option<&Library> {
        self.archive.as_ref()
    }

    /// A title comes into the store.
    pub(crate) fn arrives(&self, title: TitleName, arriving: Arc<Arriving>) {
        self.arriving.write().unwrap_or_else(PoisonError::into_inner).insert(title, arriving);
    }

    /// A title does not come, or was found whole.
    pub(crate) fn stays_away(&self, title: &TitleName) {
        self.arriving.write().unwrap_or_else(PoisonError::into_inner).remove(title);
    }

    /// This version of a title, if it is on its way.
    pub(crate) fn arriving(&self, title: &TitleName, version: Hash) -> Option<Arc<Arriving>> {
        let arriving = self.arriving.read().unwrap_or_else(PoisonError::into_inner);
        arriving.get(title).filter(|arriving| arriving.hash == version).cloned()
    }

    /// What has arrived and was found in its place need not be followed any more.
    pub(crate) fn forget_arrived(&self) {
        let archived = self.archived.read().unwrap_or_else(PoisonError::into_inner);
        let shown = |title: &TitleName, hash| archived.get(title).is_some_and(|t| t.manifest_hash == hash);
        let mut arriving = self.arriving.write().unwrap_or_else(PoisonError::into_inner);
        arriving.retain(|title, arriving| !(arriving.is_whole() && shown(title, arriving.hash)));
    }

    /// What another version has taken the place of stays open: the system keeps
    /// files that are open, whoever deletes them.
    fn keep_replaced(&self, known: &Titles, found: &Titles) {
        let mut former = self.former.write().unwrap_or_else(PoisonError::into_inner);
        for (name, old) in known {
            let replaced = found.get(name).is_some_and(|new| new.manifest_hash != old.manifest_hash);
            if replaced && former.len() < MAX_FORMER {
                former.insert((name.clone(), old.manifest_hash), Arc::clone(old));
            }
        }
    }

    /// Nobody watches this version any more.
    pub fn release(&self, title: &TitleName, version: Hash) {
        let mut former = self.former.write().unwrap_or_else(PoisonError::into_inner);
        former.remove(&(title.clone(), version));
    }

    /// The library on disk.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// What is here, for the machine.
    pub fn held(&self) -> Vec<Held> {
        let archived = self.archived.read().unwrap_or_else(PoisonError::into_inner).clone();
        let archived = archived.into_values().map(|title| Held { archived: true, ..title.held() });
        self.titles().values().map(|title| title.held()).chain(archived).collect()
    }

    /// What is asked for of this version of a title, with its hash, if it is in
    /// memory.
    pub fn recent(&self, request: &StreamRequest, version: Hash) -> Option<(Bytes, Hash)> {
        let StreamRequest::Chunk(chunk) = request else { return None };
        let title = self.version(request.title(), version)?;
        let (hash, bytes) = self.recent.get(&chunk.id)?;
        // It may be that of another version.
        let info = title.folder.manifest().chunk(chunk.id.block, chunk.id.layer)?;
        (info.hash == hash).then_some((bytes, hash))
    }

    /// The manifest of this version of a title, as it travels. The first time it
    /// computes.
    pub fn manifest(&self, title: &TitleName, version: Hash) -> Option<PackedManifest> {
        if let Some(arriving) = self.arriving(title, version) {
            return Some(arriving.packed_manifest()).filter(|_| arriving.manifest.title == *title);
        }
        Some(self.version(title, version)?.folder.packed_manifest())
    }

    /// What is asked for of this version of a title, with its hash. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The name of the refusal: above all [`Refusal::Damaged`].
    pub fn read(&self, request: &StreamRequest, version: Hash) -> Result<(Bytes, Hash), Refusal> {
        if let Some(found) = self.recent(request, version) {
            return Ok(found);
        }
        let StreamRequest::Chunk(chunk) = request else { return Err(Refusal::NoSuchTitle) };
        if let Some(arriving) = self.arriving(&chunk.id.title, version) {
            let info = arriving.manifest.chunk(chunk.id.block, chunk.id.layer).ok_or(Refusal::NoSuchChunk)?;
            // It was checked when it came.
            let bytes = arriving.read(&chunk.id).map_err(|_| Refusal::Damaged)?;
            return Ok((bytes, info.hash));
        }
        let title = self.version(&chunk.id.title, version).ok_or(Refusal::NoSuchTitle)?;
        let (bytes, hash) = title.read(&chunk.id)?;
        self.recent.insert(chunk.id.clone(), (hash, bytes.clone()));
        Ok((bytes, hash))
    }

    fn titles(&self) -> Titles {
        self.titles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of a chunk of this version that was read, what is asked for: all of it, or its
    /// first half, which is a slice of the same bytes.
    ///
    /// # Errors
    /// It does not come in halves.
    pub fn part(
        &self,
        request: &StreamRequest,
        version: Hash,
        (bytes, hash): (Bytes, Hash),
    ) -> Result<(Bytes, Hash), Refusal> {
        let StreamRequest::Chunk(ChunkRequest { id, part: Part::First, .. }) = request else {
            return Ok((bytes, hash));
        };
        let half = match self.arriving(&id.title, version) {
            Some(arriving) => arriving.manifest.half(id.block, id.layer).copied(),
            None => self
                .version(&id.title, version)
                .and_then(|title| title.folder.manifest().half(id.block, id.layer).copied()),
        };
        let half = half.ok_or(Refusal::NoSuchChunk)?;
        let length = usize::try_from(half.length).ok().filter(|length| *length <= bytes.len());
        Ok((bytes.slice(..length.ok_or(Refusal::Damaged)?), half.hash))
    }

    fn version(&self, name: &TitleName, version: Hash) -> Option<Arc<Title>> {
        let titles = self.titles.read().unwrap_or_else(PoisonError::into_inner);
        let now = titles.get(name).filter(|title| title.manifest_hash == version).cloned();
        drop(titles);
        let archived = || {
            let archived = self.archived.read().unwrap_or_else(PoisonError::into_inner);
            archived.get(name).filter(|title| title.manifest_hash == version).cloned()
        };
        let now = now.or_else(archived);
        let former = || self.former.read().unwrap_or_else(PoisonError::into_inner);
        now.or_else(|| former().get(&(name.clone(), version)).cloned())
    }
}

/// The titles in a folder. What did not change stays open; what cannot be read is
/// reported and hides nothing else.
fn look_through(library: &Library, known: &Titles) -> Result<Titles, StoreError> {
    let mut found = BTreeMap::new();
    let unreadable = |source| LibraryError::Io { action: "read", path: library.path().to_owned(), source };
    let entries = fs::read_dir(library.path()).map_err(unreadable)?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()).take(MAX_TITLES) {
        let Some(name) = title_name(&path) else { continue };
        if let Some(title) = known.get(&name).filter(|title| title.is_unchanged(&path)) {
            found.insert(name, Arc::clone(title));
            continue;
        }
        let Ok(stamp) = Stamp::of(&path.join(MANIFEST_FILE)) else { continue };
        match TitleFolder::open(&path) {
            Ok(folder) => {
                found.insert(name, Arc::new(Title::new(folder, stamp)));
            }
            Err(error) => {
                let why = error.to_string();
                warn!(path = %path.display(), why, "a folder of the library is no title");
            }
        }
    }
    Ok(found)
}

/// The title that a folder would hold; nothing for hidden ones and files.
fn title_name(path: &Path) -> Option<TitleName> {
    path.is_dir().then(|| path.file_name()?.to_str()?.parse().ok()).flatten()
}

impl Stamp {
    fn of(file: &Path) -> io::Result<Self> {
        let file = fs::metadata(file)?;
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

fn stamps(manifest: &Manifest, folder: &Path) -> Vec<Option<Stamp>> {
    manifest.layers.iter().map(|layer| Stamp::of(&folder.join(&layer.file)).ok()).collect()
}

/// What a layer takes on disk, but for its index.
fn size(manifest: &Manifest, layer: Layer) -> ByteCount {
    let init = manifest.layers.get(layer.index()).map_or(0, |info| info.init.len());
    let chunks = manifest.blocks.iter().filter_map(|block| block.chunks.get(layer.index()));
    let bytes = chunks.fold(0_u64, |sum, chunk| sum.saturating_add(chunk.length));
    ByteCount(bytes.saturating_add(u64::try_from(init).unwrap_or(u64::MAX)))
}

/// How long each chunk is, in bytes and in time.
pub(crate) fn lengths(manifest: &Manifest) -> ChunkLengths {
    let ticks = |block: &BlockInfo| Span::from_ticks(block.duration, manifest.timescale);
    let of = |layer: Layer| {
        let chunks = manifest.blocks.iter().map(|block| block.chunks.get(layer.index()));
        chunks.map(|chunk| ByteCount(chunk.map_or(0, |chunk| chunk.length))).collect()
    };
    let layers = Layer::first(manifest.top_quality().layers()).map(of).collect();
    ChunkLengths::new(manifest.blocks.iter().map(ticks).collect(), layers)
}

/// What the machine has to know of a title of which these layers are here.
pub(crate) fn described(
    manifest: &Manifest,
    length: usize,
    hash: Hash,
    layers: Vec<Layer>,
    lengths: Arc<ChunkLengths>,
) -> Held {
    Held {
        summary: manifest.summary(),
        manifest_length: u64::try_from(length).unwrap_or(u64::MAX),
        manifest_hash: hash,
        blocks: manifest.block_count(),
        layers,
        lengths,
        sizes: Layer::first(manifest.top_quality().layers()).map(|layer| size(manifest, layer)).collect(),
        archived: false,
    }
}

impl Title {
    fn new(folder: TitleFolder, stamp: Stamp) -> Self {
        let manifest = Arc::clone(folder.manifest());
        let unread = || manifest.blocks.iter().map(|_| AtomicBool::new(false)).collect();
        let verified = manifest.layers.iter().map(|_| unread()).collect();
        let manifest_hash = Hash::of(folder.manifest_bytes());
        let files = stamps(&manifest, folder.path());
        let lengths = Arc::new(lengths(&manifest));
        Self { folder, manifest_hash, lengths, stamp, files, verified }
    }

    /// Whether all that lies there is what was opened.
    fn is_unchanged(&self, path: &Path) -> bool {
        Stamp::of(&path.join(MANIFEST_FILE)).is_ok_and(|stamp| stamp == self.stamp)
            && stamps(self.folder.manifest(), path) == self.files
    }

    fn held(&self) -> Held {
        let (manifest, length) = (self.folder.manifest(), self.folder.manifest_bytes().len());
        let layers = self.folder.layers().collect();
        let lengths = Arc::clone(&self.lengths);
        described(manifest, length, self.manifest_hash, layers, lengths)
    }

    /// Reads a chunk; the first time, and until it was right once, it is
    /// checked against its hash.
    fn read(&self, id: &ChunkId) -> Result<(Bytes, Hash), Refusal> {
        let info = self.folder.manifest().chunk(id.block, id.layer).ok_or(Refusal::NoSuchChunk)?;
        let bytes = self.folder.read_chunk(id.block, id.layer).map_err(|error| match error {
            LibraryError::NotKept(_) => Refusal::LayerNotOffered,
            LibraryError::NoSuchChunk(_) => Refusal::NoSuchChunk,
            other => {
                error!(chunk = %id, error = %other, "a stored chunk cannot be read");
                Refusal::Damaged
            }
        })?;
        let verified = self.verified(id.block, id.layer).ok_or(Refusal::NoSuchChunk)?;
        if !verified.load(Ordering::Relaxed) {
            self.folder.verified(id.block, id.layer, bytes.clone()).map_err(|error| {
                error!(chunk = %id, %error, "a stored chunk is damaged");
                Refusal::Damaged
            })?;
            verified.store(true, Ordering::Relaxed);
        }
        Ok((bytes, info.hash))
    }

    fn verified(&self, block: u32, layer: Layer) -> Option<&AtomicBool> {
        self.verified.get(layer.index())?.get(usize::try_from(block).ok()?)
    }
}
