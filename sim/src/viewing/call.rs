//! How a viewer comes to a connection: it dials, greets and opens the title, first at
//! a door, and then where that sends it. The player's own way, step by step.

use super::net::{End, Happens, Net, Parcel};
use super::seat::Wire;
use super::town::VERSION;
use media::{Layer, Span};
use protocol::player::{Found, Input, Opening, RequestId, Service, SourceId};
use protocol::{
    Hello, LinkId, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, PeerId, Progress, Refusal, Role,
    StreamRequest, Visit,
};

/// How long a first dial may take, a later one, and a search at a door.
const PATIENCE: [Span; 3] = [Span::from_secs(3), Span::from_millis(950), Span::from_millis(1_400)];
/// How often a node that does not serve us yet is asked, and the pause between.
const MOST_ASKED: u32 = 5;
const ASK_AGAIN: Span = Span::from_millis(100);
/// Sources of each layer that are dialled before the machine asks for it.
const EARLY: usize = 2;
/// The name of the manifest's request.
const MANIFEST: RequestId = RequestId(u64::MAX);

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To enter the network.
    Enter,
    /// To be served by a source that is known.
    Attach(SourceId),
    /// To look for service at a door, and to be served where it says.
    Seek { door: SourceId },
}

/// A connection that is being made.
#[derive(Clone, Debug)]
pub(super) struct Call {
    purpose: Purpose,
    open: Open,
    asked: u32,
}

impl Call {
    pub(super) const fn attaches(&self) -> Option<SourceId> {
        match self.purpose {
            Purpose::Attach(source) => Some(source),
            Purpose::Enter | Purpose::Seek { .. } => None,
        }
    }
}

impl Net {
    /// A viewer comes, and knocks.
    pub(super) fn comes(&mut self, viewer: usize) {
        let (user, now) = (self.number(), self.now());
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        seat.name(user);
        seat.comes(now);
        let (at, open) = (seat.at(), seat.open.clone());
        let node = self.hosts.iter().find(|host| host.peer == at).map(|host| host.address);
        if let Some(address) = node {
            self.call(viewer, NodeAddress { peer: at, address }, Purpose::Enter, open, PATIENCE[0]);
        }
    }

    fn call(&mut self, viewer: usize, node: NodeAddress, purpose: Purpose, open: Open, within: Span) {
        let Some(to) = self.node_at(node.address) else { return };
        let link = self.dial(End::Viewer(viewer), to, None);
        if let Some(seat) = self.seats.get_mut(viewer) {
            seat.calls.insert(link, Call { purpose, open, asked: 0 });
        }
        self.queue.plan(self.now() + within, Happens::CallLate { viewer, link });
    }

    pub(super) fn dial_source(&mut self, viewer: usize, source: SourceId) {
        let Some(seat) = self.seats.get(viewer) else { return };
        let Some((peer, address)) = seat.table.get(usize::from(source.0)).copied() else { return };
        // One that stands, of which the machine has not heard, is still being dialled for it.
        let news = |input: &Input| matches!(input, Input::Connected { source: up, .. } if *up == source);
        if seat.calls.values().any(|call| call.attaches() == Some(source)) || seat.early.iter().any(news) {
            return;
        }
        let open = Open { visit: Visit::Attach, ..seat.open.clone() };
        let within = if seat.machine.is_some() { PATIENCE[1] } else { PATIENCE[0] };
        self.call(viewer, NodeAddress { peer, address }, Purpose::Attach(source), open, within);
    }

    pub(super) fn seek(
        &mut self,
        viewer: usize,
        door: SourceId,
        progress: Progress,
        former: [Option<SourceId>; 2],
    ) {
        let Some(seat) = self.seats.get(viewer) else { return };
        let named = |source: SourceId| seat.table.get(usize::from(source.0)).copied();
        let Some((peer, address)) = named(door) else { return };
        let former: Vec<PeerId> = former.into_iter().filter_map(|source| Some(named(source?)?.0)).collect();
        let open = Open { visit: Visit::Seek(progress), former, ..seat.open.clone() };
        self.call(viewer, NodeAddress { peer, address }, Purpose::Seek { door }, open, PATIENCE[2]);
    }

    /// Something comes to a viewer.
    pub(super) fn at_viewer(&mut self, link: LinkId, viewer: usize, parcel: Parcel) {
        match parcel {
            Parcel::Welcome => {
                let name = format!("viewer-{}", viewer + 1).parse();
                if let Ok(peer) = name {
                    let hello = Hello { version: PROTOCOL_VERSION, peer, role: Role::Viewer };
                    self.send(link, End::Viewer(viewer), Parcel::Hello(hello));
                    self.open(viewer, link);
                }
            }
            Parcel::Say(message) => {
                let calls = self.seats.get(viewer).is_some_and(|seat| seat.calls.contains_key(&link));
                if calls { self.answered(viewer, link, *message) } else { self.hear(viewer, link, &message) }
            }
            Parcel::Piece { request: MANIFEST, bytes, last } => {
                self.send(link, End::Viewer(viewer), Parcel::Got { bytes });
                if last {
                    self.begin(viewer);
                }
            }
            Parcel::Piece { request, bytes, last } => self.piece(viewer, link, request, bytes, last),
            Parcel::No { request, why } => self.refused(viewer, request, why),
            Parcel::Knock
            | Parcel::Hello(_)
            | Parcel::Ask { .. }
            | Parcel::Stop { .. }
            | Parcel::Got { .. } => {}
        }
    }

    /// Asks the node to open the title.
    pub(super) fn open(&mut self, viewer: usize, link: LinkId) {
        let call = self.seats.get_mut(viewer).and_then(|seat| seat.calls.get_mut(&link));
        if let Some(call) = call {
            call.asked += 1;
            let open = Message::Open(call.open.clone());
            self.send(link, End::Viewer(viewer), Parcel::Say(Box::new(open)));
        }
    }

    fn answered(&mut self, viewer: usize, link: LinkId, message: Message) {
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let Some(call) = seat.calls.get(&link).cloned() else { return };
        match message {
            Message::Opened(opened) if opened.request == call.open.request => {
                seat.calls.remove(&link);
                self.opened(viewer, link, call.purpose, &opened);
            }
            Message::Elsewhere { base, .. } if call.attaches().is_none() => {
                seat.calls.remove(&link);
                let open = Open { visit: Visit::Attach, ..call.open };
                self.close(link, End::Viewer(viewer));
                self.call(viewer, base, call.purpose, open, PATIENCE[2]);
            }
            Message::Refused { why: Refusal::NotServing, .. } if call.asked < MOST_ASKED => {
                self.queue.plan(self.now() + ASK_AGAIN, Happens::AskAgain { viewer, link });
            }
            Message::Refused { .. } | Message::Elsewhere { .. } => self.call_failed(viewer, link),
            _ => {}
        }
    }

    /// Nothing comes of a call.
    pub(super) fn call_failed(&mut self, viewer: usize, link: LinkId) {
        let call = self.seats.get_mut(viewer).and_then(|seat| seat.calls.remove(&link));
        let Some(call) = call else { return };
        self.close(link, End::Viewer(viewer));
        match call.purpose {
            Purpose::Enter => {}
            Purpose::Attach(source) => self.tell_viewer(viewer, Input::Lost { source }),
            Purpose::Seek { door } => self.tell_viewer(viewer, Input::NotFound { door }),
        }
    }

    fn opened(&mut self, viewer: usize, link: LinkId, purpose: Purpose, opened: &Opened) {
        let Some(node) = self.other_end(link) else { return };
        let round_trip = self.travel(link).saturating_mul(2);
        let wire = Wire { link, session: opened.session, heard: true, bytes: 0 };
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        match purpose {
            Purpose::Enter => {
                let order = order(&mut seat.table, opened, node);
                let service = service(&mut seat.table, opened, node);
                let here = number(&mut seat.table, &node);
                seat.open.visit = Visit::Attach;
                seat.quality = opened.quality;
                seat.wires.insert(here, wire);
                (seat.order, seat.service) = (order.clone(), service);
                for source in early(&order).filter(|source| *source != here) {
                    self.dial_source(viewer, source);
                }
                let title = self.seats.get(viewer).map(|seat| seat.title.name.clone());
                if let Some(title) = title {
                    let wanted = StreamRequest::Manifest(title);
                    self.send(link, End::Viewer(viewer), Parcel::Ask { request: MANIFEST, wanted });
                }
            }
            Purpose::Attach(source) => {
                seat.wires.insert(source, wire);
                self.tell_viewer(viewer, Input::Connected { source, round_trip });
                self.read_answer(viewer, source, opened);
            }
            Purpose::Seek { door } => {
                if seat.wires.remove(&door).is_some() {
                    self.tell_viewer(viewer, Input::Lost { source: door });
                }
                self.found(viewer, wire, node, opened);
            }
        }
    }

    fn found(&mut self, viewer: usize, wire: Wire, node: NodeAddress, opened: &Opened) {
        let round_trip = self.travel(wire.link).saturating_mul(2);
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let home = number(&mut seat.table, &node);
        let sources = order(&mut seat.table, opened, node);
        let service = Service { home: Some(home), ..service(&mut seat.table, opened, node) };
        let epoch = service.epoch;
        self.tell_viewer(viewer, Input::Found(Found { sources, service }));
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let taken = seat
            .machine
            .as_ref()
            .is_some_and(|machine| machine.home() == Some(home) && machine.epoch() == epoch);
        if taken {
            seat.wires.insert(home, wire);
            self.tell_viewer(viewer, Input::Connected { source: home, round_trip });
        } else {
            let bye = Parcel::Say(Box::new(Message::Close(wire.session)));
            self.send(wire.link, End::Viewer(viewer), bye);
            self.close(wire.link, End::Viewer(viewer));
        }
    }

    /// The manifest is here: the machine begins.
    fn begin(&mut self, viewer: usize) {
        let now = self.now();
        let Some(seat) = self.seats.get_mut(viewer).filter(|seat| seat.machine.is_none()) else { return };
        seat.begin(now);
        let opening = Opening {
            shape: seat.title.shape.clone(),
            quality: seat.quality,
            sources: seat.order.clone(),
            // Of other connections it hears now.
            connected: seat.order.first().and_then(|base| base.first()).copied().into_iter().collect(),
            service: seat.service.clone(),
            from: Span::ZERO,
            until: None,
        };
        self.tell_viewer(viewer, Input::Opened(opening));
        let early = self.seats.get_mut(viewer).map(|seat| std::mem::take(&mut seat.early));
        for input in early.into_iter().flatten() {
            self.tell_viewer(viewer, input);
        }
        self.tick(viewer);
    }

    fn other_end(&self, link: LinkId) -> Option<NodeAddress> {
        let End::Node(node) = self.conns.get(&link)?.to else { return None };
        self.hosts.get(node).map(|host| NodeAddress { peer: host.peer, address: host.address })
    }
}

/// Numbers a node, once.
pub(super) fn number(table: &mut Vec<(PeerId, std::net::SocketAddr)>, node: &NodeAddress) -> SourceId {
    let known = table.iter().position(|(_, address)| *address == node.address);
    let place = known.unwrap_or_else(|| {
        table.push((node.peer, node.address));
        table.len() - 1
    });
    SourceId(u16::try_from(place).unwrap_or(u16::MAX))
}

/// For each layer, whom to ask, in the player's order.
fn order(
    table: &mut Vec<(PeerId, std::net::SocketAddr)>,
    opened: &Opened,
    granting: NodeAddress,
) -> Vec<Vec<SourceId>> {
    debug_assert_eq!(opened.manifest_hash, VERSION, "there is one title");
    let layers = Layer::first(opened.quality.layers());
    layers
        .map(|layer| {
            let told = opened.sources.iter().find(|sources| sources.layer == layer);
            let mut nodes = told.map_or_else(|| vec![granting], |sources| sources.nodes.clone());
            if layer == Layer::BASE {
                nodes.extend(opened.backup.filter(|backup| !nodes.contains(backup)));
                nodes.sort_by_key(|node| (*node != granting, Some(*node) != opened.backup));
            }
            nodes.iter().map(|node| number(table, node)).collect()
        })
        .collect()
}

fn service(
    table: &mut Vec<(PeerId, std::net::SocketAddr)>,
    opened: &Opened,
    granting: NodeAddress,
) -> Service {
    let base = opened.sources.iter().find(|sources| sources.layer == Layer::BASE);
    let serves = base.is_none_or(|base| base.nodes.iter().any(|node| node.peer == granting.peer));
    Service {
        home: serves.then(|| number(table, &granting)),
        backup: opened.backup.map(|backup| number(table, &backup)),
        epoch: opened.epoch,
        doors: opened.doors.iter().map(|door| number(table, door)).collect(),
    }
}

fn early(order: &[Vec<SourceId>]) -> impl Iterator<Item = SourceId> + use<> {
    let mut early = Vec::new();
    for source in order.iter().flat_map(|layer| layer.iter().take(EARLY)) {
        if !early.contains(source) {
            early.push(*source);
        }
    }
    early.into_iter()
}
