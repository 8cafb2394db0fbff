//! The sample film, carried inside the program so that every command has
//! something to show wherever it is run. See `assets/README.md` for its makers.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The film as it lies in `assets/`.
const FILM: &[u8] = include_bytes!("../../assets/bigbuckbunny.mp4");
/// The name of the film's file, and so of the title made from it.
const NAME: &str = "bigbuckbunny.mp4";
/// Who made it and what one may do with it.
pub const ATTRIBUTION: &str = "Big Buck Bunny (c) 2008 Blender Foundation, www.bigbuckbunny.org, CC-BY 3.0";

/// Lays the film into `folder`, if it is not there yet, and says where it is.
///
/// # Errors
/// The folder cannot be made or written.
pub fn film(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(NAME);
    if fs::read(&path).is_ok_and(|there| there == FILM) {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    // A name of its own: several may lay it out at once, and each must find it whole.
    let mut half = tempfile::NamedTempFile::new_in(folder)?;
    half.write_all(FILM)?;
    half.persist(&path)?;
    Ok(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_each_find_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let each = |_| scope.spawn(|| fs::read(film(folder.path()).unwrap()).unwrap() == FILM);
            let all: Vec<_> = (0..8).map(each).collect();
            assert!(all.into_iter().all(|one| one.join().unwrap()));
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
