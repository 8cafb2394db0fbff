//! Why a film could not be made into a title.

use crate::drive::ElementError;
use media::library::LibraryError;
use media::manifest::ManifestError;
use media::{Span, TitleName, TitleNameError};
use std::path::PathBuf;

/// Why encoding failed. The library is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// `GStreamer` cannot be used at all.
    #[error("GStreamer cannot be started: {0}")]
    NoGStreamer(String),
    /// A file that cannot be opened.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No film that `GStreamer` knows.
    #[error("this is no film that can be read: {why}")]
    NoFilm {
        /// What was said about it.
        why: String,
    },
    /// A film without pictures.
    #[error("there are no pictures in this film")]
    NoVideo,
    /// No picture between the given times.
    #[error("there is no picture to encode")]
    Empty,
    /// The film cannot be read to its end.
    #[error("the film breaks off at {at}: {why}")]
    Broken {
        /// What was said about it.
        why: String,
        /// Up to where it could be read.
        at: Span,
    },
    /// Nothing comes out of the film any more.
    #[error("nothing came out of the film for {seconds} s")]
    Stalled {
        /// How long was waited.
        seconds: u64,
    },
    /// The size of the pictures changes in the middle.
    #[error("the pictures change from {}x{} to {}x{}", .from.0, .from.1, .to.0, .to.1)]
    SizeChanges {
        /// Width and height at first.
        from: (u32, u32),
        /// Width and height then.
        to: (u32, u32),
    },
    /// A picture that cannot be used.
    #[error("{0}")]
    Picture(String),
    /// The file's name cannot be a title's.
    #[error("the title cannot be named {name:?}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        source: TitleNameError,
    },
    /// An option that makes no sense.
    #[error("{0}")]
    Option(String),
    /// A file that would be overwritten.
    #[error("{0} exists already")]
    FileExists(PathBuf),
    /// A chunk that is not what it should be.
    #[error("the title is damaged: {0}")]
    Damaged(String),
    /// Another process is making the same title.
    #[error("somebody else is encoding this title into {library}")]
    Busy {
        /// The folder of the library.
        library: PathBuf,
    },
    /// What was begun cannot be gone on with.
    #[error("the work that was begun cannot be taken up: {0}")]
    Resume(String),
    /// Parts that do not make a title.
    #[error("these parts do not make a title: {0}")]
    Parts(String),
    /// A title repeated from one that lacks a layer, for instance.
    #[error("title {title} cannot be repeated: {why}")]
    Repeat {
        /// The title.
        title: TitleName,
        /// What is in the way.
        why: String,
    },
    /// A GStreamer element failed.
    #[error("an encoder failed")]
    Element(#[from] ElementError),
    /// The layered codec failed.
    #[error("the layered codec failed")]
    Codec(#[from] codec::CodecError),
    /// The layers make no sense.
    #[error("no such layers")]
    Ladder(#[from] codec::LadderError),
    /// The container refused.
    #[error("a chunk cannot be written")]
    Container(#[from] media::container::ContainerError),
    /// The manifest refused.
    #[error("the title cannot be described")]
    Manifest(#[from] ManifestError),
    /// The library refused: the title exists, the disk is full.
    #[error("the title cannot be written")]
    Library(#[from] LibraryError),
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl EncodeError {
    /// What could help, if something could.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Library(LibraryError::Exists { .. }) | Self::FileExists(_) => Some("--replace replaces it"),
            Self::Library(error) if error.is_disk_full() => Some("the disk is full; nothing was kept"),
            Self::Broken { .. } | Self::SizeChanges { .. } => Some("--keep-going encodes what comes before"),
            Self::Damaged(_) => Some("`lamina verify` says what is wrong with it"),
            Self::Busy { .. } => Some("wait for it, or give this title another name"),
            Self::Resume(_) => Some("without --resume it is begun anew"),
            Self::Parts(_) => Some("all parts of one film, made with the same settings, are needed"),
            Self::Element(ElementError::Missing(_)) => Some("lamina doctor says what to install"),
            Self::Name { .. } => Some("--title NAME gives it another one"),
            _ => None,
        }
    }
}
