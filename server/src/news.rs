//! What happens at a node, for people: a line of the log for each event, and the
//! last ones kept for whoever asks how the node stands.

use media::Time;
use protocol::node::Event;
use protocol::node::autonomy::AutonomyEvent;
use protocol::status::{EventLine, LastEvents};
use tracing::{debug, info};

/// The last events.
#[derive(Debug, Default)]
pub(crate) struct News(LastEvents);

impl News {
    /// Notes an event. What happens for every chunk, or for every agent, is for
    /// the curious, and would drive out what matters.
    pub(crate) fn note(&mut self, now: Time, event: &Event) {
        if is_small(event) {
            return debug!(?event);
        }
        info!(?event);
        if let Ok(text) = serde_json::to_string(event) {
            self.0.note(now, text);
        }
    }

    /// The last ones, oldest first.
    pub(crate) fn lines(&self, now: Time) -> Vec<EventLine> {
        self.0.lines(now)
    }
}

/// Whether an event comes too often to be told to everybody.
fn is_small(event: &Event) -> bool {
    match event {
        Event::Sent { .. } | Event::GivenUp { .. } | Event::RequestRefused { .. } | Event::Went { .. } => {
            true
        }
        Event::Network(event) => matches!(
            event,
            AutonomyEvent::SearchStarted { .. }
                | AutonomyEvent::SearchCoalesced { .. }
                | AutonomyEvent::SearchFruitless { .. }
                | AutonomyEvent::LateReplyTaken { .. }
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Span;
    use protocol::status::MAX_EVENTS;

    #[test]
    fn the_last_events_are_kept_and_small_ones_do_not_drive_them_out() {
        let mut news = News::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for n in 0..40 {
            news.note(at(n), &Event::Drained { unanswered: 0 });
            let stream = protocol::StreamId(n);
            news.note(at(n), &Event::Sent { link: protocol::LinkId(1), stream, bytes: 1 });
        }
        let lines = news.lines(at(40));
        assert_eq!(lines.len(), MAX_EVENTS);
        assert_eq!(lines.first().map(|line| line.ago), Some(Span::from_millis(32)));
        assert_eq!(
            lines.last().map(|line| line.event.as_str()),
            Some(r#"{"event":"drained","unanswered":0}"#)
        );
    }
}
