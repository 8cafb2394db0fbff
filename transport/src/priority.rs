//! Which stream goes first when a connection is the bottleneck.
//!
//! QUIC itself knows no priorities between streams (RFC 9000, section 2.3); the
//! sender takes the highest number first. What was written of equals shares evenly,
//! what waits for the receiver's window goes in the order of arrival. The class decides, control before Base before each enhancement, and
//! within a class the earlier deadline.

use media::Layer;
use std::time::Duration;

/// Deadlines are compared in steps of this many milliseconds, so that chunks
/// due together share the link.
const STEP_MS: u128 = 16;
/// Bits that hold a deadline: 2^26 steps of 16 ms are twelve days.
const DEADLINE_BITS: u32 = 26;
const LAST_STEP: i32 = (1 << DEADLINE_BITS) - 1;
/// Classes run from 0 up to this one.
const TOP_CLASS: u8 = 15;

/// Everything that has a slot is 0 or more, and everything that has none less.
const CLASSES: i32 = 16 << DEADLINE_BITS;

/// The priority of a stream; a greater one is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i32);

impl Priority {
    /// The control stream, before everything.
    pub const CONTROL: Self = Self(i32::MAX);

    /// A manifest: nothing can be asked without it.
    pub fn manifest() -> Self {
        Self::new(TOP_CLASS, Duration::ZERO)
    }

    /// A chunk of `layer`, due at `due` on a clock that both streams share, such
    /// as the time since the connection began.
    pub fn chunk(layer: Layer, due: Duration) -> Self {
        Self::new(TOP_CLASS.saturating_sub(1).saturating_sub(layer.0), due)
    }

    /// The same chunk for somebody who has no slot: after everything above, and
    /// among such chunks in the same order.
    pub fn chunk_without_slot(layer: Layer, due: Duration) -> Self {
        Self(Self::chunk(layer, due).0 - CLASSES)
    }

    fn new(class: u8, due: Duration) -> Self {
        let step = i32::try_from(due.as_millis() / STEP_MS).unwrap_or(LAST_STEP).min(LAST_STEP);
        Self((i32::from(class) << DEADLINE_BITS) + (LAST_STEP - step))
    }

    pub(crate) fn value(self) -> i32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_of_next_week_goes_before_an_enhancement_of_now() {
        let week = Duration::from_hours(7 * 24);
        let order = [
            Priority::CONTROL,
            Priority::manifest(),
            Priority::chunk(Layer::BASE, Duration::from_millis(100)),
            Priority::chunk(Layer::BASE, Duration::from_millis(200)),
            Priority::chunk(Layer::BASE, week),
            Priority::chunk(Layer::ENH1, Duration::ZERO),
            Priority::chunk(Layer::ENH2, Duration::ZERO),
            Priority::chunk(Layer::ENH2, Duration::MAX),
            Priority::chunk(Layer(255), Duration::MAX),
            Priority::chunk_without_slot(Layer::BASE, Duration::ZERO),
            Priority::chunk_without_slot(Layer::ENH1, Duration::ZERO),
        ];
        assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
        assert_eq!(Priority::chunk(Layer(255), Duration::MAX).value(), 0);
    }

    #[test]
    fn chunks_due_together_share_the_link() {
        let at = |ms| Priority::chunk(Layer::BASE, Duration::from_millis(ms));
        assert_eq!(at(160), at(175));
        assert!(at(160) > at(176));
    }
}
