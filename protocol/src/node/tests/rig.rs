//! Many nodes, viewers and an operator, in virtual time and memory: every message
//! goes through its frame, every dial is answered, copies take a moment.

use super::disk::Copying;
use super::people::Person;
use crate::frame::{LENGTH_BYTES, decode, encode};
use crate::message::{Hello, PROTOCOL_VERSION};
use crate::node::autonomy::{Level, UserId};
use crate::node::*;
use crate::token::Claims;
use media::{ByteCount, Hash, TitleSummary};
use std::collections::BTreeMap;

/// What a message takes one way.
pub(super) const TRAVEL: Span = Span::from_millis(5);
/// How long a connection to a dead node seems to stand, and a dial takes to fail.
const IDLE: Span = Span::from_secs(5);
const DIAL: Span = Span::from_secs(1);

pub(super) fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

pub(super) fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

/// Blocks of a second, whose chunks have 1000, 2000 and 3000 bytes.
fn lengths() -> std::sync::Arc<ChunkLengths> {
    let layer = |bytes| vec![ByteCount(bytes); 600];
    std::sync::Arc::new(ChunkLengths::new(vec![ms(1000); 600], [1000, 2000, 3000].map(layer).to_vec()))
}

/// Three layers of ten minutes, of which these are here.
pub(super) fn held(title: &str, layers: &[Layer]) -> Held {
    let summary = TitleSummary {
        title: title.parse().unwrap(),
        duration: Span::from_secs(600),
        width: 64,
        height: 64,
        layers: 3,
        audio: false,
        class: media::TitleClass::Archived,
    };
    Held {
        summary,
        manifest_length: 1000,
        manifest_hash: Hash::of(b"manifest"),
        blocks: 600,
        layers: layers.to_vec(),
        lengths: lengths(),
        sizes: vec![ByteCount(1_000_000); 3],
        archived: false,
    }
}

#[derive(Clone)]
pub(super) struct Host {
    pub(super) node: Node,
    pub(super) config: NodeConfig,
    pub(super) disk: BTreeMap<TitleName, Held>,
    /// What comes while it hangs.
    hung: Option<Vec<Input>>,
    pub(super) life: u64,
    /// Layers on their way here, as its fetcher was told last.
    pub(super) copies: BTreeMap<(TitleName, Layer), Copying>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Node(PeerId, u64),
    Person(UserId),
}

#[derive(Clone)]
pub(super) struct Line {
    ends: [End; 2],
    /// The address, until the other side has answered.
    dialled: Option<SocketAddr>,
}

#[derive(Clone)]
pub(super) enum Happening {
    Frame { link: LinkId, to: End, frame: bytes::Bytes },
    Input { to: End, input: Input },
    Call { from: End, door: Door },
    Copied { at: End, order: (TitleName, Layer), number: u64 },
    Removed { at: End, title: TitleName, layer: Layer },
    Beat(UserId),
}

#[derive(Clone, Default)]
pub(super) struct Rig {
    pub(super) now: Time,
    pub(super) hosts: BTreeMap<PeerId, Host>,
    pub(super) people: BTreeMap<UserId, Person>,
    /// Hosts that are gone, for their return.
    graves: BTreeMap<PeerId, Host>,
    lines: BTreeMap<LinkId, Line>,
    queue: BTreeMap<(Time, u64), Happening>,
    serial: u64,
    /// Nodes that nobody else can reach.
    island: Vec<PeerId>,
    answers: BTreeMap<StreamId, Result<(), Refusal>>,
    /// Of which versions something was sent.
    pub(super) granted: Vec<Hash>,
    /// Replaced versions that nobody watches any more.
    pub(super) released: Vec<(PeerId, TitleName, Hash)>,
    pub(super) statuses: Vec<crate::status::NodeStatus>,
    pub(super) events: Vec<(Time, PeerId, Event)>,
    /// Everything that any machine said, in order.
    pub(super) trace: Vec<u8>,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn later(&mut self, wait: Span, happening: Happening) {
        let number = self.number();
        self.queue.insert((self.now + wait, number), happening);
    }

    /// The address of a node, by its name.
    pub(super) fn address(name: &str) -> SocketAddr {
        let number = name.bytes().fold(7_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        ([127, 0, 0, 1], number | 1024).into()
    }

    /// Starts a node that joins through the origin, which has the film.
    pub(super) fn join(&mut self, name: &str, level: Level) {
        self.start(name, level, |_| {});
    }

    pub(super) fn start(&mut self, name: &str, level: Level, adjust: impl FnOnce(&mut NodeConfig)) {
        let mut config = NodeConfig::new(level);
        config.address = Self::address(name);
        config.since = 1 + self.now.as_nanos() / 1_000_000;
        config.join = vec![Door { address: Self::address("origin"), peer: None }];
        if level == Level::Origin {
            config.join.clear();
        }
        config.autonomy.bottom_line = 0;
        adjust(&mut config);
        let mut disk = BTreeMap::new();
        if level == Level::Origin {
            let layers: Vec<Layer> = Layer::first(3).collect();
            disk.insert("film".parse().unwrap(), held("film", &layers));
        }
        self.begin(peer(name), config, disk);
    }

    fn begin(&mut self, name: PeerId, config: NodeConfig, disk: BTreeMap<TitleName, Held>) {
        let life = self.number();
        let seed = name.as_str().bytes().fold(life << 32, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte));
        // Each machine counts from its own start.
        let node = Node::new(self.now, name, config.clone(), seed);
        self.hosts.insert(name, Host { node, config, disk, hung: None, life, copies: BTreeMap::new() });
        self.look_through(name);
    }

    pub(super) fn look_through(&mut self, name: PeerId) {
        let Some(host) = self.hosts.get(&name) else { return };
        let held = host.disk.values().cloned().collect();
        let to = End::Node(name, host.life);
        self.input(to, Input::Shelf(held));
    }

    /// The node is gone from one moment to the next.
    pub(super) fn kill(&mut self, name: &str) {
        let host = self.hosts.remove(&peer(name)).unwrap();
        let dead = End::Node(peer(name), host.life);
        self.graves.insert(peer(name), host);
        self.break_lines(dead, IDLE, false);
    }

    fn break_lines(&mut self, end: End, wait: Span, parted: bool) {
        let of = self.lines.iter().filter(|(_, line)| line.ends.contains(&end));
        let of: Vec<(LinkId, Line)> = of.map(|(link, line)| (*link, line.clone())).collect();
        for (link, line) in of {
            self.lines.remove(&link);
            for other in line.ends.into_iter().filter(|other| *other != end) {
                self.later(wait, Happening::Input { to: other, input: Input::Gone { link, parted } });
            }
        }
    }

    /// Cuts these nodes off from all other nodes; connections end after a while.
    pub(super) fn split(&mut self, island: &[&str], cut: bool) {
        self.island = island.iter().map(|name| peer(name)).collect();
        let across = self.lines.iter().filter(|(_, line)| self.apart(line.ends));
        let across: Vec<(LinkId, Line)> = across.map(|(link, line)| (*link, line.clone())).collect();
        for (link, line) in across.into_iter().filter(|_| cut) {
            self.lines.remove(&link);
            for to in line.ends {
                self.later(IDLE, Happening::Input { to, input: Input::Gone { link, parted: false } });
            }
        }
    }

    pub(super) fn apart(&self, ends: [End; 2]) -> bool {
        let [End::Node(one, _), End::Node(other, _)] = ends else { return false };
        self.island.contains(&one) != self.island.contains(&other)
    }

    /// The node comes back, with its disk and nothing else.
    pub(super) fn revive(&mut self, name: &str) {
        let clock = 1 + self.now.as_nanos() / 1_000_000;
        self.revive_as(name, |config| config.since = config.since.saturating_add(1).max(clock));
    }

    /// As `revive`, with other settings.
    pub(super) fn revive_as(&mut self, name: &str, adjust: impl FnOnce(&mut NodeConfig)) {
        let host = self.graves.remove(&peer(name)).unwrap();
        let mut config = host.config;
        adjust(&mut config);
        self.begin(peer(name), config, host.disk);
    }

    pub(super) fn hang(&mut self, name: &str) {
        self.hosts.get_mut(&peer(name)).unwrap().hung = Some(Vec::new());
    }

    pub(super) fn resume(&mut self, name: &str) {
        let host = self.hosts.get_mut(&peer(name)).unwrap();
        let to = End::Node(peer(name), host.life);
        for input in host.hung.take().unwrap() {
            self.input(to, input);
        }
    }

    pub(super) fn drain(&mut self, name: &str) {
        let to = End::Node(peer(name), self.hosts[&peer(name)].life);
        self.input(to, Input::Drain);
    }

    /// A connection of this person; a node hears of it a little later.
    pub(super) fn call(&mut self, user: UserId, name: PeerId) -> Option<LinkId> {
        let life = self.hosts.get(&name)?.life;
        let link = LinkId(self.number());
        let ends = [End::Person(user), End::Node(name, life)];
        self.lines.insert(link, Line { ends, dialled: None });
        let person = &self.people[&user];
        let hello = Hello { version: PROTOCOL_VERSION, peer: person.name, role: person.role };
        let here = self.hosts[&name].config.address;
        self.later(TRAVEL, Happening::Input { to: ends[1], input: Input::Linked { link, hello, here } });
        Some(link)
    }

    /// Whether nothing has happened to a connection yet.
    pub(super) fn stands(&self, link: LinkId) -> bool {
        self.lines.contains_key(&link)
    }

    /// Sends a message on a connection from this end.
    pub(super) fn say(&mut self, from: End, link: LinkId, message: &Message) {
        let Some(line) = self.lines.get(&link) else { return };
        let to = line.ends[usize::from(line.ends[0] == from)];
        let frame = encode(message).unwrap();
        self.later(TRAVEL, Happening::Frame { link, to, frame });
    }

    /// A person hangs up, or vanishes.
    pub(super) fn hang_up(&mut self, user: UserId, parted: bool) {
        let person = self.people.get_mut(&user).unwrap();
        person.links.clear();
        person.sessions.clear();
        self.break_lines(End::Person(user), if parted { TRAVEL } else { IDLE }, parted);
    }

    /// Begins to tell the node of the person's position, once a second.
    pub(super) fn beat(&mut self, user: UserId) {
        self.later(ms(1000), Happening::Beat(user));
    }

    /// What becomes of a request for a chunk, at once.
    pub(super) fn ask(&mut self, link: LinkId, request: StreamRequest) -> Result<(), Refusal> {
        let stream = self.request(link, request);
        self.answer(link, stream).expect("every request is answered")
    }

    /// A request whose answer may have to wait.
    pub(super) fn request(&mut self, link: LinkId, request: StreamRequest) -> StreamId {
        let stream = StreamId(self.number());
        let to = self.lines[&link].ends[1];
        self.input(to, Input::Asked { link, stream, request });
        stream
    }

    /// What became of it, if anything did by now.
    pub(super) fn answer(&mut self, link: LinkId, stream: StreamId) -> Option<Result<(), Refusal>> {
        let answer = self.answers.remove(&stream)?;
        if answer.is_ok() {
            self.end(link, stream, Outcome::Sent { bytes: 1 });
        }
        Some(answer)
    }

    /// A stream is over.
    pub(super) fn end(&mut self, link: LinkId, stream: StreamId, outcome: Outcome) {
        let to = self.lines[&link].ends[1];
        self.input(to, Input::Answered { stream, outcome });
    }

    /// Goes on for so long.
    pub(super) fn run(&mut self, span: Span) {
        let end = self.now + span;
        let mut steps = 0;
        loop {
            let first = self.queue.first_key_value().map(|((at, _), _)| *at);
            let awake = self.hosts.iter().filter(|(_, host)| host.hung.is_none());
            let due =
                awake.filter_map(|(name, host)| Some((host.node.poll_timeout()?, *name, host.life))).min();
            let next = [first, due.map(|(at, _, _)| at)].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            steps += 1;
            assert!(steps < 1_000_000, "no end at {:?}", self.now);
            if first == Some(next) {
                let (_, happening) = self.queue.pop_first().unwrap();
                self.happen(happening);
            } else if let Some((at, name, life)) = due {
                self.input(End::Node(name, life), Input::Timeout);
                let after = self.hosts.get(&name).and_then(|host| host.node.poll_timeout());
                assert_ne!(after, Some(at), "{name} would be woken for ever");
            }
        }
        self.now = end;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Input { to, input } => {
                if let Input::Gone { link, .. } = &input {
                    self.lines.remove(link);
                }
                self.input(to, input);
            }
            Happening::Frame { link, to, frame } => {
                let message: Message = decode(&frame[LENGTH_BYTES..]).unwrap();
                self.arrive(link, to, message);
            }
            Happening::Call { from, door } => self.dial(from, door),
            Happening::Copied { at, order, number } => self.copied(at, order, number),
            Happening::Removed { at, title, layer } => self.removed(at, &title, layer),
            Happening::Beat(user) => self.beats(user),
        }
    }

    fn arrive(&mut self, link: LinkId, to: End, message: Message) {
        let Some(line) = self.lines.get_mut(&link) else { return };
        let from = line.ends[usize::from(line.ends[0] == to)];
        let dialled = line.dialled.take();
        match (to, from) {
            (End::Node(..), _) if dialled.is_some() => {
                let address = dialled.unwrap();
                let input = match message {
                    Message::Hello(hello) => Input::Reached { link, address, hello },
                    _ => Input::Unreached { address },
                };
                self.input(to, input);
            }
            (End::Node(..), from) => {
                let input = match message {
                    Message::Open(open) => {
                        let claims = match from {
                            End::Person(user) => self.people[&user].claims,
                            End::Node(..) => Ok(Claims::NONE),
                        };
                        Input::Opens { link, open, claims }
                    }
                    message => Input::Heard { link, message, travel: TRAVEL },
                };
                self.input(to, input);
            }
            (End::Person(user), End::Node(name, _)) => self.tells(user, name, message),
            (End::Person(_), End::Person(_)) => {}
        }
    }

    fn dial(&mut self, from: End, door: Door) {
        let End::Node(own, _) = from else { return };
        let host = self.hosts.iter().find(|(_, host)| host.config.address == door.address);
        let right = |name: PeerId| door.peer.is_none_or(|peer| peer == name);
        let to = host.filter(|(name, host)| right(**name) && host.hung.is_none());
        let to = to.map(|(name, host)| End::Node(*name, host.life));
        let Some(to) = to.filter(|to| !self.apart([from, *to])) else {
            let input = Input::Unreached { address: door.address };
            return self.later(DIAL, Happening::Input { to: from, input });
        };
        let link = LinkId(self.number());
        self.lines.insert(link, Line { ends: [from, to], dialled: Some(door.address) });
        let hello = Hello { version: PROTOCOL_VERSION, peer: own, role: Role::Node };
        self.input(to, Input::Linked { link, hello, here: door.address });
    }

    /// One input into one end, and all that follows from it at once.
    pub(super) fn input(&mut self, to: End, input: Input) {
        let End::Node(name, life) = to else {
            if let (End::Person(user), Input::Gone { link, .. }) = (to, input) {
                self.people.get_mut(&user).unwrap().links.retain(|_, own| *own != link);
            }
            return;
        };
        let Some(host) = self.hosts.get_mut(&name).filter(|host| host.life == life) else { return };
        if let Some(hung) = &mut host.hung {
            if !matches!(input, Input::Timeout) {
                hung.push(input);
            }
            return;
        }
        host.node.handle_input(self.now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| host.node.poll_output()).collect();
        for output in outputs {
            self.trace.extend(format!("{:?} {name} {output:?}\n", self.now).bytes());
            self.output(name, to, output);
        }
    }

    fn output(&mut self, name: PeerId, from: End, output: Output) {
        match output {
            Output::Send { link, message } => self.say(from, link, &message),
            Output::Part { link } => {
                // What was said before is still on its way.
                if let Some(line) = self.lines.get(&link).cloned() {
                    for to in line.ends {
                        let input = Input::Gone { link, parted: true };
                        self.later(TRAVEL, Happening::Input { to, input });
                    }
                }
            }
            Output::Grant { stream, version, .. } => {
                self.granted.push(version);
                self.answers.insert(stream, Ok(()));
            }
            Output::Look { title, from: archive } => {
                let origin = self.hosts.values().find(|host| host.config.address == archive.address);
                let found = origin.and_then(|host| host.disk.get(&title)).cloned();
                let found = found.map(|held| Held { archived: true, ..held }).ok_or(Refusal::Upstream);
                let input = Input::Looked { title, found: Box::new(found) };
                self.later(TRAVEL, Happening::Input { to: from, input });
            }
            // What comes into a store of the rig is on its way for ever.
            Output::Hold { .. } | Output::Download { .. } | Output::Evict { .. } => {}
            Output::Refuse { stream, why } => drop(self.answers.insert(stream, Err(why))),
            Output::Dial(door) => self.later(TRAVEL, Happening::Call { from, door }),
            Output::Fetch { title, layer, from: source, version } => {
                self.fetch(from, (title, layer), Copying::new(source, version));
            }
            Output::Withdrawn { titles } => self.hosts.get_mut(&name).unwrap().config.withdrawn = titles,
            Output::Release { title, version } => self.released.push((name, title, version)),
            Output::Remove { title, layer } => {
                self.hosts.get_mut(&name).unwrap().copies.remove(&(title.clone(), layer));
                self.hosts.get_mut(&name).unwrap().copies.remove(&(title.clone(), layer));
                self.later(ms(10), Happening::Removed { at: from, title, layer });
            }
            Output::TellStatus { link, status } => {
                self.statuses.push((*status).clone());
                self.say(from, link, &Message::Status(status));
            }
            Output::Drained => {
                let host = self.hosts.remove(&name).unwrap();
                self.graves.insert(name, host);
            }
            Output::Event(event) => self.events.push((self.now, name, event)),
        }
    }

    pub(super) fn node(&self, name: &str) -> &Node {
        &self.hosts[&peer(name)].node
    }

    /// The events of one node that `pick` finds, with their times.
    pub(super) fn heard_of<T>(&self, name: &str, pick: impl Fn(&Event) -> Option<T>) -> Vec<(Time, T)> {
        let of = self.events.iter().filter(|(_, node, _)| *node == peer(name));
        of.filter_map(|(at, _, event)| Some((*at, pick(event)?))).collect()
    }

    /// Everything in use at any node: slots, rows, and sessions.
    pub(super) fn in_use(&self) -> (u32, usize, usize) {
        let nodes = || self.hosts.values().map(|host| &host.node);
        let used = nodes().map(|node| node.autonomy.used()).sum();
        let rows = nodes().map(|node| node.autonomy.rows().count()).sum();
        (used, rows, nodes().map(|node| node.guests.session_count()).sum())
    }
}
