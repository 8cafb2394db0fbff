//! The report as tables for spreadsheets (RFC 4180).

use super::PlayReport;
use std::fmt::Write as _;

/// How it stood, ten times a second.
pub(super) fn buffer(report: &PlayReport) -> String {
    let mut table = String::from("at_ms,position_ms,buffer_ms,quality\n");
    for sample in &report.samples {
        let quality = field(&sample.quality);
        // Writing into a string cannot fail.
        let _ = writeln!(table, "{},{},{},{quality}", sample.at_ms, sample.position_ms, sample.buffer_ms);
    }
    table
}

/// Everything that happened, in order.
pub(super) fn timeline(report: &PlayReport) -> String {
    let mut rows: Vec<(u64, &str, String, String)> = Vec::new();
    let change = |t: &super::Transition| {
        (t.at_ms, "transition", format!("{} to {}", t.from, t.to), format!("{}, block {}", t.cause, t.block))
    };
    rows.extend(report.transitions.iter().map(change));
    rows.extend(
        report.freezes.list.iter().map(|f| (f.at_ms, "freeze", format!("{} ms", f.length_ms), String::new())),
    );
    let over = |f: &super::Failover| {
        let what = format!("{} from {} to {}", f.layer, f.node, f.to);
        (f.at_ms, "failover", what, how(f))
    };
    rows.extend(report.failovers.iter().map(over));
    rows.extend(
        report.kills.iter().map(|k| (k.at_ms, "kill", k.node.clone(), format!("buffer {:.2} s", k.buffer_s))),
    );
    rows.sort();
    let mut table = String::from("at_ms,what,which,how\n");
    for (at_ms, what, which, how) in rows {
        let _ = writeln!(table, "{at_ms},{what},{},{}", field(&which), field(&how));
    }
    table
}

fn how(failover: &super::Failover) -> String {
    let super::Failover { detected_ms, recovered_ms, cause, .. } = failover;
    let times = format!("detected {detected_ms} ms, recovered {recovered_ms} ms");
    if cause.is_empty() { times } else { format!("{times}, {cause}") }
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
