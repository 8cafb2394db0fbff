//! What is known of other nodes, repaired.
//!
//! The news of a death or a return is flooded once, and may be lost in a
//! partition or with whoever would have passed it on. So every few signals a
//! node sends a digest of the standings it knows in place of a signal; a
//! neighbour that knows others answers with some of its own, each of which is
//! taken as the flooded news would have been. The same digest covers what is known
//! of titles, see `ledger.rs`.

use super::Autonomy;
use super::survival::MAX_STANDINGS;
use super::talk::{AgentMessage, Standing};
use crate::peer::PeerId;
use media::Time;

impl Autonomy {
    /// What is sent to every neighbour at each beat.
    pub(super) fn beat(&mut self) {
        let message = if self.survival.digest_due(self.config.digest_every) {
            AgentMessage::Digest(self.digest())
        } else {
            AgentMessage::Signal
        };
        let to: Vec<PeerId> = self.survival.everybody().collect();
        for peer in to {
            self.send(peer, message.clone());
        }
    }

    /// A neighbour says what it knows, in short.
    pub(super) fn hear_digest(&mut self, from: PeerId, digest: u64) {
        let neighbour = self.survival.neighbour(from).is_some();
        if !neighbour || digest == self.digest() {
            return;
        }
        let some = self.survival.some_standings();
        if !some.is_empty() {
            self.send(from, AgentMessage::Standings(some.into()));
        }
        let some = self.ledger.some();
        if !some.is_empty() {
            self.send(from, AgentMessage::Editions(some.into()));
        }
    }

    /// A number that differs where what is known of nodes and titles does; 0 for
    /// none.
    pub fn digest(&self) -> u64 {
        self.survival.digest().wrapping_add(self.ledger.digest())
    }

    /// A neighbour says what it knows; news is passed on as any other.
    pub(super) fn hear_standings(&mut self, now: Time, from: PeerId, standings: &[(PeerId, u32)]) {
        if self.survival.neighbour(from).is_none() {
            return;
        }
        for (node, seq) in standings.iter().take(MAX_STANDINGS).copied() {
            let said = Standing { node, detector: from, seq };
            if said.is_death() {
                self.hear_failure(now, from, said);
            } else {
                self.hear_returned(now, from, said);
            }
        }
    }
}
