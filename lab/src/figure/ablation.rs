//! The integrated ablation: the whole system, and without one part after the other.

use super::chart::{self, Curve, Words};
use super::{FigureError, File, Options, Progress, Report, cells, file, work};
use sim::eval::Ablation;
use sim::eval::ablation::{COLUMNS, Column, Grid};
use sim::whole::{Plan, Size, Without, run};
use std::fmt::Write as _;

/// Runs of each point: fewer say little of an interval.
const SEEDS: u64 = 5;

pub(super) fn draw(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let loads = if options.full { Grid::LOADS.to_vec() } else { vec![80, 120] };
    let grid = Grid { size: Size::Third, loads, seeds: options.seeds(SEEDS) };
    of(&grid.plans(), progress)
}

fn of(plans: &[Plan], progress: Progress<'_>) -> Result<Report, FigureError> {
    let mut study = Ablation::default();
    for (plan, measures) in plans.iter().zip(work::all(plans, progress, run)) {
        study.note(plan, measures?);
    }
    let mut files = vec![file("ablation.csv", csv(&study))];
    files.extend(COLUMNS.iter().map(|column| curves(&study, *column)));
    Ok(Report { claims: study.verdicts().into_iter().map(Into::into).collect(), notes: notes(&study), files })
}

fn csv(study: &Ablation) -> String {
    let mut csv = "load,without,runs".to_owned();
    for Column { name, .. } in COLUMNS {
        let _ = write!(csv, ",{name},{name}_95");
    }
    csv.push('\n');
    for load in study.loads() {
        for without in Without::ALL {
            let runs = study.at(without, load, |_| 0.0).runs;
            let _ = write!(csv, "{load},{},{runs}", without.name());
            for Column { value, .. } in COLUMNS {
                let _ = write!(csv, ",{}", cells(study.at(without, load, value)));
            }
            csv.push('\n');
        }
    }
    csv
}

fn curves(study: &Ablation, column: Column) -> File {
    let curve = |without: Without| Curve {
        name: without.name().to_owned(),
        points: study
            .loads()
            .into_iter()
            .map(|load| {
                let estimate = study.at(without, load, column.value);
                (f64::from(load) / 100.0, estimate.mean, estimate.half_width)
            })
            .collect(),
    };
    let words = Words {
        title: "The whole system, and without one of its parts",
        across: "offered load, of all slots",
        up: column.words,
    };
    file(format!("ablation-{}.svg", column.name), chart::curves(words, 0.0, &Without::ALL.map(curve)))
}

/// What each part changes, measure by measure.
fn notes(study: &Ablation) -> Vec<String> {
    let mut notes = vec![format!(
        "20, 10 and 5 nodes and 4 proxies, a third of everything; {} events in all runs",
        study.happened()
    )];
    for load in study.loads() {
        for without in Without::ALL {
            let each = COLUMNS.map(|Column { name, value, .. }| {
                format!("{name} {:.4}", study.at(without, load, value).mean)
            });
            notes.push(format!("load {load} %, {}: {}", without.name(), each.join(", ")));
        }
    }
    notes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Span;

    #[test]
    fn every_measure_has_its_curves_and_every_sign_its_line() {
        let grid = Grid { size: Size::Third, loads: vec![100], seeds: vec![1, 2] };
        // A minute of a network that has just begun to fill.
        let soon = Span::from_secs(30);
        let plans: Vec<Plan> =
            grid.plans().into_iter().map(|plan| Plan { warm: soon, counted: soon, ..plan }).collect();
        let report = of(&plans, &|_, _| ()).unwrap();
        assert_eq!(report.files.len(), 1 + COLUMNS.len());
        let csv = &report.files[0].text;
        let names: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
        assert_eq!(names, ["all-on", "no-thresholds", "no-anat", "no-cooperation", "no-prefetch"]);
        assert!(csv.starts_with("load,without,runs,blocking_1,blocking_1_95,"), "{csv}");
        assert_eq!(report.claims.len(), 8 + 11, "{report}");
        assert!(report.claims[6].claim.starts_with("no-cooperation less all-on: Mbit/s"));
        assert_eq!(of(&plans, &|_, _| ()).unwrap(), report, "whoever is done first, the figure is the same");
    }
}
