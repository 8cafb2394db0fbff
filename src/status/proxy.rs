//! A proxy's status for people: how much of what is asked for it holds, where the
//! rest came from, its tables and its clients.

use super::table::{events, heading, printable, share, short};
use media::ByteCount;
use protocol::proxy::cooperation::Server;
use protocol::status::ProxyStatus;
use std::fmt::Write as _;

/// The whole table, each line ended.
pub(super) fn of(status: &ProxyStatus) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write(&mut text, status);
    text
}

fn write(text: &mut String, status: &ProxyStatus) -> std::fmt::Result {
    let draining = if status.draining { ", about to stop" } else { "" };
    writeln!(text, "{}  proxy, up {}{draining}", status.peer, short(status.up))?;
    let bytes = |count| ByteCount(count).to_string();
    let counts = &status.proxy;
    let asked = counts.hits.saturating_add(counts.misses);
    writeln!(
        text,
        "cache       {} of {}, hits {} ({} of {})",
        status.used,
        status.capacity,
        share(counts.hits, asked),
        counts.hits,
        asked
    )?;
    writeln!(
        text,
        "bytes       from cache {}, peers {}, nodes {}; to peers {}",
        bytes(counts.bytes_from_cache),
        bytes(counts.bytes_from_peers),
        bytes(counts.bytes_from_nodes),
        bytes(counts.given_to_peers)
    )?;
    let mind = &status.counts;
    writeln!(
        text,
        "blocks      hits {}, pending {}, misses {}, late {}, ahead {}",
        mind.hits, mind.pending, mind.misses, mind.late, mind.prefetches
    )?;
    writeln!(text, "sessions    {}", status.sessions)?;
    tables(text, status)?;
    events(text, &status.events)
}

fn tables(text: &mut String, status: &ProxyStatus) -> std::fmt::Result {
    for (n, line) in status.servers.iter().enumerate() {
        let name = match line.server {
            Server::Origin => "nodes".to_owned(),
            Server::Peer(peer) => peer.to_string(),
        };
        let (head, lost) = (heading("servers", n), if line.lost { "  LOST" } else { "" });
        let offers = line.offers.map_or_else(String::new, |offers| format!("  offers {offers} blocks"));
        let delay = short(line.delay);
        writeln!(text, "{head}{name:<16} {delay:<8} {}  {} open{offers}{lost}", line.rate, line.open)?;
    }
    for (n, line) in status.titles.iter().enumerate() {
        let (head, name) = (heading("titles", n), printable(line.title.as_str()));
        let marked: Vec<String> = line.marked_by.iter().map(ToString::to_string).collect();
        let marked = if marked.is_empty() { String::new() } else { format!("  for {}", marked.join(" ")) };
        let (held, blocks) = (line.held, line.blocks);
        writeln!(
            text,
            "{head}{name:<24} {held} of {blocks} blocks, {}, {} clients{marked}",
            line.size, line.clients
        )?;
    }
    for (n, line) in status.clients.iter().enumerate() {
        let (head, name) = (heading("clients", n), printable(line.title.as_str()));
        let at = line.position.map_or_else(|| "-".to_owned(), |block| block.to_string());
        let (wanted, least) = (line.wanted.layers(), line.acceptable.layers());
        writeln!(text, "{head}{name:<24} block {at}, wants {wanted} layers, accepts {least}, {}", line.rate)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::{BitRate, Quality, Span};
    use protocol::proxy::cooperation::{ClientId, Counts};
    use protocol::status::{CachedLine, ClientLine, EventLine, ProxyCounts, ServerLine};

    #[test]
    fn everything_a_proxy_says_is_shown() {
        let title: media::TitleName = "film".parse().unwrap();
        let (delay, rate, peer) = (Span::from_millis(20), BitRate(5_000_000), "proxy-2".parse().unwrap());
        let server = |server, offers| ServerLine { server, lost: false, delay, rate, open: 1, offers };
        let status = ProxyStatus {
            peer: "proxy-1".parse().unwrap(),
            up: Span::from_secs(61),
            draining: false,
            sessions: 1,
            capacity: ByteCount(2_000_000),
            used: ByteCount(1_000_000),
            proxy: ProxyCounts { hits: 3, misses: 1, ..ProxyCounts::default() },
            counts: Counts { hits: 2, ..Counts::default() },
            servers: vec![server(Server::Origin, None), server(Server::Peer(peer), Some(7))],
            titles: vec![CachedLine {
                title: title.clone(),
                clients: 1,
                blocks: 60,
                held: 12,
                size: ByteCount(1_000_000),
                marked_by: vec![peer],
            }],
            clients: vec![ClientLine {
                client: ClientId(7),
                title,
                position: Some(8),
                wanted: Quality(3),
                acceptable: Quality(2),
                delay,
                rate,
            }],
            events: vec![EventLine { ago: delay, event: "{\"event\":\"silent\"}".to_owned() }],
        };
        let shown = of(&status);
        for part in [
            "proxy-1  proxy, up 1 min 1 s",
            "hits 75.00 % (3 of 4)",
            "offers 7 blocks",
            "for proxy-2",
            "20 ms ago    {\"event\":\"silent\"}",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(shown.contains("12 of 60 blocks") && shown.contains("block 8, wants 3 layers, accepts 2"));
    }
}
