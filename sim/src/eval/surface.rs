//! The surfaces of Evaluation II over users and share of VIPs, and the claims
//! that can be read from them.

use super::continuity::{self, Outcome, Plan, Variant};
use super::statistics::{Estimate, float};
use super::verdict::Verdict;
use crate::rng::Rng;
use crate::topology::TopologyError;
use media::Span;
use std::collections::BTreeMap;

/// Which points are computed, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Numbers of users.
    pub users: Vec<u32>,
    /// Shares of VIPs in thousandths.
    pub vip_permille: Vec<u32>,
    /// One run of each point for each seed.
    pub seeds: Vec<u64>,
}

/// One run of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The run.
    pub plan: Plan,
    /// What stands behind the users.
    pub variant: Variant,
}

impl Grid {
    /// The points of the published surfaces, five runs each.
    pub fn full() -> Self {
        Self {
            users: (2..=18).map(|hundreds| hundreds * 100).collect(),
            vip_permille: (0..10).map(|tenths| tenths * 100).collect(),
            seeds: (1..=5).collect(),
        }
    }

    /// The points that the claims name and those of the same users and shares; one
    /// run each.
    pub fn coarse() -> Self {
        Self {
            users: vec![800, 1000, 1200, 1300, 1400, 1600],
            vip_permille: vec![0, 200, 600],
            seeds: vec![1],
        }
    }

    /// Every run of these variants, the long ones first, so that two cores
    /// finish together.
    pub fn jobs(&self, variants: &[Variant]) -> Vec<Job> {
        let mut jobs = Vec::new();
        for users in self.users.iter().rev() {
            for vip_permille in &self.vip_permille {
                for seed in &self.seeds {
                    let plan = Plan::paper(*users, *vip_permille, *seed);
                    jobs.extend(variants.iter().map(|variant| Job { plan, variant: *variant }));
                }
            }
        }
        jobs
    }
}

impl Job {
    /// Runs it.
    pub fn run(&self) -> Result<Sample, TopologyError> {
        let outcome = continuity::run(&self.plan, self.variant)?;
        Ok(Sample::of(self, &outcome))
    }
}

/// What is kept of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Continuity of normal users whose node failed.
    pub normal: f64,
    /// The same of VIPs.
    pub vip: f64,
    /// Continuity of normal users after one failure, of a random node.
    pub one_failure: f64,
    /// Equation 11 word for word: over all normal users.
    pub literal: f64,
    /// The longest recovery that was in time, in seconds.
    pub longest: f64,
    /// The share of VIPs with a standby or a reservation.
    pub vip_protected: f64,
    /// The share of users whom nobody could serve.
    pub unserved: f64,
    /// Messages for each user until the state was stable.
    pub messages_per_user: f64,
    /// Things that happened in the run.
    pub happened: u64,
}

impl Sample {
    fn of(job: &Job, outcome: &Outcome) -> Self {
        let continuity = &outcome.continuity;
        let place = Rng::stream(job.plan.seed, 6).below(continuity.failures.len());
        let longest = outcome.recoveries.iter().copied().max().unwrap_or_default();
        let [slot, row, none] = outcome.vip_backups;
        let users = continuity.normals + continuity.vips;
        let sent = usize::try_from(outcome.stats.without_signals()).unwrap_or(usize::MAX);
        Self {
            normal: continuity.normal(),
            vip: continuity.vip(),
            one_failure: continuity.normal_of_one(place).unwrap_or(1.0),
            literal: continuity.literal(),
            longest: longest.as_secs_f64(),
            vip_protected: if slot + row + none == 0 {
                1.0
            } else {
                float(slot + row) / float(slot + row + none)
            },
            unserved: float(continuity.unserved) / float((users + continuity.unserved).max(1)),
            messages_per_user: float(sent) / float(users.max(1)),
            happened: outcome.happened,
        }
    }
}

/// Where a point stands: variant, users, VIPs in thousandths.
pub type Place = (Variant, u32, u32);

/// All samples by point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    points: BTreeMap<Place, Vec<Sample>>,
}

impl Surface {
    /// Adds one run.
    pub fn add(&mut self, job: &Job, sample: Sample) {
        let place = (job.variant, job.plan.users, job.plan.vip_permille);
        self.points.entry(place).or_default().push(sample);
    }

    /// The points, by variant, users and VIPs.
    pub fn points(&self) -> impl Iterator<Item = (Place, &[Sample])> {
        self.points.iter().map(|(place, samples)| (*place, samples.as_slice()))
    }

    /// An estimate at a point; nothing where no run was made.
    pub fn at(&self, place: Place, value: fn(&Sample) -> f64) -> Option<Estimate> {
        let values: Vec<f64> = self.points.get(&place)?.iter().map(value).collect();
        Some(Estimate::of(&values))
    }

    fn normal(&self, variant: Variant, users: u32, vip_permille: u32) -> Option<Estimate> {
        self.at((variant, users, vip_permille), |sample| sample.normal)
    }

    /// The lowest mean of a value over the points that pass a test.
    fn lowest(&self, value: fn(&Sample) -> f64, test: impl Fn(Place) -> bool) -> Option<f64> {
        let means = self.points.keys().filter(|place| test(**place));
        means.filter_map(|place| self.at(*place, value)).map(|estimate| estimate.mean).reduce(f64::min)
    }

    /// The claims of Evaluation II; those whose points were not computed are left out.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = self.claims_without();
        verdicts.extend(self.claims_with());
        verdicts.extend(self.claims_of_both());
        verdicts.extend(self.claims_about_vips());
        verdicts
    }

    fn claims_without(&self) -> Vec<Verdict> {
        let safe = self.lowest(
            |sample| sample.normal,
            |(variant, users, _)| variant == Variant::Without && users <= 800,
        );
        let safe = safe.map(|low| {
            let shown = format!("{low:.3} at the least");
            Verdict::new("without, up to 800 users", shown, "guaranteed (>= 0.99)", low >= 0.99)
        });
        let under = |users, vips, bound: f64, published: &str| {
            let ours = self.normal(Variant::Without, users, vips)?;
            let claim = format!("without, {users} users, {} % VIPs", vips / 10);
            Some(Verdict::new(claim, ours, published, ours.mean < bound))
        };
        let low = [under(1400, 200, 0.40, "below 40 %"), under(1300, 600, 0.25, "below 25 %")];
        safe.into_iter().chain(low.into_iter().flatten()).collect()
    }

    fn claims_with(&self) -> Vec<Verdict> {
        let safe = self
            .lowest(|sample| sample.normal, |(variant, users, _)| variant == Variant::With && users <= 1000);
        let safe = safe.map(|low| {
            let shown = format!("{low:.3} at the least");
            Verdict::new("with, up to 1000 users", shown, "basically guaranteed (>= 0.98)", low >= 0.98)
        });
        let full = self.normal(Variant::With, 1600, 200).map(|ours| {
            let holds = (0.50..=0.70).contains(&ours.mean);
            Verdict::new("with, 1600 users, 20 % VIPs", ours, "around 60 % (0.50 to 0.70)", holds)
        });
        safe.into_iter().chain(full).collect()
    }

    fn claims_of_both(&self) -> Vec<Verdict> {
        let gain = |users, vips| {
            let with = self.normal(Variant::With, users, vips)?.mean;
            Some(with - self.normal(Variant::Without, users, vips)?.mean)
        };
        let mut verdicts: Vec<Verdict> = [(1200, 200), (1400, 200), (1300, 600)]
            .into_iter()
            .filter_map(|(users, vips)| Some((users, vips, gain(users, vips)?)))
            .map(|(users, vips, gain)| {
                let claim = format!("with less without, {users} users, {} % VIPs", vips / 10);
                Verdict::new(claim, format!("{gain:+.3}"), "clearly above (>= 0.3)", gain >= 0.3)
            })
            .collect();
        let loaded =
            self.points.keys().filter(|(variant, users, _)| *variant == Variant::With && *users > 800);
        let smallest = loaded.filter_map(|(_, users, vips)| gain(*users, *vips)).reduce(f64::min);
        verdicts.extend(smallest.map(|least| {
            let shown = format!("{least:+.3} at the least");
            Verdict::new(
                "with is above without wherever there are more than 800 users",
                shown,
                "above",
                least > 0.0,
            )
        }));
        let longest = self.points.values().flatten().map(|sample| sample.longest).reduce(f64::max);
        verdicts.extend(longest.map(|longest| {
            let limit = Span::from_secs(15).as_secs_f64();
            let shown = format!("longest {longest:.2} s");
            Verdict::new("every recovery counted is within the buffer", shown, "15 s", longest <= limit)
        }));
        verdicts
    }

    fn claims_about_vips(&self) -> Vec<Verdict> {
        let fits = |(variant, users, vips): Place| {
            variant == Variant::With && u64::from(users) * (1000 + u64::from(vips)) <= 1_800_000
        };
        let least = self.lowest(|sample| sample.vip, fits);
        let guarded = self.lowest(|sample| sample.vip_protected, fits);
        let claim = "continuity of VIPs wherever users and standbys fit 1800 slots";
        let vip = least.map(|low| Verdict::new(claim, format!("{low:.4} at the least"), "1", low >= 1.0));
        let guard = guarded.map(|low| {
            let shown = format!("{low:.4} at the least");
            Verdict::new("VIPs with a standby or a reservation there", shown, "1", low >= 1.0)
        });
        vip.into_iter().chain(guard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_one_job_for_each_point_seed_and_variant() {
        let jobs = Grid::full().jobs(&[Variant::With, Variant::Without]);
        assert_eq!(jobs.len(), 17 * 10 * 5 * 2);
        assert_eq!(jobs[0].plan.users, 1800);
        assert_eq!(Grid::coarse().jobs(&[Variant::With]).len(), 18);
    }

    #[test]
    fn claims_are_made_only_of_points_that_were_computed() {
        let sample = Sample {
            normal: 0.3,
            vip: 1.0,
            one_failure: 0.3,
            literal: 0.99,
            longest: 4.0,
            vip_protected: 1.0,
            unserved: 0.0,
            messages_per_user: 0.0,
            happened: 0,
        };
        let mut surface = Surface::default();
        surface.add(&Job { plan: Plan::paper(1400, 200, 1), variant: Variant::Without }, sample);
        let lines: Vec<String> = surface.verdicts().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "without, 1400 users, 20 % VIPs: ours 0.300, published below 40 %: yes",
                "every recovery counted is within the buffer: ours longest 4.00 s, published 15 s: yes",
            ]
        );
    }
}
