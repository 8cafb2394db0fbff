//! Who comes when, for which title, at which quality, with which contract; what the
//! titles are; and which nodes die. All of it by the seed alone: the same for
//! whatever is left out (common random numbers).

use super::{LAYER, Plan, TAU};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::topology::{SiteId, Topology};
use crate::workload::{Arrival, Sla};
use crate::world::Wish;
use media::{BitRate, ByteCount, Quality, Span, Time, TitleClass};
use protocol::node::classes::TitleFacts;

/// Titles of each class, as many requests of a hundred, and how many blocks: lessons
/// of 45 minutes, briefings of 12.5 and films of 90.
const CLASSES: [(TitleClass, usize, u32, u32); 3] = [
    (TitleClass::Archived, 12, 45, 2700),
    (TitleClass::FirstTime, 12, 35, 750),
    (TitleClass::AdHoc, 6, 20, 5400),
];
/// Popularity within a class falls as the rank to this power (Zipf).
const ZIPF: f64 = 0.8;
/// VIPs in a hundred.
const VIPS: usize = 20;
/// Layers of gold.
pub(super) const LAYERS: u8 = 3;
/// Over how long those come who are in the middle of their titles.
const FILL: Span = Span::from_secs(300);
/// For how long a dead node stays away.
const AWAY: Span = Span::from_secs(300);

/// One title.
#[derive(Clone, Debug)]
pub(super) struct Title {
    pub(super) facts: TitleFacts,
    pub(super) blocks: u32,
}

impl Title {
    /// What a layer of it weighs.
    pub(super) fn layer_size(&self) -> ByteCount {
        ByteCount(u64::from(self.blocks) * block_size().0)
    }
}

/// What a block weighs for each layer.
pub(super) fn block_size() -> ByteCount {
    ByteCount(LAYER.0 / 8 * TAU.as_millis() / 1000)
}

/// The catalogue: the titles of each class by falling popularity.
pub(super) fn titles() -> Vec<Title> {
    let rates = vec![LAYER; LAYERS.into()];
    let of = |(class, count, _, blocks): (TitleClass, usize, u32, u32)| {
        let rates: Vec<BitRate> = rates.clone();
        (0..count).filter_map(move |rank| {
            let title = format!("{}-{rank:02}", class.name()).parse().ok()?;
            let facts = TitleFacts { title, class, rates: rates.clone(), archive: None };
            Some(Title { facts, blocks })
        })
    };
    CLASSES.into_iter().flat_map(of).collect()
}

/// One viewer before it meets anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guest {
    pub(super) arrival: Arrival,
    pub(super) wish: Wish,
    /// The first block that it wants.
    pub(super) from: u32,
}

/// Everything that is drawn.
#[derive(Clone, Debug)]
pub(super) struct Audience {
    pub(super) guests: Vec<Guest>,
    pub(super) faults: Vec<(Time, Fault)>,
}

/// Mean seconds of a viewing.
fn mean_seconds() -> f64 {
    CLASSES.iter().map(|(_, _, share, blocks)| f64::from(*share) / 100.0 * f64::from(*blocks)).sum()
}

impl Audience {
    /// The audience of a plan: as many as a load means are in the middle of their
    /// titles when it begins, and others come as a Poisson process.
    pub(super) fn of(plan: &Plan, topology: &Topology) -> Self {
        let load = f64::from(plan.load) / 100.0 * f64::from(plan.size.slots());
        let mut draw = Draw { rng: Rng::stream(plan.seed, 21), nodes: topology.base_count() };
        let first = Time::ZERO + TAU;
        let end = Time::ZERO + plan.warm + plan.counted;
        let mut guests = Vec::new();
        let present = whole(load);
        for number in 0..present {
            let at = first + Span::from_nanos(FILL.as_nanos() / present.max(1) * number);
            guests.push(draw.present(at));
        }
        let mut at = first;
        loop {
            at += exponential(&mut draw.rng, mean_seconds() / load);
            if at >= end {
                break;
            }
            guests.push(draw.fresh(at));
        }
        guests.sort_by_key(|guest| guest.arrival.at);
        for (number, guest) in (0..).zip(&mut guests) {
            guest.arrival.user = number;
        }
        Self { guests, faults: faults(plan, topology) }
    }
}

/// A Base node dies as often as the plan says once everything counts, at a random
/// moment of each stretch, and comes back empty.
fn faults(plan: &Plan, topology: &Topology) -> Vec<(Time, Fault)> {
    let mut rng = Rng::stream(plan.seed, 22);
    let every = plan.failure_every;
    let (mut from, end) = (Time::ZERO + plan.warm, Time::ZERO + plan.warm + plan.counted);
    let mut faults = Vec::new();
    while from < end {
        // Early enough to see what becomes of it.
        let at = from + Span::from_nanos(rng.below_wide(every.as_nanos() / 2));
        let site = SiteId::at(rng.below(topology.base_count()));
        faults.extend([(at, Fault::Kill(site)), (at + AWAY, Fault::Revive(site))]);
        from += every;
    }
    faults
}

struct Draw {
    rng: Rng,
    nodes: usize,
}

impl Draw {
    /// Somebody who begins.
    fn fresh(&mut self, at: Time) -> Guest {
        let weights = CLASSES.map(|(_, _, share, _)| f64::from(share));
        let class = self.weighted(&weights);
        self.guest(at, class, 0.0)
    }

    /// Somebody in the middle: longer titles are met more often, anywhere in them.
    fn present(&mut self, at: Time) -> Guest {
        let weights = CLASSES.map(|(_, _, share, blocks)| f64::from(share) * f64::from(blocks));
        let class = self.weighted(&weights);
        let gone = self.rng.unit();
        self.guest(at, class, gone)
    }

    fn guest(&mut self, at: Time, class: usize, gone: f64) -> Guest {
        let (_, count, _, blocks) = CLASSES.get(class).copied().unwrap_or((TitleClass::Archived, 1, 0, 1));
        let ranks: Vec<f64> =
            (1..=count).map(|rank| crate::eval::statistics::float(rank).powf(-ZIPF)).collect();
        let before: usize = CLASSES.iter().take(class).map(|(_, count, ..)| count).sum();
        let title = before + self.weighted(&ranks);
        let quality = match self.rng.below(100) {
            0..10 => Quality::GOLD,
            10..40 => Quality::SILVER,
            _ => Quality::BRONZE,
        };
        let sla = if self.rng.below(100) < VIPS { Sla::Vip } else { Sla::Normal };
        let target = SiteId::at(self.rng.below(self.nodes));
        let from = u32::try_from(whole(gone * f64::from(blocks))).unwrap_or(0).min(blocks - 1);
        let ends_at = at + TAU.saturating_mul(u64::from(blocks - from));
        let arrival = Arrival { at, user: 0, sla, target, ends_at };
        Guest { arrival, wish: Wish { title, quality }, from }
    }

    fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.rng.unit() * weights.iter().sum::<f64>();
        let at = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        at.unwrap_or(weights.len().saturating_sub(1))
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    reason = "a number of people or blocks, above nothing"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

fn exponential(rng: &mut Rng, mean_seconds: f64) -> Span {
    Span::from_nanos(whole(-(1.0 - rng.unit()).ln() * mean_seconds * 1e9))
}
