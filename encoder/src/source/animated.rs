//! GIFs as their reader needs them.
//!
//! That of libav in `GStreamer` 1.22 asks for more when it has seen the end of a
//! film, and is not told that there is nothing: it asks for ever. A copy with many
//! ends, one behind the other, satisfies it.

use crate::error::EncodeError;
use crate::input::Input;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many of the byte that a GIF ends with.
const ENDS: u64 = 65_536;

/// A copy that is gone when it is closed.
pub(super) struct Copy(File);

impl Copy {
    /// Of a file that is a GIF; none of another one.
    pub(super) fn of(film: &Input) -> Result<Option<Self>, EncodeError> {
        let Input::File(path) = film else { return Ok(None) };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let mut head = [0; 4];
        let mut file = File::open(path).map_err(unreadable)?;
        if file.read(&mut head).map_err(unreadable)? < head.len() || head != *b"GIF8" {
            return Ok(None);
        }
        let mut copy = nameless().map_err(unreadable)?;
        let written = copy.write_all(&head).and_then(|()| io::copy(&mut file, &mut copy));
        written.and_then(|_| io::copy(&mut io::repeat(b';').take(ENDS), &mut copy)).map_err(unreadable)?;
        Ok(Some(Self(copy)))
    }

    /// Under which the reader finds it.
    pub(super) fn uri(&self) -> String {
        format!("file:///proc/self/fd/{}", self.0.as_raw_fd())
    }
}

/// A file whose name is taken away at once.
fn nameless() -> io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("lamina-gif-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
