//! Where a film comes from.

use crate::error::EncodeError;
use gstreamer as gst;
use media::Hash;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How much of a file's start is looked at to know it again.
const HEAD: u64 = 1 << 20;

/// Where a film comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input, which is read once: its sound is always made anew.
    Pipe,
    /// An address that `GStreamer` can open, of an HLS or DASH playlist for instance.
    Address(String),
}

impl<P: Into<PathBuf>> From<P> for Input {
    fn from(path: P) -> Self {
        Self::File(path.into())
    }
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Pipe => f.write_str("standard input"),
            Self::Address(address) => f.write_str(address),
        }
    }
}

impl Input {
    /// The name that a title of it has if nobody gives another one.
    pub(crate) fn name(&self) -> String {
        let path = match self {
            Self::File(path) => path,
            Self::Pipe => return String::new(),
            Self::Address(address) => Path::new(address.split(['?', '#']).next().unwrap_or_default()),
        };
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// What tells this film from another one of the same name: a file's length
    /// and the hash of its first mebibyte.
    pub(crate) fn identity(&self) -> Result<String, EncodeError> {
        let Self::File(path) = self else { return Ok(self.to_string()) };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let length = regular(path)?;
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut head = Vec::new();
        file.take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        Ok(format!("{length} bytes, {}", Hash::of(&head)))
    }

    /// What `GStreamer` opens; a file must be there and hold something.
    pub(crate) fn uri(&self) -> Result<String, EncodeError> {
        let path = match self {
            Self::File(path) => path,
            Self::Pipe => return Ok("fd://0".into()),
            Self::Address(address) => return Ok(address.clone()),
        };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let length = regular(path)?;
        let whole = path.canonicalize().map_err(unreadable)?;
        std::fs::File::open(&whole).map_err(unreadable)?;
        if length == 0 {
            return Err(EncodeError::NoFilm { why: "it is empty".into() });
        }
        let uri = gst::glib::filename_to_uri(&whole, None)
            .map_err(|error| unreadable(std::io::Error::other(error.to_string())))?;
        Ok(uri.into())
    }
}

/// The length of a file. Nothing else is opened: a named pipe would wait for a
/// writer without end.
fn regular(path: &Path) -> Result<u64, EncodeError> {
    let unreadable = |source| EncodeError::Unreadable { path: path.to_owned(), source };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if found.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    if !found.is_file() {
        let why = "it is a pipe or a device; `lamina encode -` reads standard input";
        return Err(unreadable(std::io::Error::other(why)));
    }
    Ok(found.len())
}
