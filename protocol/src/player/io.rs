//! What goes into the player machine and what comes out of it.

use crate::message::{Progress, Refusal};
use crate::player::event::Event;
use media::{ByteCount, Layer, Manifest, Quality, Span};
use std::sync::Arc;

/// A place that serves chunks, by the number that the driver gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

/// One request for one chunk; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What the machine must know of a title: times and lengths, no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleShape {
    /// Number of layers.
    pub layers: u8,
    /// The blocks in order of time, without gaps.
    pub blocks: Vec<BlockShape>,
}

/// One block of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// When its first picture is shown.
    pub start: Span,
    /// From that to the next block.
    pub duration: Span,
    /// Length of its chunk in each layer, Base first.
    pub lengths: Vec<ByteCount>,
}

impl From<&Manifest> for TitleShape {
    fn from(manifest: &Manifest) -> Self {
        let shape = |block: &media::BlockInfo| {
            let (start, end) = (manifest.at(block.start), manifest.at(block.start + block.duration));
            BlockShape {
                start,
                duration: end.saturating_sub(start),
                lengths: block.chunks.iter().map(|chunk| ByteCount(chunk.length)).collect(),
            }
        };
        Self { layers: manifest.top_quality().layers(), blocks: manifest.blocks.iter().map(shape).collect() }
    }
}

/// A granted session, in the machine's words.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The title.
    pub shape: Arc<TitleShape>,
    /// The best quality to show.
    pub quality: Quality,
    /// For each layer, Base first, its sources in the order to be tried.
    pub sources: Vec<Vec<SourceId>>,
    /// Sources to which a connection stands already.
    pub connected: Vec<SourceId>,
    /// Who serves Base, who stands behind it, and where else one can ask.
    pub service: Service,
    /// Where to begin.
    pub from: Span,
    /// Where to end; none for the end of the title. The block that holds it is
    /// played to its end.
    pub until: Option<Span>,
}

/// What the network says of a viewer's service beside the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The node that keeps this viewer's record; none for the first source of
    /// Base. It alone may say who backs it up and where layers are.
    pub home: Option<SourceId>,
    /// Who takes over if that node dies, as far as it is known.
    pub backup: Option<SourceId>,
    /// Counts the nodes that have served this viewer.
    pub epoch: u64,
    /// Where service can be sought anew.
    pub doors: Vec<SourceId>,
}

/// What was found where service was sought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// As in [`Opening::sources`].
    pub sources: Vec<Vec<SourceId>>,
    /// Who serves from now on.
    pub service: Service,
}

/// The only way into the machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// The session is granted and the manifest is here. Once only.
    Opened(Opening),
    /// A dialled source answered and granted its session.
    Connected {
        /// Which.
        source: SourceId,
        /// Round trip as the transport measured it.
        round_trip: Span,
    },
    /// A dial failed, or a connection was lost.
    Lost {
        /// Which.
        source: SourceId,
    },
    /// A dialled source, or one where service was found, has another version of
    /// the title: it was left, and its chunks are of no use here.
    OtherVersion {
        /// Which.
        source: SourceId,
    },
    /// Bytes came from a source, whatever they were.
    Heard {
        /// Which.
        source: SourceId,
        /// How many since it was last reported.
        bytes: ByteCount,
    },
    /// A source answered the probe of this number.
    Alive {
        /// Which.
        source: SourceId,
        /// The probe's number.
        number: u32,
    },
    /// A source says that it is about to stop.
    Draining {
        /// Which.
        source: SourceId,
    },
    /// A source is a proxy, which decides by itself how many layers the line
    /// carries: while it serves, all are asked for.
    Filters {
        /// Which.
        source: SourceId,
    },
    /// `from` says who takes over if it dies.
    BackupIs {
        /// Who says so.
        from: SourceId,
        /// Who takes over.
        backup: SourceId,
        /// In which epoch.
        epoch: u64,
    },
    /// A backup says that it serves this viewer from now on.
    DeliveryStart {
        /// Which.
        source: SourceId,
        /// In which epoch.
        epoch: u64,
    },
    /// `from` says who serves a layer from now on.
    LayerAt {
        /// Who says so.
        from: SourceId,
        /// The layer.
        layer: Layer,
        /// Who serves it; none for nobody.
        node: Option<SourceId>,
        /// In which epoch.
        epoch: u64,
    },
    /// Service was found. If the machine takes it, [`Player::home`] names its
    /// Base node; if not, leave that node.
    ///
    /// [`Player::home`]: super::Player::home
    Found(Found),
    /// Nobody serves this viewer as far as a door knows.
    NotFound {
        /// Where service was sought.
        door: SourceId,
    },
    /// A chunk is here, whole, and matches its hash.
    Arrived {
        /// The request that it answers.
        request: RequestId,
    },
    /// The first half of a chunk is here, and matches its own hash; the rest does not
    /// come.
    ArrivedHalf {
        /// The request that it answers.
        request: RequestId,
    },
    /// A request came to nothing.
    Failed {
        /// Which.
        request: RequestId,
        /// Why.
        why: FetchFailure,
    },
    /// The pipeline has room for one more block of this seek serial.
    FeedWants {
        /// The serial of the seek after which the room came to be.
        serial: u64,
    },
    /// The pipeline shows this position of the programme.
    Position {
        /// The serial of the seek since which it was shown.
        serial: u64,
        /// The position.
        at: Span,
    },
    /// The pipeline has shown everything that was fed with this serial.
    Ended {
        /// The serial of the seek.
        serial: u64,
    },
    /// The viewer pressed something.
    User(Command),
    /// The time asked for by `poll_timeout` has come.
    Timeout,
}

/// Why a request came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FetchFailure {
    /// The source said no.
    Refused(Refusal),
    /// The bytes do not match the manifest.
    Corrupt,
    /// The stream or its connection broke.
    Broken,
    /// Nothing whole came in time.
    Late,
}

/// What a viewer can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Stand still.
    Pause,
    /// Go on.
    Resume,
    /// Go to a position of the programme.
    Seek(Span),
    /// Show at most this quality.
    Quality(Quality),
    /// Run this many times as fast, backwards if negative; 1 is normal.
    Rate(i8),
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Connect to a source and open the title there; drop an older connection
    /// once the new one stands.
    Dial {
        /// Which.
        source: SourceId,
    },
    /// Ask on the control stream whether a source is alive.
    Probe {
        /// Which.
        source: SourceId,
        /// The number that the answer will carry.
        number: u32,
    },
    /// Close the session at a source and its connection, if there are any.
    Leave {
        /// Which.
        source: SourceId,
    },
    /// Tell the Base node how the viewer stands.
    Report {
        /// Which node.
        source: SourceId,
        /// Played so far.
        position: Span,
        /// In the buffer.
        buffer: Span,
        /// Whether the viewer has paused.
        paused: bool,
    },
    /// Tell a backup that the old node still delivers.
    StillServed {
        /// Which.
        source: SourceId,
        /// The epoch that it had begun.
        epoch: u64,
    },
    /// Seek service at a door; answered by [`Input::Found`] or
    /// [`Input::NotFound`].
    Seek {
        /// Where.
        door: SourceId,
        /// How far the viewer is.
        progress: Progress,
        /// Who served it last, and who was named as backup last.
        former: [Option<SourceId>; 2],
    },
    /// Fetch one chunk.
    Request {
        /// The name under which to report what became of it.
        request: RequestId,
        /// Whom to ask.
        source: SourceId,
        /// Which block.
        block: u32,
        /// Which layer.
        layer: Layer,
        /// In how long the chunk is no longer of use.
        deadline: Span,
    },
    /// Stop fetching; nothing more is to be reported of it.
    Cancel {
        /// Which request.
        request: RequestId,
    },
    /// Give a block to the pipeline, with exactly this many layers.
    Feed {
        /// Which block.
        block: u32,
        /// How many layers of it.
        quality: Quality,
        /// Whether only the first half of the topmost one is there.
        half: bool,
        /// The seek serial.
        serial: u64,
        /// In trick play: only its first picture is to be shown, and for so much of
        /// the programme.
        key_only: Option<Span>,
    },
    /// Nothing more will be fed with this serial.
    EndOfFeed {
        /// The seek serial.
        serial: u64,
    },
    /// Forget everything held of a block.
    Evict {
        /// Which block.
        block: u32,
    },
    /// Forget what was fed and go to a position.
    PipelineSeek {
        /// The new seek serial.
        serial: u64,
        /// Where to.
        to: Span,
        /// How fast from there.
        rate: i8,
    },
    /// Let the clock run.
    PipelinePlay,
    /// Let the clock stand.
    PipelinePause,
    /// Nothing can be shown any more: end.
    GiveUp(GiveUp),
    /// For people and figures; dropping it changes nothing.
    Event(Event),
}

/// Why playing had to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveUp {
    /// No source delivered the Base chunk of a block for too long.
    #[error("no source delivered block {block} for {waited}")]
    NoSource {
        /// The block that is missing.
        block: u32,
        /// For how long it was missing.
        waited: Span,
    },
    /// As `NoSource`, and the nodes that could have gone on have another version.
    #[error(
        "the title was replaced while it was watched: nobody has block {block} of the old version any more, after {waited}"
    )]
    Replaced {
        /// The block that is missing.
        block: u32,
        /// For how long it was missing.
        waited: Span,
    },
    /// The session made no sense.
    #[error("the title has no block, no layer or no source")]
    Unplayable,
}
