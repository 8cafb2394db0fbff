//! When clients come and what they ask for: the same in every run of a seed,
//! whatever the scheme (common random numbers).

use super::{LEVELS, Setting};
use crate::rng::Rng;
use media::{Span, Time};

/// Where an audience comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewing {
    /// Exponential gaps and walks, by the seed: the paper's.
    Drawn,
    /// Who comes when to which proxy is given; everybody asks for the highest
    /// level from the first block on, as real players do who are never refused.
    Given(Vec<Vec<Time>>),
}

/// One client before it meets a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// When its session starts.
    pub start: Time,
    /// The level it asks for, block by block: 1 while it starts, then a walk
    /// that goes up or down by one with 10 % each (reconstructed).
    pub levels: Vec<u8>,
}

/// All clients of all proxies, in the order of their arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience {
    /// For each proxy.
    pub proxies: Vec<Vec<Watcher>>,
}

impl Audience {
    /// The audience of a seed. The number of blocks, of clients, of proxies and the
    /// mean gap are all that is read of the setting beside the seed, unless it is
    /// given.
    pub fn of(setting: &Setting) -> Self {
        if let Viewing::Given(proxies) = &setting.viewing {
            let blocks = usize::try_from(setting.blocks).unwrap_or(0);
            let watcher = |start: &Time| Watcher { start: *start, levels: vec![LEVELS; blocks] };
            let proxies = proxies.iter().map(|starts| starts.iter().map(watcher).collect());
            return Self { proxies: proxies.collect() };
        }
        let proxies = (0..setting.origin.len()).map(|proxy| {
            let purpose = u64::try_from(proxy).unwrap_or(u64::MAX) << 32;
            let (mut gaps, mut start) = (Rng::stream(setting.seed, purpose), Time::ZERO);
            let watcher = |client: u32| {
                start += exponential(&mut gaps, setting.gap);
                let walk = Rng::stream(setting.seed, purpose + 1 + u64::from(client));
                Watcher { start, levels: walk_of(walk, setting.blocks, setting.start_blocks) }
            };
            (0..setting.clients).map(watcher).collect()
        });
        Self { proxies: proxies.collect() }
    }
}

fn walk_of(mut rng: Rng, blocks: u32, start: u32) -> Vec<u8> {
    let mut level = 1_u8;
    let step = |block: u32| {
        if block >= start {
            level = match rng.below(10) {
                0 => (level + 1).min(LEVELS),
                1 => (level - 1).max(1),
                _ => level,
            };
        }
        level
    };
    (0..blocks).map(step).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "a drawn time, rounded to nanoseconds"
)]
fn exponential(rng: &mut Rng, mean: Span) -> Span {
    Span::from_nanos((-(1.0 - rng.unit()).ln() * mean.as_nanos() as f64) as u64)
}
