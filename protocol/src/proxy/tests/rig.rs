//! A proxy between clients and a network of scripted nodes, with verbs.

use crate::message::{ChunkRequest, LayerSources, NodeAddress, Open, Opened, Progress, SessionId, Visit};
use crate::node::autonomy::UserId;
use crate::proxy::*;
use crate::{LinkId, StreamId, StreamRequest};
use media::{ByteCount, ChunkId, Hash, Layer, Quality, TitleName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

pub(super) const BRONZE: u64 = 1;
pub(super) const GOLD: u64 = 2;

pub(super) fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

pub(super) fn node(name: &str, port: u16) -> Upstream {
    Upstream { peer: Some(peer(name)), address: ([127, 0, 0, 1], port).into() }
}

fn address(at: Upstream) -> NodeAddress {
    NodeAddress { peer: at.peer.unwrap(), address: at.address }
}

pub(super) fn base_1() -> Upstream {
    node("base-1", 1)
}

pub(super) fn base_2() -> Upstream {
    node("base-2", 2)
}

pub(super) fn film() -> TitleName {
    "film".parse().unwrap()
}

pub(super) fn chunk(block: u32, layer: Layer) -> ChunkId {
    ChunkId { title: film(), block, layer }
}

/// Ten blocks of a second; Base at two nodes.
pub(super) fn shape() -> Shape {
    let sources = vec![vec![base_1(), base_2()], vec![node("enh1-1", 3)], vec![node("enh2-1", 4)]];
    let pace = Pace {
        duration: Span::from_secs(1),
        lengths: [50_000, 62_000, 100_000].map(ByteCount).to_vec(),
        halves: Vec::new(),
    };
    Shape {
        manifest_length: 9,
        manifest_hash: Hash::of(b"manifest"),
        blocks: 10,
        sources,
        paces: vec![pace; 10].into(),
    }
}

/// A node as it behaves towards the proxy.
#[derive(Clone, Debug, Default)]
pub(super) struct Fake {
    /// Neither answers nor is reached.
    pub(super) dead: bool,
    /// Whom it serves, in which epoch.
    pub(super) serves: BTreeMap<UserId, u64>,
    /// For whom it stands by.
    pub(super) knows: BTreeSet<UserId>,
    /// Refuses whoever seeks.
    pub(super) refuses: Option<Refusal>,
    /// Sends whoever seeks on.
    pub(super) elsewhere: Option<Upstream>,
    /// Who stands behind it.
    pub(super) backup: Option<Upstream>,
    /// Others that it names for Base.
    pub(super) others: Vec<Upstream>,
    /// Another proxy that holds every block it is asked about at this quality.
    pub(super) holds: Quality,
    connected: bool,
}

/// A proxy with a bronze and a gold client.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    pub(super) proxy: Proxy,
    pub(super) now: Time,
    streams: u64,
    /// What is in memory.
    pub(super) held: Vec<ChunkId>,
    pub(super) nodes: BTreeMap<SocketAddr, Fake>,
    /// Everything said upstream.
    pub(super) said: Vec<(Upstream, Message)>,
    pub(super) events: Vec<Event>,
}

impl Rig {
    pub(super) fn new(mut config: ProxyConfig) -> Self {
        // Most stories are of sessions and fetches: the mind knows no title, and what it
        // does not provide is fetched when it is asked for.
        config.cooperation.max_titles = 0;
        Self::thinking(config)
    }

    /// The same with its mind about it, and lines that carry all at once.
    pub(super) fn thinking(config: ProxyConfig) -> Self {
        Self::on_narrow_lines(ProxyConfig { first_window: ByteCount(u64::MAX), ..config })
    }

    /// The same with lines that carry as much as the config says.
    pub(super) fn on_narrow_lines(mut config: ProxyConfig) -> Self {
        if config.upstream.is_empty() {
            config.upstream = vec![base_1()];
        }
        let mut nodes: BTreeMap<SocketAddr, Fake> =
            config.peers.iter().map(|peer| (peer.address, Fake::default())).collect();
        let proxy = Proxy::new(Time::ZERO, peer("proxy-1"), config, 0);
        for port in 1..=4 {
            nodes.insert(([127, 0, 0, 1], port).into(), Fake::default());
        }
        nodes.get_mut(&base_1().address).unwrap().others = vec![base_2()];
        let (held, said, events) = (Vec::new(), Vec::new(), Vec::new());
        let mut rig = Self { proxy, now: Time::ZERO, streams: 0, held, nodes, said, events };
        for link in [BRONZE, GOLD] {
            rig.link(link);
        }
        rig
    }

    pub(super) fn link(&mut self, link: u64) {
        let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
        self.input(Input::Linked { link: LinkId(link), hello, here: ([127, 0, 0, 1], 99).into() });
    }

    pub(super) fn playing() -> Self {
        Self::playing_with(ProxyConfig::default())
    }

    pub(super) fn playing_with(config: ProxyConfig) -> Self {
        let mut rig = Self::new(config);
        rig.open(BRONZE, Quality::BRONZE);
        rig.open(GOLD, Quality::GOLD);
        rig.learn();
        rig
    }

    pub(super) fn learn(&mut self) -> Vec<Output> {
        self.input(Input::Learnt { title: film(), shape: Ok(shape()), kept: Vec::new() })
    }

    pub(super) fn fake(&mut self, at: Upstream) -> &mut Fake {
        self.nodes.get_mut(&at.address).unwrap()
    }

    /// Puts one in; what comes out that is neither for nodes nor for people.
    pub(super) fn input(&mut self, input: Input) -> Vec<Output> {
        let mut inputs = std::collections::VecDeque::from([input]);
        let mut outputs = Vec::new();
        while let Some(input) = inputs.pop_front() {
            self.proxy.handle_input(self.now, input);
            self.check_needs();
            while let Some(output) = self.proxy.poll_output() {
                match output {
                    Output::Event(event) => self.events.push(event),
                    Output::Discard { .. } => {}
                    Output::Dial { to } => inputs.push_back(self.dial(to)),
                    Output::Tell { to, message } => {
                        self.said.push((to, message.clone()));
                        inputs.extend(self.answer(to, message).map(|message| told(to, message)));
                    }
                    other => outputs.push(other),
                }
            }
        }
        outputs
    }

    /// The agenda knows which nodes the users need.
    fn check_needs(&self) {
        let proxy = &self.proxy;
        if proxy.agenda.has_news() {
            return;
        }
        for node in self.nodes.keys().filter_map(|address| proxy.lines.find(*address)) {
            let needed = proxy.users.values().any(|user| user.needs(node));
            assert_eq!(proxy.agenda.needs(node), needed, "{node:?}");
        }
    }

    fn dial(&mut self, to: Upstream) -> Input {
        let address = to.address;
        let Some(node) = self.nodes.get_mut(&address).filter(|node| !node.dead) else {
            return Input::Unreached { address };
        };
        node.connected = true;
        let peer = to.peer.unwrap_or(peer("base-1"));
        Input::Reached { address, peer, round_trip: Span::from_millis(1) }
    }

    fn answer(&mut self, to: Upstream, message: Message) -> Option<Message> {
        let node = self.nodes.get_mut(&to.address).filter(|node| !node.dead)?;
        match message {
            Message::Probe(number) => Some(Message::Alive(number)),
            Message::Query(query) if node.holds > Quality::NONE => {
                let run = |blocks: &BlockRange| QualityRun { blocks: *blocks, quality: node.holds };
                let runs = query.ranges.iter().map(run).collect();
                Some(Message::Reply(Reply { title: query.title, runs }))
            }
            Message::Open(open) => {
                let request = open.request;
                match open.visit {
                    Visit::Seek(progress) => {
                        if let Some(why) = node.refuses {
                            return Some(Message::Refused { request, why });
                        }
                        if let Some(base) = node.elsewhere {
                            let epoch = progress.epoch + 1;
                            self.nodes.get_mut(&base.address)?.serves.insert(open.user, epoch);
                            return Some(Message::Elsewhere { request, base: address(base), epoch });
                        }
                        node.serves.entry(open.user).or_insert(progress.epoch + 1);
                    }
                    Visit::Attach | Visit::Copy => {
                        // Nodes of enhancements know whom the Base node reserved for.
                        let knows = node.knows.contains(&open.user) || to.address.port() > 2;
                        if !knows && !node.serves.contains_key(&open.user) && !node_is_named(to, &self.nodes)
                        {
                            return Some(Message::Refused { request, why: Refusal::NotServing });
                        }
                    }
                }
                let node = self.nodes.get(&to.address)?;
                Some(Message::Opened(opened(to, node, &open)))
            }
            _ => None,
        }
    }

    /// Somebody says something on the connection to it.
    pub(super) fn told(&mut self, from: Upstream, message: Message) -> Vec<Output> {
        self.input(told(from, message))
    }

    /// Lets time go by, with everything that becomes due.
    pub(super) fn run(&mut self, span: Span) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        while let Some(next) = self.proxy.poll_timeout().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    pub(super) fn open(&mut self, link: u64, quality: Quality) -> Vec<Output> {
        self.seek(link, UserId(link), quality, Progress::default())
    }

    pub(super) fn seek(
        &mut self,
        link: u64,
        user: UserId,
        quality: Quality,
        progress: Progress,
    ) -> Vec<Output> {
        let open = Open::new(7, film(), quality, user, Visit::Seek(progress));
        self.input(Input::Heard { link: LinkId(link), message: Message::Open(open) })
    }

    /// Asks for a chunk: refused, or served and the outputs before that.
    pub(super) fn ask(&mut self, link: u64, id: &ChunkId) -> Result<Vec<Output>, Refusal> {
        self.streams += 1;
        let stream = StreamId(self.streams);
        // Its picture is due in four seconds; Base is of use for longer.
        let deadline_ms = if id.layer == Layer::BASE { 14_000 } else { 4_000 };
        let request = StreamRequest::Chunk(ChunkRequest::whole(id.clone(), deadline_ms));
        let held = self.held.contains(id);
        let mut outputs = self.input(Input::Asked { link: LinkId(link), stream, request, held, length: 100 });
        let answer = outputs.iter().position(|output| {
            matches!(output, Output::Serve { stream: to } | Output::Refuse { stream: to, .. } if *to == stream)
        });
        match outputs.remove(answer.unwrap()) {
            Output::Serve { .. } => Ok(outputs),
            Output::Refuse { why, .. } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn filled(&mut self, id: &ChunkId) {
        self.held.push(id.clone());
        assert_eq!(self.input(Input::Filled { chunk: id.clone() }), []);
    }

    pub(super) fn failed(&mut self, id: &ChunkId, from: Upstream, why: FillFailure) -> Vec<Output> {
        self.input(Input::FillFailed { chunk: id.clone(), from, why })
    }

    /// What a client was told on its control stream by these outputs.
    pub(super) fn heard(outputs: &[Output], link: u64) -> Vec<Message> {
        let of = |output: &Output| match output {
            Output::Send { link: to, message } if *to == LinkId(link) => Some(message.clone()),
            _ => None,
        };
        outputs.iter().filter_map(of).collect()
    }

    /// Whether this was said to a node.
    pub(super) fn has_said(&self, to: Upstream, wanted: impl Fn(&Message) -> bool) -> bool {
        self.said.iter().any(|(at, message)| at.address == to.address && wanted(message))
    }
}

fn told(from: Upstream, message: Message) -> Input {
    Input::Told { address: from.address, message }
}

/// Whether some node names this one as another source of Base.
fn node_is_named(at: Upstream, nodes: &BTreeMap<SocketAddr, Fake>) -> bool {
    nodes.values().any(|node| node.others.iter().any(|other| other.address == at.address))
}

fn opened(at: Upstream, node: &Fake, open: &Open) -> Opened {
    let serves = node.serves.get(&open.user);
    let own = [at].into_iter().chain(node.others.iter().copied()).map(address).collect();
    let sources = [own, vec![address(self::node("enh1-1", 3))], vec![address(self::node("enh2-1", 4))]];
    let sources = Layer::first(open.quality.layers().min(3)).zip(sources);
    let sources = sources.map(|(layer, nodes)| LayerSources { layer, nodes });
    Opened {
        request: open.request,
        session: SessionId(u64::from(open.request)),
        quality: open.quality,
        manifest_length: 9,
        manifest_hash: Hash::of(b"manifest"),
        sources: if serves.is_some() { sources.collect() } else { Vec::new() },
        backup: node.backup.map(address),
        epoch: serves.copied().unwrap_or(0),
        doors: vec![address(base_2())],
    }
}

pub(super) fn fill(chunk: &ChunkId, from: Upstream) -> Output {
    Output::Fill { chunk: chunk.clone(), from }
}
