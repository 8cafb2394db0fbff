//! What a node remembers from one life to the next, in hidden files of its
//! library: which titles an operator has withdrawn. An origin that publishes by
//! itself would otherwise publish them again whenever it starts.

use media::TitleName;
use media::title::MAX_TITLE_BYTES;
use protocol::message::MAX_TITLES;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tokio::sync::watch;
use tracing::warn;

/// The file, hidden from whoever looks for titles: a name a line.
const FILE: &str = ".withdrawn";
/// The longest list: every title that a library may hold.
#[allow(clippy::as_conversions, reason = "both are small, and a constant cannot be converted otherwise")]
const MAX_BYTES: u64 = (MAX_TITLES * (MAX_TITLE_BYTES + 1)) as u64;

/// Titles that were withdrawn in earlier lives; none where the list is missing or
/// cannot be read. Blocks on the disk.
pub(crate) fn withdrawn(library: &Path) -> Vec<TitleName> {
    let path = library.join(FILE);
    read(&path).unwrap_or_else(|error| {
        warn!(path = %path.display(), %error, "which titles were withdrawn is not known any more");
        Vec::new()
    })
}

fn read(path: &Path) -> io::Result<Vec<TitleName>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let lines = BufReader::new(file.take(MAX_BYTES)).lines();
    lines.take(MAX_TITLES).map(|line| line?.parse().map_err(io::Error::other)).collect()
}

/// Begins to keep the list; each that is sent takes the place of the last.
pub(crate) fn keep_withdrawn(library: PathBuf) -> watch::Sender<Vec<TitleName>> {
    let (tell, mut told) = watch::channel(Vec::new());
    tokio::spawn(async move {
        while told.changed().await.is_ok() {
            let (titles, library) = (told.borrow_and_update().clone(), library.clone());
            let Ok(kept) = tokio::task::spawn_blocking(move || keep(&library, &titles)).await else { return };
            if let Err(error) = kept {
                warn!(%error, "what was withdrawn is not remembered: a restart publishes it again");
            }
        }
    });
    tell
}

fn keep(library: &Path, titles: &[TitleName]) -> io::Result<()> {
    let text: String = titles.iter().flat_map(|title| [title.as_str(), "\n"]).collect();
    replace(library, FILE, &text)
}

/// Writes a file of a folder beside its place, and then puts it there: nobody
/// ever finds half of it.
pub(crate) fn replace(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let next = folder.join(format!("{name}.next"));
    let mut file = File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, folder.join(name))?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn what_was_withdrawn_is_known_in_the_next_life() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(withdrawn(folder.path()), []);
        let titles: Vec<TitleName> = ["a film", "ein Märchen"].map(|name| name.parse().unwrap()).into();
        keep(folder.path(), &titles).unwrap();
        assert_eq!(withdrawn(folder.path()), titles);
        keep(folder.path(), &[]).unwrap();
        assert_eq!(withdrawn(folder.path()), []);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written remains");
    }

    #[test]
    fn a_damaged_list_is_none() {
        let folder = tempfile::tempdir().unwrap();
        for damage in [&b"../film\n"[..], b"\xff\xfe\n", b"\n", &[b'a'; 1000]] {
            fs::write(folder.path().join(FILE), damage).unwrap();
            assert_eq!(withdrawn(folder.path()), []);
        }
    }
}
