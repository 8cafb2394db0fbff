//! A pipeline of no pictures: it takes blocks, runs a position, counts freezes.

use media::{Quality, Span, Time};

/// From the first block fed to the first picture shown.
const PREROLL: Span = Span::from_millis(60);

#[derive(Clone, Debug)]
pub(super) struct Pipe {
    pub(super) serial: u64,
    pub(super) position: Span,
    pub(super) fed: Vec<(u32, Quality)>,
    fed_end: Span,
    playing: bool,
    ready_at: Option<Time>,
    asked: bool,
    end_of_feed: bool,
    pub(super) ended: bool,
    rate: i8,
    /// Time spent with nothing to show, after the first picture.
    pub(super) frozen: Span,
}

impl Pipe {
    pub(super) fn new(from: Span) -> Self {
        Self {
            serial: 0,
            position: from,
            fed: Vec::new(),
            fed_end: from,
            playing: false,
            ready_at: None,
            asked: false,
            end_of_feed: false,
            ended: false,
            rate: 1,
            frozen: Span::ZERO,
        }
    }

    pub(super) fn seek(&mut self, serial: u64, to: Span, rate: i8) {
        let kept = (std::mem::take(&mut self.fed), self.playing, self.frozen);
        *self = Self { serial, rate, ..Self::new(to) };
        (self.fed, self.playing, self.frozen) = kept;
    }

    pub(super) fn feed(&mut self, now: Time, block: u32, quality: Quality, end: Span) {
        assert!(self.asked, "a block was fed that nobody asked for");
        self.asked = false;
        self.fed.push((block, quality));
        self.fed_end = end;
        self.ready_at.get_or_insert(now + PREROLL);
    }

    pub(super) fn is_backwards(&self) -> bool {
        self.rate < 0
    }

    pub(super) fn play(&mut self, playing: bool) {
        self.playing = playing;
    }

    pub(super) fn end_of_feed(&mut self) {
        self.end_of_feed = true;
    }

    /// Whether it wants a block; asks once for each.
    pub(super) fn wants(&mut self, block: Span) -> bool {
        let ahead = if self.rate > 0 {
            self.fed_end.saturating_sub(self.position)
        } else {
            self.position.saturating_sub(self.fed_end)
        };
        let room = ahead <= block.saturating_mul(u64::from(self.rate.unsigned_abs()));
        let wants = room && !self.asked && !self.end_of_feed;
        self.asked |= wants;
        wants
    }

    /// Lets `passed` go by; tells whether the position moved.
    pub(super) fn run(&mut self, now: Time, passed: Span) -> bool {
        if !self.playing || self.ready_at.is_none_or(|ready| now < ready) {
            return false;
        }
        let before = self.position;
        let way = passed.saturating_mul(u64::from(self.rate.unsigned_abs()));
        if self.rate != 1 {
            self.position = if self.rate > 0 {
                (self.position + way).min(self.fed_end)
            } else {
                self.position.saturating_sub(way).max(self.fed_end)
            };
            self.ended = self.end_of_feed && self.position == self.fed_end;
            return self.position != before;
        }
        self.position = (self.position + passed).min(self.fed_end);
        let moved = self.position.saturating_sub(before);
        if moved < passed {
            if self.end_of_feed {
                self.ended = true;
            } else {
                self.frozen += passed.saturating_sub(moved);
            }
        }
        moved > Span::ZERO
    }
}
