//! Writing a title, out of sight until it is complete.

use super::{HIDDEN, Library, LibraryError, TitleFolder};
use crate::class::TitleClass;
use crate::layer::Layer;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::title::TitleName;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells apart what one process writes at the same time.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A title being written. Dropping it before [`TitleWriter::finish`] removes
/// all that was written; the library looks as before.
#[derive(Debug)]
pub struct TitleWriter {
    library: Library,
    title: TitleName,
    replace: bool,
    folder: PathBuf,
    /// Each layer's file, if it is written, and the number of bytes in it.
    files: Vec<Option<(File, PathBuf, u64)>>,
    finished: bool,
    /// Whether the folder is somebody else's to remove.
    lent: bool,
}

impl TitleWriter {
    /// Starts a title with one file per layer, Base first.
    ///
    /// # Errors
    /// [`LibraryError::Exists`] if there is such a title and `replace` is not
    /// asked for; anything that the disk refuses.
    pub fn create(
        library: &Library,
        title: TitleName,
        replace: bool,
        files: &[String],
    ) -> Result<Self, LibraryError> {
        Self::create_some(library, title, replace, files, |_| true)
    }

    /// Goes on in a folder that somebody else made and removes, with each layer's
    /// file as far as it is stated; 0 for a new one.
    ///
    /// # Errors
    /// As [`TitleWriter::create`].
    pub fn take_up(
        library: &Library,
        title: TitleName,
        replace: bool,
        folder: PathBuf,
        files: &[(String, u64)],
    ) -> Result<Self, LibraryError> {
        if !replace && library.contains(&title) {
            return Err(LibraryError::Exists { title, library: library.path().to_owned() });
        }
        let mut opened = Vec::new();
        for (file, length) in files {
            let path = folder.join(file);
            let open = File::options().write(true).create(true).truncate(false).open(&path);
            let cut = open.and_then(|mut file| {
                file.set_len(*length)?;
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            });
            opened.push(Some((cut.map_err(LibraryError::io("write", &path))?, path, *length)));
        }
        let library = library.clone();
        Ok(Self { library, title, replace, folder, files: opened, finished: false, lent: true })
    }

    /// Makes sure that everything is on the disk and gives the folder another
    /// name, as a part of a title that others complete. A part of that name is
    /// replaced.
    pub fn finish_part(mut self, name: &str) -> Result<PathBuf, LibraryError> {
        for (file, path, _) in self.files.iter().flatten() {
            file.sync_all().map_err(LibraryError::io("write", path))?;
        }
        sync_folder(&self.folder)?;
        let target = self.library.path().join(name);
        if target.symlink_metadata().is_ok() {
            remove(&target).map_err(LibraryError::io("replace", &target))?;
        }
        fs::rename(&self.folder, &target).map_err(LibraryError::io("write", &target))?;
        self.finished = true;
        sync_folder(self.library.path())?;
        Ok(target)
    }

    /// As [`TitleWriter::create`], with only those files that `wanted` picks by
    /// their layer's number.
    pub(super) fn create_some(
        library: &Library,
        title: TitleName,
        replace: bool,
        files: &[String],
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Self, LibraryError> {
        if !replace && library.contains(&title) {
            return Err(LibraryError::Exists { title, library: library.path().to_owned() });
        }
        let folder = hidden(library, &title, "new");
        fs::create_dir(&folder).map_err(LibraryError::io("make", &folder))?;
        let library = library.clone();
        let mut writer =
            Self { library, title, replace, folder, files: Vec::new(), finished: false, lent: false };
        for (number, file) in files.iter().enumerate() {
            let path = writer.folder.join(file);
            let make = || File::create_new(&path).map_err(LibraryError::io("make", &path));
            let file = wanted(number).then(make).transpose()?;
            writer.files.push(file.map(|file| (file, path, 0)));
        }
        Ok(writer)
    }

    /// Appends bytes to a layer's file and returns the offset of the first.
    ///
    /// # Errors
    /// What the disk refuses: a full one, for instance. The title is then of no
    /// use: drop it.
    pub fn append(&mut self, layer: Layer, bytes: &[u8]) -> Result<u64, LibraryError> {
        let Some((file, path, length)) = self.files.get_mut(layer.index()).and_then(Option::as_mut) else {
            let none = std::io::Error::other("the title has no such layer");
            return Err(LibraryError::io("write", &self.folder)(none));
        };
        file.write_all(bytes).map_err(LibraryError::io("write", path))?;
        let offset = *length;
        *length = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(offset)
    }

    /// Writes bytes anywhere into a layer's file, for chunks that come out of order.
    pub(super) fn put(&mut self, layer: Layer, offset: u64, bytes: &[u8]) -> Result<(), LibraryError> {
        let Some((file, path, length)) = self.files.get_mut(layer.index()).and_then(Option::as_mut) else {
            let none = std::io::Error::other("the title has no such layer");
            return Err(LibraryError::io("write", &self.folder)(none));
        };
        file.write_all_at(bytes, offset).map_err(LibraryError::io("write", path))?;
        let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        *length = end.max(*length);
        Ok(())
    }

    /// Writes bytes over the first ones of a layer's file, which has at least as
    /// many: an init segment whose values are known only at the end.
    pub fn overwrite_start(&mut self, layer: Layer, bytes: &[u8]) -> Result<(), LibraryError> {
        match self.files.get_mut(layer.index()).and_then(Option::as_mut) {
            Some((file, path, length)) if u64::try_from(bytes.len()).is_ok_and(|n| n <= *length) => {
                file.write_all_at(bytes, 0).map_err(LibraryError::io("write", path))
            }
            Some(_) | None => {
                let beyond = std::io::Error::other("the layer is not that long");
                Err(LibraryError::io("write", &self.folder)(beyond))
            }
        }
    }

    /// The folder that is being filled, for files that come from elsewhere.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the manifest, makes sure that everything is on the disk, and
    /// shows the title.
    pub fn finish(self, manifest: &Manifest) -> Result<TitleFolder, LibraryError> {
        let invalid = |source| LibraryError::Manifest { path: self.folder.clone(), source };
        let bytes = manifest.to_bytes().map_err(invalid)?;
        self.finish_with(&bytes)
    }

    /// As [`TitleWriter::finish`], with a manifest's bytes as they are.
    pub(super) fn finish_with(mut self, manifest: &[u8]) -> Result<TitleFolder, LibraryError> {
        let path = self.folder.join(MANIFEST_FILE);
        let mut file = File::create_new(&path).map_err(LibraryError::io("make", &path))?;
        file.write_all(manifest).map_err(LibraryError::io("write", &path))?;
        self.files.push(Some((file, path, 0)));
        for (file, path, _) in self.files.iter().flatten() {
            file.sync_all().map_err(LibraryError::io("write", path))?;
        }
        sync_folder(&self.folder)?;
        self.show()?;
        sync_folder(self.library.path())?;
        TitleFolder::open(self.library.title_path(&self.title))
    }

    /// Renames the folder to the title's name. What it replaces is set aside
    /// first and put back if that fails.
    fn show(&mut self) -> Result<(), LibraryError> {
        let target = self.library.title_path(&self.title);
        let mut aside = None;
        if self.library.contains(&self.title) {
            if !self.replace {
                let library = self.library.path().to_owned();
                return Err(LibraryError::Exists { title: self.title.clone(), library });
            }
            let old = hidden(&self.library, &self.title, "old");
            fs::rename(&target, &old).map_err(LibraryError::io("replace", &target))?;
            aside = Some(old);
        }
        if let Err(error) = fs::rename(&self.folder, &target) {
            if let Some(old) = &aside {
                // Nothing better can be done if this fails too.
                let _ = fs::rename(old, &target);
            }
            return Err(LibraryError::io("write", &target)(error));
        }
        self.finished = true;
        if let Some(old) = aside {
            // The new title is complete; remains of the old one are hidden.
            let _ = remove(&old);
        }
        Ok(())
    }
}

impl Drop for TitleWriter {
    fn drop(&mut self) {
        if !self.finished && !self.lent {
            // A hidden folder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Classes a title anew, without encoding it again: its manifest is replaced, and
/// with it the version that the network knows. Whether it was of another class.
///
/// # Errors
/// There is no such title, or it cannot be read; what the disk refuses.
pub fn set_class(library: &Library, title: &TitleName, class: TitleClass) -> Result<bool, LibraryError> {
    let folder = library.title(title)?;
    if folder.manifest().class == class {
        return Ok(false);
    }
    let manifest = Manifest { class, ..folder.manifest().as_ref().clone() };
    let invalid = |source| LibraryError::Manifest { path: folder.path().to_owned(), source };
    let bytes = manifest.to_bytes().map_err(invalid)?;
    let (path, next) = (folder.path().join(MANIFEST_FILE), folder.path().join(format!(".{MANIFEST_FILE}")));
    let mut file = File::create(&next).map_err(LibraryError::io("make", &next))?;
    file.write_all(&bytes).map_err(LibraryError::io("write", &next))?;
    file.sync_all().map_err(LibraryError::io("write", &next))?;
    fs::rename(&next, &path).map_err(LibraryError::io("write", &path))?;
    sync_folder(folder.path())?;
    Ok(true)
}

/// Takes a title out of sight, then deletes it.
///
/// # Errors
/// There is no such title; what the disk refuses.
pub fn remove_title(library: &Library, title: &TitleName) -> Result<(), LibraryError> {
    let (target, old) = (library.title_path(title), hidden(library, title, "old"));
    fs::rename(&target, &old).map_err(LibraryError::io("delete", &target))?;
    remove(&old).map_err(LibraryError::io("delete", &old))
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn hidden(library: &Library, title: &TitleName, what: &str) -> PathBuf {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    library.path().join(format!("{HIDDEN}{what}-{}-{serial}-{title}", std::process::id()))
}

fn sync_folder(path: &Path) -> Result<(), LibraryError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(LibraryError::io("write", path))
}
