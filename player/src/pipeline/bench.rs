//! How fast a title decodes and combines when nothing waits for a clock.

use super::{BlockFeed, Pipeline, PipelineEvent, PipelineOptions, SinkKind};
use bytes::Bytes;
use media::Layer;
use media::library::TitleFolder;
use std::time::{Duration, Instant};

pub use super::PipelineError;

/// How long the pipeline may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CombineRun {
    /// Pictures that reached the sink.
    pub frames: u64,
    /// Seconds from the first block fed to the last picture.
    pub seconds: f64,
}

impl CombineRun {
    /// Pictures a second.
    pub fn frames_per_second(&self) -> f64 {
        f64::from(u32::try_from(self.frames).unwrap_or(u32::MAX)) / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Plays a whole title at the best quality that its folder holds, without
/// sound, as fast as it goes, through the player's own pipeline. Blocks until
/// it is done; chunks are read beforehand.
pub fn combine(title: &TitleFolder) -> Result<CombineRun, PipelineError> {
    let manifest = title.manifest().clone();
    let layers: Vec<Layer> = title.layers().collect();
    let read = |block| {
        let chunk = |layer: &Layer| title.read_chunk(block, *layer).map_err(PipelineError::title);
        layers.iter().map(chunk).collect::<Result<Vec<Bytes>, _>>()
    };
    let blocks = (0..manifest.block_count()).map(read).collect::<Result<Vec<_>, _>>()?;
    let quality = manifest.top_quality();
    let options = PipelineOptions {
        manifest,
        sink: SinkKind::Unpaced,
        audio: false,
        check_hashes: false,
        snapshots: None,
        preview: None,
    };
    let (pipeline, mut events) = Pipeline::start(options)?;
    let start = Instant::now();
    pipeline.play();
    let mut blocks = (0..).zip(blocks);
    loop {
        match receive(&mut events)? {
            PipelineEvent::WantsBlock { .. } => match blocks.next() {
                Some((block, chunks)) => {
                    pipeline.feed(BlockFeed {
                        serial: 0,
                        block,
                        quality,
                        half: false,
                        chunks,
                        key_only: None,
                    })?;
                }
                None => pipeline.end_of_feed(0),
            },
            PipelineEvent::EndOfStream { .. } => break,
            PipelineEvent::Error(error) => return Err(PipelineError::Build(error)),
            _ => {}
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(CombineRun { frames: pipeline.stop().frames_shown, seconds })
}

/// The next event, on a thread that may wait.
fn receive(events: &mut tokio::sync::mpsc::Receiver<PipelineEvent>) -> Result<PipelineEvent, PipelineError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match events.try_recv() {
            Ok(event) => return Ok(event),
            Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => return Err(PipelineError::Stopped),
            Err(tokio::sync::mpsc::error::TryRecvError::Empty) if Instant::now() < end => {
                std::thread::sleep(Duration::from_micros(500));
            }
            Err(tokio::sync::mpsc::error::TryRecvError::Empty) => {
                return Err(PipelineError::Build("no picture for 30 s".into()));
            }
        }
    }
}
