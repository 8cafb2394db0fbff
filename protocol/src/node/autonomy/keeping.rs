//! What a Base node believes of the layers above is kept true: now and then it asks
//! each node that serves one to go on, and a node that does not know of it says so.
//! Grants and releases may cross on the way, and a delivery may have ended at a node
//! that thought the Base node dead.

use super::Autonomy;
use super::agent::UserId;
use super::io::{AutonomyOutput, StopWhy};
use super::talk::AgentMessage;
use crate::peer::PeerId;
use media::{Layer, Time};

impl Autonomy {
    /// Asks the nodes that serve a user's enhancements to go on, if it was long ago.
    pub(super) fn keep_layers(&mut self, now: Time, user: UserId) {
        let (Some(every), Some(record)) = (self.config.layer_check, self.records.get_mut(user)) else {
            return;
        };
        if now - record.asked < every {
            return;
        }
        record.asked = now;
        let (epoch, base) = (record.info.epoch, self.id);
        let layers = std::sync::Arc::clone(&record.info.layers);
        for (layer, node) in layers.iter() {
            self.send_or_hear(*node, AgentMessage::Adopt { user, layer: *layer, base, epoch });
        }
    }

    /// A Base node takes an enhancement served here as its own.
    pub(super) fn hear_adopt(&mut self, (user, layer): (UserId, Layer), base: PeerId, epoch: u64) {
        if !self.streams.adopt(user, layer, base, epoch) {
            self.send_or_hear(base, AgentMessage::NotDelivered { user, layer });
        }
    }

    /// A node does not serve what it was believed to.
    pub(super) fn hear_not_delivered(&mut self, now: Time, from: PeerId, user: UserId, layer: Layer) {
        if self.records.get(user).and_then(|record| record.layer_node(layer)) == Some(from) {
            self.layer_lost(now, user, layer, from);
            self.look_again(now);
        }
    }

    /// A user needs the enhancements served here no more, or `only` one of them, says
    /// its Base node.
    pub(super) fn release_layers(&mut self, from: PeerId, user: UserId, only: Option<Layer>, epoch: u64) {
        for layer in self.streams.release(user, only, from, epoch) {
            self.output(AutonomyOutput::StopDelivery { user, layer, why: StopWhy::Departed });
        }
    }
}
