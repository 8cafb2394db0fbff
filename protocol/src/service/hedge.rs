//! When a chunk is asked of a second node although the first may still be there: its
//! source has gone quiet, or is heard and delivers nothing of what is due soon. One
//! part, used by the player for itself and by the proxy for its clients.

use media::{Span, Time};

/// How patient a request is before it is doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    /// Nothing is doubled earlier than this after it was asked for, nor while its
    /// source was heard more recently: 200 ms.
    pub after: Span,
    /// A chunk whose source is heard all the time, and sends nothing of it, is doubled
    /// when it is due within this: 1 s.
    pub when_due: Span,
}

impl Default for Hedge {
    fn default() -> Self {
        Self { after: Span::from_millis(200), when_due: Span::from_secs(1) }
    }
}

impl Hedge {
    /// When a chunk asked for then and due then passes its own deadline, if nothing of
    /// it comes.
    pub fn overdue_at(&self, asked: Time, due: Time) -> Time {
        let near = Time::from_nanos(due.as_nanos().saturating_sub(self.when_due.as_nanos()));
        near.max(asked + self.after)
    }

    /// When a node last heard then, which leaves a question unanswered, is quiet: on a
    /// long line after two round trips.
    pub fn quiet_at(&self, heard: Time, round_trip: Span) -> Time {
        heard + self.after.max(round_trip.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_chunk_is_overdue_a_second_before_its_time_and_never_at_once() {
        let hedge = Hedge::default();
        assert_eq!(hedge.overdue_at(at(1_000), at(5_000)), at(4_000));
        assert_eq!(hedge.overdue_at(at(1_000), at(1_500)), at(1_200));
        assert_eq!(hedge.overdue_at(at(0), at(10)), at(200));
        assert_eq!(hedge.quiet_at(at(1_000), Span::from_millis(4)), at(1_200));
        assert_eq!(hedge.quiet_at(at(1_000), Span::from_millis(150)), at(1_300));
    }
}
