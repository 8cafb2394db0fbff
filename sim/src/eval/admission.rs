//! Simon et al., section 4, drawn anew: thresholds against blocking, by exact
//! formulas and by events through the admission of nodes. The numbers of the
//! experiments are ours; the paper's section is lost.

use super::statistics::Estimate;
use crate::loss::{self, Fate, Law, LossPlan, Miss, Offer};
use crate::theory::{Load, System, TheoryError};
use media::{BitRate, ByClass, TitleClass};
use protocol::node::classes::ClassLimits;

/// The servers of E1 to E3, E5 and E6.
pub const SERVERS: u32 = 100;

/// Mean minutes of the classes: a lesson, a briefing, a film.
pub const MINUTES: [f64; 3] = [45.0, 12.5, 90.0];
/// How requests are split among the classes.
pub const SPLIT: [f64; 3] = [0.4, 0.4, 0.2];

/// The loads of E2 for so many requests an hour.
pub fn loads(requests: f64) -> [f64; 3] {
    let [lesson, briefing, film] = SPLIT;
    let [long, short, evening] = MINUTES;
    [lesson * long, briefing * short, film * evening].map(|minutes| requests * minutes / 60.0)
}

/// The system of the paper: three classes, a threshold on the third.
pub fn system(
    servers: u32,
    [first, second, third]: [f64; 3],
    threshold: Option<u32>,
) -> Result<System, TheoryError> {
    System::new(servers, vec![Load::of(first), Load::of(second), Load { threshold, ..Load::of(third) }])
}

fn limits(slots: u64, threshold: Option<u64>) -> ClassLimits {
    let thresholds = ByClass { ad_hoc: threshold.unwrap_or(u64::MAX), ..ByClass::of(|_| u64::MAX) };
    ClassLimits { thresholds, slots, max_grants: 65_536, max_titles: 128, ..ClassLimits::default() }
}

/// E3: 100 servers, 40 erlangs of each class, a threshold of 25.
pub fn service_laws(law: Law, arrivals: u32) -> LossPlan {
    LossPlan {
        limits: limits(SERVERS.into(), Some(25)),
        sites: 1,
        redirects: 0,
        offers: TitleClass::ALL.map(|class| Offer::of(class, 40.0)).to_vec(),
        law,
        miss: Miss::Through,
        arrivals,
        seed: 0,
    }
}

/// E4: 40 servers, stored shares of 0.9, 0.9 and 0.2, so many channels to the
/// origin.
pub fn end_to_end(channels: u64, threshold: Option<u64>, miss: Miss, arrivals: u32) -> LossPlan {
    let offers = [(14.0, 0.9), (10.0, 0.9), (10.0, 0.2)];
    let offers = TitleClass::ALL.into_iter().zip(offers);
    let offers = offers.map(|(class, (erlangs, hits))| Offer { hits, ..Offer::of(class, erlangs) });
    LossPlan {
        limits: ClassLimits { to_origin: BitRate(channels), ..limits(40, threshold) },
        offers: offers.collect(),
        miss,
        ..service_laws(Law::Exponential, arrivals)
    }
}

/// E6: gold, silver and bronze take 3, 2 and 1 of 100 servers; whoever is refused
/// is offered less, or not. Each class asks for gold, silver and bronze in thirds.
pub fn downgrade(offered: f64, threshold: Option<u64>, downgrade: bool, arrivals: u32) -> LossPlan {
    let offer = |class: TitleClass, best: u64| {
        let lowest = if downgrade { 1 } else { best };
        Offer { slots: (lowest..=best).rev().collect(), ..Offer::of(class, offered / 9.0) }
    };
    let offers = TitleClass::ALL.into_iter().flat_map(|class| [3, 2, 1].map(|best| offer(class, best)));
    LossPlan {
        limits: limits(SERVERS.into(), threshold),
        offers: offers.collect(),
        ..service_laws(Law::Exponential, arrivals)
    }
}

/// E7: five sites of 30 servers with 30 erlangs each; whoever is refused may try
/// so many others.
pub fn redirection(redirects: usize, arrivals: u32) -> LossPlan {
    LossPlan {
        limits: limits(30, None),
        sites: 5,
        redirects,
        offers: TitleClass::ALL.map(|class| Offer::of(class, 10.0)).to_vec(),
        ..service_laws(Law::Exponential, arrivals)
    }
}

/// What the runs of a plan say: one value of each run.
#[derive(Clone, Debug)]
pub struct Runs {
    fates: Vec<Vec<Fate>>,
}

impl Runs {
    /// Runs the plan once for each seed.
    pub fn of(plan: &LossPlan, seeds: impl IntoIterator<Item = u64>) -> Self {
        let run = |seed| loss::run(&LossPlan { seed, ..plan.clone() }).fates;
        Self { fates: seeds.into_iter().map(run).collect() }
    }

    /// Several runs together.
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        Self { fates: parts.into_iter().flat_map(|part| part.fates).collect() }
    }

    /// Of one stream.
    pub fn of_stream(&self, stream: usize, value: impl Fn(&Fate) -> f64) -> Estimate {
        let values = self.fates.iter().filter_map(|fates| fates.get(stream).map(&value));
        Estimate::of(&values.collect::<Vec<_>>())
    }

    /// Of several streams together.
    pub fn of_all(&self, streams: impl Fn(usize) -> bool, value: impl Fn(&Fate) -> f64) -> Estimate {
        let sum = |fates: &Vec<Fate>| {
            let chosen = fates.iter().enumerate().filter(|(stream, _)| streams(*stream));
            value(&chosen.fold(Fate::default(), |sum, (_, fate)| add(sum, fate)))
        };
        Estimate::of(&self.fates.iter().map(sum).collect::<Vec<_>>())
    }
}

fn add(sum: Fate, fate: &Fate) -> Fate {
    let both = |left: (u64, u64), right: (u64, u64)| (left.0 + right.0, left.1 + right.1);
    Fate {
        hits: both(sum.hits, fate.hits),
        misses: both(sum.misses, fate.misses),
        slots: sum.slots + fate.slots,
    }
}
