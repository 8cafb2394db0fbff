//! A UDP relay that limits the rate towards its clients, like a narrow last
//! mile: a drop-tail queue in front of a link of fixed rate. Threads and
//! blocking sockets only, so that it disturbs nothing it measures.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Headers of IP and UDP that a datagram costs on a real link, in bytes.
const HEADERS: usize = 28;

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
}

struct Link {
    bits_per_second: u64,
    /// How much the queue in front of it holds, as time at the link's rate.
    queue: Duration,
    free_at: Mutex<Instant>,
    dropped: Arc<AtomicU64>,
}

impl Link {
    /// When a datagram of `bytes` will be through, or nothing if the queue is full.
    fn pass(&self, bytes: usize) -> Option<Instant> {
        let now = Instant::now();
        let mut free_at = self.free_at.lock().unwrap();
        let start = (*free_at).max(now);
        if start - now > self.queue {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let bits = u64::try_from((bytes + HEADERS) * 8).unwrap();
        *free_at = start + Duration::from_nanos(bits * 1_000_000_000 / self.bits_per_second);
        Some(*free_at)
    }
}

impl Relay {
    /// Relays to `target`; all clients together get `bits_per_second`, behind a
    /// queue that holds `queue` of it.
    pub fn start(target: SocketAddr, bits_per_second: u64, queue: Duration) -> Self {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        front.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let address = front.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let dropped = Arc::new(AtomicU64::new(0));
        let link = Arc::new(Link {
            bits_per_second,
            queue,
            free_at: Mutex::new(Instant::now()),
            dropped: Arc::clone(&dropped),
        });
        let stopped = Arc::clone(&stop);
        thread::spawn(move || upwards(&front, target, &link, &stopped));
        Self { address, stop, dropped }
    }

    /// Where clients dial.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams that found the queue full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Clients' datagrams go on at once; each client gets a socket of its own.
fn upwards(front: &UdpSocket, target: SocketAddr, link: &Arc<Link>, stop: &Arc<AtomicBool>) {
    let mut flows: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut datagram = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, client)) = front.recv_from(&mut datagram) else { continue };
        let flow = flows.entry(client).or_insert_with(|| {
            let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            back.connect(target).unwrap();
            back.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let (front, reader) = (front.try_clone().unwrap(), back.try_clone().unwrap());
            let (link, stop) = (Arc::clone(link), Arc::clone(stop));
            thread::spawn(move || downwards(&reader, front, client, &link, &stop));
            back
        });
        flow.send(&datagram[..length]).ok();
    }
}

/// The server's datagrams wait for the link.
fn downwards(back: &UdpSocket, front: UdpSocket, client: SocketAddr, link: &Link, stop: &AtomicBool) {
    let (queue, waiting) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (when, datagram) in waiting {
            thread::sleep(when.saturating_duration_since(Instant::now()));
            front.send_to(&datagram, client).ok();
        }
    });
    let mut datagram = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok(length) = back.recv(&mut datagram) else { continue };
        if let Some(when) = link.pass(length) {
            queue.send((when, datagram[..length].to_vec())).ok();
        }
    }
}
