//! A UDP relay in front of a node that passes everything on, until it is cut: as
//! a whole, or for what one address says or hears. Threads and blocking sockets
//! only, so that it disturbs nothing it measures.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What does not get through.
#[derive(Debug, Default)]
struct Cuts {
    /// Nothing at all.
    all: bool,
    /// Nothing from or to these addresses.
    both_ways: BTreeSet<SocketAddr>,
    /// Nothing to these addresses: they are deaf for this node.
    deaf: BTreeSet<SocketAddr>,
    /// Nothing from these addresses: this node is deaf for them.
    unheard: BTreeSet<SocketAddr>,
}

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    cuts: Arc<Mutex<Cuts>>,
    stop: Arc<AtomicBool>,
}

impl Wire {
    /// Leads to `target`, the address at which a node listens.
    pub fn to(target: SocketAddr) -> Self {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        front.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let address = front.local_addr().unwrap();
        let (cuts, stop) = (Arc::<Mutex<Cuts>>::default(), Arc::new(AtomicBool::new(false)));
        let (cut, stopped) = (Arc::clone(&cuts), Arc::clone(&stop));
        thread::spawn(move || inwards(&front, target, &cut, &stopped));
        Self { address, cuts, stop }
    }

    /// Where others find the node.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the node off, or no more.
    pub fn cut(&self, all: bool) {
        self.cuts.lock().unwrap().all = all;
    }

    /// Cuts it off from whoever listens at this address, or no more.
    pub fn cut_from(&self, other: SocketAddr, cut: bool) {
        set(&mut self.cuts.lock().unwrap().both_ways, other, cut);
    }

    /// Whoever listens at this address hears nothing of the node any more.
    pub fn deafen(&self, other: SocketAddr) {
        set(&mut self.cuts.lock().unwrap().deaf, other, true);
    }

    /// The node hears nothing of whoever listens at this address any more.
    pub fn ignore(&self, other: SocketAddr) {
        set(&mut self.cuts.lock().unwrap().unheard, other, true);
    }
}

fn set(of: &mut BTreeSet<SocketAddr>, other: SocketAddr, is: bool) {
    if is {
        of.insert(other);
    } else {
        of.remove(&other);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Each who dials gets a socket of its own towards the node.
fn inwards(front: &UdpSocket, target: SocketAddr, cuts: &Arc<Mutex<Cuts>>, stop: &Arc<AtomicBool>) {
    let mut flows: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut datagram = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = front.recv_from(&mut datagram) else { continue };
        {
            let cuts = cuts.lock().unwrap();
            if cuts.all || cuts.both_ways.contains(&from) || cuts.unheard.contains(&from) {
                continue;
            }
        }
        let flow = flows.entry(from).or_insert_with(|| {
            let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            back.connect(target).unwrap();
            back.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let (front, reader) = (front.try_clone().unwrap(), back.try_clone().unwrap());
            let (cuts, stop) = (Arc::clone(cuts), Arc::clone(stop));
            thread::spawn(move || outwards(&reader, &front, from, &cuts, &stop));
            back
        });
        flow.send(&datagram[..length]).ok();
    }
}

fn outwards(back: &UdpSocket, front: &UdpSocket, to: SocketAddr, cuts: &Mutex<Cuts>, stop: &AtomicBool) {
    let mut datagram = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok(length) = back.recv(&mut datagram) else { continue };
        let lost = {
            let cuts = cuts.lock().unwrap();
            cuts.all || cuts.both_ways.contains(&to) || cuts.deaf.contains(&to)
        };
        if !lost {
            front.send_to(&datagram[..length], to).ok();
        }
    }
}
