//! Scenarios and traces that are in the program.

use super::traces;
use sim::{Trace, TraceError};
use std::path::Path;
use std::sync::Arc;

/// Declares scenarios by the names of their files.
macro_rules! scenarios {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../docs/examples/scenarios/", $name, ".toml")))),*]
    };
}

const SCENARIOS: [(&str, &str); 10] = scenarios![
    "steady",
    "base-death",
    "enh-death",
    "rolling-deaths",
    "flash-crowd",
    "narrow-edge",
    "lossy-wifi",
    "partition",
    "paper-prototype",
    "proxies-of-the-paper"
];

/// The names of all scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of the scenario of this name.
pub fn scenario(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
}

/// The longest trace that is read from a file.
const MAX_TRACE_BYTES: u64 = 16 * 1024 * 1024;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum NoTrace {
    /// Neither a shipped one nor a file.
    #[error("there is no trace {0}; shipped are made-steps, made-tunnels and made-wifi")]
    Unknown(String),
    /// The file cannot be read.
    #[error("the trace {name} cannot be read")]
    Read {
        /// Which.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not understood.
    #[error("the trace {name} is not understood")]
    Wrong {
        /// Which.
        name: String,
        /// Where and why.
        source: TraceError,
    },
}

/// The shipped trace of this name, or the one in this file.
///
/// # Errors
/// There is none, or it makes no sense.
pub fn trace(name: &str, folder: &Path) -> Result<Arc<Trace>, NoTrace> {
    let text = if let Some(text) = traces::made(name) {
        text
    } else {
        let path = folder.join(name);
        let failed = |source| NoTrace::Read { name: name.to_owned(), source };
        let length = std::fs::metadata(&path).map_err(|_| NoTrace::Unknown(name.to_owned()))?.len();
        if length > MAX_TRACE_BYTES {
            return Err(failed(std::io::Error::other("it is longer than 16 MiB")));
        }
        std::fs::read_to_string(path).map_err(failed)?
    };
    let read = Trace::read(&text).map_err(|source| NoTrace::Wrong { name: name.to_owned(), source })?;
    Ok(Arc::new(read))
}
