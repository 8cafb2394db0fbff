//! Gathers the report while the film runs.

use super::{
    EpochReport, Failover, FreezeReport, Freezes, Mismatch, PlayReport, REPORT_VERSION, Sample, SourceReport,
    Transition,
};
use crate::pipeline::MeterReport;
use media::{Layer, Quality, Span};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The most samples kept: ten a second for eight hours; then every other one
/// goes, and only every other one is taken, and so on.
const MOST_SAMPLES: usize = 288_000;
/// The most events of one kind that are kept one by one.
const MOST_LISTED: usize = 10_000;

/// Pictures from before a jump may still be told of for this long after it.
const JUMP: Duration = Duration::from_millis(250);

/// Everything remembered about one viewing.
#[derive(Debug)]
pub(crate) struct Recorder {
    pressed: Instant,
    first: Option<Instant>,
    report: PlayReport,
    /// Take one sample in so many.
    thinning: u64,
    offered: u64,
    shown: Option<Quality>,
    /// Causes of the changes that were fed and not shown yet, by block.
    causes: BTreeMap<u32, String>,
    failovers: Vec<(Instant, Failover)>,
    /// The seek serial and the number of the last block fed.
    last_fed: Option<(u64, u32)>,
    /// Playback jumped: until this, another quality on screen is no change.
    settled: Option<Instant>,
}

impl Recorder {
    pub(crate) fn new(pressed: Instant, title: String, wanted: Quality, buffer: Span) -> Self {
        let report = PlayReport {
            version: REPORT_VERSION,
            player: format!("lamina {}", env!("CARGO_PKG_VERSION")),
            title,
            wanted: wanted.to_string(),
            buffer_limit_ms: buffer.as_millis(),
            ..PlayReport::default()
        };
        Self {
            pressed,
            first: None,
            report,
            thinning: 1,
            offered: 0,
            shown: None,
            causes: BTreeMap::new(),
            failovers: Vec::new(),
            last_fed: None,
            settled: None,
        }
    }

    /// Nothing is decoded.
    pub(crate) fn light(&mut self) {
        self.report.light = true;
    }

    /// Milliseconds from the first picture to `at`; 0 before it.
    pub(crate) fn at_ms(&self, at: Instant) -> u64 {
        self.first.map_or(0, |first| millis(first, at))
    }

    /// The first picture is on screen; tells how long it took.
    pub(crate) fn first_picture(&mut self, at: Instant) -> u64 {
        self.first = Some(at);
        let startup = millis(self.pressed, at);
        self.report.startup_ms = Some(startup);
        startup
    }

    /// The machine decided that `block` has another quality, and why.
    pub(crate) fn will_change(&mut self, block: u32, cause: String) {
        if self.causes.len() < MOST_LISTED {
            self.causes.insert(block, cause);
        }
    }

    pub(crate) fn jumped(&mut self) {
        self.causes.clear();
        self.settled = Instant::now().checked_add(JUMP);
    }

    /// A picture is on screen; tells if its quality is another one than before.
    pub(crate) fn picture(
        &mut self,
        at: Instant,
        block: u32,
        quality: Quality,
        position: Span,
    ) -> Option<Transition> {
        let before = self.shown.replace(quality);
        if self.settled.is_some_and(|settled| at < settled) || before.is_none_or(|before| before == quality) {
            return None;
        }
        let later = self.causes.split_off(&block.saturating_add(1));
        let known = std::mem::replace(&mut self.causes, later);
        let transition = Transition {
            at_ms: self.at_ms(at),
            block,
            position_ms: position.as_millis(),
            from: before.unwrap_or_default().to_string(),
            to: quality.to_string(),
            cause: known.get(&block).cloned().unwrap_or_else(|| "decoder".to_owned()),
        };
        if self.report.transitions.len() < MOST_LISTED {
            self.report.transitions.push(transition.clone());
        }
        Some(transition)
    }

    /// The quality on screen.
    pub(crate) fn quality(&self) -> Quality {
        self.shown.unwrap_or_default()
    }

    pub(crate) fn sample(&mut self, at: Instant, position: Span, buffer: Span) -> Sample {
        let sample = Sample {
            at_ms: self.at_ms(at),
            position_ms: position.as_millis(),
            buffer_ms: buffer.as_millis(),
            quality: self.quality().to_string(),
        };
        if self.first.is_some() {
            if self.offered.is_multiple_of(self.thinning) {
                self.report.samples.push(sample.clone());
            }
            self.offered = self.offered.saturating_add(1);
            if self.report.samples.len() >= MOST_SAMPLES {
                let mut keep = false;
                self.report.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.thinning = self.thinning.saturating_mul(2);
            }
        }
        sample
    }

    /// `heard` is when the old source was last heard.
    pub(crate) fn failover(&mut self, heard: Instant, failover: Failover) {
        if self.failovers.len() < MOST_LISTED {
            self.failovers.push((heard, failover));
        }
    }

    pub(crate) fn epoch(&mut self, epoch: EpochReport) {
        if self.report.epochs.len() < MOST_LISTED {
            self.report.epochs.push(epoch);
        }
    }

    /// A block goes to the pipeline.
    pub(crate) fn fed(&mut self, serial: u64, block: u32, trick: bool) {
        let last = self.last_fed.take().filter(|(of, _)| *of == serial && !trick);
        self.last_fed = (!trick).then_some((serial, block));
        if let Some((_, last)) = last {
            let sequence = &mut self.report.sequence;
            match block.checked_sub(last) {
                None | Some(0) => sequence.repeated = sequence.repeated.saturating_add(1),
                Some(step) => sequence.missing = sequence.missing.saturating_add(u64::from(step - 1)),
            }
        }
    }

    pub(crate) fn base_first(&mut self) {
        self.report.base_first = self.report.base_first.saturating_add(1);
    }

    pub(crate) fn fetched(&mut self, layer: Layer, bytes: u64) {
        let sum = self.report.bytes_by_layer.entry(layer.to_string()).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// The whole report; `measured` is what the sink saw.
    pub(crate) fn finish(
        mut self,
        now: Instant,
        outcome: String,
        measured: Option<MeterReport>,
        sources: Vec<SourceReport>,
    ) -> PlayReport {
        self.report.outcome = outcome;
        self.report.watched_ms = self.at_ms(now);
        self.report.sources = sources;
        for (heard, failover) in std::mem::take(&mut self.failovers) {
            let at_ms = self.at_ms(heard);
            self.report.failovers.push(Failover { at_ms, ..failover });
        }
        if let Some(measured) = measured {
            include(&mut self.report, measured);
        }
        self.report
    }
}

fn include(report: &mut PlayReport, measured: MeterReport) {
    report.freezes = Freezes {
        count: measured.freeze_count,
        total_ms: measured.freeze_total.as_millis(),
        longest_ms: measured.freeze_longest.as_millis(),
        list: measured
            .freezes
            .iter()
            .map(|freeze| FreezeReport {
                at_ms: freeze.start.as_millis(),
                length_ms: freeze.length.as_millis(),
                position_ms: freeze.position.as_millis(),
            })
            .collect(),
    };
    report.frames_shown = measured.frames_shown;
    report.frames_expected = measured.frames_expected;
    report.frames_dropped = measured.frames_dropped;
    let qualities = (1..=u8::MAX).map(Quality).zip(&measured.at_quality);
    report.seconds_at_quality =
        qualities.map(|(quality, span)| (quality.to_string(), span.as_secs_f64())).collect();
    report.seconds_in_halves = measured.in_halves.as_secs_f64();
    report.blocks_checked = measured.blocks_checked;
    report.blocks_unchecked = measured.blocks_unchecked;
    let mismatch = |(block, quality): (u32, Quality)| Mismatch { block, quality: quality.to_string() };
    report.hash_mismatches = measured.mismatches.into_iter().map(mismatch).collect();
}

fn millis(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(u64::MAX)
}
