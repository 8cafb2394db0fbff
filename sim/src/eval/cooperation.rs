//! The evaluation of Wakamiya et al., section 4: four schemes, clients in the
//! order of their arrival, and caches of several sizes.
//!
//! Each sample is one run of three proxies; its values are means over them.
//! Runs of one seed share their starts and walks, whatever else differs.

use super::statistics::{Estimate, float};
use super::verdict::Verdict;
use crate::proxies::{Ladder, Outcome, Scheme, Setting, run};
use media::ByteCount;
use std::collections::BTreeMap;

/// Caches, in hundredths of the most that an unlimited one holds: 10, 20, 30, 35
/// and 40 of the paper's 49 Gbit (decoded), and all of it.
pub const SIZES: [u32; 6] = [25, 41, 61, 71, 82, 100];
/// Clients from the fourth on: those of whom the paper says most.
const LATE: usize = 3;
/// A mean wait below this is no freeze, in seconds.
const SMOOTH: f64 = 0.005;

/// What one run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Mean wait of a block, seconds, for each client in the order of arrival.
    pub freeze: Vec<f64>,
    /// Mean of received over requested quality, likewise.
    pub ratio: Vec<f64>,
    /// The share of clients from the fourth on that play without a freeze.
    pub smooth: f64,
    /// The most that a cache held, in Gbit: the mean of the proxies.
    pub peak: f64,
    /// Gbit from the origin to each proxy.
    pub origin: f64,
}

impl Sample {
    /// The sample of a run.
    pub fn of(outcome: &Outcome) -> Self {
        let proxies = || outcome.proxies.iter();
        let clients = proxies().map(|proxy| proxy.freeze.len()).max().unwrap_or(0);
        let each = |values: fn(&crate::proxies::ProxyOutcome) -> &[f64]| {
            let of = |client: usize| mean(proxies().filter_map(|proxy| values(proxy).get(client).copied()));
            (0..clients).map(of).collect::<Vec<f64>>()
        };
        let late = || proxies().flat_map(|proxy| proxy.freeze.iter().skip(LATE));
        let smooth = late().map(|freeze| f64::from(u8::from(*freeze < SMOOTH)));
        Self {
            freeze: each(|proxy| &proxy.freeze),
            ratio: each(|proxy| &proxy.ratio),
            smooth: mean(smooth),
            peak: mean(proxies().map(|proxy| gbit(proxy.peak.0))),
            origin: mean(proxies().map(|proxy| gbit(proxy.counts.from_origin))),
        }
    }

    /// Mean wait of the first three clients.
    pub fn early_freeze(&self) -> f64 {
        mean(self.freeze.iter().take(LATE).copied())
    }

    /// Mean wait of the clients from the fourth on.
    pub fn late_freeze(&self) -> f64 {
        mean(self.freeze.iter().skip(LATE).copied())
    }

    /// Quality ratio of the clients from the fourth on.
    pub fn late_ratio(&self) -> f64 {
        mean(self.ratio.iter().skip(LATE).copied())
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / float(values.len().max(1))
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for figures")]
fn gbit(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 1e9
}

/// What is compared: a ladder, a scheme, and the size of the caches in hundredths.
pub type Place = (Ladder, Scheme, u32);

/// One piece of work: everything of one seed that depends on one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One scheme with unlimited caches.
    Scheme(Ladder, Scheme, u64),
    /// The proposal with caches of each of [`SIZES`], beside unlimited
    /// independent ones.
    Sizes(u64),
}

impl Piece {
    /// Four schemes, on these ladders.
    pub fn schemes(ladders: &[Ladder], seeds: &[u64]) -> Vec<Self> {
        let mut pieces = Vec::new();
        for seed in seeds {
            for ladder in ladders {
                pieces.extend(Scheme::ALL.map(|scheme| Self::Scheme(*ladder, scheme, *seed)));
            }
        }
        pieces
    }

    /// Does the work.
    pub fn run(&self) -> Vec<(Place, Sample)> {
        let sample = |setting: &Setting| Sample::of(&run(setting));
        match *self {
            Self::Scheme(ladder, scheme, seed) => {
                vec![((ladder, scheme, 100), sample(&Setting::paper(seed, scheme, ladder)))]
            }
            Self::Sizes(seed) => {
                let (ladder, proposal) = (Ladder::TenWhole, Scheme::CooperativeAhead);
                let unlimited = run(&Setting::paper(seed, proposal, ladder));
                let peak = unlimited.proxies.iter().map(|proxy| proxy.peak.0).max().unwrap_or(0);
                let mut all = vec![((ladder, proposal, 100), Sample::of(&unlimited))];
                for size in SIZES.into_iter().filter(|size| *size < 100) {
                    let capacity = Some(ByteCount(peak / 100 * u64::from(size)));
                    let setting = Setting { capacity, ..Setting::paper(seed, proposal, ladder) };
                    all.push(((ladder, proposal, size), sample(&setting)));
                }
                for scheme in [Scheme::Independent, Scheme::IndependentAhead] {
                    all.push(((ladder, scheme, 100), sample(&Setting::paper(seed, scheme, ladder))));
                }
                all
            }
        }
    }
}

/// All samples by what they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study(BTreeMap<Place, Vec<Sample>>);

impl Study {
    /// Adds what a piece gave.
    pub fn add(&mut self, samples: Vec<(Place, Sample)>) {
        for (place, sample) in samples {
            self.0.entry(place).or_default().push(sample);
        }
    }

    /// Everything, in order.
    pub fn points(&self) -> impl Iterator<Item = (Place, &[Sample])> {
        self.0.iter().map(|(place, samples)| (*place, samples.as_slice()))
    }

    /// A value with its 95 % interval over the seeds.
    pub fn at(&self, place: Place, value: impl Fn(&Sample) -> f64) -> Estimate {
        let samples = self.0.get(&place).map(Vec::as_slice).unwrap_or_default();
        Estimate::of(&samples.iter().map(value).collect::<Vec<f64>>())
    }

    /// The median over the seeds.
    pub fn median(&self, place: Place, value: impl Fn(&Sample) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.get(&place).into_iter().flatten().map(value).collect();
        values.sort_by(f64::total_cmp);
        let middle = |at: usize| values.get(at).copied().unwrap_or(0.0);
        middle(values.len() / 2).midpoint(middle(values.len().saturating_sub(1) / 2))
    }

    fn four(&self, ladder: Ladder, value: impl Fn(&Sample) -> f64 + Copy) -> [Estimate; 4] {
        Scheme::ALL.map(|scheme| self.at((ladder, scheme, 100), value))
    }

    /// C1, C2 and C3 of our reading: freezes with unlimited caches.
    pub fn freeze_verdicts(&self, ladder: Ladder) -> Vec<Verdict> {
        let name = |claim: &str| format!("{}: {claim}", ladder.name());
        let late = self.four(ladder, Sample::late_freeze);
        let early = self.four(ladder, Sample::early_freeze);
        let smooth = Scheme::ALL.map(|scheme| self.median((ladder, scheme, 100), |sample| sample.smooth));
        let [alone, ahead, shared, proposal] = late.map(|one| one.mean);
        let least = alone.min(ahead);
        let lowest = [alone, ahead, shared].iter().all(|other| proposal < *other);
        let [most, others @ ..] = [smooth[3], smooth[0], smooth[1], smooth[2]];
        vec![
            Verdict::new(
                name("independent schemes nearly coincide, freeze of clients 4-10"),
                format!("{} and {} s", late[0], late[1]),
                "within 15 %",
                near(alone, ahead),
            ),
            Verdict::new(
                name("cooperation shortens the freezes of clients 1-3"),
                format!("{} to {} s", early[0], early[3]),
                "shorter",
                early[3].mean < early[0].mean && early[2].mean < early[0].mean,
            ),
            Verdict::new(
                name("freeze of clients 4-10 in the proposal"),
                format!("{} s, against {} s without prefetch", late[3], late[2]),
                "under a third of both independent schemes",
                proposal * 3.0 < least,
            ),
            Verdict::new(
                name("the proposal's freeze is the lowest of the four"),
                format!("{proposal:.3} s"),
                "strictly the lowest",
                lowest,
            ),
            Verdict::new(
                name("share of clients 4-10 without a freeze, median"),
                format!("{:.2}, others {:.2} {:.2} {:.2}", most, smooth[0], smooth[1], smooth[2]),
                "at least 0.6, and the largest",
                most >= 0.6 && others.iter().all(|other| most > *other),
            ),
        ]
    }

    /// C1 and C4: quality with unlimited caches.
    pub fn quality_verdicts(&self, ladder: Ladder) -> Vec<Verdict> {
        let name = |claim: &str| format!("{}: {claim}", ladder.name());
        let late = self.four(ladder, Sample::late_ratio);
        let [alone, ahead, shared, proposal] = late.map(|one| one.mean);
        vec![
            Verdict::new(
                name("independent schemes nearly coincide, quality of clients 4-10"),
                format!("{} and {}", late[0], late[1]),
                "within 15 %",
                near(alone, ahead),
            ),
            Verdict::new(
                name("the proposal delivers nearly the requested quality to clients 4-10"),
                format!("{}, others {alone:.3} {ahead:.3} {shared:.3}", late[3]),
                "at least 0.90, and the highest",
                proposal >= 0.9 && [alone, ahead, shared].iter().all(|other| proposal > *other),
            ),
        ]
    }

    /// C5 and C6: limited caches.
    pub fn size_verdicts(&self) -> Vec<Verdict> {
        let of = |size| (Ladder::TenWhole, Scheme::CooperativeAhead, size);
        let freeze = |size| self.at(of(size), Sample::late_freeze);
        let all = SIZES.map(|size| freeze(size).mean);
        let alone = [Scheme::Independent, Scheme::IndependentAhead]
            .map(|scheme| self.at((Ladder::TenWhole, scheme, 100), Sample::late_freeze).mean);
        let (alone, highest) = (alone[0].min(alone[1]), alone[0].max(alone[1]));
        let peak = self.at(of(100), |sample| sample.peak);
        vec![
            Verdict::new(
                "the most that an unlimited cache holds",
                format!("{peak} Gbit"),
                "about 49 Gbit",
                (peak.mean - 49.0).abs() < 4.9,
            ),
            Verdict::new(
                "freezes grow as the cache shrinks",
                all.map(|mean| format!("{mean:.3}")).join(" "),
                "monotone",
                all.windows(2).all(|pair| matches!(pair, [smaller, larger] if smaller >= larger)),
            ),
            Verdict::new(
                "freeze of clients 4-10 with 0.82 of the maximum",
                format!("{} s", freeze(82)),
                "below 0.5 s",
                freeze(82).mean < 0.5,
            ),
            Verdict::new(
                "freeze of clients 4-10 with 0.71 of the maximum",
                format!("{} s", freeze(71)),
                "below unlimited independent schemes",
                freeze(71).mean < alone,
            ),
            Verdict::new(
                "freeze of clients 4-10 with 0.41 of the maximum",
                format!("{} s", freeze(41)),
                "above unlimited independent schemes",
                freeze(41).mean > highest,
            ),
        ]
    }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.15 * one.max(other)
}
