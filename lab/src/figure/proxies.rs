//! The evaluation of Wakamiya et al.: freezes, quality, and the size of caches of
//! cooperating proxies.

use super::chart::{self, Curve, Words};
use super::{File, Options, Progress, Report, cells, file, work};
use sim::eval::cooperation::{SIZES, Sample, Study};
use sim::eval::{Piece, Verdict};
use sim::proxies::{Ladder, Scheme};
use std::fmt::Write as _;

/// Runs of each point: the published claims are judged over no fewer.
const SEEDS: u64 = 10;

/// Mean wait of a block, for each client.
pub(super) fn freeze(options: &Options, progress: Progress<'_>) -> Report {
    let study = schemes(options, progress);
    let words = |title| Words { title, across: "client, in the order of arrival", up: "seconds, mean" };
    let report = figure(&study, "freeze", words, 0.0, |sample| &sample.freeze);
    finish(report, &study, Study::freeze_verdicts)
}

/// Received over requested quality, for each client.
pub(super) fn quality(options: &Options, progress: Progress<'_>) -> Report {
    let study = schemes(options, progress);
    let words =
        |title| Words { title, across: "client, in the order of arrival", up: "received / requested" };
    let report = figure(&study, "quality", words, 0.6, |sample| &sample.ratio);
    finish(report, &study, Study::quality_verdicts)
}

fn schemes(options: &Options, progress: Progress<'_>) -> Study {
    study(&Piece::schemes(&Ladder::ALL, &options.seeds(SEEDS)), progress)
}

fn study(pieces: &[Piece], progress: Progress<'_>) -> Study {
    let mut study = Study::default();
    for samples in work::all(pieces, progress, Piece::run) {
        study.add(samples);
    }
    study
}

fn finish(mut report: Report, study: &Study, verdicts: impl Fn(&Study, Ladder) -> Vec<Verdict>) -> Report {
    report.claims =
        Ladder::ALL.into_iter().flat_map(|ladder| verdicts(study, ladder)).map(Into::into).collect();
    report.notes = Ladder::ALL.map(|ladder| spent(study, ladder)).into();
    report.notes.push(
        "10-whole is the paper; beside it ten levels, three layers, and three layers in halves of which \
         only what is missing moves. Ratios are in the paper's levels"
            .to_owned(),
    );
    report
}

fn spent(study: &Study, ladder: Ladder) -> String {
    let origin = Scheme::ALL.map(|scheme| study.at((ladder, scheme, 100), |sample| sample.origin));
    format!(
        "{}: Gbit from the origin to each proxy: {}",
        ladder.name(),
        Scheme::ALL
            .iter()
            .zip(origin)
            .map(|(scheme, gbit)| format!("{} {gbit}", scheme.name()))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

type Values = fn(&Sample) -> &[f64];
type Value = fn(&Sample) -> f64;

/// One table of everything, the paper's picture, and the proposal on each ladder.
fn figure<'a>(
    study: &Study,
    name: &str,
    words: impl Fn(&'a str) -> Words<'a>,
    low: f64,
    values: impl Fn(&Sample) -> &Vec<f64> + Copy,
) -> Report {
    let mut csv = format!("ladder,scheme,client,{name},{name}_95,runs\n");
    let curve = |title: &str, place| Curve {
        name: title.to_owned(),
        points: clients(study, place)
            .map(|client| {
                let estimate = study.at(place, |sample| values(sample).get(client).copied().unwrap_or(0.0));
                (number(client) + 1.0, estimate.mean, estimate.half_width)
            })
            .collect(),
    };
    for (place, samples) in study.points() {
        let (ladder, scheme, _) = place;
        for client in clients(study, place) {
            let estimate = study.at(place, |sample| values(sample).get(client).copied().unwrap_or(0.0));
            let (ladder, scheme) = (ladder.name(), scheme.name());
            let _ = writeln!(csv, "{ladder},{scheme},{},{},{}", client + 1, cells(estimate), samples.len());
        }
    }
    let schemes = Scheme::ALL.map(|scheme| curve(scheme.name(), (Ladder::TenWhole, scheme, 100)));
    let proposal = Scheme::CooperativeAhead;
    let ladders = Ladder::ALL.map(|ladder| curve(ladder.name(), (ladder, proposal, 100)));
    let files = vec![
        file(format!("{name}.csv"), csv),
        file(
            format!("{name}.svg"),
            chart::curves(words("Four schemes, ten levels, whole blocks"), low, &schemes),
        ),
        file(
            format!("{name}-ladders.svg"),
            chart::curves(words("The proposal on four ladders"), low, &ladders),
        ),
    ];
    Report { claims: Vec::new(), notes: Vec::new(), files }
}

fn clients(study: &Study, place: sim::eval::cooperation::Place) -> std::ops::Range<usize> {
    let samples = study.points().find(|(other, _)| *other == place).map(|(_, samples)| samples);
    0..samples.and_then(<[Sample]>::first).map_or(0, |sample| sample.freeze.len())
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(0.0, f64::from)
}

/// The proposal with limited caches.
pub(super) fn buffer(options: &Options, progress: Progress<'_>) -> Report {
    let pieces: Vec<Piece> = options.seeds(SEEDS).into_iter().map(Piece::Sizes).collect();
    let study = study(&pieces, progress);
    let of = |size| (Ladder::TenWhole, Scheme::CooperativeAhead, size);
    let late: [(&str, Value); 4] = [
        ("freeze_4_10_s", Sample::late_freeze),
        ("freeze_1_3_s", Sample::early_freeze),
        ("ratio_4_10", Sample::late_ratio),
        ("smooth_4_10", |sample| sample.smooth),
    ];
    let mut csv = "percent_of_maximum".to_owned();
    for (name, _) in late {
        let _ = write!(csv, ",{name},{name}_95");
    }
    csv.push('\n');
    for size in SIZES {
        let _ = write!(csv, "{size}");
        for (_, value) in late {
            let _ = write!(csv, ",{}", cells(study.at(of(size), value)));
        }
        csv.push('\n');
    }
    let each = |values: Values, size: u32| Curve {
        name: if size == 100 { "unlimited".to_owned() } else { format!("{size} %") },
        points: clients(&study, of(size))
            .map(|client| {
                let estimate =
                    study.at(of(size), |sample| values(sample).get(client).copied().unwrap_or(0.0));
                (number(client) + 1.0, estimate.mean, estimate.half_width)
            })
            .collect(),
    };
    let words = Words {
        title: "The proposal with caches of several sizes",
        across: "client, in the order of arrival",
        up: "freeze, seconds, mean",
    };
    let curves = SIZES.map(|size| each(|sample| &sample.freeze, size));
    let files: Vec<File> =
        vec![file("buffer.csv", csv), file("buffer.svg", chart::curves(words, 0.0, &curves))];
    let notes = vec![
        "sizes are hundredths of the most that an unlimited cache of the same seed holds; the paper's are \
         10, 20, 30, 35 and 40 of 49 Gbit"
            .to_owned(),
    ];
    Report { claims: study.size_verdicts().into_iter().map(Into::into).collect(), notes, files }
}
