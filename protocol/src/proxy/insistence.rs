//! How much a client insists on what it asks for, by its class (beta of Wakamiya et
//! al.): gold more than bronze and silver, a VIP more than a normal viewer of the same
//! quality, and nobody at all while its service fails over, when Base alone will do.

use super::Proxy;
use super::advice::client;
use super::cooperation::{Beta, Input as MindInput};
use super::users::User;
use crate::node::autonomy::{Sla, UserId};
use media::{Layer, Quality, Time};

/// Beta by class, in thousandths: with 1000 a block is fetched whole or late, near 0 as
/// much of it as comes in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insistence {
    /// Of a client whose quality is bronze or silver. Default 600.
    pub usual: u16,
    /// Of a client in gold. Default 800.
    pub gold: u16,
    /// What is added for a VIP, up to 1000. Default 200.
    pub vip: u16,
}

impl Default for Insistence {
    fn default() -> Self {
        Self { usual: 600, gold: 800, vip: 200 }
    }
}

impl Insistence {
    /// Beta of a client of this class with this quality.
    pub fn of(&self, sla: Sla, quality: Quality) -> Beta {
        let own = if quality >= Quality::GOLD { self.gold } else { self.usual };
        let more = if sla == Sla::Vip { self.vip } else { 0 };
        Beta(own.saturating_add(more).min(1000))
    }
}

impl Proxy {
    /// How much a client insists on what it asks for now.
    pub(super) fn insistence(&self, user: &User) -> Beta {
        if self.fails_over(user) { Beta(0) } else { self.config.insistence.of(user.sla(), user.quality) }
    }

    /// Whether the node that serves a client, or one of its layers, is not there any
    /// more, and nobody has taken its place yet.
    fn fails_over(&self, user: &User) -> bool {
        let Some(home) = user.standing.home() else { return false };
        let gone = |node: &_| !self.lines.is_hopeful(*node) || user.is_standing_by(*node);
        let layers = Layer::first(user.quality.layers());
        let lost = layers.filter_map(|layer| user.layers.get(layer.index()));
        gone(&home) || lost.into_iter().any(|nodes| nodes.first().is_none_or(gone))
    }

    /// The mind hears how much a client insists, if that has changed.
    pub(super) fn insist(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let beta = self.insistence(user);
        if user.beta == Some(beta) {
            return;
        }
        if let Some(user) = self.users.get_mut(&id) {
            user.beta = Some(beta);
        }
        self.think(now, MindInput::Insists { client: client(id), beta });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gold_insists_more_and_a_vip_more_than_others() {
        let insistence = Insistence::default();
        let of = |sla, quality| insistence.of(sla, quality).0;
        assert_eq!(
            [Quality::BRONZE, Quality::SILVER, Quality::GOLD].map(|q| of(Sla::Normal, q)),
            [600, 600, 800]
        );
        assert_eq!(
            [Quality::BRONZE, Quality::SILVER, Quality::GOLD].map(|q| of(Sla::Vip, q)),
            [800, 800, 1000]
        );
        let strict = Insistence { usual: 900, gold: 950, vip: 200 };
        assert_eq!(strict.of(Sla::Vip, Quality::BRONZE), Beta(1000), "there is no more than everything");
    }
}
