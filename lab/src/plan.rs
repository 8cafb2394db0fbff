//! `lamina plan`: a site on paper. From what is asked for and what there is to
//! the probability that somebody is refused, and the threshold to set.

mod file;
mod report;

pub use file::{ClassDemand, PlanError, PlanFile, Rates, SiteFile};
pub use report::{ClassResult, Cliff, PlanReport};

use media::TitleClass;
use sim::theory::TheoryError;
use sim::theory::sizing::Site;

/// How much further demand is looked at, in percent.
const CLIFF: [u32; 3] = [10, 25, 50];

/// Finds the threshold with which the targets are met at the least total loss, or
/// uses those that the file names.
pub fn plan(file: &PlanFile) -> Result<PlanReport, PlanError> {
    let (site, grain) = file.site()?;
    let class = file.limited();
    let index = place(class);
    let sweep = site.sweep(index).map_err(PlanError::Theory)?.blocking;
    let fixed = site.thresholds.get(index).copied().filter(|fixed| *fixed < site.slots);
    let chosen = match fixed {
        Some(fixed) => fixed,
        None => best(file, &sweep).unwrap_or(0),
    };
    let at = |sweep: &[Vec<f64>]| -> Vec<f64> {
        sweep.get(usize::try_from(chosen).unwrap_or(usize::MAX)).or(sweep.last()).cloned().unwrap_or_default()
    };
    let blocking = at(&sweep);
    let met = file.meets(&blocking);
    let mut cliff = Vec::new();
    for percent in CLIFF {
        let more = site.under(1.0 + f64::from(percent) / 100.0).sweep(index).map_err(PlanError::Theory)?;
        let blocking = at(&more.blocking);
        cliff.push(Cliff { more_percent: percent, met: file.meets(&blocking), blocking: by_name(&blocking) });
    }
    let enough = if met { None } else { enough_slots(file, &site, index)? };
    Ok(report::assemble(file, &site, grain, (class, chosen, met, enough), &sweep, &blocking, cliff))
}

fn place(class: TitleClass) -> usize {
    TitleClass::ALL.into_iter().position(|other| other == class).unwrap_or(0)
}

fn by_name(blocking: &[f64]) -> Vec<(TitleClass, f64)> {
    TitleClass::ALL.into_iter().zip(blocking.iter().copied()).collect()
}

/// The threshold with the least total loss of those with which all targets are
/// met; the highest of equal ones.
fn best(file: &PlanFile, sweep: &[Vec<f64>]) -> Option<u32> {
    let mut best: Option<(u32, f64)> = None;
    for (threshold, blocking) in (0..).zip(sweep) {
        let lost = file.lost_per_hour(blocking);
        if file.meets(blocking) && best.is_none_or(|(_, least)| lost <= least) {
            best = Some((threshold, lost));
        }
    }
    best.map(|(threshold, _)| threshold)
}

/// With how many slots the targets could be met, links being as they are; none
/// if not even with ten times as many.
fn enough_slots(file: &PlanFile, site: &Site, class: usize) -> Result<Option<u32>, PlanError> {
    let could = |slots: u32| -> Result<bool, PlanError> {
        match (Site { slots, ..site.clone() }).sweep(class) {
            Ok(sweep) => Ok(best(file, &sweep.blocking).is_some()),
            Err(TheoryError::States) => Ok(false),
            Err(error) => Err(PlanError::Theory(error)),
        }
    };
    let (mut low, mut high) = (site.slots, site.slots.saturating_mul(2).max(1));
    while !could(high)? {
        if high >= site.slots.saturating_mul(8) {
            return Ok(None);
        }
        (low, high) = (high, high.saturating_mul(2));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if could(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

#[cfg(test)]
mod tests;
