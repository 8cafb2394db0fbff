//! The thread that feeds, seeks, plays and pauses: the only one that changes
//! the state of anything.

use super::events::PipelineEvent;
use super::feed::Feed;
use super::front::Front;
use super::listen::{self, Screen};
use super::schedule::Schedule;
use super::shared::{Command, FlushRequest, Shared};
use super::sinks::{SinkKind, Sinks};
use super::{BlockFeed, PipelineError};
use gst::prelude::*;
use gstreamer as gst;
use media::Manifest;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the thread looks around when nothing wakes it.
const TICK: Duration = Duration::from_millis(50);
/// Blocks that wait for room; the owner is asked for one at a time.
const MAX_PENDING: usize = 4;

/// What the owner was told about the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// Nothing.
    Full,
    /// There is room; it has not come.
    Asked,
    /// The sources were told that nothing more comes.
    Closed,
}

/// The thread's own part.
#[derive(Debug)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    pipeline: gst::Pipeline,
    front: Front,
    sinks: Sinks,
    screen: Arc<Screen>,
    feed: Feed,
    pending: VecDeque<BlockFeed>,
    serial: u64,
    supply: Supply,
    /// Whether the owner wants to see the film run.
    playing: bool,
    /// Playback stands because there is nothing to show.
    starved: bool,
    /// Whether the film's clock stands while there is nothing to show.
    paced: bool,
    half_block: u64,
}

impl Control {
    pub(crate) fn build(
        manifest: Arc<Manifest>,
        schedule: Arc<Schedule>,
        (kind, audio): (SinkKind, bool),
        shared: &Arc<Shared>,
    ) -> Result<Self, PipelineError> {
        let sinks = Sinks::new(kind, audio && manifest.audio.is_some())?;
        let front = Front::new(&manifest, schedule.clone(), sinks.sound.is_some(), &sinks.before_video)?;
        let pipeline = assemble(&front, &sinks)?;
        let screen = listen::attach(&pipeline, &front, &sinks, shared)?;
        let control = Self {
            shared: shared.clone(),
            pipeline,
            front,
            sinks,
            screen,
            half_block: longest_block(&manifest) / 2,
            feed: Feed::new(manifest, schedule),
            pending: VecDeque::new(),
            serial: 0,
            supply: Supply::Full,
            playing: false,
            starved: false,
            paced: kind != SinkKind::Unpaced,
        };
        control.set_state(gst::State::Paused)?;
        control.front.run()?;
        if control.sinks.no_device {
            tracing::warn!("no audio device: playing silently on the system clock");
            shared.events.send(PipelineEvent::NoAudioDevice);
        }
        Ok(control)
    }

    /// Runs until the owner stops or is gone.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        while !self.shared.stopping() {
            self.step();
            match commands.recv_timeout(TICK) {
                Ok(command) => {
                    self.take(command);
                    while let Ok(command) = commands.try_recv() {
                        self.take(command);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Wake => self.shared.awake(),
            Command::Block(block) => {
                // The owner may have asked for a seek before it sent this.
                self.flush_if_asked();
                let stale = block.serial != self.serial || self.supply == Supply::Closed;
                if stale || self.pending.len() >= MAX_PENDING {
                    tracing::debug!(block = block.block, serial = block.serial, "a stale block was dropped");
                    return;
                }
                self.supply = Supply::Full;
                self.pending.push_back(block);
            }
        }
    }

    fn step(&mut self) {
        self.flush_if_asked();
        self.feed_pending();
        if self.pending.is_empty() && self.supply != Supply::Closed && self.shared.ends(self.serial) {
            self.supply = Supply::Closed;
            Feed::end_of_stream(&self.front);
            self.wake_up();
        }
        let room = self.supply == Supply::Full && self.pending.is_empty() && self.has_room();
        if room && self.shared.events.send(PipelineEvent::WantsBlock { serial: self.serial }) {
            self.supply = Supply::Asked;
        }
        self.follow_owner();
        self.starve_if_empty();
    }

    /// One block more makes one and a half at most.
    fn has_room(&self) -> bool {
        self.feed.end().saturating_sub(self.shared.consumed()) <= self.half_block
    }

    fn feed_pending(&mut self) {
        while self.has_room() {
            let Some(block) = self.pending.pop_front() else { break };
            if let Err(error) = self.feed.push(&self.front, &block) {
                let error = with_causes(&error);
                tracing::error!(block = block.block, %error, "a block was not fed");
                self.shared.events.send(PipelineEvent::Error(error));
            }
            self.wake_up();
        }
    }

    fn flush_if_asked(&mut self) {
        while let Some(request) = self.shared.flush_asked() {
            self.flush(request);
            self.shared.flush_done(request.serial);
        }
    }

    fn flush(&mut self, request: FlushRequest) {
        self.sinks.flush_start();
        let emptied = self.front.empty();
        self.sinks.flush_stop();
        self.screen.clear();
        self.shared.begin_anew(request.serial);
        self.shared.watch.jumped(request.to);
        self.feed.restart(request.to, request.rate);
        self.pending.clear();
        self.serial = request.serial;
        self.supply = Supply::Full;
        self.wake_up();
        if let Err(error) = emptied.and_then(|()| self.front.run()) {
            self.shared.events.send(PipelineEvent::Error(error.to_string()));
        }
    }

    fn follow_owner(&mut self) {
        let wanted = self.shared.wants_play();
        if wanted == self.playing {
            return;
        }
        self.playing = wanted;
        if wanted {
            self.shared.watch.paused();
            self.apply();
        } else {
            self.apply();
            self.shared.watch.paused();
            self.shared.events.send(PipelineEvent::Paused);
        }
    }

    /// There is something to show again.
    fn wake_up(&mut self) {
        if std::mem::take(&mut self.starved) {
            self.apply();
        }
    }

    /// With nothing left to show, the film's clock must stand, or the next
    /// pictures would all be late and rush by.
    fn starve_if_empty(&mut self) {
        let waiting = self.playing && self.paced && !self.starved && self.supply != Supply::Closed;
        if waiting
            && self.pending.is_empty()
            && self.feed.end() > 0
            && self.shared.watch.all_shown(self.feed.end(), Instant::now())
        {
            self.starved = true;
            self.apply();
        }
    }

    fn apply(&self) {
        let running = self.playing && !self.starved;
        let state = if running { gst::State::Playing } else { gst::State::Paused };
        if let Err(error) = self.set_state(state) {
            self.shared.events.send(PipelineEvent::Error(error.to_string()));
        }
    }

    fn set_state(&self, state: gst::State) -> Result<(), PipelineError> {
        self.pipeline.set_state(state).map(drop).map_err(PipelineError::build)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The sinks first: what waits in them is let go, so that the threads
        // that wait behind them end.
        if self.pipeline.set_state(gst::State::Null).is_err() {
            tracing::error!("the sinks did not stop");
        }
        self.front.close();
        if let Some(bus) = self.pipeline.bus() {
            bus.unset_sync_handler();
        }
    }
}

/// An error with its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn longest_block(manifest: &Manifest) -> u64 {
    let longest = manifest.blocks.iter().map(|block| block.duration).max().unwrap_or(0);
    manifest.at(longest).as_nanos()
}

fn assemble(front: &Front, sinks: &Sinks) -> Result<gst::Pipeline, PipelineError> {
    let pipeline = gst::Pipeline::with_name("player");
    pipeline.add(front.bin()).map_err(PipelineError::build)?;
    let ends = [("video", Some(&sinks.video)), ("audio", sinks.sound.as_ref())];
    for (name, sink) in ends {
        let Some(sink) = sink else { continue };
        pipeline.add(sink).map_err(PipelineError::build)?;
        front.bin().link_pads(Some(name), sink, Some("sink")).map_err(PipelineError::build)?;
    }
    Ok(pipeline)
}
