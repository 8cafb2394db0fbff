//! A player among nodes, in virtual time, with verbs.

use super::pipe::Pipe;
use crate::player::*;
use media::{BitRate, ByteCount, Layer, Quality, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(super) const A: SourceId = SourceId(0);
pub(super) const B: SourceId = SourceId(1);
pub(super) const C: SourceId = SourceId(2);
pub(super) const D: SourceId = SourceId(3);
pub(super) const E: SourceId = SourceId(4);

/// Virtual time goes in steps of this length.
const STEP: Span = Span::from_millis(5);
/// The longest piece of a transfer.
const PACKET: u64 = 1_200;
/// Bytes that a connection may have in the link's queue, wanted or not.
const IN_FLIGHT: u64 = 24_000;
/// What the link's queue holds at most.
const QUEUE: Span = Span::from_millis(750);

pub(super) trait Millis {
    fn ms(self) -> Span;
    fn s(self) -> Span;
}

impl Millis for u64 {
    fn ms(self) -> Span {
        Span::from_millis(self)
    }
    fn s(self) -> Span {
        Span::from_secs(self)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) alive: bool,
    pub(super) connected: bool,
    /// Answers every request with this.
    pub(super) failing: Option<FetchFailure>,
    pub(super) served: u32,
    /// Answers probes, and no request.
    pub(super) stuck: bool,
    /// It paces Base, and this is when the slot there is full again.
    pub(super) paced: Option<Time>,
}

impl Node {
    /// When a request may start: a slot of 1.5 times Base, with four seconds of it
    /// at once.
    fn slot(&mut self, now: Time, layer: Layer, length: u64) -> Time {
        let Some(full) = self.paced.as_mut().filter(|_| layer == Layer::BASE) else { return now };
        let takes = |bytes: u64| Span::from_nanos(bytes * 1_000_000_000 / (LENGTHS[0] * 3 / 2));
        let from = (*full).max(now);
        *full = from + takes(length);
        let missing = (*full - now).saturating_sub(takes(4 * LENGTHS[0]));
        now + missing
    }
}

#[derive(Clone, Debug)]
struct Transfer {
    source: SourceId,
    key: (Layer, u32),
    starts: Time,
    unsent: u64,
    /// Sent and not yet through the link, or not sent.
    left: u64,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Piece(RequestId),
    Alive(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Rig {
    pub(super) now: Time,
    pub(super) player: Player,
    pub(super) pipe: Pipe,
    pub(super) nodes: Vec<Node>,
    pub(super) link: BitRate,
    pub(super) round_trip: Span,
    pub(super) events: Vec<(Time, Event)>,
    pub(super) outputs: Vec<(Time, Output)>,
    shape: Arc<TitleShape>,
    config: PlayerConfig,
    transfers: BTreeMap<RequestId, Transfer>,
    /// What is under way on the link, first in, first out.
    queue: VecDeque<(SourceId, Packet, u64)>,
    credit: u64,
    probed: Vec<(Time, SourceId, u32)>,
    mail: VecDeque<(Time, SourceId, Input)>,
    pub(super) open: BTreeMap<RequestId, (u32, Layer, SourceId)>,
    base: BTreeSet<u32>,
    next_fed: Option<u32>,
    reported: Span,
    trick: bool,
}

/// A title of one-second blocks with these bytes a block in each layer.
pub(super) fn title(blocks: u64, lengths: &[u64]) -> TitleShape {
    let block = |n| BlockShape {
        start: Span::from_secs(n),
        duration: Span::from_secs(1),
        lengths: lengths.iter().map(|n| ByteCount(*n)).collect(),
    };
    TitleShape { layers: lengths.len() as u8, blocks: (0..blocks).map(block).collect() }
}

/// What most stories play: about 0.4, 0.5 and 0.8 Mbit/s.
pub(super) const LENGTHS: [u64; 3] = [50_000, 62_000, 100_000];

impl Rig {
    /// A and B serve Base, C Enh1, D and E Enh2; A granted the session.
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, title(120, &LENGTHS), BitRate(50_000_000), Quality::GOLD)
    }

    pub(super) fn with(seed: u64, shape: TitleShape, link: BitRate, quality: Quality) -> Self {
        Self::sources(seed, shape, link, quality, vec![vec![A, B], vec![C], vec![D, E]])
    }

    pub(super) fn sources(
        seed: u64,
        shape: TitleShape,
        link: BitRate,
        quality: Quality,
        sources: Vec<Vec<SourceId>>,
    ) -> Self {
        Self::among(seed, (shape, link, quality), sources, Service::default(), &PlayerConfig::default())
    }

    /// A plays, C and D serve enhancements, B stands behind A in epoch 1.
    pub(super) fn in_network(config: &PlayerConfig) -> Self {
        let service = Service { home: Some(A), backup: Some(B), epoch: 1, doors: vec![E] };
        let title = (title(120, &LENGTHS), BitRate(50_000_000), Quality::GOLD);
        Self::among(1, title, vec![vec![A], vec![C], vec![D]], service, config)
    }

    fn among(
        seed: u64,
        (shape, link, quality): (TitleShape, BitRate, Quality),
        sources: Vec<Vec<SourceId>>,
        service: Service,
        config: &PlayerConfig,
    ) -> Self {
        let node =
            Node { alive: true, connected: false, failing: None, served: 0, stuck: false, paced: None };
        let shape = Arc::new(shape);
        let mut rig = Self {
            now: Time::ZERO,
            player: Player::new(Time::ZERO, *config, seed),
            pipe: Pipe::new(Span::ZERO),
            nodes: vec![node; 5],
            link,
            round_trip: 4.ms(),
            events: Vec::new(),
            outputs: Vec::new(),
            shape: shape.clone(),
            config: *config,
            transfers: BTreeMap::new(),
            queue: VecDeque::new(),
            credit: 0,
            probed: Vec::new(),
            mail: VecDeque::new(),
            open: BTreeMap::new(),
            base: BTreeSet::new(),
            next_fed: Some(0),
            reported: Span::ZERO,
            trick: false,
        };
        rig.nodes[0].connected = true;
        let connected = vec![A];
        let from = Span::ZERO;
        rig.put(Input::Opened(Opening { shape, quality, sources, connected, service, from, until: None }));
        rig
    }

    pub(super) fn node(&mut self, id: SourceId) -> &mut Node {
        &mut self.nodes[usize::from(id.0)]
    }

    /// The process is gone: nothing is ever heard of its connections again.
    pub(super) fn kill(&mut self, id: SourceId) {
        self.node(id).alive = false;
        self.node(id).connected = false;
        self.transfers.retain(|_, transfer| transfer.source != id);
        self.queue.retain(|(source, ..)| *source != id);
        self.probed.retain(|(_, source, _)| *source != id);
        let lost = |(when, source, input): (Time, SourceId, Input)| match input {
            _ if source != id => Some((when, source, input)),
            Input::Connected { .. } => Some((when + 900.ms(), source, Input::Lost { source })),
            Input::Lost { .. } => Some((when, source, input)),
            _ => None,
        };
        self.mail = std::mem::take(&mut self.mail).into_iter().filter_map(lost).collect();
    }

    /// What is on its way from a node comes later.
    pub(super) fn delay(&mut self, id: SourceId, by: Span) {
        for (when, ..) in self.mail.iter_mut().filter(|(_, source, _)| *source == id) {
            *when += by;
        }
    }

    /// A new process at the same address.
    pub(super) fn restart(&mut self, id: SourceId) {
        self.node(id).alive = true;
    }

    /// The process stands still, but its connections do not break.
    pub(super) fn hang(&mut self, id: SourceId) {
        self.node(id).alive = false;
    }

    /// The connection to a node breaks; the node itself is gone.
    pub(super) fn lose(&mut self, id: SourceId) {
        self.kill(id);
        self.put(Input::Lost { source: id });
    }

    /// When the machine first wanted something from `since` on.
    pub(super) fn first(&self, since: Time, pick: impl Fn(&Output) -> bool) -> Option<Time> {
        let wanted = |(at, output): &&(Time, Output)| *at >= since && pick(output);
        self.outputs.iter().find(wanted).map(|(at, _)| *at)
    }

    pub(super) fn wake(&mut self, id: SourceId) {
        self.node(id).alive = true;
    }

    pub(super) fn user(&mut self, command: Command) {
        self.put(Input::User(command));
    }

    pub(super) fn source_of(&self, layer: Layer) -> Option<SourceId> {
        self.player.source_of(layer)
    }

    /// Quality of each block fed so far.
    pub(super) fn fed(&self) -> Vec<u8> {
        self.pipe.fed.iter().map(|(_, quality)| quality.layers()).collect()
    }

    pub(super) fn transitions(&self) -> Vec<(u32, Quality, Quality, crate::quality::Cause)> {
        let seen = |(_, event): &(Time, Event)| match event {
            Event::Transition { block, from, to, cause, .. } => {
                Some((*block, from.quality, to.quality, *cause))
            }
            _ => None,
        };
        self.events.iter().filter_map(seen).collect()
    }

    pub(super) fn count(&self, pick: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|(_, event)| pick(event)).count()
    }

    /// Runs until `span` has passed.
    pub(super) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// Runs until `done`, at most a minute.
    pub(super) fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let end = self.now + 60.s();
        while !done(self) {
            assert!(self.now < end, "it never happened");
            self.step();
        }
    }

    pub(super) fn step(&mut self) {
        let next = self.now + STEP;
        while let Some(when) = self.player.poll_timeout().filter(|when| *when <= next) {
            self.now = when.max(self.now);
            self.put(Input::Timeout);
        }
        self.now = next;
        self.move_bytes();
        self.deliver();
        if self.pipe.wants(1.s()) {
            let serial = self.pipe.serial;
            self.put(Input::FeedWants { serial });
        }
        if self.pipe.run(self.now, STEP) {
            self.reported = self.pipe.position;
            self.put(Input::Position { serial: self.pipe.serial, at: self.reported });
        }
        if self.pipe.ended {
            self.put(Input::Ended { serial: self.pipe.serial });
        }
    }

    /// One queue for all connections. Each fills it up to its window; within a
    /// connection Base goes first, then the earlier block. What was stopped is
    /// not sent any more, but what lies in the queue already takes its time.
    fn move_bytes(&mut self) {
        self.credit += self.link.0 / 8 * STEP.as_millis() / 1_000;
        let mut came: BTreeMap<SourceId, u64> = BTreeMap::new();
        let mut whole = Vec::new();
        loop {
            self.fill_queue();
            let Some((source, packet, bytes)) = self.queue.front().copied() else {
                self.credit = 0;
                break;
            };
            if self.credit < bytes {
                break;
            }
            self.credit -= bytes;
            self.queue.pop_front();
            *came.entry(source).or_default() += bytes;
            let request = match packet {
                Packet::Piece(request) => request,
                Packet::Alive(number) => {
                    self.mail.push_back((self.now, source, Input::Alive { source, number }));
                    continue;
                }
            };
            if let Some(transfer) = self.transfers.get_mut(&request) {
                transfer.left -= bytes;
                if transfer.left == 0 {
                    self.transfers.remove(&request);
                    whole.push((source, request));
                }
            }
        }
        for (source, bytes) in came {
            self.put(Input::Heard { source, bytes: ByteCount(bytes) });
        }
        for (source, request) in whole {
            self.node(source).served += 1;
            self.mail.push_back((self.now, source, Input::Arrived { request }));
        }
    }

    fn fill_queue(&mut self) {
        let now = self.now;
        let answered: Vec<_> = self.probed.extract_if(.., |(when, ..)| *when <= now).collect();
        let alive = answered.into_iter().filter(|(_, source, _)| self.nodes[usize::from(source.0)].alive);
        self.queue.extend(alive.map(|(_, source, number)| (source, Packet::Alive(number), 60)));
        let mut in_flight = [0; 5];
        for (source, _, bytes) in &self.queue {
            in_flight[usize::from(source.0)] += bytes;
        }
        let mut queued: u64 = in_flight.iter().sum();
        let room = (self.link.0 / 8 * QUEUE.as_millis() / 1_000).max(10 * PACKET);
        loop {
            let mut sent = false;
            for (place, in_flight) in in_flight.iter_mut().enumerate() {
                let ready =
                    |t: &Transfer| usize::from(t.source.0) == place && t.unsent > 0 && t.starts <= self.now;
                let first = self.transfers.iter_mut().filter(|(_, t)| ready(t)).min_by_key(|(_, t)| t.key);
                let Some((request, transfer)) = first.filter(|_| self.nodes[place].alive) else { continue };
                let bytes = transfer.unsent.min(PACKET);
                if *in_flight + bytes > IN_FLIGHT || queued + bytes > room {
                    continue;
                }
                transfer.unsent -= bytes;
                *in_flight += bytes;
                queued += bytes;
                self.queue.push_back((transfer.source, Packet::Piece(*request), bytes));
                sent = true;
            }
            if !sent {
                return;
            }
        }
    }

    fn deliver(&mut self) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.mail).into_iter().partition(|(when, ..)| *when <= self.now);
        self.mail = later.into();
        for (_, source, input) in due {
            if let Input::Connected { .. } = input {
                self.node(source).connected = true;
            }
            self.put(input);
        }
    }

    /// One input, drained, with every law looked at.
    pub(super) fn put(&mut self, input: Input) {
        match &input {
            Input::Arrived { request } | Input::Failed { request, .. } if self.player.is_open(*request) => {
                self.open.remove(request);
            }
            _ => {}
        }
        self.player.handle_input(self.now, input);
        while let Some(output) = self.player.poll_output() {
            self.outputs.push((self.now, output.clone()));
            self.obey(output);
        }
        self.check_bound();
    }

    fn obey(&mut self, output: Output) {
        let soon = self.now + self.round_trip;
        match output {
            Output::Dial { source } => {
                let alive = self.node(source).alive;
                let input = Input::Connected { source, round_trip: self.round_trip };
                let mail = if alive { (soon, input) } else { (self.now + 900.ms(), Input::Lost { source }) };
                self.mail.push_back((mail.0, source, mail.1));
            }
            Output::Probe { source, number } => {
                let node = self.node(source);
                if node.alive && node.connected {
                    self.probed.push((soon, source, number));
                }
            }
            Output::Request { request, source, block, layer, .. } => {
                self.asked(request, source, block, layer);
            }
            Output::Cancel { request } => {
                self.open.remove(&request);
                self.transfers.remove(&request);
            }
            Output::Feed { block, quality, serial, .. } => {
                assert_eq!(serial, self.pipe.serial, "fed for another seek");
                if !self.trick {
                    assert_eq!(Some(block), self.next_fed, "fed out of order");
                    self.next_fed = Some(block + 1);
                }
                let back = u64::from(!self.pipe.is_backwards());
                let end = Span::from_secs(u64::from(block) + back);
                self.pipe.feed(self.now, block, quality, end);
            }
            Output::EndOfFeed { .. } => self.pipe.end_of_feed(),
            Output::Evict { block } => {
                self.base.remove(&block);
            }
            Output::PipelineSeek { serial, to, rate } => {
                self.pipe.seek(serial, to, rate);
                self.reported = to;
                self.trick = rate != 1;
                self.next_fed = Some((to.as_millis() / 1_000) as u32);
            }
            Output::PipelinePlay => self.pipe.play(true),
            Output::PipelinePause => self.pipe.play(false),
            Output::GiveUp(_)
            | Output::Leave { .. }
            | Output::Report { .. }
            | Output::StillServed { .. }
            | Output::Seek { .. } => {}
            Output::Event(event) => self.events.push((self.now, event)),
        }
    }

    fn asked(&mut self, request: RequestId, source: SourceId, block: u32, layer: Layer) {
        let same = self.open.values().filter(|(b, l, _)| (*b, *l) == (block, layer));
        let others: Vec<SourceId> = same.map(|(_, _, source)| *source).collect();
        assert!(others.len() <= 1 && !others.contains(&source), "{block}/{layer} asked again of {source:?}");
        self.open.insert(request, (block, layer, source));
        if layer == Layer::BASE {
            self.base.insert(block);
        }
        let length = self.shape.blocks[block as usize].lengths[layer.index()].0;
        let soon = self.now + self.round_trip;
        let node = self.node(source);
        if let Some(why) = node.failing {
            self.mail.push_back((soon, source, Input::Failed { request, why }));
        } else if node.connected && !node.stuck {
            let starts = node.slot(soon, layer, length);
            let transfer = Transfer { source, key: (layer, block), starts, unsent: length, left: length };
            self.transfers.insert(request, transfer);
        }
    }

    /// Nothing is held or asked for beyond the buffer's seconds, but the next block.
    fn check_bound(&self) {
        if self.trick {
            assert!(self.base.len() <= 5, "too many blocks in trick play");
            return;
        }
        let asked = self.open.values().map(|(block, ..)| *block);
        for block in self.base.iter().copied().chain(asked) {
            let end = Span::from_secs(u64::from(block) + 1);
            let lawful = end <= self.reported + self.config.buffer || Some(block) == self.next_fed;
            assert!(lawful, "block {block} at {} exceeds the buffer", self.reported);
        }
    }
}
