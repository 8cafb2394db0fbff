//! How a viewing is told: events as lines, reports as a table.

use player::{PlayReport, PlayerEvent};
use std::fmt::Write as _;

/// One event as a line for people; nothing for what only programs need.
pub fn told(event: &PlayerEvent) -> Option<String> {
    let line = |at_ms: &u64, text: String| Some(format!("{} {text}", clock(*at_ms)));
    match event {
        PlayerEvent::Opened { node } => Some(format!("        opened at {node}")),
        PlayerEvent::FirstPicture { startup_ms } => {
            Some(format!("{} first picture after {startup_ms} ms", clock(0)))
        }
        PlayerEvent::Transition { at_ms, from, to, cause } => {
            line(at_ms, format!("quality {from} -> {to} ({cause})"))
        }
        PlayerEvent::SourceSilent { at_ms, node } => line(at_ms, format!("{node} is silent")),
        PlayerEvent::SourceUp { at_ms, node } if *at_ms > 0 => line(at_ms, format!("{node} can be asked")),
        PlayerEvent::FailedOver { at_ms, layer, from, to, recovered_ms, cause } => line(
            at_ms,
            format!(
                "{layer} now from {to} instead of {from}, {recovered_ms} ms after its last word ({cause})"
            ),
        ),
        PlayerEvent::Backup { at_ms, node } => line(at_ms, format!("{node} stands behind")),
        PlayerEvent::StillServed { at_ms, node } => {
            line(at_ms, format!("{node} would take over, but is not needed"))
        }
        PlayerEvent::Repull { at_ms, door } => {
            line(at_ms, format!("nobody serves: looking for service at {door}"))
        }
        PlayerEvent::FetchFailed { at_ms, chunk, node, why } => {
            line(at_ms, format!("{chunk} not from {node}: {why}"))
        }
        PlayerEvent::Coming { at_ms, node } => line(
            at_ms,
            format!(
                "the title is being fetched from the archive to {node}; it begins once all of it is there"
            ),
        ),
        PlayerEvent::Freeze { at_ms, length_ms } => line(at_ms, format!("FREEZE of {length_ms} ms")),
        PlayerEvent::NoAudioDevice => Some("        no audio device: playing on the system clock".into()),
        PlayerEvent::Ended => Some("        the film is over".into()),
        PlayerEvent::SourceLost { .. }
        | PlayerEvent::SourceUp { .. }
        | PlayerEvent::Arrived { .. }
        | PlayerEvent::Status { .. } => None,
    }
}

/// Seconds since the first picture, in a column.
pub(super) fn clock(at_ms: u64) -> String {
    format!("{:>4}.{} s", at_ms / 1_000, at_ms % 1_000 / 100)
}

/// The end of the story, a column for each viewer.
pub fn table(viewers: &[(&str, &PlayReport)]) -> String {
    let mut text = String::new();
    if viewers.len() > 1 {
        line(&mut text, "", viewers.iter().map(|(name, _)| (*name).to_owned()));
    }
    let mut row = |name: &str, value: &dyn Fn(&PlayReport) -> String| {
        line(&mut text, name, viewers.iter().map(|(_, report)| value(report)));
    };
    row("start-up", &|r| r.startup_ms.map_or_else(|| "-".into(), |ms| format!("{ms} ms")));
    row("freezes", &|r| match r.freezes.count {
        0 => "none".into(),
        n => format!("{n}, longest {} ms", r.freezes.longest_ms),
    });
    row("pictures shown", &|r| format!("{} of {}", r.frames_shown, r.frames_expected));
    row("quality", &qualities);
    row("quality steps", &|r| r.transitions.len().to_string());
    row("failovers", &|r| r.failovers.len().to_string());
    row("recovery of Base", &|r| {
        let base = r.failovers.iter().filter(|failover| failover.layer == "base");
        base.map(|failover| failover.recovered_ms).max().map_or_else(|| "-".into(), |ms| format!("{ms} ms"))
    });
    row("blocks checked", &|r| format!("{}, {} wrong", r.blocks_checked, r.hash_mismatches.len()));
    row("bytes by layer", &|r| {
        let kilobytes = r.bytes_by_layer.iter().map(|(layer, bytes)| format!("{layer} {}k", bytes / 1_000));
        kilobytes.collect::<Vec<_>>().join(" ")
    });
    text
}

/// One row of the table: writing to a `String` cannot fail.
fn line(text: &mut String, name: &str, values: impl Iterator<Item = String>) {
    let _ = write!(text, "  {name:<18}");
    for value in values {
        let _ = write!(text, "{value:>30}");
    }
    text.push('\n');
}

fn qualities(report: &PlayReport) -> String {
    let parts = report.seconds_at_quality.iter().filter(|(_, seconds)| **seconds > 0.0);
    parts.map(|(quality, seconds)| format!("{quality} {seconds:.1} s")).collect::<Vec<_>>().join(" ")
}
