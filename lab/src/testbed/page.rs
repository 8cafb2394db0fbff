//! The report as one page that needs nothing else: plots and tables.

use super::report::{Bytes, Report, RunReport, Seen, millis};
use crate::figure::chart::{Curve, Words, curves};
use sim::eval::statistics::float;
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#1f2933;max-width:1000px;margin:2em auto;\
padding:0 1em}table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #e4e7eb;\
text-align:right}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}\
pre{background:#f5f7fa;padding:1em;overflow:auto}.no{color:#d64545;font-weight:bold}.yes{color:#1c8a5a}";

/// How wide the slices are over which curves are averaged.
const SLICE_MS: u64 = 500;

/// The page as HTML.
pub(super) fn page(report: &Report) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style><h1>{0}</h1><p>{1}</p>",
        escape(&report.name),
        escape(&report.about)
    );
    verdict(&mut html, report);
    let _ = write!(html, "<pre>{}</pre>", escape(&report.summary.to_string()));
    for (words, all) in [
        (
            Words { title: "How long pictures stood", across: "ms at most", up: "% of freezes" },
            freeze_curve(report),
        ),
        (
            Words {
                title: "Layers shown",
                across: "s since the network stood",
                up: "layers, mean of all viewers",
            },
            vec![over_time("layers", report, |sample| f64::from(sample.2))],
        ),
        (Words { title: "Buffer", across: "s since the network stood", up: "ms" }, buffer_curves(report)),
        (
            Words { title: "Recovery of Base", across: "ms at most", up: "% of recoveries" },
            recovery_curve(report),
        ),
    ] {
        if all.iter().any(|curve| curve.points.len() > 1) {
            html.push_str(&curves(words, 0.0, &all));
        } else {
            let _ = write!(html, "<p>{}: there was none.</p>", words.title);
        }
    }
    bytes(&mut html, report);
    faults(&mut html, report);
    viewers(&mut html, report);
    let _ = write!(
        html,
        "<h2>How it was taken</h2><pre>{}title      {}\nseed       {}, {} runs\n</pre><h2>The scenario</h2><pre>{}</pre></html>\n",
        escape(&report.machine.to_string()),
        escape(&report.title),
        report.seed,
        report.runs.len(),
        escape(&report.scenario)
    );
    html
}

fn verdict(html: &mut String, report: &Report) {
    if report.holds {
        html.push_str("<p class=\"yes\">All runs were as expected.</p>");
    }
    for run in report.runs.iter().filter(|run| !run.missed.is_empty()) {
        let _ = write!(
            html,
            "<p class=\"no\">Not as expected, seed {}: {}</p>",
            run.seed,
            escape(&run.missed.join("; "))
        );
    }
    if report.runs.iter().flat_map(|run| &run.viewers).any(|seen| seen.light) {
        html.push_str(
            "<p>Light viewers decode nothing: their pictures are measured by their times alone.</p>",
        );
    }
}

fn seen(report: &Report) -> impl Iterator<Item = &Seen> {
    report.runs.iter().flat_map(|run| &run.viewers)
}

/// The share of values that are no greater, as steps.
fn distribution(name: &str, mut values: Vec<f64>) -> Vec<Curve> {
    values.sort_by(f64::total_cmp);
    let all = float(values.len().max(1));
    // Steps: up at each value, level between two.
    let share = |n: usize| 100.0 * float(n) / all;
    let steps = (1_usize..).zip(&values);
    let points = steps.flat_map(|(n, value)| [(*value, share(n - 1), 0.0), (*value, share(n), 0.0)]);
    let begin = (!values.is_empty()).then_some((0.0, 0.0, 0.0));
    vec![Curve { name: name.to_owned(), points: begin.into_iter().chain(points).collect() }]
}

fn freeze_curve(report: &Report) -> Vec<Curve> {
    let all = seen(report).flat_map(|seen| &seen.freezes.list).map(|freeze| millis(freeze.length_ms));
    distribution("no longer", all.collect())
}

fn recovery_curve(report: &Report) -> Vec<Curve> {
    let all = seen(report).flat_map(|seen| &seen.failovers).filter(|over| over.layer == "base");
    distribution("recovered", all.map(|over| millis(over.recovered_ms)).collect())
}

/// All samples of a slice of time since the network stood.
fn slices(report: &Report, of: impl Fn(&(u64, u64, u8)) -> f64) -> Vec<(f64, Vec<f64>)> {
    let many = usize::try_from(report.lasts_ms / SLICE_MS).unwrap_or(0) + 1;
    let mut slices = vec![Vec::new(); many];
    for seen in seen(report) {
        let began = seen.first_ms.unwrap_or(seen.came_ms);
        for sample in &seen.samples {
            let index = usize::try_from((began + sample.0) / SLICE_MS).unwrap_or(usize::MAX);
            if let Some(slice) = slices.get_mut(index) {
                slice.push(of(sample));
            }
        }
    }
    let at = |n: usize| float(n) * millis(SLICE_MS) / 1_000.0;
    slices.into_iter().enumerate().filter(|(_, all)| !all.is_empty()).map(|(n, all)| (at(n), all)).collect()
}

fn over_time(name: &str, report: &Report, of: impl Fn(&(u64, u64, u8)) -> f64) -> Curve {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / float(all.len().max(1));
    let points = slices(report, of).iter().map(|(at, all)| (*at, mean(all), 0.0)).collect();
    Curve { name: name.to_owned(), points }
}

fn buffer_curves(report: &Report) -> Vec<Curve> {
    let buffer = |sample: &(u64, u64, u8)| millis(sample.1);
    let least = |all: &[f64]| all.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let lowest = slices(report, buffer).iter().map(|(at, all)| (*at, least(all), 0.0)).collect();
    vec![over_time("mean", report, buffer), Curve { name: "lowest".into(), points: lowest }]
}

/// One bar: what viewers got, by where it lay.
fn bar(html: &mut String, report: &Report) {
    let sum = |of: fn(&Bytes) -> u64| report.runs.iter().map(|run| millis(of(&run.bytes))).sum::<f64>();
    let parts = [
        ("origin", sum(|bytes| bytes.origin), "#d64545"),
        ("nodes", sum(|bytes| bytes.nodes), "#2a7de1"),
        ("proxies, fetched for it", sum(|bytes| bytes.proxies.saturating_sub(bytes.cache)), "#c58b00"),
        ("proxies, from the cache", sum(|bytes| bytes.cache), "#1c8a5a"),
    ];
    let all = parts.iter().map(|part| part.1).sum::<f64>().max(1.0);
    html.push_str("<div style=\"display:flex;height:2em\">");
    for (_, bytes, colour) in parts {
        let _ = write!(html, "<div style=\"width:{:.2}%;background:{colour}\"></div>", 100.0 * bytes / all);
    }
    html.push_str("</div><p>");
    for (name, bytes, colour) in parts {
        let share = 100.0 * bytes / all;
        let _ = write!(html, "<span style=\"color:{colour}\">\u{25a0}</span> {name} {share:.1} % &nbsp; ");
    }
    html.push_str("</p>");
}

fn bytes(html: &mut String, report: &Report) {
    html.push_str("<h2>Who sent it</h2>");
    bar(html, report);
    html.push_str(
        "<table><tr><th>seed<th>origin<th>nodes<th>proxies<th>of that from a cache\
         <th>nodes to proxies<th>between proxies</tr>",
    );
    let mega = |bytes: u64| format!("{:.2} MB", millis(bytes) / 1e6);
    for run in &report.runs {
        let sent = run.bytes;
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            run.seed,
            mega(sent.origin),
            mega(sent.nodes),
            mega(sent.proxies),
            mega(sent.cache),
            mega(sent.proxies_from_nodes),
            mega(sent.proxies_from_peers)
        );
    }
    html.push_str("</table>");
}

fn faults(html: &mut String, report: &Report) {
    if report.runs.iter().all(|run| run.faults.is_empty()) {
        return;
    }
    html.push_str("<h2>What went wrong</h2><pre>");
    for run in &report.runs {
        for fault in &run.faults {
            let _ = writeln!(html, "seed {:<6} {}", run.seed, escape(&fault.to_string()));
        }
    }
    html.push_str("</pre>");
}

fn viewers(html: &mut String, report: &Report) {
    html.push_str(
        "<h2>Who saw what</h2><table><tr><th>seed, viewer<th>class<th>wanted<th>start-up<th>freezes<th>frozen\
         <th>layers<th>steps<th>ended</tr>",
    );
    let row = |run: &RunReport, seen: &Seen| {
        format!(
            "<tr><td>{} {}{}<td>{}<td>{}<td>{}<td>{}<td>{} ms<td>{:.1} %<td>{}<td>{}</tr>",
            run.seed,
            escape(&seen.name),
            if seen.light { " (light)" } else { "" },
            seen.class,
            seen.wanted,
            seen.startup_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
            seen.freezes.count,
            seen.freezes.total_ms,
            seen.quality * 100.0,
            seen.transitions.len(),
            escape(&seen.outcome)
        )
    };
    for run in &report.runs {
        run.viewers.iter().for_each(|seen| html.push_str(&row(run, seen)));
    }
    html.push_str("</table>");
}

/// A text as HTML shows it unchanged.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
