//! When to step down and when to step up: one part, used by the player and by
//! the proxy.
//!
//! Three bounds hold quality down, and the lowest of them is the target: what
//! the viewer wants, what live sources can deliver, and what the rate carries.
//! The first two move both ways at once. The third falls at once and rises one
//! layer at a time: after a hold, and only when real chunks of the next layer
//! came in time for several blocks while the link still had room to spare. A
//! step up that is soon taken back makes the next hold six times longer and
//! then doubles it, so that a link near a threshold sees at most one step up
//! and one step down a minute. Of a title in halves there is a step between each
//! two qualities, which is tried where the rate does not carry the next quality.

mod rate;
mod step;

pub use rate::RateMeter;
pub use step::Step;

use media::{Quality, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why the quality on screen changed. Each cause has one name, everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The rate did not carry the layer: its chunk came late.
    Rate,
    /// Every source of the layer was silent, lost or refusing.
    Failure,
    /// The viewer asked for it.
    User,
    /// A source of the layer is back after a failure.
    Recovered,
    /// The rate carries the layer again, shown by real chunks of it.
    Headroom,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "rate",
            Self::Failure => "failure",
            Self::User => "user",
            Self::Recovered => "recovered",
            Self::Headroom => "headroom",
        })
    }
}

/// How patient stepping is. Every field has a lawful default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepConfig {
    /// From a step down for lack of rate, or a step up, to the next step up: 10 s.
    pub hold: Span,
    /// The hold after a step up was taken back within `settle`; doubles each
    /// time, up to `longest_hold`: 60 s.
    pub hold_after_setback: Span,
    /// No hold is longer: 300 s.
    pub longest_hold: Span,
    /// A step up that lasted this long was right: 60 s.
    pub settle: Span,
    /// How long before the end of a hold the next layer is tried: 3 s.
    pub trial: Span,
    /// How many blocks in a row the next layer must come in time: 3.
    pub trial_blocks: u32,
    /// Hundredths of the next quality's rate that the link must be seen to
    /// carry before a step up: 107.
    pub headroom_percent: u64,
}

impl Default for StepConfig {
    fn default() -> Self {
        Self {
            hold: Span::from_secs(10),
            hold_after_setback: Span::from_secs(60),
            longest_hold: Span::from_secs(300),
            settle: Span::from_secs(60),
            trial: Span::from_secs(3),
            trial_blocks: 3,
            headroom_percent: 107,
        }
    }
}

/// Decides how many layers are worth asking for.
#[derive(Clone, Debug)]
pub struct Stepper {
    config: StepConfig,
    wish: Quality,
    reachable: Quality,
    carried: Step,
    /// No step up before this; none while the rate is no bound.
    hold_until: Option<Time>,
    /// The step that is tried, and how many blocks of it came in time; none while no
    /// trial runs.
    trial: Option<(Step, u32)>,
    failed_trials: u32,
    setbacks: u32,
    raised: Option<Time>,
}

impl Stepper {
    /// Starts at the best quality wished for: nothing is known against it.
    pub fn new(config: StepConfig, wish: Quality) -> Self {
        let top = Quality(u8::MAX);
        Self {
            config,
            wish,
            reachable: top,
            carried: Step::whole(top),
            hold_until: None,
            trial: None,
            failed_trials: 0,
            setbacks: 0,
            raised: None,
        }
    }

    /// The quality to show: at least the first layer.
    pub fn target(&self) -> Quality {
        self.target_step().quality
    }

    /// The step to show.
    pub fn target_step(&self) -> Step {
        Step::whole(self.limit()).min(self.carried).max(Step::whole(Quality::BRONZE))
    }

    /// The quality to ask for: one layer more while a trial runs.
    pub fn wanted(&self) -> Quality {
        self.wanted_step().quality
    }

    /// The step to ask for: the one tried while a trial runs.
    pub fn wanted_step(&self) -> Step {
        let tried = self.trial.map_or(self.target_step(), |(step, _)| step.max(self.target_step()));
        tried.min(Step::whole(self.limit())).max(Step::whole(Quality::BRONZE))
    }

    /// The quality that would be asked for if every source were there.
    pub fn hoped(&self) -> Quality {
        self.wish.min(self.carried.quality).max(Quality::BRONZE)
    }

    /// What the viewer wants.
    pub fn wish(&self) -> Quality {
        self.wish
    }

    /// What live sources can deliver.
    pub fn reachable(&self) -> Quality {
        self.reachable
    }

    /// Whether the rate is what holds quality down.
    pub fn is_rate_bound(&self) -> bool {
        self.carried < Step::whole(self.limit())
    }

    /// The viewer wants another quality: it holds from the next block.
    pub fn set_wish(&mut self, wish: Quality) {
        self.wish = wish.max(Quality::BRONZE);
        self.trial = None;
    }

    /// Live sources deliver this much: it holds from the next block, both ways.
    pub fn set_reachable(&mut self, reachable: Quality) {
        self.reachable = reachable;
    }

    /// The rate carries only `quality`: down at once, and a hold begins.
    pub fn drop_to(&mut self, now: Time, quality: Quality) {
        self.drop_to_step(now, Step::whole(quality));
    }

    /// The rate carries only this step: down at once, and a hold begins.
    pub fn drop_to_step(&mut self, now: Time, step: Step) {
        let step = step.max(Step::whole(Quality::BRONZE));
        if step >= self.target_step() {
            return;
        }
        self.carried = step;
        self.trial = None;
        self.failed_trials = 0;
        let soon = self.raised.take().is_some_and(|raised| now - raised < self.config.settle);
        self.setbacks = if soon { self.setbacks.saturating_add(1) } else { 0 };
        let hold = match self.setbacks.checked_sub(1) {
            None => self.config.hold,
            Some(doublings) => doubled(self.config.hold_after_setback, doublings),
        };
        self.hold_until = Some(now + hold.min(self.config.longest_hold));
    }

    /// A block of a trial is about to be shown: its chunk of the layer tried
    /// came in time or not, and the link had room to spare or not.
    pub fn trial_block(&mut self, now: Time, in_time: bool, headroom: bool) {
        let Some((step, count)) = self.trial else { return };
        if !in_time {
            self.fail_trial(now);
            return;
        }
        let count = count.saturating_add(1);
        self.trial = Some((step, count));
        if count < self.config.trial_blocks || self.hold_until.is_some_and(|until| now < until) {
            return;
        }
        if !headroom {
            self.fail_trial(now);
            return;
        }
        self.carried = step;
        self.trial = None;
        self.failed_trials = 0;
        self.raised = Some(now);
        self.hold_until = Some(now + self.config.hold);
    }

    fn fail_trial(&mut self, now: Time) {
        self.trial = None;
        self.failed_trials = self.failed_trials.saturating_add(1);
        let hold = doubled(self.config.hold, self.failed_trials).min(self.config.hold_after_setback);
        self.hold_until = Some(now + hold);
    }

    /// A trial is due that cannot succeed: it waits once more, and no chunk of
    /// the next layer gets in the way of the others.
    pub fn postpone_trial(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|when| when <= now) {
            self.hold_until = Some(now + self.config.trial + self.config.trial);
        }
    }

    /// When [`Stepper::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.trial.is_some() || !self.is_rate_bound() {
            return None;
        }
        let until = self.hold_until?.as_nanos();
        Some(Time::from_nanos(until.saturating_sub(self.config.trial.as_nanos())))
    }

    /// Starts the trial of the next layer when its time has come.
    pub fn handle_timeout(&mut self, now: Time) {
        self.try_step(now, Step::whole(Quality(self.target().layers().saturating_add(1))));
    }

    /// Starts the trial of a higher step when the time of one has come.
    pub fn try_step(&mut self, now: Time, step: Step) {
        if step > self.target_step() && self.poll_timeout().is_some_and(|when| when <= now) {
            self.trial = Some((step, 0));
        }
        if self.trial.is_some() && !self.is_rate_bound() {
            self.trial = None;
        }
    }

    /// Whether the last trial came to nothing.
    pub fn has_failed_trial(&self) -> bool {
        self.failed_trials > 0
    }

    /// Whether a trial of the next layer is under way.
    pub fn in_trial(&self) -> bool {
        self.trial.is_some()
    }

    fn limit(&self) -> Quality {
        self.wish.min(self.reachable)
    }
}

fn doubled(span: Span, times: u32) -> Span {
    span.saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_nanos(secs * 1_000_000_000)
    }

    fn gold() -> Stepper {
        Stepper::new(StepConfig::default(), Quality::GOLD)
    }

    /// Runs a trial to its end and tells whether quality rose.
    fn trial(stepper: &mut Stepper, from: u64, in_time: bool, headroom: bool) -> bool {
        let before = stepper.target();
        stepper.handle_timeout(at(from));
        for block in 0..4 {
            stepper.trial_block(at(from + block), in_time, headroom);
        }
        stepper.target() > before
    }

    #[test]
    fn down_at_once_and_up_after_ten_seconds_of_hold() {
        let mut stepper = gold();
        stepper.drop_to(at(5), Quality::SILVER);
        assert_eq!((stepper.target(), stepper.wanted()), (Quality::SILVER, Quality::SILVER));
        assert_eq!(stepper.poll_timeout(), Some(at(12)));
        stepper.handle_timeout(at(11));
        assert_eq!(stepper.wanted(), Quality::SILVER, "no trial before its time");
        stepper.handle_timeout(at(12));
        assert_eq!((stepper.target(), stepper.wanted()), (Quality::SILVER, Quality::GOLD));
        for second in 12..15 {
            stepper.trial_block(at(second), true, true);
        }
        assert_eq!(stepper.target(), Quality::SILVER, "the hold lasts to the end");
        stepper.trial_block(at(15), true, true);
        assert_eq!(stepper.target(), Quality::GOLD);
        assert!(!stepper.is_rate_bound());
    }

    #[test]
    fn a_failure_bounds_and_frees_without_a_hold() {
        let mut stepper = gold();
        stepper.set_reachable(Quality::SILVER);
        assert_eq!(stepper.target(), Quality::SILVER);
        stepper.set_reachable(Quality::GOLD);
        assert_eq!(stepper.target(), Quality::GOLD);
        assert_eq!(stepper.poll_timeout(), None);
    }

    #[test]
    fn a_late_or_full_trial_changes_nothing_on_screen_and_waits_longer() {
        let mut stepper = gold();
        stepper.drop_to(at(0), Quality::SILVER);
        assert!(!trial(&mut stepper, 7, true, false), "no room to spare");
        assert_eq!(stepper.poll_timeout(), Some(at(10 + 20 - 3)));
        assert!(!trial(&mut stepper, 27, false, true), "late");
        assert_eq!(stepper.poll_timeout(), Some(at(27 + 40 - 3)));
        assert!(trial(&mut stepper, 64, true, true));
    }

    #[test]
    fn a_step_up_soon_taken_back_costs_a_minute_then_two() {
        let mut stepper = gold();
        stepper.drop_to(at(0), Quality::SILVER);
        assert!(trial(&mut stepper, 7, true, true));
        stepper.drop_to(at(30), Quality::SILVER);
        assert_eq!(stepper.poll_timeout(), Some(at(30 + 60 - 3)));
        assert!(trial(&mut stepper, 87, true, true));
        stepper.drop_to(at(120), Quality::SILVER);
        assert_eq!(stepper.poll_timeout(), Some(at(120 + 120 - 3)));
    }

    #[test]
    fn the_viewers_wish_is_a_bound_like_the_others_and_bronze_is_the_floor() {
        let mut stepper = gold();
        stepper.set_wish(Quality::NONE);
        assert_eq!(stepper.target(), Quality::BRONZE);
        stepper.set_wish(Quality::SILVER);
        stepper.set_reachable(Quality::NONE);
        assert_eq!(stepper.target(), Quality::BRONZE);
        stepper.set_reachable(Quality::GOLD);
        assert_eq!(stepper.target(), Quality::SILVER);
    }
}
