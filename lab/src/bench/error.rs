//! Why a bench could not run.

use crate::bench::bjontegaard::CurveError;
use crate::bench::yuv::YuvError;
use crate::stored::StoredError;
use std::path::{Path, PathBuf};

/// A bench ended without a result. Temporary files are gone; nothing else was
/// touched.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A program that the bench measures against is not installed.
    #[error("the program `{program}` cannot be started")]
    Missing {
        /// Its name.
        program: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no such network to simulate.
    #[error(transparent)]
    Topology(#[from] ::sim::TopologyError),
    /// This cannot be calculated.
    #[error(transparent)]
    Theory(#[from] ::sim::theory::TheoryError),
    /// A program ended with an error.
    #[error("`{program}` failed: {why}")]
    Program {
        /// Its name.
        program: &'static str,
        /// The end of what it said.
        why: String,
    },
    /// A temporary file could not be written or read.
    #[error("{what} {path:?} failed")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Decoded pictures could not be read.
    #[error("the pictures of {what} cannot be read")]
    Pictures {
        /// Whose pictures.
        what: String,
        /// Why.
        source: YuvError,
    },
    /// Two decodings of the same film differ in number or size of pictures.
    #[error("{what}: {found} instead of {expected}")]
    Differ {
        /// What was compared.
        what: String,
        /// What the film has.
        expected: String,
        /// What came.
        found: String,
    },
    /// Rate curves that cannot be compared.
    #[error("the curves of {what} cannot be compared")]
    Curve {
        /// Which curves.
        what: String,
        /// Why.
        source: CurveError,
    },
    /// The codec refused a picture.
    #[error("the codec failed")]
    Codec(#[from] codec::CodecError),
    /// Our encoder failed.
    #[error("our encoder failed")]
    Encode(#[from] encoder::EncodeError),
    /// The player's pipeline failed.
    #[error("the player's pipeline failed")]
    Play(#[from] player::pipeline::bench::PipelineError),
    /// A title that we made cannot be brought back to pictures.
    #[error("the title cannot be decoded")]
    Stored(#[from] StoredError),
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(String),
}

impl BenchError {
    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { what, path: path.into(), source }
    }

    /// Says whose pictures an error is about.
    pub(crate) fn pictures(whose: &Path) -> impl Fn(YuvError) -> Self {
        move |source| Self::Pictures { what: whose.display().to_string(), source }
    }

    /// What the person at the terminal can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { program, .. } => {
                Some(format!("apt-get install {program}, or let `./x bench` do it"))
            }
            Self::File { .. } => Some("TMPDIR names the folder for temporary files".to_owned()),
            Self::Encode(error) => error.hint().map(ToString::to_string),
            _ => None,
        }
    }
}
