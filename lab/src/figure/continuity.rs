//! Evaluation II of ADVODS: who plays on when a Base node fails.

use super::chart::{self, Curve, Words};
use super::{FigureError, File, Options, Progress, Report, cells, file, work};
use sim::eval::surface::Place;
use sim::eval::{Grid, Sample, Surface, Variant};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(super) fn draw(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let mut grid = if options.full { Grid::full() } else { Grid::coarse() };
    if options.seeds.is_some() {
        grid.seeds = options.seeds(1);
    }
    if let Some(users) = options.users {
        grid.users = vec![users];
    }
    let extra = [
        (options.most_headroom, Variant::MostHeadroom),
        (options.strict, Variant::Strict),
        (options.reactive, Variant::Reactive),
    ];
    let mut variants = vec![Variant::With, Variant::Without];
    variants.extend(extra.into_iter().filter(|(on, _)| *on).map(|(_, variant)| variant));
    let jobs = grid.jobs(&variants);
    let samples = work::all(&jobs, progress, sim::eval::Job::run);
    let mut surface = Surface::default();
    for (job, sample) in jobs.iter().zip(samples) {
        surface.add(job, sample?);
    }
    let mut files = vec![file("continuity.csv", csv(&surface)), file("continuity.svg", curves(&surface))];
    files.extend(variants.iter().map(|variant| map(&surface, *variant)));
    let mut notes = extra_points(&surface, &variants);
    notes.extend(spent(&surface));
    Ok(Report { claims: surface.verdicts().into_iter().map(Into::into).collect(), notes, files })
}

type Column = fn(&Sample) -> f64;

const COLUMNS: [(&str, Column); 8] = [
    ("normal", |sample| sample.normal),
    ("vip", |sample| sample.vip),
    ("one_failure", |sample| sample.one_failure),
    ("literal", |sample| sample.literal),
    ("longest_s", |sample| sample.longest),
    ("vip_protected", |sample| sample.vip_protected),
    ("unserved", |sample| sample.unserved),
    ("messages_per_user", |sample| sample.messages_per_user),
];

fn csv(surface: &Surface) -> String {
    let mut csv = "variant,users,vip_permille,runs".to_owned();
    for (name, _) in COLUMNS {
        let _ = write!(csv, ",{name},{name}_95");
    }
    csv.push('\n');
    for (place, samples) in surface.points() {
        let (variant, users, vips) = place;
        let _ = write!(csv, "{},{users},{vips},{}", variant.name(), samples.len());
        for (_, column) in COLUMNS {
            let _ = write!(csv, ",{}", cells(surface.at(place, column).unwrap_or_default()));
        }
        csv.push('\n');
    }
    csv
}

fn curves(surface: &Surface) -> String {
    let lines: BTreeSet<(Variant, u32)> =
        surface.points().map(|((variant, _, vips), _)| (variant, vips)).collect();
    let wanted = lines.into_iter().filter(|(_, vips)| [200, 600].contains(vips));
    let curve = |(variant, vips): (Variant, u32)| Curve {
        name: format!("{}, {} % VIPs", variant.name(), vips / 10),
        points: surface
            .points()
            .filter(|((of, _, at), _)| *of == variant && *at == vips)
            .filter_map(|(place, _)| {
                let estimate = surface.at(place, |sample| sample.normal)?;
                Some((f64::from(place.1), estimate.mean, estimate.half_width))
            })
            .collect(),
    };
    let words = Words {
        title: "Continuity of normal users whose node failed",
        across: "users",
        up: "share who played on",
    };
    chart::curves(words, 0.0, &wanted.map(curve).collect::<Vec<_>>())
}

fn map(surface: &Surface, variant: Variant) -> File {
    let places: Vec<Place> =
        surface.points().map(|(place, _)| place).filter(|(of, ..)| *of == variant).collect();
    let users: BTreeSet<u32> = places.iter().map(|place| place.1).collect();
    let vips: BTreeSet<u32> = places.iter().map(|place| place.2).collect();
    let value = |users: u32, vips: u32| {
        surface.at((variant, users, vips), |sample| sample.normal).map(|estimate| estimate.mean)
    };
    let values: Vec<Vec<Option<f64>>> =
        vips.iter().map(|vips| users.iter().map(|users| value(*users, *vips)).collect()).collect();
    let across: Vec<String> = users.iter().map(u32::to_string).collect();
    let up: Vec<String> = vips.iter().map(|vips| format!("{} %", vips / 10)).collect();
    let title = format!("Continuity of normal users, {}", variant.name());
    let words = Words { title: &title, across: "users", up: "share of VIPs" };
    file(format!("continuity-{}.svg", variant.name()), chart::map(words, &across, &up, &values))
}

/// The points that the paper names, for what was asked for beside the claims.
fn extra_points(surface: &Surface, variants: &[Variant]) -> Vec<String> {
    let mut notes = Vec::new();
    for variant in variants.iter().skip(2) {
        for (users, vips) in [(1300, 600), (1400, 200), (1600, 200)] {
            if let Some(value) = surface.at((*variant, users, vips), |sample| sample.normal) {
                notes.push(format!("{}, {users} users, {} % VIPs: {value}", variant.name(), vips / 10));
            }
        }
    }
    notes
}

fn spent(surface: &Surface) -> Vec<String> {
    let with = surface.points().filter(|((variant, ..), _)| *variant == Variant::With);
    let fullest = with.max_by_key(|((_, users, vips), _)| (*users, *vips == 200));
    let Some((place, samples)) = fullest else { return Vec::new() };
    let events: u64 = samples.iter().map(|sample| sample.happened).sum();
    let runs = u64::try_from(samples.len().max(1)).unwrap_or(1);
    let each = surface.at(place, |sample| sample.messages_per_user).unwrap_or_default();
    vec![format!(
        "{} users, {} % VIPs: {:.0} messages for each user, {:.0} in the run until it is stable, {} events with its failures",
        place.1,
        place.2 / 10,
        each.mean,
        each.mean * f64::from(place.1),
        events / runs,
    )]
}
