//! Which start of a node is the later one, whatever its clock says.
//!
//! Others tell one life of a node from the next by a number that each start must
//! raise. It is the clock's, in milliseconds, unless that was set back since the
//! last start: so the last number lies in the library, and the next one is above
//! it. Without the file, or where it cannot be written, the clock alone counts.

use crate::memory::replace;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use tracing::warn;

/// The file, hidden from whoever looks for titles.
const FILE: &str = ".start";
/// The longest number and its end of line.
const MAX_BYTES: u64 = 21;
/// A number further ahead of the clock than this is damage: ten years.
const MAX_AHEAD: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// The number of this start, `clock` or one above the last; it is on disk before
/// anybody hears of it. Blocks on the disk.
pub(crate) fn next(library: &Path, clock: u64) -> u64 {
    let path = library.join(FILE);
    let last = last(&path).unwrap_or_else(|error| {
        warn!(path = %path.display(), %error, "the last start is unknown: the clock alone counts");
        None
    });
    let last = last.filter(|last| *last <= clock.saturating_add(MAX_AHEAD));
    let number = last.map_or(clock, |last| clock.max(last.saturating_add(1)));
    if let Err(error) = replace(library, FILE, &format!("{number}\n")) {
        warn!(path = %path.display(), %error, "the start is not remembered: the clock must not be set back");
    }
    number
}

fn last(path: &Path) -> io::Result<Option<u64>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    text.trim().parse().map(Some).map_err(io::Error::other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_clock_that_was_set_back_does_not_make_an_earlier_start() {
        let folder = tempfile::tempdir().unwrap();
        let start = |clock| next(folder.path(), clock);
        assert_eq!([5_000, 6_000, 1_000, 1_000, 9_000].map(start), [5_000, 6_000, 6_001, 6_002, 9_000]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written remains");
    }

    #[test]
    fn damage_on_disk_is_no_start() {
        let folder = tempfile::tempdir().unwrap();
        for damage in ["", "what", "18446744073709551615", "99999999999999999999999"] {
            fs::write(folder.path().join(FILE), damage).unwrap();
            assert_eq!(next(folder.path(), 7_000), 7_000, "{damage:?}");
        }
        assert_eq!(next(folder.path(), 6_000), 7_001);
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(next(&folder.path().join("gone"), 7_000), 7_000);
    }
}
