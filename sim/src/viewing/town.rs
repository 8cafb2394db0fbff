//! The nodes: their machines, what they hold, and what becomes of what they say.

use super::net::{End, Happens, Net, Parcel};
use super::{Plan, Title};
use crate::rng::Rng;
use media::{Hash, Layer, Span, Time, TitleClass, TitleSummary};
use protocol::node::{Door, Held, Input, Node, NodeConfig, Outcome, Output};
use protocol::{Claims, Hello, Level, LinkId, Message, PROTOCOL_VERSION, PeerId, Role, StreamRequest};
use std::net::SocketAddr;

/// How long a layer takes to be copied before anybody watches.
const COPYING: Span = Span::from_millis(50);
/// How long a dial to nobody takes to fail.
const DIALLING: Span = Span::from_secs(1);
/// The manifest of the title.
pub(super) const VERSION: Hash = Hash::from_bytes([1; 32]);

/// A node.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) peer: PeerId,
    pub(super) address: SocketAddr,
    /// None once it is dead.
    pub(super) node: Option<Node>,
    level: Level,
    title: Title,
    held: Vec<Layer>,
    wake: Option<Time>,
}

impl Host {
    /// The origin, then the nodes of each level, Base last; all join through the origin.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let layers = plan.title.shape.layers;
        let mut places = vec![("origin".to_owned(), Level::Origin)];
        for layer in Layer::first(layers).collect::<Vec<_>>().into_iter().rev() {
            let many = plan.nodes.get(layer.index()).copied().unwrap_or(0);
            places.extend((1..=many).map(|number| (format!("{layer}-{number}"), Level::Layer(layer))));
        }
        let origin = address(0);
        let host = |(place, (name, level)): (usize, (String, Level))| {
            let peer: PeerId = name.parse().ok()?;
            let mut config = NodeConfig::new(level);
            config.address = address(place);
            config.since = 1;
            config.autonomy.origin_capacity = 1_000;
            config.autonomy.bottom_line = config.autonomy.capacity / 10;
            match level {
                Level::Origin => {
                    config.publish = Some(0);
                    let below = layers.saturating_sub(1);
                    let all = plan.origin_has_top || below == 0;
                    config.offer = (!all).then(|| Layer::first(below).collect());
                }
                Level::Layer(layer) => {
                    config.offer = Some(vec![layer]);
                    config.join = vec![Door { address: origin, peer: None }];
                }
            }
            let seed = Rng::stream(plan.seed, 100 + u64::try_from(place).unwrap_or(0)).bits();
            let node = Some(Node::new(Time::ZERO, peer, config, seed));
            let held = if level == Level::Origin { Layer::first(layers).collect() } else { Vec::new() };
            let title = plan.title.clone();
            Some(Self { peer, address: address(place), node, level, title, held, wake: None })
        };
        places.into_iter().enumerate().filter_map(host).collect()
    }

    pub(super) fn is_base(&self) -> bool {
        self.level == Level::BASE
    }

    fn shelf(&self) -> Vec<Held> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let Title { name, shape, lengths, sizes, manifest_length } = &self.title;
        let duration = shape.blocks.last().map_or(Span::ZERO, |last| last.start + last.duration);
        let summary = TitleSummary {
            title: name.clone(),
            duration,
            width: 320,
            height: 180,
            layers: shape.layers,
            audio: false,
            class: TitleClass::Archived,
        };
        vec![Held {
            summary,
            manifest_length: *manifest_length,
            manifest_hash: VERSION,
            blocks: u32::try_from(shape.blocks.len()).unwrap_or(u32::MAX),
            layers: self.held.clone(),
            lengths: lengths.clone(),
            sizes: sizes.clone(),
            archived: false,
        }]
    }

    /// How long what is asked for is.
    pub(super) fn length(&self, wanted: &StreamRequest) -> u64 {
        match wanted {
            StreamRequest::Manifest(_) => self.title.manifest_length,
            StreamRequest::Chunk(chunk) => {
                self.title.lengths.of(chunk.id.block, chunk.id.layer).map_or(0, |length| length.0)
            }
        }
    }
}

fn address(place: usize) -> SocketAddr {
    ([127, 0, 0, 1], 1_000_u16.saturating_add(u16::try_from(place).unwrap_or(u16::MAX))).into()
}

impl Net {
    /// Whether every node has its level's layer.
    pub(super) fn is_spread(&self, plan: &Plan) -> bool {
        let whole = |host: &Host| match host.level {
            Level::Origin => true,
            Level::Layer(layer) => host.held.contains(&layer) || layer.0 >= plan.title.shape.layers,
        };
        self.hosts.iter().all(whole)
    }

    pub(super) fn look_through(&mut self, node: usize) {
        let shelf = self.hosts.get(node).map(Host::shelf).unwrap_or_default();
        self.tell_node(node, Input::Shelf(shelf));
    }

    pub(super) fn copied(&mut self, node: usize, layer: Layer) {
        if let Some(host) = self.hosts.get_mut(node).filter(|host| !host.held.contains(&layer)) {
            host.held.push(layer);
        }
        self.look_through(node);
    }

    pub(super) fn wake_node(&mut self, node: usize) {
        let now = self.now();
        let Some(host) = self.hosts.get_mut(node).filter(|host| host.wake == Some(now)) else { return };
        host.wake = None;
        self.tell_node(node, Input::Timeout);
    }

    /// One input into one node, and all that follows from it at once.
    pub(super) fn tell_node(&mut self, node: usize, input: Input) {
        let now = self.now();
        let Some(machine) = self.hosts.get_mut(node).and_then(|host| host.node.as_mut()) else { return };
        machine.handle_input(now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll_output()).collect();
        for output in outputs {
            self.obey_node(node, output);
        }
        let Some(host) = self.hosts.get_mut(node) else { return };
        let Some(at) = host.node.as_ref().and_then(Node::poll_timeout) else { return };
        let at = at.max(now);
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.plan(at, Happens::Wake { end: End::Node(node) });
        }
    }

    fn obey_node(&mut self, node: usize, output: Output) {
        match output {
            Output::Send { link, message } => {
                self.send(link, End::Node(node), Parcel::Say(Box::new(message)));
            }
            Output::Part { link } => self.close(link, End::Node(node)),
            Output::Grant { stream, slot, .. } => {
                let carries = |lane: &super::flow::Lane| lane.flows.iter().any(|flow| flow.stream == stream);
                let link = self.conns.iter_mut().find(|(_, conn)| carries(&conn.lane));
                let Some((link, conn)) = link else {
                    return self.tell_node(node, Input::Answered { stream, outcome: Outcome::GivenUp });
                };
                conn.lane.grant(stream, slot);
                let link = *link;
                self.pump(link);
            }
            Output::Refuse { stream, why } => {
                let refused = |(link, conn): (&LinkId, &mut super::net::Conn)| {
                    conn.lane.take(stream).map(|flow| (*link, flow.request))
                };
                let refused = self.conns.iter_mut().find_map(refused);
                if let Some((link, request)) = refused {
                    self.send(link, End::Node(node), Parcel::No { request, why });
                }
            }
            Output::Dial(door) => self.dial_node(node, door),
            Output::Fetch { layer, .. } => {
                self.queue.plan(self.now() + COPYING, Happens::Copied { node, layer });
            }
            // Nothing is withdrawn, archived or asked about by operators here.
            Output::Hold { .. }
            | Output::Release { .. }
            | Output::Withdrawn { .. }
            | Output::Remove { .. }
            | Output::Look { .. }
            | Output::Download { .. }
            | Output::Evict { .. }
            | Output::TellStatus { .. }
            | Output::Drained
            | Output::Event(_) => {}
        }
    }

    fn dial_node(&mut self, node: usize, door: Door) {
        let right = |peer: PeerId| door.peer.is_none_or(|wanted| wanted == peer);
        let to = self
            .hosts
            .iter()
            .position(|host| host.address == door.address && right(host.peer) && host.node.is_some());
        if let Some(to) = to {
            self.dial(End::Node(node), to, Some(door.address));
        } else {
            let address = door.address;
            self.queue.plan(self.now() + DIALLING, Happens::Unreached { node, address });
        }
    }

    /// Something comes to a node.
    pub(super) fn at_node(&mut self, link: LinkId, node: usize, parcel: Parcel) {
        let Some(host) = self.hosts.get(node).filter(|host| host.node.is_some()) else { return };
        let (here, peer) = (host.address, host.peer);
        match parcel {
            Parcel::Knock => self.send(link, End::Node(node), Parcel::Welcome),
            Parcel::Welcome => {
                let hello = Hello { version: PROTOCOL_VERSION, peer, role: Role::Node };
                self.send(link, End::Node(node), Parcel::Hello(hello));
            }
            Parcel::Hello(hello) => self.tell_node(node, Input::Linked { link, hello, here }),
            Parcel::Say(message) => self.hear_node(link, node, *message),
            Parcel::Ask { request, wanted } => self.asked(link, node, request, wanted),
            Parcel::Stop { request } => {
                let stream = self.conns.get_mut(&link).and_then(|conn| conn.lane.stop(request));
                if let Some(stream) = stream {
                    self.tell_node(node, Input::Answered { stream, outcome: Outcome::GivenUp });
                }
            }
            Parcel::Got { bytes } => {
                if let Some(conn) = self.conns.get_mut(&link) {
                    conn.lane.came(bytes);
                    self.pump(link);
                }
            }
            Parcel::Piece { .. } | Parcel::No { .. } => {}
        }
    }

    fn hear_node(&mut self, link: LinkId, node: usize, message: Message) {
        let travel = self.travel(link);
        let Some(conn) = self.conns.get_mut(&link) else { return };
        let (own, from) = (conn.from == End::Node(node), conn.from);
        if own && let Some(address) = conn.dialled.take() {
            let input = match message {
                Message::Hello(hello) => Input::Reached { link, address, hello },
                _ => Input::Unreached { address },
            };
            return self.tell_node(node, input);
        }
        let input = match (message, from) {
            (Message::Open(open), End::Viewer(viewer)) => {
                let claims = self.seats.get(viewer).map_or(Claims::NONE, super::seat::Seat::claims);
                Input::Opens { link, open, claims: Ok(claims) }
            }
            (Message::Open(open), End::Node(_)) => Input::Opens { link, open, claims: Ok(Claims::NONE) },
            (message, _) => Input::Heard { link, message, travel },
        };
        self.tell_node(node, input);
    }
}
