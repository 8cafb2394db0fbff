//! Files that are whole or absent, and private from their first byte.

use super::{KeysError, MAX_PEM};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    Owner,
    Everybody,
}

/// Makes a folder, and those above it, for the owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), KeysError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(writing(path))
}

/// Writes a file that must not exist yet.
pub(super) fn create(path: &Path, bytes: &[u8], reader: Reader) -> Result<(), KeysError> {
    let draft = Draft::write(path, bytes, reader)?;
    // Unlike a rename, a link never replaces.
    fs::hard_link(&draft.0, path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeysError::Exists { path: path.to_owned() },
        _ => KeysError::Write { path: path.to_owned(), source },
    })
}

/// Writes a file in place of an older one.
pub(super) fn replace(path: &Path, bytes: &[u8], reader: Reader) -> Result<(), KeysError> {
    let draft = Draft::write(path, bytes, reader)?;
    fs::rename(&draft.0, path).map_err(writing(path))
}

/// Reads a whole text file of a reasonable size.
pub(super) fn read(path: &Path) -> Result<String, KeysError> {
    let failed = |source| KeysError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    fs::File::open(path).map_err(failed)?.take(MAX_PEM).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> KeysError {
    let path = path.to_owned();
    |source| KeysError::Write { path, source }
}

/// A file under a name of its own, gone when dropped.
struct Draft(PathBuf);

impl Draft {
    fn write(path: &Path, bytes: &[u8], reader: Reader) -> Result<Self, KeysError> {
        let mode = match reader {
            Reader::Owner => 0o600,
            Reader::Everybody => 0o644,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let unique = (std::process::id(), std::thread::current().id());
        let draft = Self(path.with_file_name(format!(".{name}.{unique:?}.draft")));
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&draft.0)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(writing(path))?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.0);
    }
}
