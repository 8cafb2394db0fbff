//! The player's GStreamer end: blocks of chunks in, pictures and sound out.
//!
//! ```text
//! feed thread -> appsrc (Base) -> h264parse -> avdec_h264 -> laminacombine -> video sink
//!             -> appsrc (each enhancement) ------------------^
//!             -> appsrc (sound) -> avdec_aac -> audioconvert -> audioresample -> audio sink
//! ```
//!
//! * [`combine`]: the element that makes one picture from the layers at hand;
//! * `front`: everything up to the sinks, in one bin that can be emptied at once;
//! * `feed`, `control`: what is pushed, and the thread that does it and seeks,
//!   plays and pauses;
//! * `light`: the same without decoders, for crowds;
//! * `sinks`, `watch`, [`meter`], `check`: what is seen, measured and verified;
//! * `preview`: small copies of what is seen, for a page.
//!
//! Nothing here knows the network or decides what to fetch: the pipeline asks
//! for one block at a time and holds at most one and a half.

pub mod bench;
mod check;
pub mod combine;
mod control;
mod error;
mod events;
mod feed;
mod front;
mod light;
mod listen;
pub mod meter;
mod preview;
mod schedule;
mod shared;
mod sinks;
mod snapshot;
mod watch;

pub use error::PipelineError;
pub use events::{PipelineEvent, UserKey};
pub use meter::{Freeze, FreezeMeter, MeterReport};
pub use preview::Preview;
pub use sinks::SinkKind;
pub use snapshot::{Snapshot, SnapshotReason, Snapshots};

use bytes::Bytes;
use control::Control;
use events::Events;
use light::Light;
use media::{Manifest, Quality, Span};
use schedule::Schedule;
use shared::{Command, FlushRequest, Shared};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use watch::Watch;

/// How many commands may wait for the feed thread. The owner has one block
/// under way at most, so this is never reached.
const COMMAND_CAPACITY: usize = 16;
/// How long `stop` waits for GStreamer's threads.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// One block for the decoders.
#[derive(Clone, Debug)]
pub struct BlockFeed {
    /// The serial of the seek it belongs to; 0 before the first one.
    pub serial: u64,
    /// Index of the block.
    pub block: u32,
    /// The quality it is fed at.
    pub quality: Quality,
    /// Whether of the topmost layer there is only the first half of its chunk.
    pub half: bool,
    /// One verified chunk for each layer of that quality, Base first.
    pub chunks: Vec<Bytes>,
    /// Show only its first picture, and for so much of the programme: trick play.
    pub key_only: Option<Span>,
}

/// What a pipeline is made for.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// The title.
    pub manifest: Arc<Manifest>,
    /// Where pictures and sound go.
    pub sink: SinkKind,
    /// Whether the title's sound is played, if it has some.
    pub audio: bool,
    /// Whether shown blocks are compared with the manifest's hashes.
    pub check_hashes: bool,
    /// Which pictures are kept as they were shown.
    pub snapshots: Option<Arc<Snapshots>>,
    /// Where small copies of what is shown go.
    pub preview: Option<Arc<Preview>>,
}

/// A running pipeline. Every method returns at once, except [`Pipeline::stop`].
#[derive(Debug)]
pub struct Pipeline {
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
    thread: Option<JoinHandle<()>>,
    done: Receiver<()>,
}

/// Starts GStreamer and makes the combining element known. Called by
/// [`Pipeline::start`]; the first call of a process takes the longest (up to a
/// second on a machine that never ran GStreamer), so make it early.
pub fn init() -> Result<(), PipelineError> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let start = || {
        gstreamer::init().map_err(|error| error.to_string())?;
        combine::register().map_err(|error| error.to_string())
    };
    STARTED.get_or_init(start).clone().map_err(PipelineError::Init)
}

/// What the feed thread works with.
enum Hands {
    Full(Box<Control>),
    Light(Light),
}

impl Pipeline {
    /// Builds and starts the pipeline, paused: it asks for a first block at
    /// once and shows its first picture when [`Pipeline::play`] is called.
    pub fn start(
        options: PipelineOptions,
    ) -> Result<(Self, tokio::sync::mpsc::Receiver<PipelineEvent>), PipelineError> {
        init()?;
        let (events, receiver) = Events::new();
        let (commands, queue) = sync_channel(COMMAND_CAPACITY);
        let (done_sender, done) = sync_channel(1);
        let PipelineOptions { manifest, sink, audio, check_hashes, snapshots, preview } = options;
        let schedule = Arc::new(Schedule::default());
        let check_hashes = check_hashes && sink != SinkKind::Light;
        let watch =
            Watch::new(&manifest, schedule.clone(), events.clone(), (check_hashes, snapshots), preview)?;
        let shared = Arc::new(Shared::new(events, watch, commands.clone()));
        let hands = match sink {
            SinkKind::Light => Hands::Light(Light::new(manifest, &shared)),
            _ => Hands::Full(Box::new(Control::build(manifest, schedule, (sink, audio), &shared)?)),
        };
        let thread = std::thread::Builder::new()
            .name("lamina-feed".into())
            .spawn(move || {
                match hands {
                    Hands::Full(control) => control.run(&queue),
                    Hands::Light(light) => light.run(&queue),
                }
                // Nobody listens any more if the deadline has passed.
                let _ = done_sender.try_send(());
            })
            .map_err(PipelineError::build)?;
        Ok((Self { shared, commands, thread: Some(thread), done }, receiver))
    }

    /// Hands in one block. Only after [`PipelineEvent::WantsBlock`], one for
    /// each; a block with an old serial is dropped.
    pub fn feed(&self, block: BlockFeed) -> Result<(), PipelineError> {
        self.commands.try_send(Command::Block(block)).map_err(|error| match error {
            TrySendError::Full(_) => PipelineError::Full,
            TrySendError::Disconnected(_) => PipelineError::Stopped,
        })
    }

    /// The block fed last was the title's last one: after its last picture
    /// comes [`PipelineEvent::EndOfStream`].
    pub fn end_of_feed(&self, serial: u64) {
        self.shared.ask_end(serial);
    }

    /// Plays, as soon as there is a picture.
    pub fn play(&self) {
        self.shared.ask_play(true);
    }

    /// Stands still; [`PipelineEvent::Paused`] tells when.
    pub fn pause(&self) {
        self.shared.ask_play(false);
    }

    /// Drops everything that was fed and starts anew at `to`, with blocks of
    /// this serial, which must be greater than any before. `rate` is 1 for
    /// normal play; 2 to 16 and -2 to -16 show key pictures only, that many
    /// times as fast. The first block fed then is the one that holds `to`.
    pub fn flush(&self, serial: u64, to: Span, rate: f64) {
        self.shared.ask_flush(FlushRequest { serial, to, rate });
    }

    /// The title time of the picture on screen; where playback will begin if
    /// nothing was shown since the start or the last seek.
    pub fn position(&self) -> Option<Span> {
        self.shared.position()
    }

    /// Stops and frees everything; waits for GStreamer's threads, five seconds
    /// at most, so call it where waiting is allowed.
    pub fn stop(mut self) -> MeterReport {
        let now = std::time::Instant::now();
        self.halt();
        self.shared.report(now)
    }

    fn halt(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.ask_stop();
        if self.done.recv_timeout(STOP_DEADLINE).is_ok() {
            if thread.join().is_err() {
                tracing::error!("the feed thread panicked");
            }
        } else {
            tracing::error!("GStreamer did not stop in time; its threads are left behind");
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.halt();
    }
}
