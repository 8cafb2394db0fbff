//! One proxy, one player and a line between them, in virtual time.

use media::{BitRate, ByteCount, ChunkId, Hash, Layer, Quality, Span, Time};
use protocol::player::{
    self, BlockShape, Opening, Player, PlayerConfig, RequestId, Service, SourceId, TitleShape,
};
use protocol::proxy::{self, Outcome, Pace, Proxy, ProxyConfig, Shape, Upstream};
use protocol::quality::{Cause, Step};
use protocol::{
    ChunkRequest, Hello, LayerSources, LinkId, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, Part,
    PeerId, Progress, Refusal, Role, SessionId, StreamId, StreamRequest, UserId, Visit,
};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a block of one second in each layer.
pub(crate) const TITLE: [u64; 3] = [50_000, 62_000, 100_000];
/// Bytes of the first half of each enhancement, if the title comes in halves.
pub(crate) const HALVES: [u64; 2] = [37_000, 60_000];
const BLOCKS: u64 = 400;
/// Time goes in steps of this length.
const STEP: Span = Span::from_millis(5);
const DELAY: Span = Span::from_millis(20);
const PACKET: u64 = 1_200;
/// What lies in the line's queue.
const QUEUE: u64 = 16_000;
const LINK: LinkId = LinkId(1);
const PROXY: SourceId = SourceId(0);

struct Transfer {
    request: RequestId,
    place: (u32, Layer),
    due: Time,
    unsent: u64,
    undelivered: u64,
    length: u64,
    /// What may be shown of it.
    shown: Option<Part>,
}

enum Mail {
    ToProxy(proxy::Input),
    ToPlayer(player::Input),
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) rate: BitRate,
    /// When quality changed, to what, and why.
    pub(crate) changes: Vec<(Time, Step, Cause)>,
    /// Blocks shown in bronze, silver and gold.
    pub(crate) seconds: [u32; 3],
    /// Blocks shown by half of the topmost layer, in silver and gold.
    pub(crate) halved: [u32; 2],
    /// What arrived and was not shown yet.
    held: BTreeMap<(u32, Layer), Part>,
    pub(crate) frozen: Span,
    proxy: Proxy,
    player: Player,
    transfers: BTreeMap<StreamId, Transfer>,
    queue: VecDeque<(StreamId, u64)>,
    credit: u64,
    taken: u64,
    next: u64,
    mail: VecDeque<(Time, Mail)>,
    serial: u64,
    playing: bool,
    position: Span,
    fed_end: Span,
    asked: bool,
}

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

fn chunk(block: u32, layer: Layer) -> ChunkId {
    ChunkId { title: "film".parse().unwrap(), block, layer }
}

impl World {
    pub(crate) fn new(rate: BitRate) -> Self {
        Self::of(rate, &[])
    }

    pub(crate) fn in_halves(rate: BitRate) -> Self {
        Self::of(rate, &HALVES)
    }

    fn of(rate: BitRate, halves: &[u64]) -> Self {
        let base = Upstream { peer: Some(peer("base-1")), address: ([127, 0, 0, 1], 1).into() };
        let mut config = ProxyConfig { upstream: vec![base], ..ProxyConfig::default() };
        // Everything is held; there is nothing to decide but what the line carries.
        config.cooperation.max_titles = 0;
        let mut world = Self {
            now: Time::ZERO,
            rate,
            changes: Vec::new(),
            seconds: [0; 3],
            halved: [0; 2],
            held: BTreeMap::new(),
            frozen: Span::ZERO,
            proxy: Proxy::new(Time::ZERO, peer("proxy-1"), config, 1),
            player: Player::new(Time::ZERO, PlayerConfig::default(), 1),
            transfers: BTreeMap::new(),
            queue: VecDeque::new(),
            credit: 0,
            taken: 0,
            next: 0,
            mail: VecDeque::new(),
            serial: 0,
            playing: false,
            position: Span::ZERO,
            fed_end: Span::ZERO,
            asked: false,
        };
        world.open(halves);
        world
    }

    fn open(&mut self, halves: &[u64]) {
        let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
        self.proxy_in(proxy::Input::Linked { link: LINK, hello, here: ([127, 0, 0, 1], 9).into() });
        let open =
            Open::new(1, "film".parse().unwrap(), Quality::GOLD, UserId(7), Visit::Seek(Progress::default()));
        self.proxy_in(proxy::Input::Heard { link: LINK, message: Message::Open(open) });
        let lengths = TITLE.map(ByteCount).to_vec();
        let halves = halves.iter().copied().map(ByteCount).collect();
        let pace = Pace { duration: Span::from_secs(1), lengths: lengths.clone(), halves };
        let shape = Shape {
            manifest_length: 1,
            manifest_hash: Hash::of(b""),
            blocks: BLOCKS as u32,
            sources: vec![Vec::new(); 3],
            paces: vec![pace; BLOCKS as usize].into(),
        };
        self.proxy_in(proxy::Input::Learnt {
            title: "film".parse().unwrap(),
            shape: Ok(shape),
            kept: Vec::new(),
        });
        let block = |n| BlockShape {
            start: Span::from_secs(n),
            duration: Span::from_secs(1),
            lengths: lengths.clone(),
        };
        let shape = TitleShape { layers: 3, blocks: (0..BLOCKS).map(block).collect() };
        let opening = Opening {
            shape: shape.into(),
            quality: Quality::GOLD,
            sources: vec![vec![PROXY]; 3],
            connected: vec![PROXY],
            service: Service { home: Some(PROXY), epoch: 1, ..Service::default() },
            from: Span::ZERO,
            until: None,
        };
        self.player_in(player::Input::Opened(opening));
        self.player_in(player::Input::Filters { source: PROXY });
    }

    fn post(&mut self, mail: Mail) {
        self.mail.push_back((self.now + DELAY, mail));
    }

    fn proxy_in(&mut self, input: proxy::Input) {
        self.proxy.handle_input(self.now, input);
        while let Some(output) = self.proxy.poll_output() {
            match output {
                proxy::Output::Dial { to } => {
                    let reached = proxy::Input::Reached {
                        address: to.address,
                        peer: to.peer.unwrap(),
                        round_trip: Span::from_millis(1),
                    };
                    self.proxy_in(reached);
                }
                proxy::Output::Tell { to, message } => {
                    if let Some(message) = upstream(to, message) {
                        self.proxy_in(proxy::Input::Told { address: to.address, message });
                    }
                }
                proxy::Output::Serve { stream } => self.serve(stream, Part::Whole, Some(Part::Whole)),
                proxy::Output::ServeHalf { stream } => self.serve(stream, Part::First, Some(Part::First)),
                proxy::Output::Try { stream } => self.serve(stream, Part::Whole, None),
                proxy::Output::TryHalf { stream } => self.serve(stream, Part::First, None),
                proxy::Output::TryRest { stream } => self.serve(stream, Part::Whole, Some(Part::First)),
                proxy::Output::Refuse { stream, why } => {
                    let Transfer { request, .. } = self.transfers.remove(&stream).unwrap();
                    let why = player::FetchFailure::Refused(why);
                    self.post(Mail::ToPlayer(player::Input::Failed { request, why }));
                }
                proxy::Output::Send { message: Message::Alive(number), .. } => {
                    self.post(Mail::ToPlayer(player::Input::Alive { source: PROXY, number }));
                }
                _ => {}
            }
        }
    }

    fn serve(&mut self, stream: StreamId, part: Part, shown: Option<Part>) {
        let transfer = self.transfers.get_mut(&stream).unwrap();
        let layer = transfer.place.1.index();
        transfer.shown = shown;
        transfer.length = if part == Part::First { HALVES[layer - 1] } else { TITLE[layer] };
        (transfer.unsent, transfer.undelivered) = (transfer.length, transfer.length);
    }

    fn player_in(&mut self, input: player::Input) {
        self.player.handle_input(self.now, input);
        while let Some(output) = self.player.poll_output() {
            match output {
                player::Output::Request { request, block, layer, deadline, .. } => {
                    self.next += 1;
                    let stream = StreamId(self.next);
                    let (due, length, place) = (self.now + deadline, TITLE[layer.index()], (block, layer));
                    let (unsent, undelivered, shown) = (0, length, None);
                    let transfer = Transfer { request, place, due, unsent, undelivered, length, shown };
                    self.transfers.insert(stream, transfer);
                    let deadline_ms = deadline.as_millis() as u32;
                    let asked = StreamRequest::Chunk(ChunkRequest::whole(chunk(block, layer), deadline_ms));
                    let held = true;
                    self.post(Mail::ToProxy(proxy::Input::Asked {
                        link: LINK,
                        stream,
                        request: asked,
                        held,
                        length,
                    }));
                }
                player::Output::Cancel { request } => {
                    let stream = self.transfers.iter().find(|(_, t)| t.request == request).map(|(id, _)| *id);
                    if let Some(stream) = stream {
                        self.transfers.get_mut(&stream).unwrap().unsent = 0;
                        let outcome = Outcome::GivenUp;
                        self.post(Mail::ToProxy(proxy::Input::Answered { stream, outcome }));
                    }
                }
                player::Output::Probe { number, .. } => {
                    let message = Message::Probe(number);
                    self.post(Mail::ToProxy(proxy::Input::Heard { link: LINK, message }));
                }
                player::Output::Report { position, buffer, .. } => {
                    let message = Message::Position { user: UserId(7), position, buffer, paused: false };
                    self.post(Mail::ToProxy(proxy::Input::Heard { link: LINK, message }));
                }
                player::Output::Feed { block, quality, half, .. } => {
                    let step = if half { Step::half(quality) } else { Step::whole(quality) };
                    for layer in Layer::first(quality.layers()) {
                        let held = self.held.get(&(block, layer)).copied();
                        assert_eq!(held, step.part_of(layer), "block {block}, {layer}, fed as {step}");
                    }
                    self.held.retain(|(of, _), _| *of > block);
                    if half {
                        self.halved[usize::from(quality.layers()) - 2] += 1;
                    }
                    self.asked = false;
                    self.fed_end = Span::from_secs(u64::from(block) + 1);
                    self.seconds[usize::from(quality.layers()) - 1] += 1;
                }
                player::Output::PipelinePlay => self.playing = true,
                player::Output::PipelineSeek { serial, .. } => self.serial = serial,
                player::Output::Event(player::Event::Transition { to, cause, .. }) => {
                    self.changes.push((self.now, to, cause));
                }
                _ => {}
            }
        }
    }

    /// Lets so much time go by.
    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            while self.mail.front().is_some_and(|(when, _)| *when <= self.now) {
                match self.mail.pop_front().unwrap().1 {
                    Mail::ToProxy(input) => {
                        if let proxy::Input::Answered { stream, .. } = &input {
                            // Unless it had arrived already.
                            if self.transfers.remove(stream).is_none() {
                                continue;
                            }
                        }
                        self.proxy_in(input);
                    }
                    Mail::ToPlayer(input) => self.player_in(input),
                }
            }
            self.carry();
            self.show();
            if self.proxy.poll_timeout().is_some_and(|when| when <= self.now) {
                self.proxy_in(proxy::Input::Taken { link: LINK, bytes: self.taken });
                self.proxy_in(proxy::Input::HeardFrom { address: ([127, 0, 0, 1], 1).into() });
                self.proxy_in(proxy::Input::Timeout);
            }
            if self.player.poll_timeout().is_some_and(|when| when <= self.now) {
                self.player_in(player::Input::Timeout);
            }
        }
    }

    /// Base goes first, then what is due first; the queue is first in, first out.
    fn carry(&mut self) {
        while self.queue.iter().map(|(_, bytes)| bytes).sum::<u64>() < QUEUE {
            let waiting = self.transfers.iter_mut().filter(|(_, transfer)| transfer.unsent > 0);
            let Some((stream, transfer)) =
                waiting.min_by_key(|(_, transfer)| (transfer.place.1, transfer.due))
            else {
                break;
            };
            let piece = transfer.unsent.min(PACKET);
            transfer.unsent -= piece;
            self.taken += piece;
            self.queue.push_back((*stream, piece));
        }
        self.credit += self.rate.0 * STEP.as_millis() / 8_000;
        let mut came = 0;
        while let Some((stream, piece)) =
            self.queue.front().copied().filter(|(_, piece)| *piece <= self.credit)
        {
            self.queue.pop_front();
            self.credit -= piece;
            came += piece;
            let Some(transfer) = self.transfers.get_mut(&stream) else { continue };
            transfer.undelivered -= piece;
            if transfer.undelivered == 0 {
                let Transfer { request, shown, place, length, .. } = self.transfers.remove(&stream).unwrap();
                let why = player::FetchFailure::Refused(Refusal::Filtered);
                self.held.extend(shown.map(|part| (place, part)));
                let input = match shown {
                    None => player::Input::Failed { request, why },
                    Some(Part::Whole) => player::Input::Arrived { request },
                    Some(Part::First) => player::Input::ArrivedHalf { request },
                };
                self.post(Mail::ToPlayer(input));
                self.proxy_in(proxy::Input::Taken { link: LINK, bytes: self.taken });
                let outcome = Outcome::Sent { bytes: length };
                self.proxy_in(proxy::Input::Answered { stream, outcome });
            }
        }
        if self.queue.is_empty() {
            self.credit = self.credit.min(PACKET);
        }
        if came > 0 {
            self.post(Mail::ToPlayer(player::Input::Heard { source: PROXY, bytes: ByteCount(came) }));
        }
    }

    fn show(&mut self) {
        if self.fed_end.saturating_sub(self.position) <= Span::from_secs(1) && !self.asked {
            self.asked = true;
            self.player_in(player::Input::FeedWants { serial: self.serial });
        }
        if self.playing {
            let before = self.position;
            self.position = (self.position + STEP).min(self.fed_end);
            self.frozen += STEP.saturating_sub(self.position.saturating_sub(before));
            self.player_in(player::Input::Position { serial: self.serial, at: self.position });
        }
    }
}

/// What a node upstream answers: it serves everybody.
fn upstream(to: Upstream, message: Message) -> Option<Message> {
    let own = NodeAddress { peer: to.peer.unwrap(), address: to.address };
    match message {
        Message::Probe(number) => Some(Message::Alive(number)),
        Message::Open(open) => Some(Message::Opened(Opened {
            request: open.request,
            session: SessionId(1),
            quality: open.quality,
            manifest_length: 1,
            manifest_hash: Hash::of(b""),
            sources: Layer::first(3).map(|layer| LayerSources { layer, nodes: vec![own] }).collect(),
            backup: None,
            epoch: 1,
            doors: Vec::new(),
        })),
        _ => None,
    }
}
