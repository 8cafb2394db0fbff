//! The thread that all links run on: wait for the next datagram or the next that
//! is due, read what came, send what is due.

use super::Shared;
use media::Span;
use quinn_udp::{BATCH_SIZE, RecvMeta};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

/// How long it waits at most before it looks whether it is to stop, and so how
/// late it notices what somebody else has changed.
const LOOK: Span = Span::from_millis(50);
/// Sockets that are read between two looks at what is due.
const EVENTS: usize = 64;
/// The longest that one call may give: many datagrams, joined by the kernel.
const BUFFER_BYTES: usize = 64 * 1024;

/// Room for what one call gives.
pub(super) struct Reader {
    buffers: Vec<Vec<u8>>,
    metas: Vec<RecvMeta>,
}

impl Reader {
    fn new() -> Self {
        Self {
            buffers: vec![vec![0; BUFFER_BYTES]; BATCH_SIZE],
            metas: vec![RecvMeta::default(); BATCH_SIZE],
        }
    }

    /// Reads what lies ready, as much as there is room for, and gives each datagram
    /// with who sent it.
    pub(super) fn read(
        &mut self,
        socket: &UdpSocket,
        state: &quinn_udp::UdpSocketState,
    ) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        // Nothing there, or the news that nobody listens at the other end: either
        // way there is nothing to pass on.
        let got = state.recv(socket.into(), &mut slices, &mut self.metas).unwrap_or(0);
        self.metas.iter().zip(&self.buffers).take(got).flat_map(|(meta, buffer)| {
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            bytes.chunks(meta.stride.max(1)).map(|datagram| (meta.addr, datagram))
        })
    }
}

/// Relays until the order to stop.
pub(super) fn run(shared: &Shared) {
    let mut reader = Reader::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    while !shared.stop.load(Ordering::Relaxed) {
        let due = shared.table().next_due();
        let wait = due.map_or(LOOK, |due| due.since(shared.now()).min(LOOK));
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait.as_nanos()).unwrap_or(0) };
        events.clear();
        match epoll::wait(&shared.epoll, spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "the relay cannot wait for its sockets and ends");
                return;
            }
        }
        let mut table = shared.table();
        for event in &events {
            let data = event.data;
            table.read(data.u64(), &mut reader, shared.now(), &shared.epoll);
        }
        table.send_due(|| shared.now());
    }
}
