//! A link that carries so many bits a second: every connection through it
//! shares one queue, as at the viewer's own line.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until};

/// Bytes that wait at most; more are lost, as on any line.
const QUEUE: usize = 48_000;

#[derive(Default)]
struct Line {
    queue: VecDeque<(Arc<UdpSocket>, SocketAddr, Vec<u8>)>,
    bytes: usize,
}

/// Stands before each of `nodes`; returns where viewers find them.
pub fn start(
    nodes: BTreeMap<&'static str, SocketAddr>,
    bits_per_second: u64,
) -> BTreeMap<&'static str, SocketAddr> {
    let line = Arc::new((Mutex::new(Line::default()), Notify::new()));
    tokio::spawn(drain(line.clone(), bits_per_second));
    let mut told = BTreeMap::new();
    for (name, node) in nodes {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        told.insert(name, socket.local_addr().unwrap());
        tokio::spawn(carry(UdpSocket::from_std(socket).unwrap(), node, line.clone()));
    }
    told
}

/// From viewers to the node at once; back through the line.
async fn carry(front: UdpSocket, node: SocketAddr, line: Arc<(Mutex<Line>, Notify)>) {
    let front = Arc::new(front);
    let mut ways: BTreeMap<SocketAddr, Arc<UdpSocket>> = BTreeMap::new();
    let mut packet = vec![0; 65_536];
    while let Ok((length, viewer)) = front.recv_from(&mut packet).await {
        let back = if let Some(back) = ways.get(&viewer) {
            back.clone()
        } else {
            let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            ways.insert(viewer, back.clone());
            tokio::spawn(return_way(back.clone(), front.clone(), viewer, line.clone()));
            back
        };
        let _ = back.send_to(&packet[..length], node).await;
    }
}

async fn return_way(
    back: Arc<UdpSocket>,
    front: Arc<UdpSocket>,
    viewer: SocketAddr,
    line: Arc<(Mutex<Line>, Notify)>,
) {
    let mut packet = vec![0; 65_536];
    while let Ok(length) = back.recv(&mut packet).await {
        let mut queue = line.0.lock().await;
        if queue.bytes + length <= QUEUE {
            queue.bytes += length;
            queue.queue.push_back((front.clone(), viewer, packet[..length].to_vec()));
            line.1.notify_one();
        }
    }
}

async fn drain(line: Arc<(Mutex<Line>, Notify)>, bits_per_second: u64) {
    let mut free_at = Instant::now();
    loop {
        let next = line.0.lock().await.queue.pop_front();
        let Some((front, viewer, packet)) = next else {
            line.1.notified().await;
            continue;
        };
        let takes = Duration::from_nanos(packet.len() as u64 * 8 * 1_000_000_000 / bits_per_second);
        free_at = free_at.max(Instant::now()) + takes;
        sleep_until(free_at).await;
        line.0.lock().await.bytes -= packet.len();
        let _ = front.send_to(&packet, viewer).await;
    }
}
