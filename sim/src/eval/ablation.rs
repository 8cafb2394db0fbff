//! The integrated ablation: the whole system, and the same without one of its parts,
//! before the same audience and the same failures.
//!
//! What is expected is stated beforehand: without thresholds more viewers of classes 1
//! and 2 are refused; without node allocation fewer normal viewers play on when their
//! node dies; without cooperation there are more freezes and more bytes from the nodes;
//! without prefetch there are more freezes; and the complete system is best, or as good as any, in everything but the refusals
//! of class 3 and messages. Differences are taken run by run (common random numbers)
//! and count if their 95 % interval leaves zero out.

use super::statistics::Estimate;
use super::verdict::Verdict;
use crate::topology::TopologyError;
use crate::whole::{Measures, Plan, Size, Without, run};
use media::TitleClass;
use std::collections::BTreeMap;
use std::fmt;

/// One measure of a run.
pub type Value = fn(&Measures) -> f64;

/// A measure with its name, and whether more of it is better.
#[derive(Clone, Copy)]
pub struct Column {
    /// In tables.
    pub name: &'static str,
    /// In words.
    pub words: &'static str,
    /// Of a run.
    pub value: Value,
    /// Whether more is better; nothing where neither is.
    pub more_is_better: Option<bool>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn column(name: &'static str, words: &'static str, value: Value, more: Option<bool>) -> Column {
    Column { name, words, value, more_is_better: more }
}

/// What is measured.
pub const COLUMNS: [Column; 15] = [
    column("blocking_1", "refused of class 1", |m| m.blocking(TitleClass::Archived), Some(false)),
    column("blocking_2", "refused of class 2", |m| m.blocking(TitleClass::FirstTime), Some(false)),
    column("blocking_3", "refused of class 3", |m| m.blocking(TitleClass::AdHoc), None),
    column("continuity_normal", "normals who play on", Measures::continuity_normal, Some(true)),
    column("continuity_vip", "VIPs who play on", Measures::continuity_vip, Some(true)),
    column("served_normal", "normals with a node in time", Measures::served_normal, Some(true)),
    column("served_vip", "VIPs with a node in time", Measures::served_vip, Some(true)),
    column("away_normal_s", "s until a normal has a node again", Measures::away_normal, Some(false)),
    column("freeze_s_per_hour", "freezes, s in an hour", Measures::freeze, Some(false)),
    column("quality_ratio", "received over requested", Measures::ratio, Some(true)),
    column("origin_mbit_s", "Mbit/s from the nodes", Measures::origin_rate, Some(false)),
    column("peer_mbit_s", "Mbit/s between proxies", Measures::peer_rate, None),
    column("storage_gb", "Gbyte in nodes and caches", Measures::storage, Some(false)),
    column("placement", "of whole titles on every node", Measures::placement, None),
    column("messages_per_s", "messages a second", Measures::message_rate, None),
];

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The network.
    pub size: Size,
    /// Offered load, in hundredths of all slots.
    pub loads: Vec<u32>,
    /// Runs of each point.
    pub seeds: Vec<u64>,
}

impl Grid {
    /// Every load of the experiment: 0.6 to 1.3.
    pub const LOADS: [u32; 8] = [60, 70, 80, 90, 100, 110, 120, 130];

    /// Every run, those of one seed and load together.
    pub fn plans(&self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for load in self.loads.iter().rev() {
            for seed in &self.seeds {
                plans.extend(Without::ALL.map(|without| Plan::new(self.size, without, *load, *seed)));
            }
        }
        plans
    }
}

/// Where a run stands.
type Place = (Without, u32, u64);

/// All runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ablation(BTreeMap<Place, Measures>);

impl Ablation {
    /// Adds a run.
    pub fn add(&mut self, plan: &Plan) -> Result<(), TopologyError> {
        run(plan).map(|measures| self.note(plan, measures))
    }

    /// Adds what a run gave.
    pub fn note(&mut self, plan: &Plan, measures: Measures) {
        self.0.insert((plan.without, plan.load, plan.seed), measures);
    }

    /// The loads, from the lowest.
    pub fn loads(&self) -> Vec<u32> {
        let mut loads: Vec<u32> = self.0.keys().map(|(_, load, _)| *load).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    /// A measure at a point.
    pub fn at(&self, without: Without, load: u32, value: Value) -> Estimate {
        let of = self.0.iter().filter(|((other, at, _), _)| (*other, *at) == (without, load));
        Estimate::of(&of.map(|(_, measures)| value(measures)).collect::<Vec<_>>())
    }

    /// Things that happened, in all runs.
    pub fn happened(&self) -> u64 {
        self.0.values().map(|measures| measures.happened).sum()
    }

    fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = self.0.keys().map(|(.., seed)| *seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }

    /// A measure without a part less the same with everything: the mean over the
    /// loads of each seed, over the seeds.
    pub fn difference(&self, without: Without, value: Value) -> Estimate {
        let of_seed = |seed: &u64| {
            let at = |without, load| self.0.get(&(without, load, *seed)).map(value);
            let loads = self.loads();
            let each =
                loads.iter().filter_map(|load| Some(at(without, *load)? - at(Without::Nothing, *load)?));
            let each: Vec<f64> = each.collect();
            (!each.is_empty()).then(|| Estimate::of(&each).mean)
        };
        Estimate::of(&self.seeds().iter().filter_map(of_seed).collect::<Vec<_>>())
    }

    /// A line for each sign that is expected.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let expected = [
            (Without::Thresholds, "blocking_1", true),
            (Without::Thresholds, "blocking_2", true),
            (Without::Allocation, "continuity_normal", false),
            (Without::Allocation, "served_normal", false),
            (Without::Allocation, "away_normal_s", true),
            (Without::Cooperation, "freeze_s_per_hour", true),
            (Without::Cooperation, "origin_mbit_s", true),
            (Without::Prefetch, "freeze_s_per_hour", true),
        ];
        let named = |name| COLUMNS.into_iter().find(|column| column.name == name);
        let signs = expected.into_iter().filter_map(|(without, name, more)| {
            let column = named(name)?;
            let difference = self.difference(without, column.value);
            let holds = if more { is_above(difference) } else { is_below(difference) };
            let claim = format!("{} less all-on: {}", without.name(), column.words);
            Some(Verdict::new(claim, signed(difference), if more { "more" } else { "less" }, holds))
        });
        let best = COLUMNS.into_iter().filter_map(|column| Some(self.best(column, column.more_is_better?)));
        signs.chain(best).collect()
    }

    /// Whether nothing is better than the complete system in one measure.
    fn best(&self, column: Column, more: bool) -> Verdict {
        let better = Without::ALL.into_iter().skip(1).filter_map(|without| {
            let difference = self.difference(without, column.value);
            let is_better = if more { is_above(difference) } else { is_below(difference) };
            is_better.then(|| format!("{} {}", without.name(), signed(difference)))
        });
        let better: Vec<String> = better.collect();
        let claim = format!("all-on is best or equal: {}", column.words);
        let ours = if better.is_empty() { "no other is better".to_owned() } else { better.join(", ") };
        Verdict::new(claim, ours, "best or equal", better.is_empty())
    }
}

fn signed(difference: Estimate) -> String {
    format!("{:+.4} ± {:.4}", difference.mean, difference.half_width)
}

fn is_above(difference: Estimate) -> bool {
    difference.mean - difference.half_width > 0.0
}

fn is_below(difference: Estimate) -> bool {
    difference.mean + difference.half_width < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(normals_stopped: [u64; 3]) -> Ablation {
        let mut study = Ablation::default();
        for (seed, stopped) in (1..).zip(normals_stopped) {
            for without in [Without::Nothing, Without::Allocation] {
                let stopped = if without == Without::Nothing { 1 } else { stopped };
                let measures = Measures { normals: 10, normals_stopped: stopped, ..Measures::default() };
                study.note(&Plan::new(Size::Third, without, 100, seed), measures);
            }
        }
        study
    }

    fn line(study: &Ablation, claim: &str) -> String {
        study.verdicts().iter().map(ToString::to_string).find(|line| line.starts_with(claim)).unwrap()
    }

    #[test]
    fn a_sign_holds_when_its_interval_leaves_zero_out() {
        let claim = "no-anat less all-on: normals who play on";
        let clear = line(&study([3, 4, 3]), claim);
        assert_eq!(clear, format!("{claim}: ours -0.2333 ± 0.1434, published less: yes"));
        assert!(line(&study([1, 4, 0]), claim).ends_with("no"), "three runs that contradict one another");
    }

    #[test]
    fn who_is_better_than_the_complete_system_is_named() {
        let claim = "all-on is best or equal: normals who play on";
        assert!(line(&study([3, 4, 3]), claim).ends_with("no other is better, published best or equal: yes"));
        let beaten = line(&study([0, 0, 0]), claim);
        assert!(beaten.ends_with("ours no-anat +0.1000 ± 0.0000, published best or equal: no"), "{beaten}");
    }

    #[test]
    fn every_part_is_left_out_at_every_load_and_seed() {
        let grid = Grid { size: Size::Whole, loads: Grid::LOADS.to_vec(), seeds: vec![1, 2] };
        assert_eq!(grid.plans().len(), 5 * 8 * 2);
    }
}
