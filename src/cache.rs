//! Where things are kept that can be made again.

use crate::door::HintExt;
use anyhow::Context as _;
use std::path::PathBuf;

/// `$XDG_CACHE_HOME/lamina`, or `~/.cache/lamina`, made if absent.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = named.or_else(home).unwrap_or_else(std::env::temp_dir).join("lamina");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("the cache folder {} cannot be made", folder.display()))
        .hint("set XDG_CACHE_HOME to a folder that can be written")?;
    Ok(folder)
}
