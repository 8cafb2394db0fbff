//! The player's mind: what to ask of whom, when to feed what to the pipeline,
//! and what to do when a source dies.
//!
//! The machine sees names, lengths and times, never a byte of film. Put an
//! [`Input`] in with [`Player::handle_input`], drain [`Player::poll_output`] to
//! the end, then wait for the next input or until [`Player::poll_timeout`]. The
//! same seed and inputs give the same outputs; a late or needless
//! [`Input::Timeout`] does no harm.
//!
//! ```
//! use media::{ByteCount, Quality, Span, Time};
//! use protocol::player::*;
//!
//! let block = |n: u64| BlockShape {
//!     start: Span::from_secs(n),
//!     duration: Span::from_secs(1),
//!     lengths: vec![ByteCount(50_000)],
//! };
//! let shape = TitleShape { layers: 1, blocks: (0..60).map(block).collect() };
//! let mut player = Player::new(Time::ZERO, PlayerConfig::default(), 1);
//! let opening = Opening {
//!     shape: shape.into(),
//!     quality: Quality::BRONZE,
//!     sources: vec![vec![SourceId(0)]],
//!     connected: vec![SourceId(0)],
//!     service: Service::default(),
//!     from: Span::ZERO,
//!     until: None,
//! };
//! player.handle_input(Time::ZERO, Input::Opened(opening));
//! let asked = std::iter::from_fn(|| player.poll_output())
//!     .filter(|output| matches!(output, Output::Request { .. }))
//!     .count();
//! assert_eq!(asked, 1, "nothing shares the line with a first block");
//! ```

mod buffer;
mod config;
mod event;
mod failover;
mod feed;
mod inputs;
mod io;
mod network;
mod playback;
mod requests;
mod roster;
mod session;
mod takeover;
#[cfg(test)]
mod tests;
mod window;

pub use config::{Own, PlayerConfig};
pub use event::{Event, MoveCause};
pub use io::{
    BlockShape, Command, FetchFailure, Found, GiveUp, Input, Opening, Output, RequestId, Service, SourceId,
    TitleShape,
};

use crate::quality::{Cause, Stepper};
use buffer::Buffer;
use failover::{SourceAction, Sources};
use media::{Layer, Quality, Span, Time};
use network::Network;
use playback::Playback;
use requests::Requests;
use session::Session;
use std::collections::VecDeque;

/// One input is followed by no more steps than this; one or two do.
const MOST_STEPS: u32 = 8;

/// The whole state of one viewer. Cloning it forks its future.
#[derive(Clone, Debug)]
pub struct Player {
    config: PlayerConfig,
    seed: u64,
    now: Time,
    session: Option<Session>,
    playback: Option<Playback>,
    sources: Sources,
    network: Network,
    requests: Requests,
    buffer: Buffer,
    stepper: Stepper,
    /// For each layer, a failure of its source that nobody made good yet.
    failures: Vec<Option<Failure>>,
    /// Why quality last was under the viewer's wish.
    dip: Cause,
    /// Whether the block under the hand lacks a layer through a fault.
    fault: bool,
    /// Since when the target is what it is.
    target_since: Time,
    /// While a source has the title fetched first: when it last said so.
    coming: Option<Time>,
    over: bool,
    outputs: VecDeque<Output>,
}

/// The source of a layer failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    from: SourceId,
    heard: Time,
    verdict: Time,
    reasked: u32,
    cause: MoveCause,
}

impl Player {
    /// A player that waits for its session. `seed` spreads what many viewers
    /// would otherwise do in step.
    pub fn new(now: Time, config: PlayerConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            now,
            session: None,
            playback: None,
            sources: Sources::new(now, Vec::new(), 0),
            network: Network::default(),
            requests: Requests::default(),
            buffer: Buffer::default(),
            stepper: Stepper::new(config.step, Quality::BRONZE),
            failures: Vec::new(),
            dip: Cause::Rate,
            fault: false,
            target_since: now,
            coming: None,
            over: false,
            outputs: VecDeque::new(),
        }
    }

    /// Takes one input. A time before the last one counts as the last one.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        let now = now.max(self.now);
        self.now = now;
        if self.over {
            return;
        }
        self.take(now, input);
        self.settle(now);
    }

    /// The next thing to do; drain to the end after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`] if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        let playback = self.playback.as_ref()?;
        let seek = playback.pending.map(|_| playback.started + self.config.seek_gap);
        let times = [
            self.sources.poll_timeout(self.layers_wished(), &self.config),
            self.stepper.poll_timeout(),
            self.starvation_at(),
            self.hedge_timeout(),
            seek,
            self.alone_until(self.now),
            self.network_timeout(),
        ];
        let all = times.into_iter().chain(self.feed_timeouts()).flatten().chain(self.buffer.retries());
        // What is due by now was looked at; if it stands, it waits for an input.
        all.filter(|when| *when > self.now).min()
    }

    /// Whether a request's chunk is still wanted; if not, drop its bytes.
    pub fn is_open(&self, request: RequestId) -> bool {
        self.requests.get(request).is_some()
    }

    /// Whether a connection to a source stands, and is not silent.
    pub fn hears(&self, source: SourceId) -> bool {
        self.sources.is_up(source) && !self.sources.is_silent(source)
    }

    /// The position on screen, run on from the last report.
    pub fn position(&self) -> Span {
        self.playback.as_ref().map_or(Span::ZERO, |playback| playback.at(self.now))
    }

    /// How much programme lies ready beyond the position.
    pub fn buffer_level(&self) -> Span {
        self.base_level(self.now)
    }

    /// The quality aimed at.
    pub fn target(&self) -> Quality {
        self.stepper.target()
    }

    /// The best quality that the viewer wants.
    pub fn wish(&self) -> Quality {
        self.stepper.wish()
    }

    /// Who serves a layer.
    pub fn source_of(&self, layer: Layer) -> Option<SourceId> {
        self.sources.serving(layer)
    }

    /// The node that keeps this viewer's record.
    pub fn home(&self) -> Option<SourceId> {
        self.network.standing.home()
    }

    /// Who takes over if that node dies, as far as it is known.
    pub fn backup(&self) -> Option<SourceId> {
        self.network.standing.backup()
    }

    /// The highest epoch heard of that was taken.
    pub fn epoch(&self) -> u64 {
        self.network.standing.epoch()
    }

    /// The seek serial in force.
    pub fn serial(&self) -> u64 {
        self.playback.as_ref().map_or(0, |playback| playback.serial)
    }

    /// Steps until nothing more follows: a later part of a step may change what an
    /// earlier one went by, such as a verdict that clears the line's record by
    /// which another silence was excused. Left to the next input, that other
    /// verdict would come as late as that input does.
    fn settle(&mut self, now: Time) {
        for _ in 0..MOST_STEPS {
            let before = self.outputs.len();
            self.step(now);
            if self.over || (self.outputs.len() == before && !self.excuse_crowded()) {
                return;
            }
        }
    }

    /// Everything that follows from the state and the time, once.
    fn step(&mut self, now: Time) {
        if self.session.is_none() {
            return;
        }
        self.seek_if_pending(now);
        self.excuse_crowded();
        for action in self.sources.poll(now, self.layers_wished(), &self.config) {
            match action {
                SourceAction::Dial(source) => self.emit(Output::Dial { source }),
                SourceAction::Probe(source, number) => self.emit(Output::Probe { source, number }),
                SourceAction::Silent(source, heard) => {
                    self.emit(Output::Event(Event::Silent { source, heard }));
                    self.note_failure(now, source, heard, MoveCause::Silence);
                }
            }
        }
        self.settle_doubt(now);
        self.seek_service(now);
        self.reask(now);
        let before = self.stepper.target();
        self.stepper.set_reachable(Quality(self.sources.reachable_layers()));
        self.postpone_hopeless_trial(now);
        self.stepper.handle_timeout(now);
        self.judge_start(now);
        self.base_first(now);
        self.feed(now);
        if self.stepper.target() != before {
            self.target_since = now;
        }
        self.trim(now);
        self.fetch(now);
        self.watch_supply(now);
        self.report_position(now);
    }

    fn emit(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Layers for which sources are kept connected.
    fn layers_wished(&self) -> u8 {
        self.stepper.wish().layers()
    }
}
