//! The pipeline of a light player: everything but the decoders. Blocks are asked
//! for, taken and shown at the times of their pictures, and the same meter measures
//! what would have been seen; nobody looks into the pictures. A crowd of these
//! costs what its network costs.

use super::feed::shown_for;
use super::schedule::Slot;
use super::shared::{Command, FlushRequest, Shared};
use super::{BlockFeed, PipelineEvent};
use media::container::{self, ContainerError};
use media::{Manifest, Quality, Span};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the thread looks around when nothing is due.
const TICK: Duration = Duration::from_millis(50);

/// Why a block cannot be shown.
#[derive(Debug, thiserror::Error)]
enum LightError {
    #[error("the title has no block {0}")]
    NoSuchBlock(u32),
    #[error("block {0} came without its Base chunk")]
    NoBase(u32),
    #[error("the Base chunk of block {block} cannot be read")]
    Base { block: u32, source: ContainerError },
}

/// A picture that is to be shown.
#[derive(Clone, Copy, Debug)]
struct Due {
    stream: u64,
    length: u64,
    slot: Slot,
    quality: Quality,
}

/// What the owner was told about the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    Full,
    Asked,
    Closed,
}

/// The thread's own part.
#[derive(Debug)]
pub(crate) struct Light {
    shared: Arc<Shared>,
    manifest: Arc<Manifest>,
    due: VecDeque<Due>,
    /// Stream time at which what was fed ends.
    end: u64,
    half_block: u64,
    serial: u64,
    supply: Supply,
    playing: bool,
    /// A moment, and the stream time that belongs on screen then.
    anchor: Option<(Instant, u64)>,
    begin_at: Option<Span>,
    rate: f64,
}

impl Light {
    pub(crate) fn new(manifest: Arc<Manifest>, shared: &Arc<Shared>) -> Self {
        let longest = manifest.blocks.iter().map(|block| block.duration).max().unwrap_or(0);
        let half_block = manifest.at(longest).as_nanos() / 2;
        Self {
            shared: shared.clone(),
            manifest,
            due: VecDeque::new(),
            end: 0,
            half_block,
            serial: 0,
            supply: Supply::Full,
            playing: false,
            anchor: None,
            begin_at: Some(Span::ZERO),
            rate: 1.0,
        }
    }

    /// Runs until the owner stops or is gone.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        while !self.shared.stopping() {
            self.step();
            match commands.recv_timeout(self.patience()) {
                Ok(command) => self.take(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    /// How long until the next picture is due.
    fn patience(&self) -> Duration {
        let next = self.due.front().filter(|_| self.playing).and_then(|due| self.moment(due.stream));
        next.map_or(TICK, |at| at.saturating_duration_since(Instant::now()).min(TICK))
    }

    fn moment(&self, stream: u64) -> Option<Instant> {
        let (at, of) = self.anchor?;
        at.checked_add(Duration::from_nanos(stream.saturating_sub(of)))
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Wake => self.shared.awake(),
            Command::Block(block) => {
                self.flush_if_asked();
                if block.serial != self.serial || self.supply != Supply::Asked {
                    tracing::debug!(block = block.block, serial = block.serial, "a stale block was dropped");
                    return;
                }
                self.supply = Supply::Full;
                if let Err(error) = self.feed(&block) {
                    self.shared.events.send(PipelineEvent::Error(error.to_string()));
                }
            }
        }
    }

    fn step(&mut self) {
        self.flush_if_asked();
        self.follow_owner();
        self.show();
        if self.supply != Supply::Closed && self.shared.ends(self.serial) {
            self.supply = Supply::Closed;
        }
        let over = self.supply == Supply::Closed && self.due.is_empty() && self.playing;
        if over && self.moment(self.end).is_none_or(|end| end <= Instant::now()) {
            self.playing = false;
            if let Some(serial) = self.shared.end_reached() {
                self.shared.events.send(PipelineEvent::EndOfStream { serial });
            }
        }
        let room = self.end.saturating_sub(self.shared.consumed()) <= self.half_block;
        if self.supply == Supply::Full
            && room
            && self.shared.events.send(PipelineEvent::WantsBlock { serial: self.serial })
        {
            self.supply = Supply::Asked;
        }
    }

    fn follow_owner(&mut self) {
        let wanted = self.shared.wants_play();
        if wanted == self.playing || (wanted && self.supply == Supply::Closed && self.due.is_empty()) {
            return;
        }
        self.playing = wanted;
        self.anchor = None;
        self.shared.watch.paused();
        if !wanted {
            self.shared.events.send(PipelineEvent::Paused);
        }
    }

    /// Shows every picture whose time has come.
    fn show(&mut self) {
        while self.playing {
            let Some(due) = self.due.front().copied() else { return };
            let now = Instant::now();
            if self.anchor.is_none() {
                self.anchor = Some((now, due.stream));
            }
            if self.moment(due.stream).is_some_and(|at| at > now) {
                return;
            }
            self.due.pop_front();
            let span = (due.stream, due.length);
            self.shared.watch.seen_at(&due.slot, span, due.quality, now);
            self.shared.consume(due.stream.saturating_add(due.length));
        }
    }

    /// Notes the pictures of a block. If they come too late the film has stood.
    fn feed(&mut self, block: &BlockFeed) -> Result<(), LightError> {
        let pictures = self.pictures(block)?;
        if self.due.is_empty()
            && let Some(first) = pictures.first()
            && self.moment(first.stream).is_some_and(|at| at < Instant::now())
        {
            self.anchor = None;
        }
        self.end = pictures.last().map_or(self.end, |last| last.slot.end);
        self.due.extend(pictures);
        Ok(())
    }

    fn pictures(&mut self, feed: &BlockFeed) -> Result<Vec<Due>, LightError> {
        let block = feed.block;
        let info = self.manifest.block(block).ok_or(LightError::NoSuchBlock(block))?;
        let title_start = self.manifest.at(info.start);
        if let Some(way) = feed.key_only {
            let (start, length) = (self.end, shown_for(way, self.rate).as_nanos().max(1));
            let end = start.saturating_add(length);
            let (show_from, half) = (start, None);
            let slot = Slot { start, end, show_from, block, pictures: 1, key_only: true, half, title_start };
            return Ok(vec![Due { stream: start, length, slot, quality: feed.quality }]);
        }
        let chunk = feed.chunks.first().ok_or(LightError::NoBase(block))?;
        let delay = self.manifest.layers.first().map_or(0, |layer| layer.delay);
        let base =
            container::parse_chunk(chunk, delay).map_err(|source| LightError::Base { block, source })?;
        let mut times: Vec<u64> =
            base.video.iter().map(|sample| self.manifest.at(sample.pts).as_nanos()).collect();
        times.sort_unstable();
        let start = title_start.as_nanos();
        let end = self.manifest.at(info.start.saturating_add(info.duration)).as_nanos().max(start + 1);
        let begin = self.begin_at.take().unwrap_or(Span::ZERO).as_nanos();
        // The picture that is on screen at that moment is the first one shown.
        let show_from = times.iter().copied().filter(|time| *time <= begin).max().unwrap_or(start).max(start);
        times.retain(|time| *time >= show_from);
        let pictures = u32::try_from(times.len()).unwrap_or(u32::MAX);
        let half = feed.half.then_some(feed.quality);
        let slot = Slot { start, end, show_from, block, pictures, key_only: false, half, title_start };
        let ends = times.iter().skip(1).copied().chain([end]);
        let each = times.iter().zip(ends).map(|(stream, until)| Due {
            stream: *stream,
            length: until.saturating_sub(*stream),
            slot,
            quality: feed.quality,
        });
        Ok(each.collect())
    }

    fn flush_if_asked(&mut self) {
        while let Some(FlushRequest { serial, to, rate }) = self.shared.flush_asked() {
            self.due.clear();
            self.shared.begin_anew(serial);
            self.shared.watch.jumped(to);
            (self.end, self.serial, self.supply) = (0, serial, Supply::Full);
            (self.anchor, self.begin_at) = (None, Some(to));
            self.rate = if rate.is_finite() && rate != 0.0 { rate } else { 1.0 };
            self.shared.flush_done(serial);
        }
    }
}
