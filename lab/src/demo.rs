//! The demonstration: a film is split, served by a network of fifteen nodes that
//! organise themselves and a proxy, played by three viewers, and kept alive while
//! some of the processes are killed.

mod film;
mod plot;
mod run;
mod sheets;
mod told;

pub use film::{DemoFilm, fingerprint, prepare};
pub use run::{DemoOutcome, run};
pub use told::{table, told};

use crate::sheet::SheetError;
use crate::stage::StageError;
use crate::stored::StoredError;
use encoder::EncodeError;
use media::library::LibraryError;
use player::{PlayError, SinkKind};
use std::path::PathBuf;

/// What the demonstration is given.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The `lamina` program, started once for each node.
    pub program: PathBuf,
    /// A film of the user's own instead of the sample.
    pub video: Option<PathBuf>,
    /// A folder for what can be made again: the encoded film.
    pub cache: PathBuf,
    /// Where the gold viewer's pictures go; the bronze viewer has no window.
    pub sink: SinkKind,
    /// A folder for the report, the chart and the contact sheet.
    pub report: PathBuf,
}

/// Why the demonstration could not be given. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A folder or file could not be made.
    #[error("cannot write {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The film could not be encoded.
    #[error("the film cannot be encoded")]
    Encode(#[from] EncodeError),
    /// The encoded film could not be opened.
    #[error("the encoded film cannot be opened")]
    Library(#[from] LibraryError),
    /// The network could not be set up.
    #[error("the network cannot be set up")]
    Stage(#[from] StageError),
    /// A viewer could not play.
    #[error("the {viewer} viewer cannot play")]
    Play {
        /// Which one.
        viewer: &'static str,
        /// Why.
        source: Box<PlayError>,
    },
    /// The network's keys cannot be read back.
    #[error("the network's keys cannot be used")]
    Keys(#[from] transport::KeysError),
    /// The film could not be decoded for the contact sheet.
    #[error("the contact sheet cannot be decoded")]
    Stored(#[from] StoredError),
    /// The contact sheet could not be written.
    #[error("the contact sheet cannot be written")]
    Sheet(#[from] SheetError),
    /// The page could not be shown, or not on.
    #[error("the page cannot be shown")]
    Page(#[source] Box<crate::page::PageError>),
    /// A task of the demonstration died.
    #[error("the demonstration broke off: {0}")]
    Broken(String),
}
