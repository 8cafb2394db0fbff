//! A node's status for people: a few lines for each thing it says.

use media::{ByteCount, Span};
use protocol::status::{Admission, EventLine, NodeStatus, Traffic};
use std::fmt::Write as _;

/// The whole table, each line ended.
pub(super) fn of(status: &NodeStatus) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write(&mut text, status);
    text
}

fn write(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    let draining = if status.draining { ", about to stop" } else { "" };
    writeln!(text, "{}  {}, up {}{draining}", status.peer, status.level, short(status.up))?;
    let slots = &status.slots;
    writeln!(text, "slots       {} of {}, {} to spare", slots.used, slots.capacity, slots.headroom)?;
    writeln!(
        text,
        "            vip {}, normal {}, vipdual {}, normaldual {}, enhancements {}, searching {}",
        slots.vip, slots.normal, slots.vip_dual, slots.normal_dual, slots.enhancements, slots.searching
    )?;
    admission(text, &status.admission)?;
    writeln!(text, "sessions    {}", status.sessions)?;
    titles(text, status)?;
    neighbours(text, status)?;
    placements(text, status)?;
    traffic(text, &status.traffic)?;
    events(text, &status.events)
}

fn admission(text: &mut String, admission: &Admission) -> std::fmt::Result {
    let classes: Vec<String> = admission
        .classes
        .iter()
        .map(|line| match line.threshold {
            Some(threshold) => format!("{} {} of {threshold}", line.class, line.viewings),
            None => format!("{} {}", line.class, line.viewings),
        })
        .collect();
    if !classes.is_empty() {
        writeln!(text, "watched     {}", classes.join(", "))?;
    }
    if let Some(rate) = admission.link_rate {
        writeln!(text, "link        {} of {rate} to viewers", admission.to_viewers)?;
    }
    let (taken, limit) = admission.store;
    if limit > ByteCount(0) {
        let rate = admission.origin_rate.map_or_else(|| "no bound".to_owned(), |rate| rate.to_string());
        writeln!(text, "archive     {taken} of {limit}, link to it {} of {rate}", admission.to_origin)?;
    }
    for line in &admission.stored {
        let (name, coming) = (printable(line.title.as_str()), if line.whole { "" } else { ", coming" });
        let (class, viewings) = (line.class.to_string(), line.viewings);
        writeln!(text, "            {name:<24} {class:<10} {}, watched by {viewings}{coming}", line.size)?;
    }
    for (n, line) in admission.refused.iter().enumerate() {
        let (head, reason) = (heading("refused", n), line.reason.name());
        writeln!(text, "{head}{reason:<18} {:<10} {}", line.class, line.count)?;
    }
    Ok(())
}

fn titles(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    for (n, title) in status.titles.iter().enumerate() {
        let layers: Vec<String> = title.layers.iter().map(ToString::to_string).collect();
        let (head, name) = (heading("titles", n), printable(title.title.as_str()));
        writeln!(text, "{head}{name:<24} {} ({})", layers.join(" "), title.size)?;
    }
    Ok(())
}

fn neighbours(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    for (n, line) in status.neighbours.iter().enumerate() {
        let (head, level) = (heading("neighbours", n), line.level.to_string());
        let (peer, address) = (line.node.peer, line.node.address.to_string());
        let dead = if line.dead { "  DEAD" } else { "" };
        writeln!(text, "{head}{peer:<16} {level:<6} {address:<21} heard {} ago{dead}", short(line.silent))?;
    }
    if !status.dead.is_empty() {
        let dead: Vec<&str> = status.dead.iter().map(protocol::PeerId::as_str).collect();
        writeln!(text, "thought dead  {}", dead.join(" "))?;
    }
    Ok(())
}

fn placements(text: &mut String, status: &NodeStatus) -> std::fmt::Result {
    for (n, line) in status.placements.iter().enumerate() {
        let wanted = if line.wanted > 0 { format!(" of {}", line.wanted) } else { String::new() };
        let layers: Vec<String> = line
            .layers
            .iter()
            .map(|(layer, copies, coming)| match coming {
                0 => format!("{layer} {copies}{wanted}"),
                coming => format!("{layer} {copies}{wanted} (+{coming} on the way)"),
            })
            .collect();
        let (head, name) = (heading("published", n), printable(line.title.as_str()));
        writeln!(text, "{head}{name:<24} {}", layers.join(", "))?;
    }
    Ok(())
}

fn traffic(text: &mut String, traffic: &Traffic) -> std::fmt::Result {
    let bytes = |count| ByteCount(count).to_string();
    let own = traffic.signals.saturating_add(traffic.agents);
    writeln!(
        text,
        "sent        media {}, signals {}, agents {} ({} of media)",
        bytes(traffic.media),
        bytes(traffic.signals),
        bytes(traffic.agents),
        share(own, traffic.media)
    )
}

/// The last events of a node or a proxy, oldest first.
pub(super) fn events(text: &mut String, events: &[EventLine]) -> std::fmt::Result {
    for (n, line) in events.iter().enumerate() {
        let ago = format!("{} ago", short(line.ago));
        writeln!(text, "{}{ago:<12} {}", heading("events", n), printable(&line.event))?;
    }
    Ok(())
}

/// The word before the first line of a list, and room before the others.
pub(super) fn heading(word: &str, line: usize) -> String {
    format!("{:<12}", if line == 0 { word } else { "" })
}

/// A part of a whole in hundredths of a per cent; of nothing there is no part.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let parts = u128::from(part).saturating_mul(10_000).checked_div(u128::from(whole));
    parts.map_or_else(|| "-".to_owned(), |parts| format!("{}.{:02} %", parts / 100, parts % 100))
}

/// A time in its two largest units.
pub(crate) fn short(span: Span) -> String {
    let seconds = span.as_millis() / 1000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// What another machine said, without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
