//! How fast each server delivers: bytes over the time its line was busy. Several
//! chunks at a time share one line, so it is busy from the first bytes of one until
//! nothing more is coming; the way there and back, and idle time, do not count.

use super::cooperation::Server;
use crate::quality::RateMeter;
use media::{BitRate, ByteCount, ChunkId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// One server's line.
#[derive(Clone, Debug)]
struct Flow {
    meter: RateMeter,
    coming: BTreeSet<ChunkId>,
    came: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows(BTreeMap<Server, Flow>);

impl Flows {
    /// So much of a chunk has come.
    pub(super) fn came(&mut self, now: Time, chunk: &ChunkId, server: Server, bytes: u64) {
        let fresh = || Flow { meter: RateMeter::new(now), coming: BTreeSet::new(), came: 0 };
        let flow = self.0.entry(server).or_insert_with(fresh);
        flow.came = flow.came.saturating_add(bytes);
        let was_idle = flow.coming.is_empty();
        flow.coming.insert(chunk.clone());
        if was_idle {
            // How long these took nobody knows.
            flow.meter.set_busy(now, true);
        } else {
            flow.meter.add(now, ByteCount(bytes));
        }
    }

    /// All of a chunk is here, or it will not come from where it came.
    pub(super) fn over(&mut self, now: Time, chunk: &ChunkId) {
        for flow in self.0.values_mut() {
            if flow.coming.remove(chunk) && flow.coming.is_empty() {
                flow.meter.set_busy(now, false);
            }
        }
    }

    /// What a server's line carries, once that can be told.
    pub(super) fn rate(&self, server: Server) -> Option<BitRate> {
        self.0.get(&server)?.meter.rate()
    }

    /// How much has come from a server.
    pub(super) fn came_from(&self, server: Server) -> u64 {
        self.0.get(&server).map_or(0, |flow| flow.came)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Layer;

    fn chunk(block: u32) -> ChunkId {
        ChunkId { title: "film".parse().unwrap(), block, layer: Layer::BASE }
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_line_of_800_kbit_is_measured_as_that_however_chunks_share_it_and_rest_between() {
        let mut flows = Flows::default();
        let origin = Server::Origin;
        // A thousand bytes every 10 ms, by turns of one chunk and of another.
        let mut millis = 0;
        for round in 0..3 {
            let (one, other) = (chunk(2 * round), chunk(2 * round + 1));
            for step in 0..=10 {
                millis += 10;
                flows.came(at(millis), if step % 2 == 0 { &one } else { &other }, origin, 1_000);
            }
            flows.over(at(millis), &one);
            flows.over(at(millis), &other);
            assert_eq!(flows.rate(origin), Some(BitRate(800_000)), "{round}");
            millis += 5_000;
        }
        assert_eq!(flows.came_from(origin), 33_000);
        assert_eq!(flows.rate(Server::Peer("proxy-2".parse().unwrap())), None, "nothing came from there");
    }

    #[test]
    fn what_comes_in_no_time_says_nothing() {
        let mut flows = Flows::default();
        flows.came(at(5), &chunk(1), Server::Origin, 100_000);
        flows.came(at(6), &chunk(1), Server::Origin, 100_000);
        flows.over(at(6), &chunk(1));
        assert_eq!((flows.rate(Server::Origin), flows.came_from(Server::Origin)), (None, 200_000));
    }
}
