//! How long data stay away, and how soon a death is noticed.

use super::chart::{self, Curve, Words};
use super::{FigureError, Options, Progress, Report, cells, file, work};
use media::Span;
use sim::eval::detection::{self, Point};
use sim::eval::recovery::{self, Recovery};
use std::fmt::Write as _;

pub(super) fn recovery(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let seeds = options.seeds(if options.full { 5 } else { 2 });
    let users = match (options.users, options.full) {
        (Some(users), _) => vec![users],
        (None, true) => vec![400, 600, 800, 1000, 1200, 1400, 1600],
        (None, false) => vec![400, 800, 1200],
    };
    let each = work::all(&users, progress, |users| recovery::compare(*users, 200, &seeds));
    let pairs = each.into_iter().collect::<Result<Vec<[Recovery; 2]>, _>>()?;
    let mut csv = "users,way,mean_s,mean_s_95,longest_s,continuity,continuity_95\n".to_owned();
    let mut times = "users,way,seconds\n".to_owned();
    for (users, pair) in users.iter().zip(&pairs) {
        for way in pair {
            let name = way.variant.name();
            let (mean, share) = (cells(way.mean), cells(way.continuity));
            let _ = writeln!(csv, "{users},{name},{mean},{:.3},{share}", way.longest);
            for time in &way.times {
                let _ = writeln!(times, "{users},{name},{time:.3}");
            }
        }
    }
    let curve = |name: &str, pick: fn(&[Recovery; 2]) -> &Recovery| Curve {
        name: name.to_owned(),
        points: users
            .iter()
            .zip(&pairs)
            .map(|(users, pair)| (f64::from(*users), pick(pair).mean.mean, pick(pair).mean.half_width))
            .collect(),
    };
    let curves =
        [curve("with a reservation", |[one, _]| one), curve("search after the failure", |[_, other]| other)];
    let words = Words { title: "Time without data after a failure", across: "users", up: "seconds, mean" };
    let mut claims = Vec::new();
    for (users, pair) in users.iter().zip(&pairs) {
        for mut verdict in recovery::verdicts(pair) {
            verdict.claim = format!("{users} users: {}", verdict.claim);
            claims.push(verdict.into());
        }
    }
    let files = vec![
        file("recovery.csv", csv),
        file("recovery-times.csv", times),
        file("recovery.svg", chart::curves(words, 0.0, &curves)),
    ];
    let notes =
        vec!["both ways begin with the same Td of 3 s, which a reservation cannot shorten".to_owned()];
    Ok(Report { claims, notes, files })
}

pub(super) fn detection(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let seeds = options.seeds(if options.full { 5 } else { 2 });
    let users = options.users.unwrap_or(if options.full { 600 } else { 60 });
    let tds: Vec<u64> = (1..=6).collect();
    let each = work::all(&tds, progress, |td| detection::measure(Span::from_secs(*td), users, &seeds));
    let points = each.into_iter().collect::<Result<Vec<Point>, _>>()?;
    let mut csv =
        "td_s,ts_s,detected_s,detected_s_95,soonest_s,latest_s,recovered_s,recovered_s_95,signals_per_s\n"
            .to_owned();
    for point in &points {
        let (td, ts) = (point.dead_after.as_secs_f64(), point.signal_every.as_secs_f64());
        let (soonest, latest) = point.range;
        let (detected, recovered) = (cells(point.detected), cells(point.recovered));
        let _ = writeln!(
            csv,
            "{td:.3},{ts:.3},{detected},{soonest:.3},{latest:.3},{recovered},{:.1}",
            point.signals
        );
    }
    let curve = |name: &str, value: fn(&Point) -> (f64, f64)| Curve {
        name: name.to_owned(),
        points: points
            .iter()
            .map(|point| {
                let (mean, half) = value(point);
                (point.dead_after.as_secs_f64(), mean, half)
            })
            .collect(),
    };
    let curves = [
        curve("noticed", |point| (point.detected.mean, point.detected.half_width)),
        curve("data again", |point| (point.recovered.mean, point.recovered.half_width)),
        curve("signals/s, in hundreds", |point| (point.signals / 100.0, 0.0)),
    ];
    let words = Words { title: "What a smaller Td brings and costs", across: "Td, seconds", up: "seconds" };
    let files = vec![file("detection.csv", csv), file("detection.svg", chart::curves(words, 0.0, &curves))];
    let claims = detection::verdicts(&points).into_iter().map(Into::into).collect();
    Ok(Report { claims, notes: Vec::new(), files })
}
