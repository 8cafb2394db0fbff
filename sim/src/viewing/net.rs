//! The loop, and what lies between the machines: connections, and the lines that
//! carry them.

use super::flow::{DATAGRAM, Datagram, Flow, HEADERS, Lane};
use super::seat::Seat;
use super::town::Host;
use super::{Plan, Seen, Whom};
use crate::link::{Passage, Pipe, PipeShape};
use crate::queue::Queue;
use crate::rng::Rng;
use media::{ByteCount, Layer, Span, Time};
use protocol::frame;
use protocol::node::{Input as NodeInput, Outcome};
use protocol::player::{RequestId, SourceId};
use protocol::{Hello, LinkId, Message, Refusal, StreamId, StreamRequest};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How long a connection to a dead node seems to stand.
const IDLE: Span = Span::from_secs(5);
/// After how long a lost datagram is sent again.
const AGAIN: Span = Span::from_millis(100);
/// What a handshake's flights weigh.
const FLIGHTS: [u64; 2] = [1_200, 3_600];
/// For how long a network may form before it is played in.
const FORMING: Span = Span::from_secs(60);
/// How long everything has stood when the first viewer may come.
const SETTLED: Span = Span::from_secs(1);
/// How often a player looks around.
const TICK: Span = Span::from_millis(20);

/// One end of a connection, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Node(usize),
    Viewer(usize),
}

/// What a datagram carries.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    Knock,
    Welcome,
    Hello(Hello),
    Say(Box<Message>),
    Ask { request: RequestId, wanted: StreamRequest },
    Stop { request: RequestId },
    Piece { request: RequestId, bytes: u64, last: bool },
    Got { bytes: u64 },
    No { request: RequestId, why: Refusal },
}

impl Parcel {
    fn length(&self) -> ByteCount {
        ByteCount(match self {
            Self::Knock => FLIGHTS[0],
            Self::Welcome => FLIGHTS[1],
            Self::Hello(_) | Self::Ask { .. } | Self::No { .. } => 2 * HEADERS,
            Self::Say(message) => HEADERS + frame::length(message.as_ref()).min(DATAGRAM),
            Self::Stop { .. } | Self::Got { .. } => HEADERS,
            Self::Piece { bytes, .. } => HEADERS + bytes,
        })
    }
}

/// A connection: who dialled, and whom.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub(super) from: End,
    pub(super) to: End,
    /// The address that a node dialled, until it was answered.
    pub(super) dialled: Option<SocketAddr>,
    pub(super) lane: Lane,
}

impl Conn {
    fn other(&self, end: End) -> End {
        if self.from == end { self.to } else { self.from }
    }
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    Arrives { link: LinkId, to: End, parcel: Parcel },
    Again { link: LinkId, from: End, parcel: Parcel },
    Gone { link: LinkId, to: End, parted: bool },
    Unreached { node: usize, address: SocketAddr },
    Copied { node: usize, layer: Layer },
    Wake { end: End },
    Tick { viewer: usize },
    Comes { viewer: usize },
    CallLate { viewer: usize, link: LinkId },
    AskAgain { viewer: usize, link: LinkId },
    FetchLate { viewer: usize, request: RequestId },
    Dies { number: usize },
}

/// Nodes, viewers, and everything between them.
pub(super) struct Net {
    pub(super) queue: Queue<Happens>,
    pub(super) hosts: Vec<Host>,
    pub(super) seats: Vec<Seat>,
    pub(super) conns: BTreeMap<LinkId, Conn>,
    pipes: BTreeMap<(End, Option<End>, bool), Pipe>,
    between: PipeShape,
    last_mile: PipeShape,
    rng: Rng,
    serial: u64,
    deaths: Vec<Whom>,
}

impl Net {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            queue: Queue::default(),
            hosts: Host::all(plan),
            seats: plan.guests.iter().map(|guest| Seat::new(plan, *guest)).collect(),
            conns: BTreeMap::new(),
            pipes: BTreeMap::new(),
            between: plan.between,
            last_mile: plan.last_mile,
            rng: Rng::stream(plan.seed, 31),
            serial: 0,
            deaths: plan.deaths.iter().map(|(_, whom)| *whom).collect(),
        }
    }

    pub(super) fn run(mut self, plan: &Plan) -> Vec<Seen> {
        for node in 0..self.hosts.len() {
            self.look_through(node);
        }
        while !self.is_spread(plan) && self.now() < Time::ZERO + FORMING {
            let next = self.now() + Span::from_millis(100);
            self.run_until(next);
        }
        let zero = self.now() + SETTLED;
        self.run_until(zero);
        for (viewer, guest) in plan.guests.iter().enumerate() {
            self.queue.plan(zero + guest.comes, Happens::Comes { viewer });
        }
        for (number, (at, _)) in plan.deaths.iter().enumerate() {
            self.queue.plan(zero + *at, Happens::Dies { number });
        }
        let end = zero + plan.lasts;
        self.run_until(end);
        self.seats.into_iter().map(|seat| seat.finish(end)).collect()
    }

    pub(super) fn now(&self) -> Time {
        self.queue.now()
    }

    pub(super) fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn run_until(&mut self, end: Time) {
        while let Some(happens) = self.queue.take_until(end) {
            self.happen(happens);
        }
        self.queue.set_forward(end);
    }

    fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Arrives { link, to: End::Node(node), parcel } => self.at_node(link, node, parcel),
            Happens::Arrives { link, to: End::Viewer(viewer), parcel } => {
                self.at_viewer(link, viewer, parcel);
            }
            Happens::Again { link, from, parcel } => self.send(link, from, parcel),
            Happens::Gone { link, to, parted } => {
                self.conns.remove(&link);
                match to {
                    End::Node(node) => self.tell_node(node, NodeInput::Gone { link, parted }),
                    End::Viewer(viewer) => self.broken(viewer, link),
                }
            }
            Happens::Unreached { node, address } => self.tell_node(node, NodeInput::Unreached { address }),
            Happens::Copied { node, layer } => self.copied(node, layer),
            Happens::Wake { end: End::Node(node) } => self.wake_node(node),
            Happens::Wake { end: End::Viewer(viewer) } => self.wake_viewer(viewer),
            Happens::Tick { viewer } => self.tick(viewer),
            Happens::Comes { viewer } => self.comes(viewer),
            Happens::CallLate { viewer, link } => self.call_failed(viewer, link),
            Happens::AskAgain { viewer, link } => self.open(viewer, link),
            Happens::FetchLate { viewer, request } => self.fetch_late(viewer, request),
            Happens::Dies { number } => self.dies(number),
        }
    }

    /// A connection is made; its first datagram goes.
    pub(super) fn dial(&mut self, from: End, to: usize, dialled: Option<SocketAddr>) -> LinkId {
        let link = LinkId(self.number());
        self.conns.insert(link, Conn { from, to: End::Node(to), dialled, lane: Lane::default() });
        self.send(link, from, Parcel::Knock);
        link
    }

    /// Sends something over a connection, as the line between both ends allows.
    pub(super) fn send(&mut self, link: LinkId, from: End, parcel: Parcel) {
        let Some(to) = self.conns.get(&link).map(|conn| conn.other(from)) else { return };
        let now = self.now();
        let (key, shape) = match (from, to) {
            (End::Viewer(_), _) => ((from, None, true), self.last_mile),
            (_, End::Viewer(_)) => ((to, None, false), self.last_mile),
            (End::Node(_), End::Node(_)) => ((from, Some(to), true), self.between),
        };
        let pipe = self.pipes.entry(key).or_insert_with(|| Pipe::new(shape));
        match pipe.pass(now, parcel.length(), &mut self.rng) {
            Passage::At(at) => self.queue.plan(at, Happens::Arrives { link, to, parcel }),
            Passage::Lost | Passage::Full => {
                self.queue.plan(now + AGAIN, Happens::Again { link, from, parcel });
            }
        }
    }

    /// What is granted on a connection goes as far as its window allows.
    pub(super) fn pump(&mut self, link: LinkId) {
        while let Some(conn) = self.conns.get_mut(&link) {
            let (from, to) = (conn.to, conn.from);
            let Some(Datagram { request, bytes, whole }) = conn.lane.next() else { return };
            if let (End::Node(node), End::Viewer(_)) = (from, to) {
                self.send(link, from, Parcel::Piece { request, bytes, last: whole.is_some() });
                if let Some((stream, bytes)) = whole {
                    let outcome = Outcome::Sent { bytes };
                    self.tell_node(node, NodeInput::Answered { stream, outcome });
                }
            }
        }
    }

    /// A request of a viewer is at its node.
    pub(super) fn asked(&mut self, link: LinkId, node: usize, request: RequestId, wanted: StreamRequest) {
        let (stream, now) = (StreamId(self.number()), self.now());
        let length = self.hosts.get(node).map_or(0, |host| host.length(&wanted));
        let Some(conn) = self.conns.get_mut(&link) else { return };
        conn.lane.flows.push(Flow::asked(now, stream, request, &wanted, length));
        self.tell_node(node, NodeInput::Asked { link, stream, request: wanted });
    }

    /// Somebody is gone without a word: who spoke with it misses it after a while.
    fn silence(&mut self, dead: End) {
        let now = self.now();
        for (link, conn) in self.conns.iter().filter(|(_, conn)| conn.from == dead || conn.to == dead) {
            let to = conn.other(dead);
            self.queue.plan(now + IDLE, Happens::Gone { link: *link, to, parted: false });
        }
    }

    /// One end closes a connection; the other hears of it.
    pub(super) fn close(&mut self, link: LinkId, from: End) {
        let Some(conn) = self.conns.get(&link) else { return };
        let to = conn.other(from);
        let travel = match (from, to) {
            (End::Node(_), End::Node(_)) => self.between.delay,
            _ => self.last_mile.delay,
        };
        self.queue.plan(self.now() + travel, Happens::Gone { link, to, parted: true });
    }

    /// What a message takes one way.
    pub(super) fn travel(&self, link: LinkId) -> Span {
        let viewer = |end| matches!(end, End::Viewer(_));
        let conn = self.conns.get(&link);
        let mile = conn.is_some_and(|conn| viewer(conn.from) || viewer(conn.to));
        if mile { self.last_mile.delay } else { self.between.delay }
    }

    fn dies(&mut self, number: usize) {
        let Some(whom) = self.deaths.get(number).copied() else { return };
        let node = match whom {
            Whom::Named(peer) => self.hosts.iter().position(|host| host.peer == peer),
            Whom::Serving => self.serving_most(),
        };
        let Some(node) = node else { return };
        let now = self.now();
        for seat in &mut self.seats {
            seat.struck(now, self.hosts.get(node).map(|host| host.address));
        }
        if let Some(host) = self.hosts.get_mut(node) {
            host.node = None;
        }
        self.silence(End::Node(node));
    }

    fn serving_most(&self) -> Option<usize> {
        let serves = |address| self.seats.iter().filter(|seat| seat.is_served_by(address)).count();
        let bases = self.hosts.iter().enumerate().filter(|(_, host)| host.is_base() && host.node.is_some());
        let counts: Vec<(usize, usize)> = bases.map(|(node, host)| (node, serves(host.address))).collect();
        let most = counts.iter().map(|(_, count)| *count).max()?;
        counts.into_iter().find(|(_, count)| *count == most).map(|(node, _)| node)
    }

    pub(super) fn plan_tick(&mut self, viewer: usize) {
        self.queue.plan(self.now() + TICK, Happens::Tick { viewer });
    }

    /// The name that a source of a viewer has here.
    pub(super) fn node_at(&self, address: SocketAddr) -> Option<usize> {
        self.hosts.iter().position(|host| host.address == address)
    }

    pub(super) fn link_of(&self, viewer: usize, source: SourceId) -> Option<LinkId> {
        self.seats.get(viewer)?.wires.get(&source).map(|wire| wire.link)
    }
}
