//! What was sent, by kind.

use protocol::node::autonomy::AgentMessage;

/// Counts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Survival signals.
    pub signals: u64,
    /// News of deaths and returns.
    pub news: u64,
    /// DISC-MA and Re-DISC MA, on both ways.
    pub discovery: u64,
    /// Pull-MA.
    pub pulls: u64,
    /// Push-MA.
    pub pushes: u64,
    /// Everything else: reservations made, confirmed, cancelled, moved.
    pub words: u64,
    /// Agents that were lost on the way.
    pub agents_lost: u64,
    /// Messages that did not arrive for another reason.
    pub messages_lost: u64,
}

impl Stats {
    pub(super) fn count(&mut self, message: &AgentMessage) {
        #[allow(clippy::wildcard_enum_match_arm, reason = "all other messages are counted together")]
        let counter = match message {
            AgentMessage::Signal | AgentMessage::Digest(_) => &mut self.signals,
            AgentMessage::FailureDetected(_) | AgentMessage::Returned(_) | AgentMessage::Standings(_) => {
                &mut self.news
            }
            AgentMessage::Discovery(_) => &mut self.discovery,
            AgentMessage::Search(_) => &mut self.pulls,
            AgentMessage::Placement(_) => &mut self.pushes,
            _ => &mut self.words,
        };
        *counter += 1;
    }

    /// All messages beside survival signals.
    pub const fn without_signals(&self) -> u64 {
        self.news + self.discovery + self.pulls + self.pushes + self.words
    }
}
