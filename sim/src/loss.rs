//! Loss systems as events: viewings come and go, and the admission that runs in
//! nodes says yes or no.
//!
//! Times are in mean holding times of no class in particular: a class names its
//! own mean. Whoever is refused is lost, or tries other sites first.

use crate::eval::statistics::float;
use crate::queue::Queue;
use crate::rng::Rng;
use media::{BitRate, ByteCount, Span, Time, TitleClass, TitleName};
use protocol::node::classes::{Charge, ClassAdmission, ClassLimits, Demand, GrantId, Reason, Source};

/// The law of holding times; each one has the mean that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Exponential.
    Exponential,
    /// All the same.
    Deterministic,
    /// Log-normal, with a standard deviation of 1 of its logarithm.
    LogNormal,
}

impl Law {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exponential, Self::Deterministic, Self::LogNormal];

    fn draw(self, rng: &mut Rng, mean: f64) -> f64 {
        match self {
            Self::Exponential => -mean * (1.0 - rng.unit()).ln(),
            Self::Deterministic => mean,
            Self::LogNormal => {
                // Box and Muller.
                let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * rng.unit()).cos();
                mean * (normal - 0.5).exp()
            }
        }
    }
}

/// One stream of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its class.
    pub class: TitleClass,
    /// Offered load in erlangs, at each site.
    pub erlangs: f64,
    /// The mean of its holding times.
    pub mean: f64,
    /// The share of requests whose title is stored.
    pub hits: f64,
    /// The slots of the quality that is asked for, then of those that would do.
    pub slots: Vec<u64>,
}

impl Offer {
    /// Requests of one slot and a mean of one, all of them for stored titles.
    pub fn of(class: TitleClass, erlangs: f64) -> Self {
        Self { class, erlangs, mean: 1.0, hits: 1.0, slots: vec![1] }
    }
}

/// How titles come that are not stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Miss {
    /// Streamed through: one channel of the link to the origin while it is watched.
    Through,
    /// Copied first: one channel for so long, however long it is watched.
    Copied(f64),
}

/// A loss system to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct LossPlan {
    /// What each site has; one unit of the link to the origin is one channel.
    pub limits: ClassLimits,
    /// How many equal sites.
    pub sites: usize,
    /// How many other sites somebody who is refused may try.
    pub redirects: usize,
    /// What is asked for.
    pub offers: Vec<Offer>,
    /// The law of holding times.
    pub law: Law,
    /// How titles come that are not stored.
    pub miss: Miss,
    /// Requests in all; the first tenth is not counted.
    pub arrivals: u32,
    /// Decides everything.
    pub seed: u64,
}

/// What happened to the requests of one stream that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Asked for what is stored, and how many of these were refused.
    pub hits: (u64, u64),
    /// The same for what is not stored.
    pub misses: (u64, u64),
    /// The slots that were given.
    pub slots: u64,
}

impl Fate {
    /// Requests.
    pub const fn offered(&self) -> u64 {
        self.hits.0 + self.misses.0
    }

    /// Refused for good.
    pub const fn refused(&self) -> u64 {
        self.hits.1 + self.misses.1
    }

    /// The share that was refused.
    pub fn blocking(&self) -> f64 {
        share((self.offered(), self.refused()))
    }

    /// The share that was refused of those whose title is stored.
    pub fn hit_blocking(&self) -> f64 {
        share(self.hits)
    }

    /// The share that was refused of those whose title is not.
    pub fn miss_blocking(&self) -> f64 {
        share(self.misses)
    }
}

fn share((offered, refused): (u64, u64)) -> f64 {
    let count = |count: u64| float(usize::try_from(count).unwrap_or(usize::MAX));
    if offered == 0 { 0.0 } else { count(refused) / count(offered) }
}

/// What a run ends with.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One for each offer.
    pub fates: Vec<Fate>,
    /// The sites as they are after everybody has left.
    pub sites: Vec<ClassAdmission>,
    /// Whether a threshold or a capacity was ever exceeded.
    pub exceeded: bool,
}

#[derive(Clone, Debug)]
enum Event {
    Arrives,
    Leaves(usize, GrantId),
    Copied(usize, TitleName),
}

/// A run as it goes on.
struct Run<'a> {
    plan: &'a LossPlan,
    queue: Queue<Event>,
    sites: Vec<ClassAdmission>,
    fates: Vec<Fate>,
    arrived: u32,
    exceeded: bool,
    between: Rng,
    who: Rng,
    holding: Rng,
    stored: TitleName,
}

/// Simulates until everybody has left. The plan's seed decides everything.
pub fn run(plan: &LossPlan) -> Outcome {
    let stored = "stored".parse::<TitleName>();
    let Ok(stored) = stored else {
        return Outcome { fates: Vec::new(), sites: Vec::new(), exceeded: false };
    };
    let mut run = Run {
        plan,
        queue: Queue::default(),
        sites: vec![ClassAdmission::new(plan.limits); plan.sites.max(1)],
        fates: vec![Fate::default(); plan.offers.len()],
        arrived: 0,
        exceeded: false,
        between: Rng::stream(plan.seed, 1),
        who: Rng::stream(plan.seed, 2),
        holding: Rng::stream(plan.seed, 3),
        stored,
    };
    run.plan_arrival();
    while let Some(event) = run.queue.take_until(Time::from_nanos(u64::MAX)) {
        match event {
            Event::Arrives => run.arrives(),
            Event::Leaves(site, grant) => run.exceeded |= !run.site(site, |site| site.release(grant)),
            Event::Copied(site, title) => run.exceeded |= !run.site(site, |site| site.copied(&title)),
        }
    }
    Outcome { fates: run.fates, sites: run.sites, exceeded: run.exceeded }
}

impl Run<'_> {
    fn site<T: Default>(&mut self, site: usize, act: impl FnOnce(&mut ClassAdmission) -> T) -> T {
        self.sites.get_mut(site).map(act).unwrap_or_default()
    }

    /// Arrivals of a stream at all sites in one unit of time.
    fn rate(&self, offer: &Offer) -> f64 {
        offer.erlangs / offer.mean * float(self.sites.len())
    }

    fn after(&self, time: f64) -> Time {
        self.queue.now() + span(time)
    }

    fn plan_arrival(&mut self) {
        let rate: f64 = self.plan.offers.iter().map(|offer| self.rate(offer)).sum();
        if self.arrived < self.plan.arrivals && rate > 0.0 {
            let gap = Law::Exponential.draw(&mut self.between, 1.0 / rate);
            self.queue.plan(self.after(gap), Event::Arrives);
        }
    }

    fn arrives(&mut self) {
        self.arrived += 1;
        let rates: Vec<f64> = self.plan.offers.iter().map(|offer| self.rate(offer)).collect();
        let mut drawn = self.who.unit() * rates.iter().sum::<f64>();
        let mut which = 0;
        for (at, rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            which = at;
            if drawn < *rate {
                break;
            }
            drawn -= rate;
        }
        let Some(offer) = self.plan.offers.get(which) else { return };
        let hit = self.who.chance(offer.hits);
        let home = self.who.below(self.sites.len());
        let time = self.plan.law.draw(&mut self.holding, offer.mean);
        let given = self.ask(offer, hit, home, time);
        if self.arrived > self.plan.arrivals / 10
            && let Some(fate) = self.fates.get_mut(which)
        {
            let kind = if hit { &mut fate.hits } else { &mut fate.misses };
            kind.0 += 1;
            kind.1 += u64::from(given.is_none());
            fate.slots += given.unwrap_or(0);
        }
        self.plan_arrival();
    }

    /// Asks at home, then elsewhere; the slots that were given.
    fn ask(&mut self, offer: &Offer, hit: bool, home: usize, time: f64) -> Option<u64> {
        let source = match self.plan.miss {
            _ if hit => Source::Held,
            Miss::Through => Source::Through { rate: BitRate(1) },
            Miss::Copied(_) => Source::Copied { rate: BitRate(1), size: ByteCount(1) },
        };
        let title = match source {
            Source::Copied { .. } | Source::Kept { .. } => format!("t{}", self.arrived).parse().ok()?,
            Source::Held | Source::Through { .. } => self.stored.clone(),
        };
        let demand = |slots: u64| Demand {
            title: title.clone(),
            class: offer.class,
            charge: Charge::Tested,
            slots,
            rate: BitRate(0),
            source,
        };
        let demands: Vec<Demand> = offer.slots.iter().map(|slots| demand(*slots)).collect();
        let (best, lower) = demands.split_first()?;
        for step in 0..=self.plan.redirects.min(self.sites.len() - 1) {
            let at = (home + step) % self.sites.len();
            let answer = self.site(at, |site| Some(site.admit_first(best, lower, Ok(()))));
            let Some(Ok((which, grant))) = answer else { continue };
            self.queue.plan(self.after(time), Event::Leaves(at, grant.id));
            if let (true, Miss::Copied(takes)) = (grant.copy, self.plan.miss) {
                self.queue.plan(self.after(takes), Event::Copied(at, title.clone()));
            }
            self.watch_limits(at);
            return offer.slots.get(which).copied();
        }
        None
    }

    fn watch_limits(&mut self, at: usize) {
        let Some(site) = self.sites.get(at) else { return };
        let (used, limits) = (site.used(), site.limits());
        let over = TitleClass::ALL.into_iter().any(|class| used.viewings[class] > limits.thresholds[class]);
        self.exceeded |= over || used.slots > limits.slots || used.to_origin > limits.to_origin;
    }
}

impl Outcome {
    /// How often somebody was refused at a site for this reason.
    pub fn because(&self, reason: Reason) -> u64 {
        self.sites.iter().map(|site| site.refusals().because(reason)).sum()
    }
}

/// A length of time, of which one unit is a second of the queue.
fn span(time: f64) -> Span {
    std::time::Duration::try_from_secs_f64(time).map_or(Span::MAX, Span::from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::ByClass;
    use protocol::node::classes::Usage;

    fn plan(miss: Miss) -> LossPlan {
        LossPlan {
            limits: ClassLimits {
                thresholds: ByClass { ad_hoc: 3, ..ByClass::of(|_| u64::MAX) },
                slots: 10,
                to_origin: BitRate(2),
                max_titles: 32,
                ..ClassLimits::default()
            },
            sites: 2,
            redirects: 1,
            offers: TitleClass::ALL.map(|class| Offer { hits: 0.5, ..Offer::of(class, 4.0) }).to_vec(),
            law: Law::LogNormal,
            miss,
            arrivals: 5_000,
            seed: 7,
        }
    }

    #[test]
    fn a_run_is_decided_by_its_seed_and_leaves_nothing_behind() {
        for miss in [Miss::Through, Miss::Copied(0.2)] {
            let outcome = run(&plan(miss));
            assert!(!outcome.exceeded);
            for site in &outcome.sites {
                assert_eq!((*site.used(), site.viewings()), (Usage::default(), 0));
            }
            let reasons = [Reason::Threshold, Reason::Slots, Reason::OriginLink];
            assert!(reasons.into_iter().all(|reason| outcome.because(reason) > 10), "{:?}", outcome.fates);
            assert_eq!(run(&plan(miss)).fates, outcome.fates);
            assert_ne!(run(&LossPlan { seed: 8, ..plan(miss) }).fates, outcome.fates);
            assert_eq!(outcome.fates.iter().map(Fate::offered).sum::<u64>(), 4_500);
        }
    }

    #[test]
    fn every_law_has_the_mean_that_is_asked_for() {
        for law in Law::ALL {
            let mut rng = Rng::new(11);
            let sum: f64 = (0..200_000).map(|_| law.draw(&mut rng, 3.0)).sum();
            assert!((sum / 200_000.0 - 3.0).abs() < 0.05, "{law:?}: {}", sum / 200_000.0);
        }
    }
}
