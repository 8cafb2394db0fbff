//! What a plan comes to, for people and as JSON and SVG.

use super::Outcome;
use super::file::PlanFile;
use crate::figure::chart::{self, Curve, Words};
use media::TitleClass;
use serde::Serialize;
use sim::theory::sizing::Site;
use std::fmt;

/// One class of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassResult {
    /// Which.
    pub class: TitleClass,
    /// Offered load in erlangs.
    pub offered_erlangs: f64,
    /// The probability that a request is refused.
    pub blocking: f64,
    /// Viewings that go on, on average.
    pub carried_erlangs: f64,
    /// The threshold to set; none: no threshold.
    pub threshold: Option<u32>,
    /// The target, if there is one.
    pub target: Option<f64>,
}

/// The same under more demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cliff {
    /// How much more, in percent.
    pub more_percent: u32,
    /// Whether the targets are still met.
    pub met: bool,
    /// The probability that a request is refused.
    pub blocking: Vec<(TitleClass, f64)>,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    /// Whether the targets are met.
    pub met: bool,
    /// If not: with how many slots they could be, if with any.
    pub slots_needed: Option<u32>,
    /// If not, and if it is only for the threshold that the file names: which one
    /// would do.
    pub threshold_needed: Option<u32>,
    /// If neither slots nor thresholds are said to help: how many slots were tried.
    pub slots_tried: Option<u32>,
    /// The classes.
    pub classes: Vec<ClassResult>,
    /// Requests that are refused in an hour.
    pub lost_per_hour: f64,
    /// In which units the links were calculated, in Mbit/s.
    pub grain_mbps: f64,
    /// Whether rates had to be rounded up to that, since the site is large.
    pub rounded: bool,
    /// More demand.
    pub cliff: Vec<Cliff>,
    /// Blocking of each class for each threshold of the one that has it.
    #[serde(skip)]
    pub svg: String,
}

pub(super) fn assemble(
    file: &PlanFile,
    site: &Site,
    grain_mbps: f64,
    (limited, outcome): (TitleClass, Outcome),
    sweep: &[Vec<f64>],
    blocking: &[f64],
    cliff: Vec<Cliff>,
) -> PlanReport {
    let mut classes = Vec::new();
    for (((class, demand), blocking), threshold) in file.class.iter().zip(blocking).zip(&site.thresholds) {
        let Some(demand) = demand else { continue };
        let offered_erlangs = demand.arrivals_per_hour * demand.mean_minutes / 60.0;
        classes.push(ClassResult {
            class,
            offered_erlangs,
            blocking: *blocking,
            carried_erlangs: offered_erlangs * (1.0 - blocking),
            threshold: Some(*threshold).filter(|threshold| *threshold < site.slots),
            target: demand.target,
        });
    }
    let lost_per_hour = file.lost_per_hour(blocking);
    let svg = picture(file, limited, sweep);
    let (met, mut slots_needed, mut threshold_needed, mut slots_tried) =
        (outcome == Outcome::Met, None, None, None);
    match outcome {
        Outcome::Met => {}
        Outcome::Threshold(threshold) => threshold_needed = Some(threshold),
        Outcome::Slots(slots) => slots_needed = Some(slots),
        Outcome::NotWith(slots) => slots_tried = Some(slots),
    }
    PlanReport {
        met,
        slots_needed,
        threshold_needed,
        slots_tried,
        classes,
        lost_per_hour,
        grain_mbps,
        rounded: grain_mbps > file.unit() * 1.5,
        cliff,
        svg,
    }
}

fn picture(file: &PlanFile, limited: TitleClass, sweep: &[Vec<f64>]) -> String {
    let step = sweep.len().div_ceil(60).max(1);
    let curve = |(place, (class, _)): (usize, (TitleClass, &Option<super::ClassDemand>))| Curve {
        name: class.to_string(),
        points: (0_u32..)
            .zip(sweep)
            .step_by(step)
            .filter_map(|(threshold, blocking)| Some((f64::from(threshold), *blocking.get(place)?, 0.0)))
            .collect(),
    };
    let asked = file.class.iter().enumerate().filter(|(_, (_, demand))| demand.is_some());
    let across = format!("viewings of {limited} titles at once");
    let words = Words { title: "Who is refused, by threshold", across: &across, up: "share refused" };
    chart::curves(words, 0.0, &asked.map(curve).collect::<Vec<_>>())
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<12}{:>10}{:>12}{:>10}{:>11}{:>10}",
            "class", "offered", "refused", "carried", "threshold", "target"
        )?;
        for row in &self.classes {
            let threshold =
                row.threshold.map_or_else(|| "none".to_owned(), |threshold| threshold.to_string());
            let target = row.target.map_or_else(|| "-".to_owned(), percent);
            writeln!(
                f,
                "{:<12}{:>10.2}{:>12}{:>10.2}{threshold:>11}{target:>10}",
                row.class,
                row.offered_erlangs,
                percent(row.blocking),
                row.carried_erlangs
            )?;
        }
        writeln!(
            f,
            "{:.2} requests an hour are refused (offered and carried in erlangs)",
            self.lost_per_hour
        )?;
        if self.rounded {
            writeln!(
                f,
                "links are counted in units of {:.3} Mbit/s, rates rounded up to them",
                self.grain_mbps
            )?;
        }
        for cliff in &self.cliff {
            let refused: Vec<String> = cliff
                .blocking
                .iter()
                .filter(|(class, _)| self.classes.iter().any(|row| row.class == *class))
                .map(|(class, blocking)| format!("{class} {}", percent(*blocking)))
                .collect();
            let word = if cliff.met { "targets met" } else { "targets missed" };
            writeln!(f, "+{} % demand: {}: {word}", cliff.more_percent, refused.join(", "))?;
        }
        if self.met {
            writeln!(f, "targets met")
        } else if let Some(threshold) = self.threshold_needed {
            writeln!(f, "targets missed with the threshold of the plan; {threshold} would do")
        } else if let Some(slots) = self.slots_needed {
            writeln!(f, "targets missed whatever the threshold; {slots} slots would do")
        } else {
            let tried = self.slots_tried.unwrap_or(0);
            writeln!(f, "targets missed whatever the threshold, and not even {tried} slots alone would help")
        }
    }
}
