//! One client: asks for one block after the other, plays when it has a few, and
//! waits when the next one is not there.

use super::audience::Watcher;
use media::{Span, Time};

/// How far a client is.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) watcher: Watcher,
    /// The block that it asks for or waits for.
    pub(super) next: u32,
    /// When its request was at the proxy.
    pub(super) asked: Time,
    /// When block 0 would have been shown if playback had never waited.
    started: Option<Time>,
    /// How long it has waited since.
    pub(super) waited: Span,
    /// How long it was last said that it will wait for the next block.
    pub(super) predicted: Option<Span>,
    /// Sum of received over requested, and blocks counted.
    pub(super) ratio: f64,
    pub(super) blocks: u32,
}

impl Client {
    pub(super) fn new(watcher: Watcher) -> Self {
        Self {
            watcher,
            next: 0,
            asked: Time::ZERO,
            started: None,
            waited: Span::ZERO,
            predicted: None,
            ratio: 0.0,
            blocks: 0,
        }
    }

    /// The level it asks for next.
    pub(super) fn level(&self) -> u8 {
        usize::try_from(self.next).ok().and_then(|next| self.watcher.levels.get(next)).copied().unwrap_or(1)
    }

    pub(super) fn is_starting(&self) -> bool {
        self.started.is_none()
    }

    /// `p_j tau`: what it has and has not played yet.
    pub(super) fn buffered(&self, now: Time, tau: Span) -> Span {
        self.started.map_or(Span::ZERO, |started| self.due(started, tau) - now)
    }

    /// When the block that is awaited has to be there.
    fn due(&self, started: Time, tau: Span) -> Time {
        started + tau.saturating_mul(u64::from(self.next)) + self.waited
    }

    /// The next block is here, all of it. The start is not a freeze. What was
    /// predicted of its wait, and the wait.
    pub(super) fn receive(
        &mut self,
        now: Time,
        tau: Span,
        start_blocks: u32,
        ratio: f64,
    ) -> Option<(Span, Span)> {
        let (predicted, mut seen) = (self.predicted.take(), None);
        match self.started {
            Some(started) => {
                let wait = now - self.due(started, tau);
                seen = predicted.map(|predicted| (predicted, wait));
                self.waited += wait;
            }
            None if self.next + 1 >= start_blocks => self.started = Some(now),
            None => {}
        }
        self.ratio += ratio;
        self.blocks += 1;
        self.next += 1;
        seen
    }
}
