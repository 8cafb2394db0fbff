//! `lamina plan`: a site on paper. From what is asked for and what there is to
//! the probability that somebody is refused, and the threshold to set.

mod file;
mod report;

pub use file::{ClassDemand, MAX_SLOTS, PlanError, PlanFile, Rates, SiteFile};
pub use report::{ClassResult, Cliff, PlanReport};

use file::ENOUGH_STEPS;
use media::TitleClass;
use sim::theory::TheoryError;
use sim::theory::sizing::Site;

/// How much further demand is looked at, in percent.
const CLIFF: [u32; 3] = [10, 25, 50];

/// Finds the thresholds with which the targets are met at the least total loss, or
/// uses those that the file names.
///
/// Of several classes that have neither target nor threshold one alone stands back
/// if that is enough, the one with which least is lost; if not, nothing of the last
/// one is let in, and the one before it stands back as well.
pub fn plan(file: &PlanFile) -> Result<PlanReport, PlanError> {
    let (mut site, grain) = file.site()?;
    let (class, sweep, free) = stand_back(file, &mut site)?;
    let index = place(class);
    let fixed = file.class[class].as_ref().and_then(|demand| demand.threshold);
    let chosen = fixed.or(free).unwrap_or(0);
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
    let outcome = match (met, fixed, free) {
        (true, ..) => Outcome::Met,
        (false, Some(_), Some(threshold)) => Outcome::Threshold(threshold),
        (false, ..) => enough_slots(file, &site, index)?,
    };
    if let Some(threshold) = site.thresholds.get_mut(index) {
        *threshold = chosen;
    }
    Ok(report::assemble(file, &site, grain, (class, outcome), &sweep, &blocking, cliff))
}

/// Who stands back: the class, the blocking of all classes for each of its thresholds,
/// and the best of these, if there is one.
type StandsBack = (TitleClass, Vec<Vec<f64>>, Option<u32>);

/// Finds who stands back. What others before it had to give up is set.
fn stand_back(file: &PlanFile, site: &mut Site) -> Result<StandsBack, PlanError> {
    let candidates = file.limited();
    let mut all = Vec::new();
    for class in &candidates {
        let sweep = site.sweep(place(*class)).map_err(PlanError::Theory)?.blocking;
        all.push((*class, best(file, &sweep), sweep));
    }
    let least = |(_, best, _): &&(TitleClass, Option<(u32, f64)>, _)| best.map_or(f64::INFINITY, |b| b.1);
    let alone = all.iter().min_by(|left, right| least(left).total_cmp(&least(right)));
    if let Some((class, Some((threshold, _)), sweep)) = alone {
        return Ok((*class, sweep.clone(), Some(*threshold)));
    }
    for pair in candidates.windows(2) {
        let [before, class] = pair else { continue };
        if let Some(threshold) = site.thresholds.get_mut(place(*before)) {
            *threshold = 0;
        }
        let sweep = site.sweep(place(*class)).map_err(PlanError::Theory)?.blocking;
        if let Some((threshold, _)) = best(file, &sweep) {
            return Ok((*class, sweep, Some(threshold)));
        }
        all = vec![(*class, None, sweep)];
    }
    let (class, _, sweep) = all.into_iter().next().ok_or(PlanError::Theory(TheoryError::Empty))?;
    Ok((class, sweep, None))
}

/// What a plan comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Met,
    /// The threshold that the file names is wrong; this one would do.
    Threshold(u32),
    /// Whatever the threshold; so many slots would do.
    Slots(u32),
    /// Not even so many slots would do.
    NotWith(u32),
}

fn place(class: TitleClass) -> usize {
    TitleClass::ALL.into_iter().position(|other| other == class).unwrap_or(0)
}

fn by_name(blocking: &[f64]) -> Vec<(TitleClass, f64)> {
    TitleClass::ALL.into_iter().zip(blocking.iter().copied()).collect()
}

/// The threshold with the least total loss of those with which all targets are
/// met, and that loss; the highest of those whose losses are the same to nine digits.
fn best(file: &PlanFile, sweep: &[Vec<f64>]) -> Option<(u32, f64)> {
    let mut best: Option<(u32, f64)> = None;
    for (threshold, blocking) in (0..).zip(sweep) {
        let lost = file.lost_per_hour(blocking);
        if file.meets(blocking) && best.is_none_or(|(_, least)| lost <= least * (1.0 + 1e-9)) {
            best = Some((threshold, lost));
        }
    }
    best
}

/// With how many slots the targets could be met, links being as they are: looked
/// for among twice as many, four times as many and so on, as far as plans go and
/// as can be calculated soon. Most can be met while nobody of the class is let in
/// that stands back, unless it has a target itself.
fn enough_slots(file: &PlanFile, site: &Site, class: usize) -> Result<Outcome, PlanError> {
    let mut others = site.clone();
    let own = file.demands().any(|(other, demand)| place(other) == class && demand.target.is_some());
    others.streams.retain(|stream| own || stream.class != class);
    let could = |slots: u32| -> Result<Option<bool>, PlanError> {
        let larger = Site { slots, ..others.clone() };
        if larger.steps(class) > ENOUGH_STEPS {
            return Ok(None);
        }
        let sweep = larger.sweep(class).map_err(PlanError::Theory)?;
        Ok(Some(best(file, &sweep.blocking).is_some()))
    };
    let (mut low, mut high) = (site.slots, site.slots);
    loop {
        high = high.saturating_mul(2).clamp(1, MAX_SLOTS);
        match could(high)? {
            Some(true) => break,
            Some(false) if high < MAX_SLOTS => low = high,
            Some(false) => return Ok(Outcome::NotWith(high)),
            None => return Ok(Outcome::NotWith(low)),
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if could(middle)? == Some(true) { high = middle } else { low = middle }
    }
    Ok(Outcome::Slots(high))
}

#[cfg(test)]
mod tests;
