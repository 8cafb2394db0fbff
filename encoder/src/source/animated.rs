//! Animated pictures, by their first bytes.
//!
//! The reader of GIFs, that of libav in `GStreamer` 1.22 asks for more when it has seen the end of a
//! film, and is not told that there is nothing: it asks for ever. A copy with many
//! ends, one behind the other, satisfies it. The reader
//! of PNGs sees the first picture only.

use crate::error::EncodeError;
use crate::input::Input;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many of the byte that a GIF ends with.
const ENDS: u64 = 65_536;

/// Where an animated PNG says that it is one.
const HEAD: u64 = 4_096;

/// A copy of a GIF that is gone when it is closed.
pub(super) struct GifCopy(File);

impl GifCopy {
    /// Of a file that is a GIF; none of another one. An animated PNG is refused.
    pub(super) fn of(film: &Input) -> Result<Option<Self>, EncodeError> {
        let Input::File(path) = film else { return Ok(None) };
        let unreadable = |source| EncodeError::Unreadable { path: path.clone(), source };
        let mut head = Vec::new();
        let mut file = File::open(path).map_err(unreadable)?;
        (&mut file).take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        if animated_png(&head) {
            let why = "of an animated PNG only the first picture would be seen".to_owned();
            return Err(EncodeError::NoFilm { why });
        }
        if !head.starts_with(b"GIF8") {
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

fn animated_png(head: &[u8]) -> bool {
    let says = |kind: &[u8]| head.windows(kind.len()).position(|bytes| bytes == kind);
    // `acTL` comes before the first picture's data.
    head.starts_with(b"\x89PNG\r\n\x1a\n")
        && says(b"acTL").is_some_and(|at| says(b"IDAT").is_none_or(|data| at < data))
}
