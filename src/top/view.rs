//! What `lamina top` knows: a row for each node and proxy, and the last events of
//! all. Pure.

use crate::operator::Status;
use media::Span;
use protocol::status::{EventLine, NodeStatus, ProxyStatus};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What somebody answered, or why not.
pub(super) struct Answer {
    pub(super) address: SocketAddr,
    pub(super) status: Result<Status, String>,
}

/// A node or proxy.
#[derive(Default)]
pub(super) struct Row {
    /// What it said last.
    pub(super) status: Option<Status>,
    /// Why it says nothing now.
    pub(super) silent: Option<String>,
}

/// Everything.
#[derive(Default)]
pub(super) struct View {
    rows: BTreeMap<SocketAddr, Row>,
}

/// Sums over all nodes that answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) answering: usize,
    pub(super) silent: usize,
    pub(super) vip: u32,
    pub(super) normal: u32,
    pub(super) standby: u32,
    pub(super) clients: usize,
}

impl View {
    /// Somebody was asked.
    pub(super) fn expect(&mut self, address: SocketAddr) {
        self.rows.entry(address).or_default();
    }

    /// Takes an answer in; the addresses of the neighbours it names.
    pub(super) fn take(&mut self, Answer { address, status }: Answer) -> Vec<SocketAddr> {
        let row = self.rows.entry(address).or_default();
        match status {
            Ok(status) => {
                let named = match &status {
                    Status::Node(node) => node.neighbours.iter().map(|line| line.node.address).collect(),
                    Status::Proxy(_) => Vec::new(),
                };
                *row = Row { status: Some(status), silent: None };
                named
            }
            Err(why) => {
                row.silent = Some(why);
                Vec::new()
            }
        }
    }

    /// Whether everybody said something, or could not.
    pub(super) fn all_answered(&self) -> bool {
        self.rows.values().all(|row| row.status.is_some() || row.silent.is_some())
    }

    pub(super) fn nobody_answered(&self) -> bool {
        self.rows.values().all(|row| row.status.is_none())
    }

    /// Nodes by level, the origin first, then proxies, then who never answered.
    pub(super) fn rows(&self) -> Vec<(SocketAddr, &Row)> {
        let mut rows: Vec<_> = self.rows.iter().map(|(address, row)| (*address, row)).collect();
        rows.sort_by_key(|(address, row)| match &row.status {
            Some(Status::Node(node)) => (0, u8::MAX - depth(node), node.peer.to_string(), *address),
            Some(Status::Proxy(proxy)) => (1, 0, proxy.peer.to_string(), *address),
            None => (2, 0, String::new(), *address),
        });
        rows
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in self.rows.values() {
            if row.silent.is_some() {
                totals.silent += 1;
                continue;
            }
            totals.answering += usize::from(row.status.is_some());
            match &row.status {
                Some(Status::Node(node)) => {
                    totals.vip += node.slots.vip;
                    totals.normal += node.slots.normal;
                    totals.standby += node.slots.vip_dual + node.slots.normal_dual;
                }
                Some(Status::Proxy(proxy)) => totals.clients += proxy.clients.len(),
                None => {}
            }
        }
        totals
    }

    /// The last events of all, the newest first: how long ago, whose, what.
    pub(super) fn events(&self, most: usize) -> Vec<(Span, String, String)> {
        let mut all = Vec::new();
        for status in
            self.rows.values().filter(|row| row.silent.is_none()).filter_map(|row| row.status.as_ref())
        {
            let (peer, events): (_, &[EventLine]) = match status {
                Status::Node(node) => (node.peer, &node.events),
                Status::Proxy(proxy) => (proxy.peer, &proxy.events),
            };
            all.extend(events.iter().map(|line| (line.ago, peer.to_string(), told(&line.event))));
        }
        all.sort();
        all.truncate(most);
        all
    }
}

fn depth(node: &NodeStatus) -> u8 {
    match node.level {
        protocol::node::autonomy::Level::Layer(layer) => layer.0,
        protocol::node::autonomy::Level::Origin => u8::MAX,
    }
}

/// The viewers that a proxy knows, as they are asked for.
pub(super) fn clients(proxy: &ProxyStatus) -> String {
    let one = |client: &protocol::status::ClientLine| {
        format!("{} wants {} at block {}", client.title, client.wanted, client.position.unwrap_or(0))
    };
    proxy.clients.iter().take(8).map(one).collect::<Vec<_>>().join("; ")
}

/// An event of JSON in words: its name, then what it says.
fn told(event: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(event) else {
        return crate::status::printable(event);
    };
    let word = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let name = fields.get("event").map(word).unwrap_or_default();
    let rest = fields.iter().filter(|(field, _)| *field != "event" && *field != "link");
    let rest = rest.map(|(field, value)| format!("{field} {}", word(value)));
    let text = std::iter::once(name.replace('_', " ")).chain(rest).collect::<Vec<_>>().join("  ");
    crate::status::printable(&text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
pub(super) mod tests {
    use super::*;
    use protocol::message::NodeAddress;
    use protocol::node::autonomy::Level;
    use protocol::status::{Admission, NeighbourLine, Slots, Traffic};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    pub(in crate::top) fn node(name: &str, level: Level, neighbours: &[u16]) -> Status {
        let neighbour = |port: &u16| NeighbourLine {
            node: NodeAddress { peer: format!("n{port}").parse().unwrap(), address: address(*port) },
            level: Level::Origin,
            silent: Span::ZERO,
            dead: false,
        };
        let event = r#"{"event":"believed_dead","node":"base-9","detector":"base-2"}"#;
        Status::Node(Box::new(NodeStatus {
            peer: name.parse().unwrap(),
            level,
            up: Span::from_secs(65),
            draining: false,
            titles: Vec::new(),
            slots: Slots {
                capacity: 200,
                used: 3,
                vip: 1,
                normal: 2,
                vip_dual: 1,
                normal_dual: 4,
                ..Slots::default()
            },
            admission: Admission::default(),
            sessions: 3,
            neighbours: neighbours.iter().map(neighbour).collect(),
            dead: Vec::new(),
            placements: Vec::new(),
            traffic: Traffic { media: 2_000_000, ..Traffic::default() },
            events: vec![EventLine { ago: Span::from_millis(1_200), event: event.into() }],
        }))
    }

    pub(in crate::top) fn some() -> View {
        let mut view = View::default();
        let base = Level::Layer(media::Layer::BASE);
        view.take(Answer { address: address(2), status: Ok(node("base-2", base, &[1])) });
        view.take(Answer { address: address(1), status: Ok(node("origin", Level::Origin, &[])) });
        view.take(Answer { address: address(3), status: Err("cannot reach 127.0.0.1:3".into()) });
        view
    }

    #[test]
    fn the_origin_comes_first_and_the_silent_last() {
        let view = some();
        let order: Vec<u16> = view.rows().iter().map(|(address, _)| address.port()).collect();
        assert_eq!(order, [1, 2, 3]);
        let totals = Totals { answering: 2, silent: 1, vip: 2, normal: 4, standby: 10, clients: 0 };
        assert_eq!(view.totals(), totals);
        assert!(view.all_answered() && !view.nobody_answered());
        assert_eq!(view.events(9).len(), 2);
        assert_eq!(view.events(1)[0].2, "believed dead  detector base-2  node base-9");
    }

    #[test]
    fn who_answered_before_is_shown_as_it_was_and_as_silent() {
        let mut view = some();
        assert_eq!(
            view.take(Answer { address: address(7), status: Ok(node("x", Level::Origin, &[8, 9])) }),
            [address(8), address(9)]
        );
        view.take(Answer { address: address(1), status: Err("gone".into()) });
        assert_eq!(view.totals().silent, 2);
        assert_eq!(view.rows()[0].0, address(1), "it keeps its place");
        view.expect(address(50));
        assert!(!view.all_answered());
    }

    #[test]
    fn nonsense_in_an_event_is_printed_harmlessly() {
        assert_eq!(told("\u{1b}[2J"), crate::status::printable("\u{1b}[2J"));
        assert!(!told("\u{1b}[2J").contains('\u{1b}'));
        assert!(!told(r#"{"event":"\u001b[2J"}"#).contains('\u{1b}'));
    }
}
