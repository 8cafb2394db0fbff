//! Checking whole blocks against the hashes of their pictures, and counting.

use super::meter::MeterReport;
use super::schedule::Slot;
use codec::PictureRef;
use media::{Hasher, Manifest, Quality, Span};
use std::sync::Arc;

/// The most faults that are listed one by one.
const MAX_LISTED: usize = 1_000;

/// Counts what is shown, block by block.
#[derive(Debug)]
pub(crate) struct Tally {
    manifest: Arc<Manifest>,
    check: bool,
    current: Option<Current>,
    report: MeterReport,
}

/// The block on screen.
#[derive(Debug)]
struct Current {
    slot: Slot,
    shown: u32,
    quality: Quality,
    comparison: Comparison,
}

/// How far a block's pictures were compared.
#[derive(Debug)]
enum Comparison {
    /// All pictures so far are in this hash.
    Running(Box<Hasher>),
    /// The whole block was compared.
    Done,
    /// Pictures are missing, or not all of one quality.
    Impossible,
}

/// The outcome of comparing one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) block: u32,
    pub(crate) quality: Quality,
    pub(crate) ok: bool,
}

impl Tally {
    pub(crate) fn new(manifest: Arc<Manifest>, check: bool) -> Self {
        let report =
            MeterReport { at_quality: vec![Span::ZERO; manifest.layers.len()], ..MeterReport::default() };
        Self { manifest, check, current: None, report }
    }

    /// A picture was shown. If it completes its block at one quality, the block
    /// is compared with what the encoder made.
    pub(crate) fn shown(
        &mut self,
        slot: &Slot,
        quality: Quality,
        picture: Option<PictureRef<'_>>,
    ) -> Option<Checked> {
        if self.current.as_ref().is_none_or(|current| current.slot.start != slot.start) {
            self.enter(slot, quality);
        }
        self.report.frames_shown += 1;
        self.count_time(slot, quality);
        let current = self.current.as_mut()?;
        current.shown += 1;
        match (&mut current.comparison, picture) {
            (Comparison::Running(hasher), Some(picture)) if current.quality == quality => {
                hash_into(hasher, picture);
            }
            (comparison, _) => *comparison = Comparison::Impossible,
        }
        let block = self.manifest.block(slot.block)?;
        if current.shown != block.frames {
            return None;
        }
        let Comparison::Running(hasher) = &current.comparison else { return None };
        let hash = hasher.finish();
        current.comparison = Comparison::Done;
        let index = usize::from(quality.layers().checked_sub(1)?);
        let wanted = if slot.half == Some(quality) {
            block.halves.get(index.checked_sub(1)?)?.pictures
        } else {
            *block.quality_hashes.get(index)?
        };
        let checked = Checked { block: slot.block, quality, ok: hash == wanted };
        self.report.blocks_checked += 1;
        if !checked.ok && self.report.mismatches.len() < MAX_LISTED {
            self.report.mismatches.push((slot.block, quality));
        }
        Some(checked)
    }

    /// Playback jumps or stops: what follows in this block was not due.
    pub(crate) fn leave(&mut self) {
        if let Some(current) = self.current.take() {
            self.report.frames_expected += u64::from(current.shown);
            self.close(&current);
        }
    }

    /// The film came to its end: the whole last block was due.
    pub(crate) fn end(&mut self) {
        if let Some(current) = self.current.take() {
            self.account(&current);
        }
        self.report.ended = true;
    }

    /// The figures so far, with the block on screen as far as it was shown.
    pub(crate) fn report(&self) -> MeterReport {
        let mut report = self.report.clone();
        report.frames_expected += self.current.as_ref().map_or(0, |current| u64::from(current.shown));
        report
    }

    fn enter(&mut self, slot: &Slot, quality: Quality) {
        if let Some(before) = self.current.take() {
            self.account(&before);
            if !slot.key_only {
                let skipped = (before.slot.block.saturating_add(1)..slot.block)
                    .filter_map(|block| self.manifest.block(block))
                    .map(|block| u64::from(block.frames))
                    .sum::<u64>();
                self.report.frames_expected += skipped;
                self.report.frames_dropped += skipped;
            }
        }
        let frames = self.manifest.block(slot.block).map(|block| block.frames);
        let whole = !slot.key_only && frames == Some(slot.pictures);
        let comparison =
            if self.check && whole { Comparison::Running(Box::default()) } else { Comparison::Impossible };
        self.current = Some(Current { slot: *slot, shown: 0, quality, comparison });
    }

    /// A block that was left because the next one came.
    fn account(&mut self, current: &Current) {
        let due = u64::from(current.slot.pictures);
        self.report.frames_expected += due;
        self.report.frames_dropped += due.saturating_sub(u64::from(current.shown));
        self.close(current);
    }

    fn close(&mut self, current: &Current) {
        let compared = matches!(current.comparison, Comparison::Done);
        if self.check && !compared && !current.slot.key_only {
            self.report.blocks_unchecked += 1;
        }
    }

    fn count_time(&mut self, slot: &Slot, quality: Quality) {
        let Some(block) = self.manifest.block(slot.block) else { return };
        let pictures = if slot.key_only { 1 } else { u64::from(block.frames) };
        let each = (slot.end - slot.start).checked_div(pictures).unwrap_or(0);
        let index = usize::from(quality.layers().saturating_sub(1));
        if let Some(total) = self.report.at_quality.get_mut(index) {
            *total += Span::from_nanos(each);
        }
        if slot.half == Some(quality) {
            self.report.in_halves += Span::from_nanos(each);
        }
    }
}

fn hash_into(hasher: &mut Hasher, picture: PictureRef<'_>) {
    for plane in picture.planes() {
        plane.rows().for_each(|row| hasher.update(row));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;
    use codec::Picture;
    use media::manifest::{Color, Made, Ratio};
    use media::{BlockInfo, LayerInfo};

    /// Blocks of two grey pictures; every quality has the same hash.
    fn manifest(blocks: u64) -> Arc<Manifest> {
        let mut hasher = Hasher::new();
        (0..2).for_each(|_| grey().hash_into(&mut hasher));
        let layer = LayerInfo {
            factor: 1,
            width: 16,
            height: 16,
            codec: "lenh".into(),
            file: "f".into(),
            init: vec![0],
            delay: 0,
            sync_every: None,
            halves: false,
        };
        let block = |index: u64| BlockInfo {
            start: index * 2,
            duration: 2,
            frames: 2,
            base_hash: hasher.finish(),
            quality_hashes: vec![hasher.finish(); 2],
            chunks: Vec::new(),
            halves: Vec::new(),
        };
        Arc::new(Manifest {
            version: 1,
            title: "t".parse().unwrap(),
            width: 16,
            height: 16,
            frame_rate: Ratio { num: 25, den: 1 },
            timescale: 25,
            duration: blocks * 2,
            color: Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 },
            pixel_aspect: Ratio { num: 1, den: 1 },
            class: media::TitleClass::Archived,
            made: Made {
                by: "test".into(),
                preset: "fast".into(),
                crf_centi: 0,
                quantizers: vec![0],
                block_ms: 80,
            },
            audio: None,
            layers: vec![layer.clone(), layer],
            blocks: (0..blocks).map(block).collect(),
        })
    }

    fn grey() -> Picture {
        Picture::new(16, 16).unwrap()
    }

    fn slot(block: u32, pictures: u32) -> Slot {
        let start = u64::from(block) * 80_000_000;
        Slot {
            start,
            end: start + 80_000_000,
            show_from: start,
            block,
            pictures,
            key_only: false,
            half: None,
            title_start: Span::from_nanos(start),
        }
    }

    #[test]
    fn a_whole_block_at_one_quality_is_compared() {
        let mut tally = Tally::new(manifest(2), true);
        let picture = grey();
        assert_eq!(tally.shown(&slot(0, 2), Quality(1), Some(picture.view())), None);
        let checked = tally.shown(&slot(0, 2), Quality(1), Some(picture.view()));
        assert_eq!(checked, Some(Checked { block: 0, quality: Quality(1), ok: true }));
        let mut wrong = grey();
        wrong.planes_mut()[1].data[5] ^= 1;
        tally.shown(&slot(1, 2), Quality(2), Some(picture.view()));
        let checked = tally.shown(&slot(1, 2), Quality(2), Some(wrong.view()));
        assert_eq!(checked, Some(Checked { block: 1, quality: Quality(2), ok: false }));
        tally.end();
        let report = tally.report();
        assert_eq!((report.blocks_checked, report.blocks_unchecked), (2, 0));
        assert_eq!(report.mismatches, [(1, Quality(2))]);
        assert_eq!(report.at_quality, [Span::from_millis(80), Span::from_millis(80)]);
        assert_eq!((report.frames_shown, report.frames_expected, report.frames_dropped), (4, 4, 0));
    }

    #[test]
    fn mixed_and_partial_blocks_are_not_compared() {
        let mut tally = Tally::new(manifest(3), true);
        let picture = grey();
        tally.shown(&slot(0, 2), Quality(2), Some(picture.view()));
        assert_eq!(tally.shown(&slot(0, 2), Quality(1), Some(picture.view())), None);
        // Entered at its second picture.
        assert_eq!(tally.shown(&slot(1, 1), Quality(2), Some(picture.view())), None);
        tally.leave();
        assert_eq!(tally.report().blocks_unchecked, 2);
        assert_eq!(tally.report().frames_expected, 3);
    }

    #[test]
    fn skipped_pictures_and_blocks_are_expected_and_dropped() {
        let mut tally = Tally::new(manifest(5), false);
        tally.shown(&slot(0, 2), Quality(1), None);
        tally.shown(&slot(3, 2), Quality(1), None);
        // Block 3 is left by a seek: its second picture was not due.
        tally.leave();
        tally.shown(&slot(1, 2), Quality(1), None);
        tally.end();
        let report = tally.report();
        assert_eq!((report.frames_shown, report.frames_expected, report.frames_dropped), (3, 9, 6));
        assert_eq!((report.blocks_checked, report.blocks_unchecked), (0, 0));
    }
}
