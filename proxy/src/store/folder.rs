//! How chunks lie in a folder, and what is found there.
//!
//! `lamina-chunks/TITLE/title.json` is the manifest as it was sent, and beside
//! it `BLOCK.LAYER` is a chunk, bare: its length and hash stand in the manifest.
//! There is no journal that could disagree with the files. What is being written
//! has a name that begins with a dot. Nothing is synced to the disk: a chunk that
//! a power cut tore is found out by its hash and fetched again.

use super::Title;
use bytes::Bytes;
use media::manifest::{MANIFEST_FILE, MAX_MANIFEST_BYTES};
use media::{ChunkId, Layer, Manifest, TitleName};
use std::fs::{self, DirBuilder, DirEntry, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use tracing::warn;

/// All that is ours in a folder lies below this name, and whatever else lies
/// there is removed.
const CHUNKS: &str = "lamina-chunks";
const LOCK: &str = "lamina-cache.lock";
/// What is being written, by the one writer there is.
const UNFINISHED: &str = ".new";
/// The most titles that are found again.
const MAX_TITLES: usize = 1024;
/// The most bytes of manifests that are found again.
const MAX_MANIFESTS: u64 = 4 * MAX_MANIFEST_BYTES;

/// A folder of chunks, ours alone as long as this lives.
#[derive(Debug)]
pub(super) struct Folder {
    chunks: PathBuf,
    /// Locked; the system lets go of it when the process ends, however it ends.
    _lock: File,
}

/// A title that an earlier life left.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: TitleName,
    pub(super) title: Title,
    pub(super) chunks: Vec<(u32, Layer)>,
}

/// A cache folder that cannot be used. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process keeps its chunks there.
    #[error("the cache {} is in use by another proxy", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The disk refuses.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl Folder {
    /// Takes the folder, made if it is missing.
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        let chunks = folder.join(CHUNKS);
        make(folder).map_err(StoreError::io("make", folder))?;
        let path = folder.join(LOCK);
        // Not truncated: it may be another's.
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.map_err(StoreError::io("make", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { folder: folder.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
        }
        make(&chunks).map_err(StoreError::io("make", &chunks))?;
        Ok(Self { chunks, _lock: lock })
    }

    fn title_path(&self, name: &TitleName) -> PathBuf {
        self.chunks.join(name.as_str())
    }

    pub(super) fn chunk_path(&self, id: &ChunkId) -> PathBuf {
        self.title_path(&id.title).join(file_name(id.block, id.layer))
    }

    /// What is there; the rest is removed.
    pub(super) fn scan(&self) -> Result<Vec<Found>, StoreError> {
        let entries = fs::read_dir(&self.chunks).map_err(StoreError::io("read", &self.chunks))?;
        let mut found = Vec::new();
        let mut room = MAX_MANIFESTS;
        for entry in entries.filter_map(Result::ok) {
            let title = if found.len() < MAX_TITLES { find(&entry, room) } else { Err("there are too many") };
            match title {
                Ok(title) => {
                    let length = u64::try_from(title.title.bytes.len()).unwrap_or(u64::MAX);
                    room = room.saturating_sub(length);
                    found.push(title);
                }
                Err(why) => clear(&entry.path(), why),
            }
        }
        Ok(found)
    }

    /// Writes a title's manifest into a folder of its own.
    pub(super) fn write_title(&self, name: &TitleName, manifest: &[u8]) -> io::Result<()> {
        let folder = self.title_path(name);
        make(&folder)?;
        write(&folder, MANIFEST_FILE, manifest)
    }

    /// Writes a chunk of a title that was written.
    pub(super) fn write_chunk(&self, id: &ChunkId, bytes: &[u8]) -> io::Result<()> {
        write(&self.title_path(&id.title), &file_name(id.block, id.layer), bytes)
    }

    pub(super) fn remove_title(&self, name: &TitleName) -> io::Result<()> {
        gone(fs::remove_dir_all(self.title_path(name)))
    }

    pub(super) fn remove_chunk(&self, id: &ChunkId) -> io::Result<()> {
        gone(fs::remove_file(self.chunk_path(id)))
    }
}

/// What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Films may be for members only, so their copies are for the owner only.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Out of sight until it is complete.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(UNFINISHED);
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if written.is_err() {
        // A full disk has room again then.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn file_name(block: u32, layer: Layer) -> String {
    format!("{block}.{}", layer.0)
}

fn parse_file_name(name: &str) -> Option<(u32, Layer)> {
    let (block, layer) = name.split_once('.')?;
    let (block, layer) = (block.parse().ok()?, Layer(layer.parse().ok()?));
    // Nothing else may mean the same, such as `07.0`.
    (file_name(block, layer) == name).then_some((block, layer))
}

/// The title in a folder with all its chunks, or what is wrong with it.
fn find(entry: &DirEntry, room: u64) -> Result<Found, &'static str> {
    let name = entry.file_name();
    let name: TitleName = name.to_str().and_then(|name| name.parse().ok()).ok_or("it names no title")?;
    // Of a link this tells that it is one, and it is removed, not what it points to.
    if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        return Err("it is no folder");
    }
    let folder = entry.path();
    let title = read_title(&folder, room).map_err(|_| "its manifest cannot be read")?;
    let title = title.filter(|title| title.manifest.title == name).ok_or("its manifest is damaged")?;
    let mut chunks = Vec::new();
    for file in fs::read_dir(&folder).map_err(|_| "it cannot be read")?.filter_map(Result::ok) {
        match find_chunk(&file, &title.manifest) {
            Ok(Some(chunk)) => chunks.push(chunk),
            Ok(None) => {}
            Err(why) => clear(&file.path(), why),
        }
    }
    Ok(Found { name, title, chunks })
}

fn read_title(folder: &Path, room: u64) -> io::Result<Option<Title>> {
    let mut bytes = Vec::new();
    let limit = room.min(MAX_MANIFEST_BYTES);
    File::open(folder.join(MANIFEST_FILE))?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Ok(None);
    }
    let bytes = Bytes::from(bytes);
    Ok(Manifest::parse(&bytes).ok().map(|manifest| Title::new(manifest, bytes)))
}

/// The chunk in a file; nothing for the manifest.
fn find_chunk(file: &DirEntry, manifest: &Manifest) -> Result<Option<(u32, Layer)>, &'static str> {
    let name = file.file_name();
    let name = name.to_str().ok_or("it names no chunk")?;
    if name == MANIFEST_FILE {
        return Ok(None);
    }
    if name == UNFINISHED {
        return Err("it was never finished");
    }
    let (block, layer) = parse_file_name(name).ok_or("it names no chunk")?;
    let info = manifest.chunk(block, layer).ok_or("the title has no such chunk")?;
    let file = file.metadata().map_err(|_| "it cannot be looked at")?;
    if file.is_file() && file.len() == info.length {
        Ok(Some((block, layer)))
    } else {
        Err("it has another length")
    }
}

/// Removes what does not belong there.
fn clear(path: &Path, why: &'static str) {
    warn!(path = %path.display(), why, "removed from the cache");
    let folder = fs::symlink_metadata(path).is_ok_and(|what| what.is_dir());
    let removed = if folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = gone(removed) {
        warn!(path = %path.display(), %error, "it cannot be removed");
    }
}
