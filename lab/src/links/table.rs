//! What the relay knows: links, doors, who has dialled, and what is under way.

use super::relay::Reader;
use super::{Counts, Lateness, LinkShape};
use media::{ByteCount, Time};
use quinn_udp::UdpSocketState;
use rustix::event::epoll::{self, EventData, EventFlags};
use serde::Serialize;
use sim::{Passage, Pipe, Rng, Trace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Headers of IP and UDP that a datagram costs on a real link, in bytes.
pub(super) const HEADERS: u64 = 28;
/// The most bytes under way.
const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;
/// The most diallers, over all doors.
const MAX_FLOWS: usize = 4_096;
/// What is asked of the kernel for each socket.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(usize);

/// A door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DoorId(usize);

/// In which direction a dialler goes along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From its first end to its second.
    Along,
    /// From its second end to its first.
    Against,
}

impl Way {
    const fn turned(self) -> Self {
        match self {
            Self::Along => Self::Against,
            Self::Against => Self::Along,
        }
    }
}

/// What one direction of a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Datagrams that arrived, or will.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Datagrams lost on the line.
    pub lost: u64,
    /// Datagrams that found the queue full.
    pub full: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.full += other.full;
    }
}

#[derive(Debug)]
struct Side {
    pipe: Pipe,
    count: Count,
}

#[derive(Debug)]
struct Link {
    there: Side,
    back: Side,
}

impl Link {
    fn new(shape: LinkShape) -> Self {
        let side = |shape| Side { pipe: Pipe::new(shape), count: Count::default() };
        Self { there: side(shape.there), back: side(shape.back) }
    }
}

#[derive(Debug)]
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Port {
    fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        // What is not granted shows in the figures.
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER_BYTES);
        Ok(Self { socket, state })
    }
}

#[derive(Debug)]
struct Door {
    port: Port,
    target: SocketAddr,
    routes: BTreeMap<IpAddr, (LinkId, Way)>,
    others: LinkShape,
    flows: BTreeMap<SocketAddr, usize>,
    own: Vec<LinkId>,
}

/// One dialler at one door.
#[derive(Debug)]
struct Flow {
    port: Port,
    door: usize,
    dialler: SocketAddr,
    link: LinkId,
    way: Way,
}

/// A datagram under way; the earliest first, and of two the one that came first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Time,
    number: u64,
    flow: usize,
    inwards: bool,
    bytes: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct Table {
    links: Vec<Link>,
    doors: Vec<Door>,
    flows: Vec<Flow>,
    held: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    number: u64,
    rng: Rng,
    pub(super) lateness: Lateness,
    pub(super) turned_away: u64,
}

impl Table {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            links: Vec::new(),
            doors: Vec::new(),
            flows: Vec::new(),
            held: BinaryHeap::new(),
            held_bytes: 0,
            number: 0,
            rng: Rng::new(seed),
            lateness: Lateness::default(),
            turned_away: 0,
        }
    }

    pub(super) fn link(&mut self, shape: LinkShape) -> LinkId {
        self.links.push(Link::new(shape));
        LinkId(self.links.len() - 1)
    }

    pub(super) fn door(&mut self, epoll: &OwnedFd, target: SocketAddr) -> io::Result<(DoorId, SocketAddr)> {
        let port = Port::new()?;
        let address = port.socket.local_addr()?;
        let id = self.doors.len();
        epoll::add(epoll, &port.socket, tag(id, false), EventFlags::IN)?;
        let (routes, flows, own) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        self.doors.push(Door { port, target, routes, others: LinkShape::OPEN, flows, own });
        Ok((DoorId(id), address))
    }

    pub(super) fn route(&mut self, door: DoorId, from: IpAddr, link: LinkId, way: Way) {
        if let Some(door) = self.doors.get_mut(door.0) {
            door.routes.insert(from, (link, way));
            for flow in door.flows.values() {
                if let Some(flow) = self.flows.get_mut(*flow).filter(|flow| flow.dialler.ip() == from) {
                    (flow.link, flow.way) = (link, way);
                }
            }
        }
    }

    pub(super) fn others(&mut self, door: DoorId, shape: LinkShape) {
        if let Some(door) = self.doors.get_mut(door.0) {
            door.others = shape;
        }
    }

    pub(super) fn reshape(&mut self, link: LinkId, shape: LinkShape) {
        if let Some(link) = self.links.get_mut(link.0) {
            link.there.pipe.reshape(shape.there);
            link.back.pipe.reshape(shape.back);
        }
    }

    pub(super) fn follow(&mut self, link: LinkId, now: Time, [there, back]: [Option<Arc<Trace>>; 2]) {
        if let Some(link) = self.links.get_mut(link.0) {
            link.there.pipe.follow(now, there);
            link.back.pipe.follow(now, back);
        }
    }

    pub(super) fn counts(&self, link: LinkId) -> Counts {
        let link = self.links.get(link.0);
        link.map_or_else(Counts::default, |link| Counts { there: link.there.count, back: link.back.count })
    }

    pub(super) fn counts_of_others(&self, door: DoorId) -> Counts {
        let mut all = Counts::default();
        for link in self.doors.get(door.0).into_iter().flat_map(|door| &door.own) {
            let counts = self.counts(*link);
            all.there.add(counts.there);
            all.back.add(counts.back);
        }
        all
    }

    /// When the next datagram arrives.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Reads a socket that has something.
    pub(super) fn read(&mut self, tag: u64, reader: &mut Reader, now: Time, epoll: &OwnedFd) {
        let index = usize::try_from(tag >> 1).unwrap_or(usize::MAX);
        if tag & 1 == 1 {
            let Some(flow) = self.flows.get(index) else { return };
            let came: Vec<Box<[u8]>> =
                reader.read(&flow.port.socket, &flow.port.state).map(|(_, bytes)| bytes.into()).collect();
            for bytes in came {
                self.pass(index, false, now, bytes);
            }
        } else {
            let Some(door) = self.doors.get(index) else { return };
            let came: Vec<(SocketAddr, Box<[u8]>)> = reader
                .read(&door.port.socket, &door.port.state)
                .map(|(dialler, bytes)| (dialler, bytes.into()))
                .collect();
            for (dialler, bytes) in came {
                match self.flow(index, dialler, epoll) {
                    Ok(flow) => self.pass(flow, true, now, bytes),
                    Err(error) => {
                        self.turned_away += 1;
                        tracing::warn!(%dialler, %error, "the relay has no room for who dials");
                    }
                }
            }
        }
    }

    /// The flow of a dialler, made if it is new.
    fn flow(&mut self, at: usize, dialler: SocketAddr, epoll: &OwnedFd) -> io::Result<usize> {
        let Some(door) = self.doors.get_mut(at) else { return Err(io::ErrorKind::NotFound.into()) };
        if let Some(flow) = door.flows.get(&dialler) {
            return Ok(*flow);
        }
        let number = self.flows.len();
        if number >= MAX_FLOWS {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let port = Port::new()?;
        port.socket.connect(door.target)?;
        epoll::add(epoll, &port.socket, tag(number, true), EventFlags::IN)?;
        let (link, way) = door.routes.get(&dialler.ip()).copied().unwrap_or_else(|| {
            self.links.push(Link::new(door.others));
            let own = LinkId(self.links.len() - 1);
            door.own.push(own);
            (own, Way::Along)
        });
        door.flows.insert(dialler, number);
        self.flows.push(Flow { port, door: at, dialler, link, way });
        Ok(number)
    }

    /// A datagram comes to a link: `inwards`, from who dialled to who listens.
    fn pass(&mut self, flow: usize, inwards: bool, now: Time, bytes: Box<[u8]>) {
        let Some(of) = self.flows.get(flow) else { return };
        let Some(link) = self.links.get_mut(of.link.0) else { return };
        let way = if inwards { of.way } else { of.way.turned() };
        let side = match way {
            Way::Along => &mut link.there,
            Way::Against => &mut link.back,
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.held_bytes + bytes.len() > MAX_HELD_BYTES {
            self.turned_away += 1;
            return;
        }
        match side.pipe.pass(now, ByteCount(length + HEADERS), &mut self.rng) {
            Passage::Lost => side.count.lost += 1,
            Passage::Full => side.count.full += 1,
            Passage::At(due) => {
                side.count.datagrams += 1;
                side.count.bytes += length;
                if due <= now {
                    self.send(flow, inwards, &bytes);
                    return;
                }
                self.held_bytes += bytes.len();
                self.number += 1;
                self.held.push(Reverse(Held { due, number: self.number, flow, inwards, bytes }));
            }
        }
    }

    /// Sends what is due.
    pub(super) fn send_due(&mut self, now: impl Fn() -> Time) {
        loop {
            let at = now();
            if self.next_due().is_none_or(|due| due > at) {
                return;
            }
            let Some(Reverse(held)) = self.held.pop() else { return };
            self.held_bytes -= held.bytes.len();
            self.lateness.note(at.since(held.due));
            self.send(held.flow, held.inwards, &held.bytes);
        }
    }

    fn send(&mut self, flow: usize, inwards: bool, bytes: &[u8]) {
        let Some(flow) = self.flows.get(flow) else { return };
        let sent = if inwards {
            flow.port.socket.send(bytes)
        } else {
            let Some(door) = self.doors.get(flow.door) else { return };
            door.port.socket.send_to(bytes, flow.dialler)
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.turned_away += 1,
            // Nobody listens there any more: it is lost as on any network.
            Ok(_) | Err(_) => {}
        }
    }
}

/// What the kernel tells with an event: which socket, and whether of a flow.
fn tag(index: usize, flow: bool) -> EventData {
    let index = u64::try_from(index).unwrap_or(u64::MAX >> 1);
    EventData::new_u64(index << 1 | u64::from(flow))
}
