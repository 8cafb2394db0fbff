//! A title and a viewer for the stories in the files beside.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod title;

use media::{Quality, Span};
use player::pipeline::{
    BlockFeed, MeterReport, Pipeline, PipelineEvent, PipelineOptions, SinkKind, Snapshots,
};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use title::{Recipe, Title};
use tokio::sync::mpsc::Receiver;

/// No wait in a test is longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ten blocks of 0.4 s in three layers, with sound.
pub static TITLE: LazyLock<Title> = LazyLock::new(|| Title::make(&Recipe::small(10)));

/// Feeds a pipeline as it asks, and keeps all that it says.
pub struct Viewer<'a> {
    pub title: &'a Title,
    pub pipeline: Pipeline,
    events: Receiver<PipelineEvent>,
    pub serial: u64,
    /// The block to be fed next; with `step` after each.
    pub next: i64,
    pub step: i64,
    pub quality: fn(u32) -> u8,
    /// The blocks of which only the first half of the topmost layer is fed.
    pub half: fn(u32) -> bool,
    /// Blocks from here on are withheld.
    pub until: u32,
    /// A block was asked for and withheld.
    pub owed: bool,
    pub log: Vec<PipelineEvent>,
}

pub const GOLD: fn(u32) -> u8 = |_| 3;
/// As a quality: key pictures of Base only.
pub const KEYS: fn(u32) -> u8 = |_| 0;

impl<'a> Viewer<'a> {
    pub fn new(title: &'a Title, quality: fn(u32) -> u8) -> Self {
        Self::with(title, quality, SinkKind::Headless)
    }

    pub fn with(title: &'a Title, quality: fn(u32) -> u8, sink: SinkKind) -> Self {
        Self::start(title, quality, sink, None)
    }

    pub fn start(
        title: &'a Title,
        quality: fn(u32) -> u8,
        sink: SinkKind,
        snapshots: Option<Arc<Snapshots>>,
    ) -> Self {
        let manifest = title.manifest.clone();
        let options =
            PipelineOptions { manifest, sink, audio: true, check_hashes: true, snapshots, preview: None };
        let (pipeline, events) = Pipeline::start(options).unwrap();
        let until = title.manifest.block_count();
        let log = Vec::new();
        let half = |_| false;
        Self { title, pipeline, events, serial: 0, next: 0, step: 1, quality, half, until, owed: false, log }
    }

    pub fn seek(&mut self, to: Span, rate: f64) {
        self.serial += 1;
        self.next = i64::from(self.title.manifest.block_at(to));
        self.step = if rate < 0.0 { -1 } else { 1 };
        self.owed = false;
        self.pipeline.flush(self.serial, to, rate);
    }

    pub fn feed_next(&mut self) {
        let last = i64::from(self.title.manifest.block_count()) - 1;
        if !(0..=last).contains(&self.next) {
            self.pipeline.end_of_feed(self.serial);
            return;
        }
        let block = u32::try_from(self.next).unwrap();
        if block >= self.until {
            self.owed = true;
            return;
        }
        let layers = (self.quality)(block);
        let quality = Quality(layers.max(1));
        let info = &self.title.manifest.blocks[self.next as usize];
        let key_only = (layers == 0)
            .then(|| self.title.manifest.at(info.duration).saturating_mul(self.step.unsigned_abs()));
        let mut chunks = self.title.chunks[self.next as usize][..usize::from(quality.layers())].to_vec();
        let half = (self.half)(block);
        if let Some((first, top)) = quality.top().zip(chunks.last_mut()).filter(|_| half) {
            top.truncate(self.title.manifest.half(block, first).unwrap().length as usize);
        }
        self.pipeline
            .feed(BlockFeed { serial: self.serial, block, quality, half, chunks, key_only })
            .unwrap();
        self.next += self.step;
    }

    /// Lets withheld blocks go.
    pub fn release(&mut self) {
        self.until = u32::MAX;
        if std::mem::take(&mut self.owed) {
            self.feed_next();
        }
    }

    /// Serves the pipeline until an event matches; panics with the log's tail
    /// when none does in time.
    pub async fn until(&mut self, matches: impl Fn(&PipelineEvent) -> bool) -> PipelineEvent {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let event = tokio::time::timeout_at(end, self.events.recv()).await;
            let Ok(Some(event)) = event else {
                panic!("no such event; the last were {:#?}", &self.log[self.log.len().saturating_sub(5)..]);
            };
            self.note(event.clone());
            if matches(&event) {
                return event;
            }
        }
    }

    /// Serves the pipeline for a while.
    pub async fn during(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(Some(event)) = tokio::time::timeout_at(end, self.events.recv()).await {
            self.note(event);
        }
    }

    fn note(&mut self, event: PipelineEvent) {
        if let PipelineEvent::Error(error) = &event {
            panic!("the pipeline failed: {error}");
        }
        if event == (PipelineEvent::WantsBlock { serial: self.serial }) {
            self.feed_next();
        }
        self.log.push(event);
    }

    pub async fn play_out(&mut self) {
        let serial = self.serial;
        self.until(|event| *event == PipelineEvent::EndOfStream { serial }).await;
    }

    pub async fn shown(&mut self, count: usize) {
        for _ in 0..count {
            self.until(|event| matches!(event, PipelineEvent::Shown { .. })).await;
        }
    }

    /// Title time in pictures, quality and moment of each picture shown.
    pub fn pictures(&self) -> Vec<(u64, u8, Instant)> {
        let shown = |event: &PipelineEvent| match event {
            PipelineEvent::Shown { pts, quality, at, .. } => {
                Some(((pts.as_nanos() * title::FPS + 500_000_000) / 1_000_000_000, quality.layers(), *at))
            }
            _ => None,
        };
        self.log.iter().filter_map(shown).collect()
    }

    /// Block, quality and verdict of each block that was compared.
    pub fn checked(&self) -> Vec<(u32, u8, bool)> {
        let checked = |event: &PipelineEvent| match event {
            PipelineEvent::BlockChecked { block, quality, ok } => Some((*block, quality.layers(), *ok)),
            _ => None,
        };
        self.log.iter().filter_map(checked).collect()
    }

    pub fn stop(self) -> MeterReport {
        self.pipeline.stop()
    }
}
