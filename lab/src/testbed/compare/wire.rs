//! The line of a browser: TCP connections relayed over one [`sim::Pipe`], which gives
//! them the rate and the delay that our own datagrams get from the relay of
//! [`crate::links`]. A sender that is faster than the line is held back, as by a
//! queue that TCP has learned to fill; nothing is ever lost. That is kinder than a
//! network.

use media::{ByteCount, Span, Time};
use sim::{Passage, Pipe, PipeShape, Rng};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

/// Read at once.
const PIECE: usize = 4 * 1024;
/// Pieces under way on one connection; the pipe's queue is less than that.
const PIECES: usize = 1_024;
/// The most connections at once.
const CONNECTIONS: usize = 64;
/// Payload and headers of a full segment.
const SEGMENT: (u64, u64) = (1_448, 52);

/// A line that doors share.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pipe: Arc<Mutex<Pipe>>,
    shape: PipeShape,
    began: Instant,
    bytes: Arc<AtomicU64>,
}

/// Where to dial to reach a server over a line. Closed when dropped.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    silent: Arc<AtomicBool>,
    // Aborted with it, and every connection with that.
    _accepting: JoinSet<()>,
}

impl Wire {
    /// A line with nobody on it.
    pub(super) fn new(shape: PipeShape) -> Self {
        let pipe = Arc::new(Mutex::new(Pipe::new(shape)));
        Self { pipe, shape, began: Instant::now(), bytes: Arc::default() }
    }

    /// What went over it towards the browser so far, without headers.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A door in front of whoever listens at `target`.
    pub(super) async fn door(&self, target: SocketAddr) -> io::Result<Door> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let silent = Arc::new(AtomicBool::new(false));
        let (wire, quiet) = (self.clone(), Arc::clone(&silent));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                if connections.len() < CONNECTIONS {
                    let (wire, quiet) = (wire.clone(), Arc::clone(&quiet));
                    connections.spawn(async move { wire.carry(near, target, quiet).await });
                }
            }
        });
        Ok(Door { address, silent, _accepting: accepting })
    }

    /// When a piece of so many bytes arrives, and until when the sender must wait.
    fn pass(&self, bytes: usize) -> (Instant, Instant) {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let length = ByteCount(bytes + bytes.div_ceil(SEGMENT.0) * SEGMENT.1);
        let now = Time::ZERO + Span::from(self.began.elapsed());
        let open = PipeShape { queue: Span::MAX, loss: 0.0, ..self.shape };
        let passage = {
            let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
            pipe.reshape(open);
            pipe.pass(now, length, &mut Rng::new(0))
        };
        let at = if let Passage::At(at) = passage { at } else { now };
        let moment = |time: Time| self.began + Duration::from(time - Time::ZERO);
        let held = self.shape.delay + self.shape.queue.min(Span::from_secs(1));
        let free = Time::ZERO + (at - Time::ZERO).saturating_sub(held);
        (moment(at), moment(free))
    }

    async fn carry(&self, near: TcpStream, target: SocketAddr, silent: Arc<AtomicBool>) {
        // Small pieces must not wait for one another.
        let _ = near.set_nodelay(true);
        if silent.load(Ordering::Relaxed) {
            // A machine without power: no answer, for ever.
            std::future::pending::<()>().await;
        }
        // The handshake takes a round trip.
        sleep(Duration::from(self.shape.delay) * 2).await;
        let Ok(far) = TcpStream::connect(target).await else { return };
        let _ = far.set_nodelay(true);
        let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
        let delay = Duration::from(self.shape.delay);
        let there = async {
            let _ = upwards(from_near, to_far, delay).await;
            // Who has said all still listens.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = there => {}
            _ = self.downwards(from_far, to_near, &silent) => {}
        }
    }

    /// From the server, at the line's rate. Ends when the server ends.
    async fn downwards(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        silent: &AtomicBool,
    ) -> io::Result<()> {
        let (sender, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES);
        let reading = async move {
            let mut piece = vec![0; PIECE];
            while let Ok(read @ 1..) = from.read(&mut piece).await {
                let (at, free) = self.pass(read);
                self.bytes.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
                if sender.send((at, piece.get(..read).unwrap_or_default().to_vec())).await.is_err() {
                    break;
                }
                sleep_until(free.into()).await;
            }
            if silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let writing = async move {
            while let Some((at, piece)) = due.recv().await {
                sleep_until(at.into()).await;
                to.write_all(&piece).await?;
            }
            Ok(())
        };
        let ((), written) = tokio::join!(reading, writing);
        written
    }
}

impl Door {
    /// From now on nothing is answered here, and nothing is said of an end: as if the
    /// machine behind it had lost its power.
    pub(super) fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }
}

/// From the browser: requests, which are small.
async fn upwards(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        sleep(delay).await;
        to.write_all(piece.get(..read).unwrap_or_default()).await?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::BitRate;

    #[tokio::test]
    async fn a_line_has_its_rate_and_its_delay_and_a_dead_machine_says_nothing() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let target = server.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                stream.write_all(&vec![7; 100_000]).await.unwrap();
            }
        });
        let shape = PipeShape {
            rate: Some(BitRate(4_000_000)),
            delay: Span::from_millis(30),
            queue: Span::from_millis(100),
            ..PipeShape::OPEN
        };
        let wire = Wire::new(shape);
        let door = wire.door(target).await.unwrap();
        let began = Instant::now();
        let mut client = TcpStream::connect(door.address).await.unwrap();
        client.write_all(&[1]).await.unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        assert_eq!((all.len(), wire.bytes()), (100_000, 100_000));
        // 103,640 bytes with headers at 4 Mbit/s, and four times the delay.
        assert!(began.elapsed() >= Duration::from_millis(207 + 120), "{:?}", began.elapsed());
        door.fall_silent();
        let mut client = TcpStream::connect(door.address).await.unwrap();
        client.write_all(&[1]).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_millis(300), client.read(&mut [0])).await;
        assert!(answer.is_err(), "no answer, and no end either");
    }
}
