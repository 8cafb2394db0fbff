//! One viewer: the player's machine, whom it is connected to, and what it wants done.

use super::call::Call;
use super::net::{End, Happens, Net, Parcel};
use super::picture::Picture;
use super::{Guest, Plan, Seen, Title};
use media::{ByteCount, ChunkId, Layer, Quality, Span, Time, TitleName};
use protocol::player::{
    Event, FetchFailure, Input, Output, Player, PlayerConfig, RequestId, Service, SourceId,
};
use protocol::{
    ChunkRequest, Claims, LinkId, Message, Open, PeerId, Progress, SessionId, Sla, StreamRequest, UserId,
    Visit,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A fetch without a deadline of its own is not waited for any longer, as in the player.
const LONGEST_FETCH: Span = Span::from_secs(30);
/// Fewer bytes than this between two looks can be acknowledgements alone, likewise.
const PAYLOAD_DATAGRAM: u64 = 600;

/// A connection that stands.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) link: LinkId,
    pub(super) session: SessionId,
    /// Whether a message or a payload came since the last look.
    pub(super) heard: bool,
    pub(super) bytes: u64,
}

/// A viewer.
#[derive(Debug)]
pub(super) struct Seat {
    guest: Guest,
    pub(super) title: Title,
    config: PlayerConfig,
    seed: u64,
    pub(super) machine: Option<Player>,
    pub(super) table: Vec<(PeerId, SocketAddr)>,
    pub(super) order: Vec<Vec<SourceId>>,
    pub(super) service: Service,
    pub(super) open: Open,
    pub(super) quality: Quality,
    pub(super) wires: BTreeMap<SourceId, Wire>,
    pub(super) calls: BTreeMap<LinkId, Call>,
    /// What is asked for, and how much of it is here.
    fetches: BTreeMap<RequestId, (SourceId, LinkId)>,
    /// What was heard before the machine began.
    pub(super) early: Vec<Input>,
    picture: Picture,
    wake: Option<Time>,
    came: Time,
    seen: Seen,
}

impl Seat {
    pub(super) fn new(plan: &Plan, guest: Guest) -> Self {
        let number = plan.guests.iter().position(|other| *other == guest).unwrap_or(0);
        let seed = plan.seed.wrapping_mul(1_000).wrapping_add(u64::try_from(number).unwrap_or(0));
        let hot_standby = guest.sla == Sla::Vip;
        let config = PlayerConfig { buffer: plan.buffer, hot_standby, ..PlayerConfig::default() };
        let progress = Progress { buffer: plan.buffer, ..Progress::default() };
        let title: TitleName = plan.title.name.clone();
        let open = Open::new(1, title, guest.quality, UserId(seed), Visit::Seek(progress));
        let longest = plan.title.shape.blocks.iter().map(|block| block.duration).max().unwrap_or_default();
        Self {
            guest,
            title: plan.title.clone(),
            config,
            seed,
            machine: None,
            table: Vec::new(),
            order: Vec::new(),
            service: Service::default(),
            open,
            quality: guest.quality,
            wires: BTreeMap::new(),
            calls: BTreeMap::new(),
            fetches: BTreeMap::new(),
            early: Vec::new(),
            picture: Picture::new(longest),
            wake: None,
            came: Time::ZERO,
            seen: Seen::default(),
        }
    }

    /// Another user than all others.
    pub(super) const fn name(&mut self, user: u64) {
        self.open.user = UserId(user);
    }

    pub(super) const fn at(&self) -> PeerId {
        self.guest.at
    }

    pub(super) const fn claims(&self) -> Claims {
        match self.guest.sla {
            Sla::Vip => Claims { sla: Sla::Vip, top: Quality::GOLD },
            Sla::Normal => Claims::NONE,
        }
    }

    pub(super) const fn comes(&mut self, now: Time) {
        self.came = now;
    }

    /// The machine begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.machine = Some(Player::new(now, self.config, self.seed));
    }

    pub(super) fn is_served_by(&self, address: SocketAddr) -> bool {
        let source = self.machine.as_ref().and_then(|machine| machine.source_of(Layer::BASE));
        source.and_then(|source| self.table.get(usize::from(source.0))).is_some_and(|(_, at)| *at == address)
    }

    /// A node dies.
    pub(super) fn struck(&mut self, now: Time, address: Option<SocketAddr>) {
        let served = address.is_some_and(|address| self.is_served_by(address));
        if served && self.picture.first.is_some_and(|first| first <= now) {
            self.seen.struck_with = self.machine.as_ref().map(Player::buffer_level);
        }
    }

    pub(super) fn finish(mut self, end: Time) -> Seen {
        let (watched, quality) = self.picture.finish(end, self.guest.quality);
        Seen {
            watched,
            quality,
            frozen: self.picture.frozen,
            freezes: self.picture.freezes,
            startup: self.picture.first.map(|first| first - self.came),
            ..self.seen
        }
    }

    fn note(&mut self, now: Time, event: &Event) {
        if let Event::FailedOver { layer: Layer::BASE, heard, verdict, .. } = *event {
            self.seen.recoveries.push(now - heard);
            self.seen.verdicts.push(verdict - heard);
        }
    }
}

impl Net {
    pub(super) fn tell_viewer(&mut self, viewer: usize, input: Input) {
        let now = self.now();
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let Some(machine) = seat.machine.as_mut() else { return seat.early.push(input) };
        machine.handle_input(now, input);
        while let Some(output) =
            self.seats.get_mut(viewer).and_then(|seat| seat.machine.as_mut()).and_then(Player::poll_output)
        {
            self.obey_viewer(viewer, output);
        }
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let Some(at) = seat.machine.as_ref().and_then(Player::poll_timeout) else { return };
        let at = at.max(now);
        if seat.wake.is_none_or(|planned| at < planned) {
            seat.wake = Some(at);
            self.queue.plan(at, Happens::Wake { end: End::Viewer(viewer) });
        }
    }

    pub(super) fn wake_viewer(&mut self, viewer: usize) {
        let now = self.now();
        let Some(seat) = self.seats.get_mut(viewer).filter(|seat| seat.wake == Some(now)) else { return };
        seat.wake = None;
        self.listen(viewer);
        self.tell_viewer(viewer, Input::Timeout);
    }

    /// Twenty milliseconds have passed.
    pub(super) fn tick(&mut self, viewer: usize) {
        let now = self.now();
        self.plan_tick(viewer);
        self.listen(viewer);
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        for wire in seat.wires.values() {
            if let Some(conn) = self.conns.get_mut(&wire.link) {
                conn.lane.look();
            }
        }
        let serial = seat.picture.serial;
        let (position, over) = (seat.picture.position(now), seat.picture.is_over(now));
        if let Some(at) = position {
            self.tell_viewer(viewer, Input::Position { serial, at });
        }
        if over {
            self.tell_viewer(viewer, Input::Ended { serial });
        }
        self.want(viewer);
    }

    fn want(&mut self, viewer: usize) {
        let now = self.now();
        let Some(seat) = self.seats.get_mut(viewer).filter(|seat| seat.machine.is_some()) else { return };
        let serial = seat.picture.serial;
        if seat.picture.wants(now) {
            self.tell_viewer(viewer, Input::FeedWants { serial });
        }
    }

    /// The machine hears what came from whom since the last look.
    pub(super) fn listen(&mut self, viewer: usize) {
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let mut news = Vec::new();
        for (source, wire) in &mut seat.wires {
            if wire.heard || wire.bytes >= PAYLOAD_DATAGRAM {
                news.push((*source, ByteCount(std::mem::take(&mut wire.bytes))));
                wire.heard = false;
            }
        }
        for (source, bytes) in news {
            self.tell_viewer(viewer, Input::Heard { source, bytes });
        }
    }

    fn obey_viewer(&mut self, viewer: usize, output: Output) {
        let now = self.now();
        let end = End::Viewer(viewer);
        let say = |message: Message| Parcel::Say(Box::new(message));
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let user = seat.open.user;
        match output {
            Output::Dial { source } => self.dial_source(viewer, source),
            Output::Probe { source, number } => self.say(viewer, source, say(Message::Probe(number))),
            Output::Leave { source } => self.leave(viewer, source),
            Output::Report { source, position, buffer, paused } => {
                self.say(viewer, source, say(Message::Position { user, position, buffer, paused }));
            }
            Output::StillServed { source, epoch } => {
                self.say(viewer, source, say(Message::StillServed { user, epoch }));
            }
            Output::Seek { door, progress, former } => self.seek(viewer, door, progress, former),
            Output::Request { request, source, block, layer, deadline } => {
                self.fetch(viewer, request, source, (block, layer), deadline);
            }
            Output::Cancel { request } => {
                if let Some((_, link)) = seat.fetches.remove(&request) {
                    self.send(link, end, Parcel::Stop { request });
                }
            }
            Output::Feed { block, quality, .. } => {
                let shape = seat.title.shape.clone();
                let of = usize::try_from(block).ok().and_then(|block| shape.blocks.get(block));
                if let Some(block) = of {
                    seat.picture.feed(now, (block.start, block.start + block.duration), quality);
                }
            }
            Output::EndOfFeed { .. } => seat.picture.close(),
            Output::PipelineSeek { serial, to, .. } => seat.picture.seek(serial, to),
            Output::PipelinePlay => seat.picture.play(now, true),
            Output::PipelinePause => seat.picture.play(now, false),
            Output::Event(event) => seat.note(now, &event),
            Output::Evict { .. } | Output::GiveUp(_) => {}
        }
    }

    fn say(&mut self, viewer: usize, source: SourceId, parcel: Parcel) {
        if let Some(link) = self.link_of(viewer, source) {
            self.send(link, End::Viewer(viewer), parcel);
        }
    }

    pub(super) fn leave(&mut self, viewer: usize, source: SourceId) {
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        seat.calls.retain(|_, call| call.attaches() != Some(source));
        let Some(wire) = seat.wires.remove(&source) else { return };
        let bye = Parcel::Say(Box::new(Message::Close(wire.session)));
        self.send(wire.link, End::Viewer(viewer), bye);
        self.close(wire.link, End::Viewer(viewer));
    }

    fn fetch(
        &mut self,
        viewer: usize,
        request: RequestId,
        source: SourceId,
        (block, layer): (u32, Layer),
        deadline: Span,
    ) {
        let Some(link) = self.link_of(viewer, source) else {
            return self.tell_viewer(viewer, Input::Failed { request, why: FetchFailure::Broken });
        };
        let now = self.now();
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        seat.fetches.insert(request, (source, link));
        let within = deadline.min(LONGEST_FETCH);
        let id = ChunkId { title: seat.title.name.clone(), block, layer };
        let deadline_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        let wanted = StreamRequest::Chunk(ChunkRequest::whole(id, deadline_ms));
        self.send(link, End::Viewer(viewer), Parcel::Ask { request, wanted });
        self.queue.plan(now + within, Happens::FetchLate { viewer, request });
    }

    pub(super) fn fetch_late(&mut self, viewer: usize, request: RequestId) {
        let open = self.seats.get_mut(viewer).and_then(|seat| seat.fetches.remove(&request));
        if let Some((_, link)) = open {
            self.send(link, End::Viewer(viewer), Parcel::Stop { request });
            self.tell_viewer(viewer, Input::Failed { request, why: FetchFailure::Late });
        }
    }

    /// A connection is over.
    pub(super) fn broken(&mut self, viewer: usize, link: LinkId) {
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        if seat.calls.contains_key(&link) {
            return self.call_failed(viewer, link);
        }
        let source = seat.wires.iter().find(|(_, wire)| wire.link == link).map(|(source, _)| *source);
        if let Some(source) = source {
            seat.wires.remove(&source);
            let of = seat.fetches.iter().filter(|(_, (_, by))| *by == link);
            let broken: Vec<RequestId> = of.map(|(request, _)| *request).collect();
            for request in broken {
                if let Some(seat) = self.seats.get_mut(viewer) {
                    seat.fetches.remove(&request);
                }
                self.tell_viewer(viewer, Input::Failed { request, why: FetchFailure::Broken });
            }
            self.tell_viewer(viewer, Input::Lost { source });
        }
    }

    /// Part of a chunk is here.
    pub(super) fn piece(&mut self, viewer: usize, link: LinkId, request: RequestId, bytes: u64, last: bool) {
        self.send(link, End::Viewer(viewer), Parcel::Got { bytes });
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        if let Some(wire) = seat.wires.values_mut().find(|wire| wire.link == link) {
            wire.bytes += bytes;
            wire.heard = true;
        }
        if last && seat.fetches.remove(&request).is_some() {
            self.listen(viewer);
            self.tell_viewer(viewer, Input::Arrived { request });
            self.want(viewer);
        }
    }

    pub(super) fn refused(&mut self, viewer: usize, request: RequestId, why: protocol::Refusal) {
        let open = self.seats.get_mut(viewer).and_then(|seat| seat.fetches.remove(&request));
        if open.is_some() {
            self.listen(viewer);
            self.tell_viewer(viewer, Input::Failed { request, why: FetchFailure::Refused(why) });
        }
    }
}
