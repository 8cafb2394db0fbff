//! Chunks on their way over one connection: by priority, and never more of them under
//! way than its window holds.

use media::{Layer, Span, Time};
use protocol::player::RequestId;
use protocol::{StreamId, StreamRequest};

/// The payload of a datagram.
pub(super) const DATAGRAM: u64 = 1_200;
/// What goes before it: IP, UDP and QUIC.
pub(super) const HEADERS: u64 = 70;
/// What may be under way before the line has proved wider, as in the player.
const FIRST_WINDOW: u64 = 16 * 1024;
/// Looks that make one measurement, and measurements that the window holds, likewise.
const LOOKS: u32 = 5;
const MEASUREMENTS: u64 = 4;

/// The order among those of one connection: class, then when it is due; the least
/// goes first.
pub(super) type Rank = (bool, u8, Time);

/// One payload.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) stream: StreamId,
    /// The viewer's name of it.
    pub(super) request: RequestId,
    rank: Rank,
    length: u64,
    pub(super) unsent: u64,
    granted: bool,
}

impl Flow {
    /// What is asked for now, and not granted yet.
    pub(super) fn asked(
        now: Time,
        stream: StreamId,
        request: RequestId,
        wanted: &StreamRequest,
        length: u64,
    ) -> Self {
        let rank = match wanted {
            StreamRequest::Manifest(_) => (false, 0, now),
            StreamRequest::Chunk(chunk) => {
                let Layer(layer) = chunk.id.layer;
                (false, layer.saturating_add(1), now + Span::from_millis(chunk.deadline_ms.into()))
            }
        };
        Self { stream, request, rank, length, unsent: length, granted: false }
    }
}

/// A piece of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) request: RequestId,
    pub(super) bytes: u64,
    /// The stream and its length, if this is the last of it.
    pub(super) whole: Option<(StreamId, u64)>,
}

/// What one connection carries to its viewer.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) flows: Vec<Flow>,
    in_flight: u64,
    window: u64,
    looks: u32,
    measured: u64,
}

impl Default for Lane {
    fn default() -> Self {
        Self { flows: Vec::new(), in_flight: 0, window: FIRST_WINDOW, looks: 0, measured: 0 }
    }
}

impl Lane {
    pub(super) fn grant(&mut self, stream: StreamId, slot: bool) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.stream == stream) {
            flow.granted = true;
            flow.rank.0 = !slot;
        }
    }

    /// Nobody wants it any more; its stream.
    pub(super) fn stop(&mut self, request: RequestId) -> Option<StreamId> {
        let at = self.flows.iter().position(|flow| flow.request == request)?;
        Some(self.flows.remove(at).stream)
    }

    pub(super) fn take(&mut self, stream: StreamId) -> Option<Flow> {
        let at = self.flows.iter().position(|flow| flow.stream == stream)?;
        Some(self.flows.remove(at))
    }

    /// The next datagram, if the window has room.
    pub(super) fn next(&mut self) -> Option<Datagram> {
        if self.in_flight >= self.window {
            return None;
        }
        let ready = self.flows.iter_mut().filter(|flow| flow.granted && flow.unsent > 0);
        let flow = ready.min_by_key(|flow| flow.rank)?;
        let bytes = flow.unsent.min(DATAGRAM);
        flow.unsent -= bytes;
        self.in_flight += bytes;
        let (request, stream) = (flow.request, flow.stream);
        let whole = (flow.unsent == 0).then_some((stream, flow.length));
        if whole.is_some() {
            self.flows.retain(|flow| flow.stream != stream);
        }
        Some(Datagram { request, bytes, whole })
    }

    /// So much has come to its end.
    pub(super) fn came(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.measured = self.measured.saturating_add(bytes);
    }

    /// Twenty milliseconds have passed: the window follows the line upwards.
    pub(super) fn look(&mut self) {
        self.looks += 1;
        if self.looks >= LOOKS {
            self.window = self.window.max(self.measured.saturating_mul(MEASUREMENTS));
            (self.looks, self.measured) = (0, 0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::ChunkId;
    use protocol::ChunkRequest;

    #[test]
    fn base_goes_first_and_a_full_window_lets_nothing_go() {
        let chunk = |layer| {
            let id = ChunkId { title: "film".parse().unwrap(), block: 1, layer };
            StreamRequest::Chunk(ChunkRequest::whole(id, 100))
        };
        let mut lane = Lane::default();
        for (number, layer) in [(1, Layer::ENH1), (2, Layer::BASE), (3, Layer::BASE)] {
            let flow = Flow::asked(Time::ZERO, StreamId(number), RequestId(number), &chunk(layer), 10_000);
            lane.flows.push(flow);
        }
        assert_eq!(lane.next(), None, "nothing is granted");
        lane.grant(StreamId(1), true);
        lane.grant(StreamId(2), true);
        let sent: Vec<_> = std::iter::from_fn(|| lane.next()).collect();
        assert_eq!(sent.iter().map(|one| one.bytes).sum::<u64>(), 10_000 + 6 * 1_200);
        assert!(sent.iter().take(9).all(|one| one.request == RequestId(2)));
        assert_eq!(sent.get(8).unwrap().whole, Some((StreamId(2), 10_000)));
        lane.came(1_200);
        let next = Datagram { request: RequestId(1), bytes: 1_200, whole: None };
        assert_eq!(lane.next(), Some(next));
        assert_eq!(lane.stop(RequestId(1)), Some(StreamId(1)));
        lane.came(100_000);
        (0..5).for_each(|_| lane.look());
        assert_eq!(lane.window, 4 * 101_200);
    }
}
