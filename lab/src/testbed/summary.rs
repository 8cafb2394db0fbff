//! Means over the runs of a scenario, with 95 % intervals.

use super::report::{RunReport, Seen, millis, share_frozen};
use crate::bench::table::Table;
use serde::Serialize;
use sim::eval::statistics::{Estimate, float};
use std::fmt;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, with its unit.
    pub what: &'static str,
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student); 0 for one run.
    pub half_width: f64,
    /// The smallest of a run.
    pub least: f64,
    /// The largest of a run.
    pub most: f64,
    /// Runs that have a value.
    pub runs: usize,
}

/// All figures of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary(pub Vec<Figure>);

impl Summary {
    pub(super) fn of(runs: &[RunReport]) -> Self {
        let figure = |what, of: &dyn Fn(&RunReport) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(of).collect();
            let Estimate { mean, half_width, runs } = Estimate::of(&values);
            let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
            let most = values.iter().copied().reduce(f64::max).unwrap_or(0.0);
            Figure { what, mean, half_width, least, most, runs }
        };
        let freezes = |run: &RunReport, class: &str| {
            let any = run.viewers.iter().any(|seen| seen.class == class);
            any.then(|| millis(run.freezes(|seen| seen.class == class)))
        };
        Self(vec![
            figure("viewers lost", &|run| Some(millis(run.lost()))),
            figure("freezes of VIPs", &|run| freezes(run, "vip")),
            figure("freezes of normal viewers", &|run| freezes(run, "normal")),
            figure("frozen, % of what was watched", &|run| Some(share_frozen(&run.viewers) * 100.0)),
            figure("longest freeze, ms", &|run| {
                run.viewers.iter().map(|seen| millis(seen.freezes.longest_ms)).reduce(f64::max)
            }),
            figure("start-up, ms", &|run| mean(run, |seen| seen.startup_ms.map(millis))),
            figure("layers shown, % of those wanted", &|run| Some(run.quality() * 100.0)),
            figure("quality steps of a viewer", &|run| mean(run, |seen| Some(float(seen.transitions.len())))),
            figure("buffer when its node was struck, ms", &|run| {
                let all: Vec<f64> = run
                    .faults
                    .iter()
                    .flat_map(|fault| &fault.struck)
                    .map(|one| millis(one.buffer_ms))
                    .collect();
                average(&all)
            }),
            figure("Base recovered after, ms", &|run| {
                let all = run.viewers.iter().flat_map(|seen| &seen.failovers);
                let base = all.filter(|failover| failover.layer == "base");
                average(&base.map(|failover| millis(failover.recovered_ms)).collect::<Vec<_>>())
            }),
        ])
    }
}

fn mean(run: &RunReport, of: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
    average(&run.viewers.iter().filter_map(of).collect::<Vec<_>>())
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / float(values.len()))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["of each run", "mean", "95 %", "least", "most"]);
        for Figure { what, mean, half_width, least, most, runs } in &self.0 {
            if *runs == 0 {
                continue;
            }
            let interval = if *runs > 1 { format!("± {half_width:.2}") } else { "-".to_owned() };
            table.row(vec![
                (*what).to_owned(),
                format!("{mean:.2}"),
                interval,
                format!("{least:.2}"),
                format!("{most:.2}"),
            ]);
        }
        write!(f, "{table}")
    }
}
