//! What to play, how, what may be asked meanwhile, and what is told.

use crate::pipeline::{PipelineError, Preview, SinkKind, Snapshots};
use crate::report::PlayReport;
use media::{ManifestError, Quality, Span, TitleName};
use protocol::player::{GiveUp, Own};
use protocol::{PeerId, Refusal, SignedToken};
use serde::Serialize;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use transport::{Authority, DialError, EndpointError, RequestError};

/// What to play and how.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Nodes or proxies to open the title at, the first to be tried first; with
    /// the name that its certificate must carry, if that is known.
    pub addresses: Vec<(Option<PeerId>, SocketAddr)>,
    /// The title.
    pub title: TitleName,
    /// The best quality wanted; it can be lowered while playing, not raised above.
    pub quality: Quality,
    /// Whose certificates are believed.
    pub authority: Authority,
    /// The viewer's name, for the logs of nodes.
    pub name: PeerId,
    /// What the viewer was promised; without one it is a normal viewer.
    pub token: Option<SignedToken>,
    /// What it does of its own accord when nodes fail it: everything.
    pub own: Own,
    /// The most programme ahead of the picture on screen, wherever it lies: 4 s.
    pub buffer: Span,
    /// Where pictures and sound go.
    pub sink: SinkKind,
    /// Whether there is to be sound.
    pub audio: bool,
    /// Where to begin.
    pub start: Span,
    /// How much to play; none for all. The block in which it ends is played to
    /// its end.
    pub limit: Option<Span>,
    /// Whether shown blocks are compared with the manifest's hashes.
    pub check_hashes: bool,
    /// Which pictures are kept as they were shown; the caller keeps a share.
    pub snapshots: Option<Arc<Snapshots>>,
    /// Where small copies of what is shown go; the caller keeps a share.
    pub preview: Option<Arc<Preview>>,
    /// A folder for `report.json`, the tables and the chart.
    pub report_dir: Option<PathBuf>,
    /// Which of this machine's addresses to dial from; none: the system's choice.
    pub dial_from: Option<IpAddr>,
    /// Spreads what many viewers would otherwise do in step.
    pub seed: u64,
}

impl PlayOptions {
    /// Gold from `address`, headless, with sound and with hashes checked.
    pub fn new(address: SocketAddr, title: TitleName, authority: Authority, name: PeerId) -> Self {
        Self {
            addresses: vec![(None, address)],
            title,
            quality: Quality::GOLD,
            authority,
            name,
            token: None,
            own: Own::ALL,
            buffer: Span::from_secs(4),
            sink: SinkKind::Headless,
            audio: true,
            start: Span::ZERO,
            limit: None,
            check_hashes: true,
            snapshots: None,
            preview: None,
            report_dir: None,
            dial_from: None,
            seed: 0,
        }
    }
}

/// What a viewer can ask for while playing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Stand still.
    Pause,
    /// Go on.
    Resume,
    /// Stand still, or go on.
    TogglePause,
    /// Go to a position of the programme.
    SeekTo(Span),
    /// Go forward this far.
    Forward(Span),
    /// Go back this far.
    Back(Span),
    /// Show at most this quality.
    Quality(Quality),
    /// Run this many times as fast: 1, 2 to 16, or -2 to -16.
    Rate(i8),
    /// End now.
    Stop,
}

/// What happens, as it happens. `at_ms` counts from the first picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum PlayerEvent {
    /// The title is open; chunks are asked for.
    Opened {
        /// The node that granted the session.
        node: String,
    },
    /// The first picture is on screen.
    FirstPicture {
        /// From the order to play to here.
        startup_ms: u64,
    },
    /// Another quality is on screen.
    Transition {
        /// When.
        at_ms: u64,
        /// The quality before.
        from: String,
        /// The quality now.
        to: String,
        /// Why.
        cause: String,
    },
    /// A source answers nothing any more.
    SourceSilent {
        /// When this was found.
        at_ms: u64,
        /// Its name.
        node: String,
    },
    /// A connection broke, or could not be made.
    SourceLost {
        /// When.
        at_ms: u64,
        /// Its name.
        node: String,
    },
    /// A source can be asked, for the first time or again.
    SourceUp {
        /// When.
        at_ms: u64,
        /// Its name.
        node: String,
    },
    /// A layer comes from somebody else.
    FailedOver {
        /// When its first chunk came.
        at_ms: u64,
        /// The layer.
        layer: String,
        /// Who served it.
        from: String,
        /// Who serves it.
        to: String,
        /// From the last word of the old one to the first chunk of the new one.
        recovered_ms: u64,
        /// Why.
        cause: String,
    },
    /// It is known who takes over if the Base node dies.
    Backup {
        /// When.
        at_ms: u64,
        /// Its name.
        node: String,
    },
    /// A backup wanted to take over while the old node still delivers.
    StillServed {
        /// When.
        at_ms: u64,
        /// The backup's name.
        node: String,
    },
    /// Nobody serves Base any more: service is sought anew.
    Repull {
        /// When.
        at_ms: u64,
        /// Where.
        door: String,
    },
    /// A chunk could not be had and is asked for elsewhere, or given up.
    FetchFailed {
        /// When.
        at_ms: u64,
        /// The chunk's block and layer.
        chunk: String,
        /// Who failed.
        node: String,
        /// Why.
        why: String,
    },
    /// The title is fetched from an archive first, and is waited for.
    Coming {
        /// When.
        at_ms: u64,
        /// To which node.
        node: String,
    },
    /// A chunk came, and was wanted.
    Arrived {
        /// When.
        at_ms: u64,
        /// Its layer.
        layer: String,
        /// Who sent it.
        node: String,
        /// How long it is.
        bytes: u64,
    },
    /// The picture stood still.
    Freeze {
        /// When it began.
        at_ms: u64,
        /// For how long.
        length_ms: u64,
    },
    /// How it stands, five times a second.
    Status {
        /// When.
        at_ms: u64,
        /// The position on screen.
        position_ms: u64,
        /// What is ready beyond it.
        buffer_ms: u64,
        /// The quality on screen.
        quality: String,
    },
    /// There is no audio device; the film runs silently.
    NoAudioDevice,
    /// The film is over.
    Ended,
}

/// Why nothing can be played, or not on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// No address was given.
    #[error("no node was named to play from")]
    NoAddress,
    /// No node could be reached; this is what the first one said.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The node does not open the title.
    #[error("{node} does not open the title {title}")]
    Refused {
        /// Who refused.
        node: PeerId,
        /// The title.
        title: TitleName,
        /// Why.
        #[source]
        why: Refusal,
    },
    /// The node answered the request for a session with silence or nonsense.
    #[error("{0} does not answer the request for a session")]
    NoAnswer(PeerId),
    /// The manifest did not come.
    #[error("the title's manifest cannot be fetched")]
    Manifest(#[from] RequestError),
    /// The manifest cannot be believed.
    #[error(transparent)]
    BadManifest(#[from] ManifestError),
    /// The system gives no random numbers to draw the viewer's number from.
    #[error("no number can be drawn for this viewing: {0}")]
    Lot(String),
    /// No port could be opened for the network.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// GStreamer cannot play.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// GStreamer stopped in the middle.
    #[error("the pipeline failed: {0}")]
    Playback(String),
    /// No source delivered.
    #[error("{why}")]
    GaveUp {
        /// Why.
        why: GiveUp,
        /// What was seen until then.
        report: Box<PlayReport>,
    },
    /// The report cannot be written; the film was played.
    #[error("the report cannot be written to {path}", path = path.display())]
    Report {
        /// Where to.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A task of the player died.
    #[error("the player's own task ended: {0}")]
    Task(String),
}
