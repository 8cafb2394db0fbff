//! The report as tables for spreadsheets (RFC 4180).

use super::report::Report;
use std::fmt::Write as _;

/// One line for each viewer of each run.
pub(super) fn viewers(report: &Report) -> String {
    let mut table = String::from(
        "seed,viewer,class,wanted,light,came_ms,startup_ms,watched_ms,freezes,frozen_ms,longest_ms,quality,steps,outcome\n",
    );
    for run in &report.runs {
        for seen in &run.viewers {
            let startup = seen.startup_ms.map_or_else(String::new, |ms| ms.to_string());
            // Writing into a string cannot fail.
            let _ = writeln!(
                table,
                "{},{},{},{},{},{},{startup},{},{},{},{},{:.4},{},{}",
                run.seed,
                seen.name,
                seen.class,
                seen.wanted,
                seen.light,
                seen.came_ms,
                seen.watched_ms,
                seen.freezes.count,
                seen.freezes.total_ms,
                seen.freezes.longest_ms,
                seen.quality,
                seen.transitions.len(),
                field(&seen.outcome)
            );
        }
    }
    table
}

/// How each viewer stood, twice a second.
pub(super) fn samples(report: &Report) -> String {
    let mut table = String::from("seed,viewer,at_ms,buffer_ms,layers\n");
    for run in &report.runs {
        for seen in &run.viewers {
            let began = seen.first_ms.unwrap_or(seen.came_ms);
            for (at, buffer, layers) in &seen.samples {
                let _ = writeln!(table, "{},{},{},{buffer},{layers}", run.seed, seen.name, began + at);
            }
        }
    }
    table
}

/// Every layer that came from somebody else.
pub(super) fn recoveries(report: &Report) -> String {
    let mut table = String::from("seed,viewer,layer,from,to,detected_ms,recovered_ms,buffer_ms,cause\n");
    for run in &report.runs {
        for seen in &run.viewers {
            for over in &seen.failovers {
                let _ = writeln!(
                    table,
                    "{},{},{},{},{},{},{},{},{}",
                    run.seed,
                    seen.name,
                    over.layer,
                    over.node,
                    over.to,
                    over.detected_ms,
                    over.recovered_ms,
                    over.buffer_ms,
                    field(&over.cause)
                );
            }
        }
    }
    table
}

/// Everything that went wrong, a line for each viewer that it struck.
pub(super) fn faults(report: &Report) -> String {
    let mut table = String::from("seed,at_ms,what,nodes,viewer,buffer_ms\n");
    for run in &report.runs {
        for fault in &run.faults {
            let start = format!(
                "{},{},{},{}",
                run.seed,
                fault.at_ms,
                field(&fault.did),
                field(&fault.nodes.join(" "))
            );
            if fault.struck.is_empty() {
                let _ = writeln!(table, "{start},,");
            }
            for one in &fault.struck {
                let _ = writeln!(table, "{start},{},{}", one.viewer, one.buffer_ms);
            }
        }
    }
    table
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
