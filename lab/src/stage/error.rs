//! What can go wrong with a network of processes.

use media::library::LibraryError;
use protocol::PeerId;
use std::path::PathBuf;

/// What went wrong on the stage. What was started before is ended.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A folder or key could not be made.
    #[error("the stage cannot be set up in {folder}: {why}")]
    Setup {
        /// Where.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// A node's folder could not be filled.
    #[error("a node's folder cannot be filled")]
    Library(#[from] LibraryError),
    /// A process cannot be started.
    #[error("{peer} cannot be started: {why}")]
    Start {
        /// Which.
        peer: PeerId,
        /// Why.
        why: std::io::Error,
    },
    /// A process ended or stayed silent instead of becoming ready.
    #[error("{peer} did not become ready; the last it said was: {said}")]
    NotReady {
        /// Which.
        peer: PeerId,
        /// The last line of its log.
        said: String,
    },
    /// A process cannot be killed.
    #[error("{peer} cannot be killed: {why}")]
    Kill {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// A process cannot be stopped, or let go on.
    #[error("{peer} cannot be given a signal: {why}")]
    Signal {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// The links between the nodes cannot be made.
    #[error("the relay between the nodes cannot be started: {why}")]
    Relay {
        /// Why.
        why: std::io::Error,
    },
    /// A node does not say how it stands.
    #[error("{peer} does not say how it stands: {why}")]
    Ask {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// The titles did not reach every node in time.
    #[error("the titles did not reach every node: {0}")]
    NotSpread(String),
    /// There is nobody of this name.
    #[error("there is no {0} on the stage")]
    Nobody(PeerId),
}
