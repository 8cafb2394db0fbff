//! How fast each server delivers, measured from the first byte of a chunk to its
//! last, over everything that came from there meanwhile: several chunks at a time
//! share one line.

use super::cooperation::Server;
use media::{BitRate, ByteCount, ChunkId, Span, Time};
use std::collections::BTreeMap;

/// Less than this says nothing about a line.
const LEAST: u64 = 4 * 1024;
/// Clocks and packets are coarser than this.
const SHORTEST: Span = Span::from_millis(1);

/// Chunks that are coming, and how much has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    came: BTreeMap<Server, u64>,
    begun: BTreeMap<ChunkId, (Server, Time, u64)>,
}

impl Flows {
    /// The first bytes of a chunk are here.
    pub(super) fn begun(&mut self, now: Time, chunk: &ChunkId, server: Server) {
        let before = self.came.get(&server).copied().unwrap_or(0);
        self.begun.insert(chunk.clone(), (server, now, before));
    }

    /// All of it is: what its server's line carries, as far as that can be told.
    pub(super) fn arrived(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        server: Server,
        bytes: u64,
    ) -> Option<BitRate> {
        let came = self.came.entry(server).or_default();
        *came = came.saturating_add(bytes);
        let (from, since, before) = self.begun.remove(chunk)?;
        let meanwhile = came.saturating_sub(before);
        (from == server && meanwhile >= LEAST).then(|| ByteCount(meanwhile).over((now - since).max(SHORTEST)))
    }

    /// It will not come from there.
    pub(super) fn broken(&mut self, chunk: &ChunkId) {
        self.begun.remove(chunk);
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
    fn chunks_that_come_side_by_side_count_together() {
        let mut flows = Flows::default();
        let origin = Server::Origin;
        flows.begun(at(0), &chunk(1), origin);
        flows.begun(at(0), &chunk(2), origin);
        // Half of what came by then is the other one's, which is not counted yet.
        assert_eq!(flows.arrived(at(100), &chunk(1), origin, 10_000), Some(BitRate(800_000)));
        assert_eq!(flows.arrived(at(100), &chunk(2), origin, 10_000), Some(BitRate(1_600_000)));
        assert_eq!(flows.arrived(at(200), &chunk(3), origin, 10_000), None, "its beginning was not seen");
        flows.begun(at(200), &chunk(4), origin);
        assert_eq!(flows.arrived(at(300), &chunk(4), origin, 1_000), None, "too little");
        flows.begun(at(300), &chunk(5), origin);
        flows.broken(&chunk(5));
        assert_eq!(flows.arrived(at(400), &chunk(5), origin, 10_000), None);
    }
}
