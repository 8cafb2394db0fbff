//! A library: a folder with one folder per title.
//!
//! `LIBRARY/TITLE/` holds `title.json` (the manifest) and one file per layer,
//! named in the manifest. A node's folder may hold only some of the layers.
//! Files are read by position. What is being written lies in a hidden folder
//! of the library until it is complete, and is renamed then: a half-written
//! title is never visible.

mod copy;
mod folder;
mod gather;
mod receive;
mod writer;

pub use copy::copy_layers;
pub use folder::TitleFolder;
pub use gather::{Gathered, TitleGatherer};
pub use receive::{LayerReceiver, remove_layer};
pub use writer::{TitleWriter, remove_title, set_class};

use crate::chunk::ChunkId;
use crate::container::ContainerError;
use crate::manifest::ManifestError;
use crate::title::{TitleName, TitleSummary};
use std::io;
use std::path::{Path, PathBuf};

/// Folders of a library that start with this are no titles.
const HIDDEN: char = '.';

/// A folder with titles.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
}

/// What a library holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The titles that can be read, by name.
    pub titles: Vec<TitleSummary>,
    /// Folders that hold no readable title, and why.
    pub unreadable: Vec<(PathBuf, LibraryError)>,
}

impl Library {
    /// Opens an existing folder.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, LibraryError> {
        let path = path.into();
        // Listing it tells at once what would fail later.
        std::fs::read_dir(&path).map_err(LibraryError::io("read", &path))?;
        Ok(Self { path })
    }

    /// Opens a folder and makes it first if it is not there.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, LibraryError> {
        let path = path.into();
        std::fs::create_dir_all(&path).map_err(LibraryError::io("make", &path))?;
        Self::open(path)
    }

    /// Where the library lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of this title, whether it is there or not.
    pub fn title_path(&self, name: &TitleName) -> PathBuf {
        self.path.join(name.as_str())
    }

    /// Whether there is a title of this name, readable or not.
    pub fn contains(&self, name: &TitleName) -> bool {
        self.title_path(name).symlink_metadata().is_ok()
    }

    /// Lists the titles. A folder that holds no readable title is reported and
    /// does not hide the others.
    pub fn titles(&self) -> Result<Listing, LibraryError> {
        let mut listing = Listing::default();
        let entries = std::fs::read_dir(&self.path).map_err(LibraryError::io("read", &self.path))?;
        for entry in entries {
            let path = entry.map_err(LibraryError::io("read", &self.path))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with(HIDDEN) || !path.is_dir() {
                continue;
            }
            match TitleFolder::open(&path) {
                Ok(title) => listing.titles.push(title.manifest().summary()),
                Err(error) => listing.unreadable.push((path, error)),
            }
        }
        listing.titles.sort_by(|one, other| one.title.cmp(&other.title));
        listing.unreadable.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(listing)
    }

    /// Opens a title: its manifest and the layer files that are there.
    pub fn title(&self, name: &TitleName) -> Result<TitleFolder, LibraryError> {
        if !self.contains(name) {
            return Err(LibraryError::NoSuchTitle { title: name.clone(), library: self.path.clone() });
        }
        TitleFolder::open(self.title_path(name))
    }
}

/// Why a library or a title in it cannot be used. Reading changes nothing; when
/// writing fails, nothing of the new title remains.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The operating system refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried: `read`, `write`, `make` and so on.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There is no title of this name.
    #[error("there is no title {title} in {library}")]
    NoSuchTitle {
        /// The name.
        title: TitleName,
        /// The folder of the library.
        library: PathBuf,
    },
    /// There is a title of this name already.
    #[error("there is a title {title} in {library} already")]
    Exists {
        /// The name.
        title: TitleName,
        /// The folder of the library.
        library: PathBuf,
    },
    /// The folder's name and its manifest disagree.
    #[error("{path} holds the title {title}")]
    Misnamed {
        /// The folder.
        path: PathBuf,
        /// The name in the manifest.
        title: TitleName,
    },
    /// The manifest cannot be believed.
    #[error("the manifest in {path} is of no use")]
    Manifest {
        /// The title's folder.
        path: PathBuf,
        /// What is wrong with it.
        source: ManifestError,
    },
    /// The layer is not in this folder.
    #[error("{0} is not kept here")]
    NotKept(ChunkId),
    /// The title has no such block or layer.
    #[error("there is no chunk {0}")]
    NoSuchChunk(ChunkId),
    /// The layer's file ends before the chunk does.
    #[error("the file of chunk {0} is cut short")]
    CutShort(ChunkId),
    /// What should be written is not of the container's form.
    #[error("the title cannot be written")]
    Container(#[from] ContainerError),
}

impl LibraryError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

#[cfg(test)]
mod tests;
