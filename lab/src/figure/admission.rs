//! Admission by class: thresholds against blocking, exact and simulated.

use super::chart::{self, Curve, Words};
use super::{Claim, FigureError, File, Options, Progress, Report, cells, file, work};
use sim::eval::admission::{self, Runs, SERVERS};
use sim::eval::{Estimate, Verdict};
use sim::loss::{Fate, Law, LossPlan, Miss};
use sim::theory::misses::{self, Split};
use sim::theory::sizing::{Site, Stream};
use std::fmt::Write as _;

const EQUAL: [f64; 3] = [30.0, 100.0 / 3.0, 40.0];
const SWEPT: [Option<u32>; 8] = [None, Some(40), Some(30), Some(25), Some(20), Some(15), Some(10), Some(0)];
const HOURLY: [f64; 5] = [90.0, 120.0, 150.0, 180.0, 240.0];
const DEMAND: [Option<u32>; 3] = [None, Some(20), Some(10)];
const LINKS: [(u32, Option<u32>); 6] =
    [(6, None), (6, Some(8)), (12, None), (12, Some(8)), (40, None), (40, Some(8))];
/// Offered viewings of E6, and whether there is a threshold, and a lower offer.
const OFFERED: [f64; 3] = [40.0, 50.0, 60.0];
const WAYS: [(Option<u64>, bool); 4] = [(None, false), (Some(8), false), (None, true), (Some(8), true)];

fn blocking(loads: [f64; 3], threshold: Option<u32>) -> Result<(Vec<f64>, Vec<f64>), FigureError> {
    let system = admission::system(SERVERS, loads, threshold)?;
    let blocked = system.blocking();
    let carried = system.carried(&blocked);
    Ok((blocked, carried))
}

fn word(threshold: Option<u32>) -> String {
    threshold.map_or_else(|| "none".to_owned(), |threshold| threshold.to_string())
}

fn first(values: &[f64]) -> f64 {
    values.first().copied().unwrap_or(f64::NAN)
}

fn last(values: &[f64]) -> f64 {
    values.last().copied().unwrap_or(f64::NAN)
}

pub(super) fn draw(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let (mut claims, mut files) = (Vec::new(), Vec::new());
    thresholds(&mut claims, &mut files)?;
    demand(&mut claims, &mut files)?;
    choice(&mut claims, &mut files)?;
    extremes(&mut claims, &mut files)?;
    simulated(options, progress, &mut claims, &mut files)?;
    let notes =
        vec!["the paper's own tables are lost: \"published\" are exact values or what it claims".to_owned()];
    Ok(Report { claims, notes, files })
}

/// E1.
fn thresholds(claims: &mut Vec<Claim>, files: &mut Vec<File>) -> Result<(), FigureError> {
    let mut csv = "erlangs_each,threshold,b1,b2,b3,carried\n".to_owned();
    let mut curves = Vec::new();
    for rho in EQUAL {
        for threshold in SWEPT {
            let (blocked, carried) = blocking([rho; 3], threshold)?;
            let cells: Vec<String> = blocked.iter().map(|blocked| format!("{blocked:.5}")).collect();
            let carried: f64 = carried.iter().sum();
            let _ = writeln!(csv, "{rho:.2},{},{},{carried:.3}", word(threshold), cells.join(","));
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut monotone = true;
        for threshold in 0..=40 {
            let (blocked, _) = blocking([rho; 3], Some(threshold))?;
            let before = ours.last().map_or(0.0, |point: &(f64, f64, f64)| point.1);
            monotone &= first(&blocked) >= before;
            ours.push((f64::from(threshold), first(&blocked), 0.0));
            theirs.push((f64::from(threshold), last(&blocked), 0.0));
        }
        curves.push(Curve { name: format!("1 and 2, {rho:.0} erl"), points: ours });
        curves.push(Curve { name: format!("3, {rho:.0} erl"), points: theirs });
        let claim = format!("{rho:.2} erlangs each: a lower threshold never hurts classes 1 and 2");
        claims.push(Verdict::new(claim, monotone, "true", monotone).into());
    }
    let words =
        Words { title: "Blocking against the threshold of class 3", across: "threshold", up: "refused" };
    files.push(file("admission-thresholds.csv", csv));
    files.push(file("admission-thresholds.svg", chart::curves(words, 0.0, &curves)));
    Ok(())
}

/// E2.
fn demand(claims: &mut Vec<Claim>, files: &mut Vec<File>) -> Result<(), FigureError> {
    let mut csv = "requests_per_hour,threshold,b1,b2,b3,carried1,carried2,carried3\n".to_owned();
    let mut curves = Vec::new();
    let mut helps = true;
    for threshold in DEMAND {
        let mut points = Vec::new();
        for requests in HOURLY {
            let (blocked, carried) = blocking(admission::loads(requests), threshold)?;
            let (naive, _) = blocking(admission::loads(requests), None)?;
            helps &= first(&blocked) <= first(&naive);
            let cells: Vec<String> = blocked.iter().map(|value| format!("{value:.5}")).collect();
            let carried: Vec<String> = carried.iter().map(|value| format!("{value:.3}")).collect();
            let _ = writeln!(csv, "{requests},{},{},{}", word(threshold), cells.join(","), carried.join(","));
            points.push((requests, first(&blocked), 0.0));
        }
        curves.push(Curve { name: format!("threshold {}", word(threshold)), points });
    }
    claims.push(Verdict::new("thresholds help classes 1 and 2 at all demands", helps, "true", helps).into());
    let words = Words {
        title: "Blocking of classes 1 and 2 against demand",
        across: "requests an hour",
        up: "refused",
    };
    files.push(file("admission-demand.csv", csv));
    files.push(file("admission-demand.svg", chart::curves(words, 0.0, &curves)));
    Ok(())
}

/// E5.
fn choice(claims: &mut Vec<Claim>, files: &mut Vec<File>) -> Result<(), FigureError> {
    let mut csv = "threshold,b1,b3,all\n".to_owned();
    let mut best: Option<(u32, f64)> = None;
    for threshold in 0..=SERVERS {
        let (blocked, _) = blocking([100.0 / 3.0; 3], Some(threshold))?;
        let all = blocked.iter().sum::<f64>() / 3.0;
        let _ = writeln!(csv, "{threshold},{:.5},{:.5},{all:.5}", first(&blocked), last(&blocked));
        if first(&blocked) <= 0.01 && best.is_none_or(|(_, least)| all < least) {
            best = Some((threshold, all));
        }
    }
    let best = best.map_or(0, |(threshold, _)| threshold);
    let claim = "least loss with at most 1 % in classes 1 and 2: threshold";
    claims.push(Verdict::new(claim, best, "19", best == 19).into());
    files.push(file("admission-choice.csv", csv));
    Ok(())
}

/// No load and far too much of it, thresholds of nothing and of all: by convolution,
/// and by the recursion that plans use.
fn extremes(claims: &mut Vec<Claim>, files: &mut Vec<File>) -> Result<(), FigureError> {
    let mut csv = "servers,erlangs12,erlangs3,threshold,b1,b3\n".to_owned();
    let (mut worst, mut within) = (0.0_f64, true);
    for (servers, other, rho) in
        [(100, 30.0, 0.0), (100, 30.0, 1e6), (100, 1e6, 30.0), (1000, 300.0, 1e6), (1000, 1e6, 1e6)]
    {
        let stream = |class, erlangs| Stream { class, erlangs, to_viewers: 0, to_origin: 0 };
        let site = Site {
            slots: servers,
            to_viewers: None,
            to_origin: None,
            classes: 3,
            streams: vec![stream(0, other), stream(1, other), stream(2, rho)],
            thresholds: vec![u32::MAX; 3],
        };
        let swept = site.sweep(2)?.blocking;
        for threshold in [None, Some(0), Some(1), Some(servers)] {
            let blocked = admission::system(servers, [other, other, rho], threshold)?.blocking();
            let (b1, b3) = (first(&blocked), last(&blocked));
            let _ = writeln!(csv, "{servers},{other},{rho},{},{b1:.10},{b3:.10}", word(threshold));
            let place = usize::try_from(threshold.unwrap_or(servers)).unwrap_or(usize::MAX);
            let again = swept.get(place).map_or(f64::NAN, |blocked| first(blocked));
            let off = (b1 - again).abs();
            worst = worst.max(off);
            within &= off <= 1e-12 && (0.0..=1.0).contains(&b1) && (0.0..=1.0).contains(&b3);
        }
    }
    let claim = "0 and 1e6 erlangs, thresholds 0, 1 and C: two methods differ by";
    claims.push(Verdict::new(claim, format!("{worst:.0e}"), "at most 1e-12", within).into());
    files.push(file("admission-extremes.csv", csv));
    Ok(())
}

/// A stream of a simulation whose exact value is known: which one, and the value.
type Exact = Vec<(String, usize, fn(&Fate) -> f64, f64)>;

/// E3, E4, E6 and E7: everything that runs, on all cores.
fn simulated(
    options: &Options,
    progress: Progress<'_>,
    claims: &mut Vec<Claim>,
    files: &mut Vec<File>,
) -> Result<(), FigureError> {
    let arrivals = if options.full { 400_000 } else { 100_000 };
    let seeds = options.seeds(10);
    let mut plans = Vec::new();
    let mut exact: Vec<Exact> = Vec::new();
    let blocked = admission::system(SERVERS, [40.0; 3], Some(25))?.blocking();
    for law in Law::ALL {
        plans.push(admission::service_laws(law, arrivals));
        let of = |(class, value): (usize, &f64)| -> (String, usize, fn(&Fate) -> f64, f64) {
            (format!("{law:?}, class {}", class + 1), class, Fate::blocking, *value)
        };
        exact.push(blocked.iter().enumerate().map(of).collect());
    }
    for (channels, threshold) in LINKS {
        plans.push(admission::end_to_end(channels.into(), threshold.map(u64::from), Miss::Through, arrivals));
        let split = |erlangs, hits, threshold| Split { erlangs, hits, threshold };
        let classes = [split(14.0, 0.9, None), split(10.0, 0.9, None), split(10.0, 0.2, threshold)];
        let mut streams: Exact = Vec::new();
        for (class, blocked) in misses::blocking(40, channels, &classes)?.into_iter().enumerate() {
            let name =
                |what: &str| format!("{what} {}, {channels} channels, T {}", class + 1, word(threshold));
            streams.push((name("hit"), class, Fate::hit_blocking, blocked.hit));
            streams.push((name("miss"), class, Fate::miss_blocking, blocked.miss));
            streams.push((name("class"), class, Fate::blocking, blocked.class));
        }
        exact.push(streams);
    }
    let compared = plans.len();
    for (channels, threshold) in LINKS {
        let copied = Miss::Copied(0.5);
        plans.push(admission::end_to_end(channels.into(), threshold.map(u64::from), copied, arrivals));
    }
    for offered in OFFERED {
        plans.extend(WAYS.map(|(threshold, less)| admission::downgrade(offered, threshold, less, arrivals)));
    }
    plans.extend([0, 1, 2].map(|redirects| admission::redirection(redirects, arrivals)));
    let runs = all_runs(&plans, &seeds, progress);
    let (links, rest) =
        runs.get(compared..).unwrap_or(&[]).split_at_checked(LINKS.len()).unwrap_or((&[], &[]));
    let (lower, others) = rest.split_at_checked(OFFERED.len() * WAYS.len()).unwrap_or((&[], &[]));
    comparison(&runs, &exact, claims, files);
    files.push(file("admission-copied-first.csv", copied_first(links)));
    downgrades(lower, claims, files);
    redirections(others, claims, files);
    Ok(())
}

fn all_runs(plans: &[LossPlan], seeds: &[u64], progress: Progress<'_>) -> Vec<Runs> {
    let pieces: Vec<(&LossPlan, u64)> =
        plans.iter().flat_map(|plan| seeds.iter().map(move |seed| (plan, *seed))).collect();
    let done = work::all(&pieces, progress, |(plan, seed)| Runs::of(plan, [*seed]));
    done.chunks(seeds.len().max(1)).map(|runs| Runs::join(runs.iter().cloned())).collect()
}

/// E3 and E4: simulated beside exact.
fn comparison(runs: &[Runs], exact: &[Exact], claims: &mut Vec<Claim>, files: &mut Vec<File>) {
    let mut csv = "what,simulated,simulated_95,exact,inside\n".to_owned();
    let (mut inside, mut all) = (0_u32, 0_u32);
    for (runs, streams) in runs.iter().zip(exact) {
        for (what, stream, value, exact) in streams {
            let Estimate { mean, half_width, .. } = runs.of_stream(*stream, value);
            let within = (mean - exact).abs() <= half_width;
            inside += u32::from(within);
            all += 1;
            let _ = writeln!(csv, "\"{what}\",{mean:.5},{half_width:.5},{exact:.5},{within}");
        }
    }
    let claim = "exact values inside the 95 % intervals of the simulation";
    let published = "nine of ten";
    claims.push(Verdict::new(claim, format!("{inside} of {all}"), published, inside * 10 >= all * 9).into());
    files.push(file("admission-simulated.csv", csv));
}

/// E4, reading (b): the link to the origin is held for half a mean viewing.
fn copied_first(runs: &[Runs]) -> String {
    let mut csv = "channels,threshold,b1,b1_95,b2,b2_95,b3,b3_95\n".to_owned();
    for ((channels, threshold), runs) in LINKS.into_iter().zip(runs) {
        let of: Vec<String> = (0..3).map(|class| cells(runs.of_stream(class, Fate::blocking))).collect();
        let _ = writeln!(csv, "{channels},{},{}", word(threshold), of.join(","));
    }
    csv
}

/// Slots of an admitted viewing: 3 is gold, 1 is bronze.
#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "counts are far below 2^53")]
fn quality(fate: &Fate) -> f64 {
    fate.slots as f64 / (fate.offered() - fate.refused()).max(1) as f64
}

/// E6.
fn downgrades(runs: &[Runs], claims: &mut Vec<Claim>, files: &mut Vec<File>) {
    let mut csv = "offered,threshold,downgrade,lost,lost_95,lost12,lost12_95,quality,quality_95\n".to_owned();
    let mut lower = true;
    for (offered, ways) in OFFERED.into_iter().zip(runs.chunks(WAYS.len())) {
        let lost: Vec<Estimate> = ways.iter().map(|runs| runs.of_all(|_| true, Fate::blocking)).collect();
        for (((threshold, less), runs), lost) in WAYS.into_iter().zip(ways).zip(&lost) {
            let threshold = threshold.map_or_else(|| "none".to_owned(), |threshold| threshold.to_string());
            let important = cells(runs.of_all(|stream| stream < 6, Fate::blocking));
            let quality = cells(runs.of_all(|_| true, quality));
            let _ = writeln!(csv, "{offered},{threshold},{less},{},{important},{quality}", cells(*lost));
        }
        if let [plain, held, less, both] = lost.as_slice() {
            lower &= less.mean < plain.mean && both.mean < held.mean;
        }
    }
    claims.push(Verdict::new("fewer are refused where less is offered", lower, "true", lower).into());
    files.push(file("admission-downgrade.csv", csv));
}

/// E7.
fn redirections(runs: &[Runs], claims: &mut Vec<Claim>, files: &mut Vec<File>) {
    let mut csv = "other_sites,lost,lost_95\n".to_owned();
    let lost: Vec<Estimate> = runs.iter().map(|runs| runs.of_all(|_| true, Fate::blocking)).collect();
    for (others, lost) in lost.iter().enumerate() {
        let _ = writeln!(csv, "{others},{}", cells(*lost));
    }
    if let [none, one, two] = lost.as_slice() {
        let told = format!("{none}, {one}, {two}");
        let (first, second) = (none.mean - one.mean, one.mean - two.mean);
        let holds = second > 0.0 && first > second;
        claims
            .push(Verdict::new("0, 1, 2 other sites: most is gained by the first", told, "so", holds).into());
    }
    files.push(file("admission-redirection.csv", csv));
}
