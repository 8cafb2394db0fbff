//! What a line cannot carry yet waits here, and not in the line's own queue: whatever
//! comes up meanwhile and is more urgent still goes first, a node is never thought
//! silent because its answer stands behind others, and the round trip stays that of
//! the line. Wakamiya et al., 3.3, have servers keep these queues; nodes serve whoever
//! asks, so the one who asks keeps them.
//!
//! All nodes together are one server, and share one line as far as is known.

use super::Proxy;
use super::config::{ProxyConfig, Upstream};
use super::cooperation::Server;
use super::fills::Asking;
use super::io::{Event, Output};
use media::{BitRate, ChunkId, Layer, Span, Time};

/// The order of what waits: what a client waits for before what is of use later, Base
/// of that before everything, and then by time; the least goes first.
type Rank = (Urgency, Option<Time>, u32, Layer);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// Base that somebody waits for.
    Base,
    /// An enhancement that somebody waits for, and that is not late yet.
    Enhancement,
    /// Fetched ahead, or of use to those who come later.
    Later,
}

fn rank(now: Time, asking: &Asking<'_>) -> Rank {
    let ChunkId { block, layer, .. } = *asking.chunk;
    let urgency = match asking.due {
        Some(_) if layer == Layer::BASE => Urgency::Base,
        Some(due) if due >= now => Urgency::Enhancement,
        Some(_) | None => Urgency::Later,
    };
    let due = asking.due.filter(|_| urgency != Urgency::Later);
    (urgency, due, block, layer)
}

/// What of a server's line is taken, in bytes that were asked for and are not here.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    base: u64,
    all: u64,
}

impl Taken {
    /// Whether there is room. Base that is awaited lets nothing but Base go before it.
    fn leaves_room(self, urgency: Urgency, window: u64) -> bool {
        let before = if urgency == Urgency::Base { self.base } else { self.all };
        before == 0 || before <= window
    }
}

/// How much may be asked for and not be here before the next chunk is asked for: what
/// the line carries in a round trip, so that it never falls idle, and a little more;
/// before that is known, more with each byte that came.
fn window(rate: Option<BitRate>, round_trip: Span, came: u64, config: &ProxyConfig) -> u64 {
    let Some(rate) = rate else { return config.first_window.0.saturating_add(came) };
    let span = round_trip + config.ahead_of_line;
    let bits = u128::from(rate.0).saturating_mul(span.as_nanos().into()) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

impl Proxy {
    /// Asks for what waits, as far as the lines have room.
    pub(super) fn ask_in_turn(&mut self, now: Time) {
        if !self.fills.is_any_waiting() {
            return;
        }
        let mut servers: Vec<Server> = Vec::new();
        for asking in self.fills.asking().filter(|asking| !asking.sent) {
            let server = self.server_at(asking.from.address);
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        for server in servers {
            while let Some((chunk, from)) = self.next_at(now, server) {
                self.fills.sent(now, &chunk);
                self.outputs.push_back(Output::Fill { chunk: chunk.clone(), from });
                self.event(Event::Filling { chunk, from });
            }
        }
    }

    /// A node is not blamed for a full line: one on which another was asked earlier and
    /// still delivers.
    pub(super) fn excuse_crowded(&mut self) {
        for (node, since) in self.lines.probed() {
            let is_served_first = |asking: Asking<'_>| {
                let other = self.lines.find(asking.from.address).filter(|other| *other != node);
                let earlier = asking.sent && asking.asked <= since;
                earlier && other.is_some_and(|other| !self.lines.withholds_since(other, since))
            };
            let crowded = self.fills.asking().any(is_served_first);
            self.lines.set_crowded(node, crowded);
        }
    }

    /// What is to be asked for next at a server, if its line has room.
    fn next_at(&self, now: Time, server: Server) -> Option<(ChunkId, Upstream)> {
        let mut taken = Taken::default();
        let mut first: Option<(Rank, Asking<'_>)> = None;
        for asking in self.fills.asking() {
            if self.server_at(asking.from.address) != server {
                continue;
            }
            if asking.sent {
                taken.all = taken.all.saturating_add(asking.left);
                let base = if asking.chunk.layer == Layer::BASE { asking.left } else { 0 };
                taken.base = taken.base.saturating_add(base);
            } else {
                let rank = rank(now, &asking);
                if first.as_ref().is_none_or(|(other, _)| rank < *other) {
                    first = Some((rank, asking));
                }
            }
        }
        let ((urgency, ..), asking) = first?;
        let node = self.lines.find(asking.from.address);
        let round_trip = node.map_or(Span::ZERO, |node| self.lines.least_round_trip(node));
        let flows = &self.advisor.flows;
        let window = window(flows.rate(server), round_trip, flows.came_from(server), &self.config);
        taken.leaves_room(urgency, window).then(|| (asking.chunk.clone(), asking.from))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_line_is_filled_for_a_round_trip_and_a_tenth_of_a_second() {
        let config = ProxyConfig::default();
        let of = |rate, millis, came| window(rate, Span::from_millis(millis), came, &config);
        assert_eq!(of(Some(BitRate(800_000)), 200, 9), 30_000);
        assert_eq!(of(Some(BitRate(0)), 200, 9), 0, "one at a time");
        assert_eq!(of(None, 200, 0), config.first_window.0);
        assert_eq!(of(None, 200, 50_000), config.first_window.0 + 50_000);
        let taken = Taken { base: 10_000, all: 40_000 };
        assert!(taken.leaves_room(Urgency::Base, 30_000), "enhancements do not stand in Base's way");
        assert!(!taken.leaves_room(Urgency::Enhancement, 30_000));
        assert!(Taken::default().leaves_room(Urgency::Later, 0));
    }

    #[test]
    fn what_is_awaited_goes_first_base_of_it_before_all_and_what_is_late_last() {
        let chunk = |block, layer| ChunkId { title: "film".parse().unwrap(), block, layer };
        let from = Upstream { peer: None, address: ([127, 0, 0, 1], 1).into() };
        let waiting = [
            (chunk(1, Layer::BASE), None),
            (chunk(2, Layer::ENH1), Some(at(50))),
            (chunk(9, Layer::ENH1), Some(at(900))),
            (chunk(8, Layer::ENH2), Some(at(800))),
            (chunk(9, Layer::BASE), Some(at(900))),
            (chunk(3, Layer::BASE), Some(at(10))),
        ];
        let rank = |(chunk, due): &(ChunkId, Option<Time>)| {
            rank(at(100), &Asking { chunk, from, sent: false, asked: at(0), left: 1, due: *due })
        };
        let mut order: Vec<usize> = (0..waiting.len()).collect();
        order.sort_by_key(|place| waiting.get(*place).map(rank));
        assert_eq!(order, [5, 4, 3, 2, 0, 1]);
    }
}
