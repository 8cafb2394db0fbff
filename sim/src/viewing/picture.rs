//! What a viewer sees: blocks are shown one after the other once their Base is there,
//! and the picture stands when the next one is late.

use media::{Quality, Span, Time};

/// From the first block to the first picture, and to the next one after a freeze.
const PREROLL: Span = Span::from_millis(60);
/// A gap between pictures that is a freeze: the mean one and 150 ms, as W3C's
/// `freezeCount` has it for about 25 pictures a second.
const FREEZE: Span = Span::from_millis(150);

/// The screen of one viewer.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) serial: u64,
    /// Blocks by their times in the title, with what is shown of them.
    fed: Vec<(Span, Span, Quality)>,
    end: Span,
    longest: Span,
    /// A moment, and what belongs on screen then.
    anchor: Option<(Time, Span)>,
    playing: bool,
    asked: bool,
    closed: bool,
    pub(super) first: Option<Time>,
    pub(super) frozen: Span,
    pub(super) freezes: u64,
}

impl Picture {
    pub(super) fn new(longest: Span) -> Self {
        Self { longest, ..Self::default() }
    }

    pub(super) fn seek(&mut self, serial: u64, to: Span) {
        (self.serial, self.end, self.anchor) = (serial, to, None);
        (self.asked, self.closed) = (false, false);
        self.fed.clear();
    }

    pub(super) fn play(&mut self, now: Time, playing: bool) {
        if playing != self.playing {
            let at = self.position(now);
            self.playing = playing;
            self.anchor = at.filter(|_| playing).map(|at| (now, at));
            if playing {
                self.begin(now);
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    fn begin(&mut self, now: Time) {
        if let Some((start, ..)) = self.fed.first().filter(|_| self.anchor.is_none()) {
            let shown = now + PREROLL;
            self.anchor = Some((shown, *start));
            self.first.get_or_insert(shown);
        }
    }

    /// A block is there, with so many layers.
    pub(super) fn feed(&mut self, now: Time, (start, end): (Span, Span), quality: Quality) {
        self.asked = false;
        self.fed.push((start, end, quality));
        if self.playing {
            if let Some((at, of)) = self.anchor {
                let due = at + self.end.saturating_sub(of);
                if due < now {
                    self.stood(now + PREROLL - due);
                    self.anchor = Some((now + PREROLL, start));
                }
            } else {
                self.begin(now);
            }
        }
        self.end = end;
    }

    fn stood(&mut self, gap: Span) {
        if gap > FREEZE {
            self.frozen += gap;
            self.freezes += 1;
        }
    }

    /// What is on screen; nothing before the first picture.
    pub(super) fn position(&self, now: Time) -> Option<Span> {
        let (at, of) = self.anchor.filter(|(at, _)| *at <= now)?;
        Some((of + (now - at)).min(self.end))
    }

    /// Whether it has room for a block; told once for each.
    pub(super) fn wants(&mut self, now: Time) -> bool {
        let shown = self.position(now).unwrap_or_default();
        let room = self.end.saturating_sub(shown) <= Span::from_nanos(self.longest.as_nanos() / 2);
        let wants = room && !self.asked && !self.closed;
        self.asked |= wants;
        wants
    }

    /// Whether everything was shown.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.closed && self.position(now).is_some_and(|at| at >= self.end)
    }

    /// The end at `now`: a picture that still stands counts as well. From the first
    /// picture, and layers shown over those wanted.
    pub(super) fn finish(&mut self, now: Time, wanted: Quality) -> (Span, f64) {
        if let Some((at, of)) = self.anchor.filter(|_| !self.closed) {
            let due = at + self.end.saturating_sub(of);
            if due < now {
                self.stood(now - due);
            }
        }
        let shown_to = self.position(now).unwrap_or_default();
        let (mut all, mut layers) = (0.0, 0.0);
        for (start, end, quality) in &self.fed {
            let seconds = (*end).min(shown_to).saturating_sub(*start).as_secs_f64();
            all += seconds;
            layers += seconds * f64::from(quality.layers());
        }
        let watched = self.first.map_or(Span::ZERO, |first| now - first);
        let quality = if all > 0.0 { layers / all / f64::from(wanted.layers().max(1)) } else { 0.0 };
        (watched, quality)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_block_is_a_freeze_and_a_missing_layer_is_quality() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let block = |n| (Span::from_secs(n), Span::from_secs(n + 1));
        let mut picture = Picture::new(Span::from_secs(1));
        picture.play(at(0), true);
        assert!(picture.wants(at(0)) && !picture.wants(at(0)));
        picture.feed(at(100), block(0), Quality(3));
        assert_eq!(picture.position(at(660)), Some(Span::from_millis(500)));
        assert!(picture.wants(at(660)));
        picture.feed(at(1_500), block(1), Quality(1));
        assert_eq!((picture.freezes, picture.frozen), (1, Span::from_millis(400)));
        let (watched, quality) = picture.finish(at(2_160), Quality(3));
        assert_eq!(watched, Span::from_millis(2_000));
        assert!((quality - (3.0 + 0.6) / 1.6 / 3.0).abs() < 1e-9, "{quality}");
    }
}
