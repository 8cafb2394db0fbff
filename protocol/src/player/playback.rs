//! Where the programme stands on screen, and which block goes next.

use crate::player::config::PlayerConfig;
use crate::player::session::Session;
use crate::quality::Step;
use media::{Span, Time};

/// The position, the seek serial and the cursor of the feed.
#[derive(Clone, Debug)]
pub(crate) struct Playback {
    /// Names the seek since which things were said; what an older one says is stale.
    pub(crate) serial: u64,
    /// 1, or the speed of trick play.
    pub(crate) rate: i8,
    /// The next block to feed; none when everything is fed.
    pub(crate) next: Option<u32>,
    /// Whether the first block after a start or seek is still awaited.
    pub(crate) starting: bool,
    /// How much Base a start waits for; more than a block on a narrow link.
    pub(crate) least_base: Span,
    /// When that start or seek was.
    pub(crate) started: Time,
    /// Whether the viewer holds the picture still.
    pub(crate) paused: bool,
    /// Room for so many blocks in the pipeline.
    pub(crate) wants: u32,
    /// End of what was fed, in the direction of play.
    pub(crate) fed_end: Span,
    /// Whether the pipeline was told that nothing more comes.
    pub(crate) told_end: bool,
    /// What was fed of the last block, over seeks too.
    pub(crate) shown: Option<Step>,
    /// Since when nothing is left to show.
    pub(crate) starved: Option<Time>,
    /// A seek that waits for the one before to be done.
    pub(crate) pending: Option<(Span, i8)>,
    /// What the pipeline last reported.
    reported: Span,
    /// From where the position runs on by itself between reports.
    base: Span,
    /// Since when it does; none while it stands.
    running: Option<Time>,
}

impl Playback {
    pub(crate) fn new(now: Time, session: &Session, from: Span) -> Self {
        Self {
            serial: 0,
            rate: 1,
            next: Some(session.block_at(from)),
            starting: true,
            least_base: Span::ZERO,
            started: now,
            paused: false,
            wants: 0,
            fed_end: from,
            told_end: false,
            shown: None,
            starved: None,
            pending: None,
            reported: from,
            base: from,
            running: None,
        }
    }

    /// Goes to `to` and starts anew from there.
    pub(crate) fn seek(&mut self, now: Time, session: &Session, to: Span, rate: i8) {
        let fresh = Self::new(now, session, to);
        *self = Self {
            serial: self.serial.saturating_add(1),
            rate,
            paused: self.paused,
            pending: self.pending,
            shown: self.shown,
            ..fresh
        };
    }

    pub(crate) fn is_trick(&self) -> bool {
        self.rate != 1
    }

    /// Lets the position run by itself between two reports, or stand.
    pub(crate) fn run(&mut self, now: Time, running: bool) {
        self.base = self.at(now);
        self.running = running.then_some(now);
    }

    /// The last position that the pipeline reported.
    pub(crate) fn reported(&self) -> Span {
        self.reported
    }

    /// The pipeline shows `at`. Positions outside of what was fed are lies.
    pub(crate) fn report(&mut self, now: Time, at: Span) {
        let (low, high) =
            if self.rate > 0 { (self.reported, self.fed_end) } else { (self.fed_end, self.reported) };
        if low <= at && at <= high {
            self.reported = at;
            self.base = at;
            self.running = self.running.map(|_| now);
        }
    }

    /// The position by now: it runs on between reports, but never beyond what
    /// was fed.
    pub(crate) fn at(&self, now: Time) -> Span {
        let Some(since) = self.running else { return self.base };
        let passed = (now - since).saturating_mul(u64::from(self.rate.unsigned_abs()));
        if self.rate > 0 {
            (self.base + passed).min(self.fed_end)
        } else {
            self.base.saturating_sub(passed).max(self.fed_end)
        }
    }

    /// When the position will be `target`, at normal speed; none while it stands.
    pub(crate) fn when(&self, target: Span) -> Option<Time> {
        self.running.filter(|_| !self.is_trick()).map(|since| since + target.saturating_sub(self.base))
    }

    /// Moves the cursor past `block`, which was just fed.
    pub(crate) fn advance(&mut self, session: &Session, block: u32, config: &PlayerConfig) {
        self.fed_end = if self.rate > 0 { session.end(block) } else { session.start(block) };
        self.next = self.after(session, block, config);
    }

    /// The block that follows `block` in the direction of play.
    pub(crate) fn after(&self, session: &Session, block: u32, config: &PlayerConfig) -> Option<u32> {
        let step = self.stride(session, block, config);
        // Trick play shows where it ends, however wide its steps are.
        let next = if self.rate > 0 {
            block.saturating_add(step).min(session.last())
        } else {
            block.saturating_sub(step)
        };
        Some(next).filter(|next| *next != block)
    }

    /// How much of the programme a picture of trick play stands for: the way to
    /// the next one.
    pub(crate) fn way_to_next(&self, session: &Session, block: u32, config: &PlayerConfig) -> Span {
        let Some(next) = self.after(session, block, config) else { return session.duration(block) };
        let (here, there) = (session.start(block), session.start(next));
        here.max(there).saturating_sub(here.min(there))
    }

    /// How many blocks one picture of trick play stands for: at least as many as
    /// pass in the time of one at normal speed, so that trick play takes no more
    /// of a source's slot than normal play does.
    fn stride(&self, session: &Session, block: u32, config: &PlayerConfig) -> u32 {
        if !self.is_trick() {
            return 1;
        }
        let speed = Span::from_secs(1).saturating_mul(u64::from(self.rate.unsigned_abs())).as_nanos();
        let pictures = session.duration(block).saturating_mul(config.trick_pictures.max(1)).as_nanos();
        let few = u32::try_from(speed.div_ceil(pictures.max(1))).unwrap_or(u32::MAX);
        few.max(self.rate.unsigned_abs().into())
    }
}
