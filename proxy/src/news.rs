//! What happens at a proxy, for people: a line of the log for each event, and the
//! last ones kept for whoever asks how the proxy stands.

use media::Time;
use protocol::proxy::Event;
use protocol::status::{EventLine, LastEvents};
use tracing::{debug, info};

/// The last events.
#[derive(Debug, Default)]
pub(crate) struct News(LastEvents);

impl News {
    /// Notes an event. What happens for every chunk is for the curious, and would
    /// drive out what matters.
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
        Event::Answered { .. }
        | Event::RequestRefused { .. }
        | Event::Filling { .. }
        | Event::Filled { .. }
        | Event::NotKept { .. } => true,
        Event::Joined { .. }
        | Event::TurnedAway { .. }
        | Event::Left { .. }
        | Event::Opened { .. }
        | Event::SessionRefused { .. }
        | Event::Closed { .. }
        | Event::FillFailed { .. }
        | Event::Hedged { .. }
        | Event::ServedBy { .. }
        | Event::BackupKnown { .. }
        | Event::Silent { .. }
        | Event::Stepped { .. }
        | Event::Rejected { .. }
        | Event::Draining { .. }
        | Event::Drained { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Span;

    #[test]
    fn what_happens_for_every_chunk_does_not_drive_out_what_matters() {
        let mut news = News::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for n in 0..40 {
            news.note(at(n), &Event::Drained { unanswered: 0 });
            let outcome = protocol::proxy::Outcome::GivenUp;
            let (link, stream) = (protocol::LinkId(1), protocol::StreamId(n));
            news.note(at(n), &Event::Answered { link, stream, outcome });
        }
        let lines = news.lines(at(40));
        assert_eq!(lines.len(), protocol::status::MAX_EVENTS);
        assert!(lines.iter().all(|line| line.event == r#"{"event":"drained","unanswered":0}"#));
        assert_eq!(lines.first().map(|line| line.ago), Some(Span::from_millis(32)));
    }
}
