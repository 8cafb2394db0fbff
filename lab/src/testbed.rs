//! The testbed: scenarios played by real processes over emulated links, measured
//! where pictures meet the screen.
//!
//! [`read`] gives a [`Scenario`]; [`run`] plays it as often as wanted, each time in a
//! network of its own; a [`Report`] holds what was seen, and writes the folder that
//! people look at.

mod agree;
mod audience;
mod city;
pub mod compare;
mod deeds;
mod film;
mod hosts;
mod page;
mod play;
mod read;
mod report;
mod scenario;
mod shipped;
mod summary;
mod tables;
mod traces;
mod whom;
mod words;

pub use agree::{Agreement, Bound, Figure};
pub use film::{Title, prepare};
pub use hosts::{Hosts, HostsError};
pub use play::run;
pub use read::{Read, ScenarioError, parse, read};
pub use report::{Bytes, FaultSeen, Report, RunReport, Seen};
pub use scenario::{Expect, Fault, Film, FilmSize, Group, Knock, Line, Lines, Nodes, Scenario};
pub use shipped::{NoTrace, names, scenario as text_of, trace};
pub use summary::Summary;
pub use whom::Whom;
pub use words::{Lasting, Rate, Share};

use crate::stage::StageError;
use encoder::EncodeError;
use media::library::LibraryError;
use std::path::PathBuf;

/// What a run is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `lamina` program, started once for each node, proxy and viewer.
    pub program: PathBuf,
    /// How often the scenario is played, each time in a new network.
    pub repeats: u32,
    /// Decides what is decided by lot; the first run has it, each further one the
    /// next.
    pub seed: u64,
    /// Other machines for the nodes.
    pub hosts: Option<Hosts>,
}

/// How far it is, for whoever waits.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Something worth a line.
    Said(String),
    /// A run goes on.
    Running {
        /// Which, counted from 1.
        run: u32,
        /// Of how many.
        of: u32,
        /// Milliseconds since the network stood.
        at_ms: u64,
        /// Milliseconds that it lasts.
        lasts_ms: u64,
    },
}

/// Why a scenario could not be played. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A folder or file could not be made or read.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// ffmpeg is missing or refuses.
    #[error("ffmpeg cannot make the film smaller: {0}")]
    Scale(String),
    /// The film cannot be encoded.
    #[error("the film cannot be encoded")]
    Encode(#[from] EncodeError),
    /// The encoded film cannot be opened.
    #[error("the encoded film cannot be opened")]
    Library(#[from] LibraryError),
    /// The network could not be set up.
    #[error("the network cannot be set up")]
    Stage(#[from] StageError),
    /// The network's keys cannot be used.
    #[error("the network's keys cannot be used")]
    Keys(#[from] transport::KeysError),
    /// A trace is missing or wrong.
    #[error("a line cannot follow its trace")]
    Trace(#[from] NoTrace),
    /// The links could not be set up.
    #[error("the links cannot be set up")]
    Links(#[source] std::io::Error),
    /// A viewer could not be started.
    #[error("{viewer} cannot be started")]
    Viewer {
        /// Which.
        viewer: String,
        /// Why.
        source: std::io::Error,
    },
    /// What was measured would be the machine.
    #[error("this machine cannot keep up: {0}")]
    CannotKeepUp(String),
    /// A fault that cannot be done where the nodes are.
    #[error("lines between machines are real ones and cannot be changed: {0}")]
    RealLines(String),
    /// The simulator does not know something that the scenario has.
    #[error("the simulator does not play {0}")]
    NotSimulated(String),
    /// A task broke off.
    #[error("the testbed broke off: {0}")]
    Broken(String),
}

impl TestbedError {
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { path: path.into(), source }
    }

    /// What would help.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Scale(_) => "ffmpeg must be installed; `lamina doctor` says what is missing",
            Self::CannotKeepUp(_) => {
                "end what else runs here, or give the scenario fewer viewers; a release build is faster"
            }
            Self::RealLines(_) => "leave `part` and `slow` out, or play it on one machine",
            Self::NotSimulated(_) => "`lamina testbed agree base-death` is one that both can play",
            Self::Trace(_) => "`lamina testbed show narrow-edge` shows a scenario with a trace",
            Self::File { .. } => "-o DIR names another folder",
            _ => "`lamina doctor` says what is missing on this machine",
        }
    }
}
