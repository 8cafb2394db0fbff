//! The loop: what happens at nodes and what happens at proxies, one thing after the
//! other.

use super::audience::{Audience, LAYERS, Title, block_size, titles};
use super::front::{ENHANCEMENT_PATIENCE, Front, Staged};
use super::measures::{Measures, Window};
use super::seat::Seat;
use super::{NODES_OF_A_PROXY, Plan, TAU, Wires};
use crate::proxies::Session;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::topology::{Topology, TopologyError};
use crate::world::World;
use media::{ByteCount, Layer, Quality, Span, Time};
use protocol::PeerId;
use protocol::proxy::cooperation::{ClientId, Fetch, FetchFailure, FetchId, Input, Output, Relay, Server};
use protocol::proxy::{Query, Reply};
use std::sync::Arc;

/// What happens at proxies.
pub(super) enum Happens {
    Asks { user: usize },
    Received { user: usize, quality: Quality },
    FetchAt { server: usize, proxy: usize, fetch: Fetch },
    Ready { proxy: usize, fetch: FetchId },
    Lapse { proxy: usize, fetch: FetchId },
    CancelAt { server: usize, proxy: usize, fetch: FetchId },
    Sent { server: usize, proxy: usize },
    Begun { proxy: usize, fetch: FetchId },
    Fetched { proxy: usize, fetch: FetchId, quality: Quality, bytes: ByteCount, begun: Time },
    Failed { proxy: usize, fetch: FetchId, why: FetchFailure },
    Asked { proxy: usize, from: usize, query: Query },
    Told { proxy: usize, from: usize, reply: Reply },
    Timeout { proxy: usize },
}

pub(super) struct Model {
    pub(super) world: World,
    pub(super) queue: Queue<Happens>,
    pub(super) titles: Vec<Title>,
    pub(super) names: Vec<PeerId>,
    pub(super) fronts: Vec<Front>,
    pub(super) seats: Vec<Seat>,
    pub(super) window: Window,
    pub(super) measures: Measures,
    /// Who lost its node while it watched, and when.
    pub(super) lost: Vec<(usize, Time)>,
    pub(super) wires: Wires,
}

/// Runs a plan. The same plan gives the same measures.
pub fn run(plan: &Plan) -> Result<Measures, TopologyError> {
    let mut model = Model::new(plan)?;
    model.run_until(model.window.from);
    let before = model.counts();
    model.measures.stored = model.world.stored().0;
    model.run_until(model.window.to);
    Ok(model.finish(plan, before))
}

impl Model {
    fn new(plan: &Plan) -> Result<Self, TopologyError> {
        let topology = Arc::new(Topology::generate(plan.size.shape(), &mut Rng::stream(plan.seed, 1))?);
        let titles = titles();
        let audience = Audience::of(plan, &topology);
        let layers = usize::from(LAYERS);
        let mut world = World::new(topology, plan.world(), plan.seed);
        let stock: Vec<_> =
            titles.iter().map(|title| (title.facts.clone(), vec![title.layer_size(); layers])).collect();
        world.stock(&stock);
        for guest in &audience.guests {
            world.expect_one(guest.arrival, guest.wish);
        }
        world.suffer(&audience.faults);
        let seat = |guest: &super::audience::Guest| {
            let proxy = usize::from(guest.arrival.target.0 / NODES_OF_A_PROXY);
            let blocks = titles.get(guest.wish.title).map_or(1, |title| title.blocks);
            Seat::new(guest, proxy, blocks)
        };
        let seats = audience.guests.iter().map(seat).collect();
        let wires = Wires::of(plan);
        let names: Vec<PeerId> =
            (0..plan.size.proxies()).filter_map(|proxy| format!("proxy-{proxy:02}").parse().ok()).collect();
        let fronts = (0..names.len()).map(|at| Front::of(plan, &wires, &titles, &names, at)).collect();
        let from = Time::ZERO + plan.warm;
        let window = Window { from, to: from + plan.counted };
        let measures = Measures::default();
        let (queue, lost) = (Queue::default(), Vec::new());
        Ok(Self { world, queue, titles, names, fronts, seats, window, measures, lost, wires })
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let next = self.queue.next_at().unwrap_or(end).min(end);
            if self.world.run_until_done(next, World::is_stirred) {
                let now = self.world.now();
                for user in self.world.take_stirred() {
                    self.stirred(now, user);
                }
                continue;
            }
            match self.queue.take_until(end) {
                Some(happens) => self.happen(happens),
                None => return,
            }
        }
    }

    fn happen(&mut self, happens: Happens) {
        let now = self.queue.now();
        match happens {
            Happens::Asks { user } => self.ask(now, user),
            Happens::Received { user, quality } => self.receive(now, user, quality),
            Happens::FetchAt { server: 0, proxy, fetch } => self.stage(now, proxy, fetch),
            Happens::FetchAt { server, proxy, fetch } => self.line_up(now, server, proxy, fetch),
            Happens::Ready { proxy, fetch } => {
                let staged = self.fronts.get(proxy).and_then(|front| front.staged.get(&fetch)).cloned();
                if let Some(staged) = staged {
                    self.line_up(now, 0, proxy, staged.fetch);
                }
            }
            Happens::Lapse { proxy, fetch } => {
                if self.fronts.get_mut(proxy).is_some_and(|front| front.lapse(now, fetch)) {
                    let input = Input::FetchFailed { fetch, why: FetchFailure::Failed };
                    self.tell(now, proxy, input, None);
                }
            }
            Happens::CancelAt { server, proxy, fetch } => self.cancel(now, server, proxy, fetch),
            Happens::Sent { server, proxy } => self.sent(now, server, proxy),
            Happens::Begun { proxy, fetch } => self.tell(now, proxy, Input::Begun { fetch }, None),
            Happens::Fetched { proxy, fetch, quality, bytes, begun } => {
                // The estimates are the true constants: nothing is measured.
                let input = Input::Fetched { fetch, quality, bytes, took: Span::ZERO };
                self.tell(now, proxy, input, Some(begun));
            }
            Happens::Failed { proxy, fetch, why } => {
                self.tell(now, proxy, Input::FetchFailed { fetch, why }, None);
            }
            Happens::Asked { proxy, from, query } => {
                let Some(from) = self.names.get(from).copied() else { return };
                self.tell(now, proxy, Input::Queried { from, query }, None);
            }
            Happens::Told { proxy, from, reply } => {
                let Some(from) = self.names.get(from).copied() else { return };
                self.tell(now, proxy, Input::Replied { from, reply }, None);
            }
            Happens::Timeout { proxy } => {
                if let Some(front) = self.fronts.get_mut(proxy) {
                    front.timeout = None;
                }
                self.tell(now, proxy, Input::Timeout, None);
            }
        }
    }

    fn ask(&mut self, now: Time, user: usize) {
        let Some(seat) = self.seats.get_mut(user).filter(|seat| seat.inside) else { return };
        seat.asked = now;
        let (block, quality) = (seat.next, seat.quality);
        let (buffered, starting) = (seat.buffered(now), seat.is_starting());
        let (proxy, client) = (seat.proxy, client_id(user));
        self.tell(now, proxy, Input::Asked { client, block, quality, buffered, starting }, None);
    }

    fn receive(&mut self, now: Time, user: usize, quality: Quality) {
        let Some(seat) = self.seats.get_mut(user).filter(|seat| seat.inside) else { return };
        if self.window.has(now) {
            self.measures.received += u64::from(quality.min(seat.quality).layers());
            self.measures.wanted += u64::from(seat.quality.layers());
        }
        let freeze = seat.receive(now);
        let (pause, done) = (seat.pause(now), seat.is_done());
        if let Some(freeze) = freeze {
            self.froze(user, freeze);
        }
        if done {
            self.leave(now, user);
        } else {
            self.queue.plan(now + pause + self.wires.viewer.1, Happens::Asks { user });
        }
    }

    /// A fetch is at its server: it waits there for its turn.
    fn line_up(&mut self, now: Time, server: usize, proxy: usize, fetch: Fetch) {
        let Some(session) = self.session(server, proxy) else { return };
        let delay = session.delay;
        for gone in session.ask(fetch) {
            self.unstage(proxy, gone.id);
            let why = FetchFailure::Overwritten;
            self.queue.plan(now + delay, Happens::Failed { proxy, fetch: gone.id, why });
        }
        self.send_next(now, server, proxy);
    }

    fn cancel(&mut self, now: Time, server: usize, proxy: usize, fetch: FetchId) {
        let Some(front) = self.fronts.get_mut(proxy) else { return };
        let Some(session) = front.sessions.get_mut(server) else { return };
        let (delay, waited) = (session.delay, session.cancel(fetch).is_some());
        let parked = front.parked.remove(&fetch).is_some();
        if self.unstage(proxy, fetch) || parked || waited {
            let why = FetchFailure::Overwritten;
            self.queue.plan(now + delay, Happens::Failed { proxy, fetch, why });
        }
    }

    /// A fetch goes to no node after all: its slots have what it would have taken.
    fn unstage(&mut self, proxy: usize, fetch: FetchId) -> bool {
        let staged = self.fronts.get_mut(proxy).and_then(|front| front.staged.remove(&fetch));
        for (user, layer) in staged.iter().flat_map(|staged| &staged.from) {
            if let Some(slot) = self.seats.get_mut(*user).and_then(|seat| seat.slot_mut(*layer)) {
                slot.give_back(block_size());
            }
        }
        staged.is_some()
    }

    fn session(&mut self, server: usize, proxy: usize) -> Option<&mut Session> {
        self.fronts.get_mut(proxy)?.sessions.get_mut(server)
    }

    /// A server sends what waits, if it has it.
    fn send_next(&mut self, now: Time, server: usize, proxy: usize) {
        while let Some(fetch) = self.session(server, proxy).and_then(Session::take) {
            let staged = self.fronts.get_mut(proxy).and_then(|front| front.staged.remove(&fetch.id));
            let held = match server.checked_sub(1).and_then(|peer| self.fronts.get(peer)) {
                None => staged.map_or(Quality::NONE, |staged| staged.quality),
                Some(peer) => peer.mind.held(&fetch.title, fetch.block),
            };
            let quality = fetch.want.min(held);
            let Some(session) = self.session(server, proxy) else { return };
            let (delay, id) = (session.delay, fetch.id);
            if quality <= fetch.have {
                let why = FetchFailure::Absent;
                self.queue.plan(now + delay, Happens::Failed { proxy, fetch: id, why });
                continue;
            }
            let layers = quality.layers() - fetch.have.layers();
            let bytes = ByteCount(block_size().0 * u64::from(layers));
            let end = session.send(now, fetch, quality, bytes);
            self.queue.plan(now + delay, Happens::Begun { proxy, fetch: id });
            self.queue.plan(end, Happens::Sent { server, proxy });
            return;
        }
    }

    fn sent(&mut self, now: Time, server: usize, proxy: usize) {
        let Some(session) = self.session(server, proxy) else { return };
        let (delay, sent) = (session.delay, session.end());
        if let Some(sent) = sent {
            let (fetch, quality, bytes, begun) =
                (sent.fetch.id, sent.quality, sent.bytes, sent.since + delay);
            self.queue.plan(now + delay, Happens::Fetched { proxy, fetch, quality, bytes, begun });
        }
        self.send_next(now, server, proxy);
    }

    /// Tells a proxy something and does what it wants. `begun`: since when what
    /// has just come was coming.
    pub(super) fn tell(&mut self, now: Time, at: usize, input: Input, begun: Option<Time>) {
        let Some(front) = self.fronts.get_mut(at) else { return };
        front.mind.handle_input(now, input);
        while let Some(output) = self.fronts.get_mut(at).and_then(|front| front.mind.poll_output()) {
            self.obey(now, at, output, begun);
        }
        let Some(front) = self.fronts.get_mut(at) else { return };
        front.peak = front.peak.max(front.mind.used());
        if let Some(next) = front.mind.poll_timeout().filter(|_| front.timeout.is_none()) {
            front.timeout = Some(next);
            self.queue.plan(next, Happens::Timeout { proxy: at });
        }
    }

    fn obey(&mut self, now: Time, at: usize, output: Output, begun: Option<Time>) {
        match output {
            Output::Query { to, query } => {
                let Some(to) = self.peer(at, to) else { return };
                let there = now + self.wires.peer.1;
                self.queue.plan(there, Happens::Asked { proxy: to, from: at, query });
            }
            Output::Reply { to, reply } => {
                let Some(to) = self.peer(at, to) else { return };
                let there = now + self.wires.peer.1;
                self.queue.plan(there, Happens::Told { proxy: to, from: at, reply });
            }
            Output::Fetch(fetch) => {
                let (server, delay) = self.server(fetch.server);
                self.queue.plan(now + delay, Happens::FetchAt { server, proxy: at, fetch });
            }
            Output::Cancel { fetch, server } => {
                let (server, delay) = self.server(server);
                self.queue.plan(now + delay, Happens::CancelAt { server, proxy: at, fetch });
            }
            Output::Serve { client, block, quality, .. } => self.serve(now, client, block, quality, begun),
            Output::Refuse { client, .. } => {
                let user = user_of(client);
                self.queue.plan(now + TAU, Happens::Asks { user });
            }
            Output::Wait { .. } | Output::Keep { .. } | Output::Drop { .. } | Output::Event(_) => {}
        }
    }

    /// A block goes to a viewer: all of it is there at the earliest when the proxy
    /// has it, and as the viewer's own link allows since it began to come.
    fn serve(&mut self, now: Time, client: ClientId, block: u32, quality: Quality, begun: Option<Time>) {
        let (user, (rate, delay)) = (user_of(client), self.wires.viewer);
        let Some(seat) = self.seats.get(user).filter(|seat| seat.inside && seat.next == block) else {
            return;
        };
        let rules = self.fronts.get(seat.proxy).map(|front| front.mind.config().relay);
        let since = begun.filter(|_| rules == Some(Relay::CutThrough));
        let since = since.map_or(now, |begun| begun.max(seat.asked));
        let bytes = ByteCount(block_size().0 * u64::from(quality.layers()));
        let there = now.max(since + rate.time_for(bytes)) + delay;
        self.queue.plan(there, Happens::Received { user, quality });
    }

    fn server(&self, server: Server) -> (usize, Span) {
        match server {
            Server::Origin => (0, self.wires.nodes.1),
            Server::Peer(peer) => {
                let at = self.names.iter().position(|name| *name == peer);
                (at.map_or(usize::MAX, |peer| peer + 1), self.wires.peer.1)
            }
        }
    }

    fn peer(&mut self, from: usize, to: PeerId) -> Option<usize> {
        self.fronts.get_mut(from)?.messages += 1;
        self.names.iter().position(|name| *name == to)
    }

    /// A fetch from the nodes: it goes as soon as the slots of whoever watches the
    /// title here give it; if nobody has any, it waits for somebody who does.
    fn stage(&mut self, now: Time, proxy: usize, fetch: Fetch) {
        if self.give(now, proxy, &fetch) {
            return;
        }
        let Some(front) = self.fronts.get_mut(proxy) else { return };
        let id = fetch.id;
        let until = front.park(now, fetch);
        self.queue.plan(until, Happens::Lapse { proxy, fetch: id });
    }

    /// Whether somebody's slots give it.
    fn give(&mut self, now: Time, proxy: usize, fetch: &Fetch) -> bool {
        let Some((staged, ready)) = self.draw(now, proxy, fetch) else { return false };
        let Some(front) = self.fronts.get_mut(proxy) else { return false };
        let id = fetch.id;
        front.parked.remove(&id);
        front.staged.insert(id, staged);
        self.queue.plan(ready, Happens::Ready { proxy, fetch: id });
        true
    }

    /// Somebody who watches this title found or lost a node: what waits for one may go
    /// now.
    pub(super) fn look_at_parked(&mut self, now: Time, proxy: usize, title: usize) {
        let Some(name) = self.titles.get(title).map(|title| &title.facts.title) else { return };
        let waiting = self.fronts.get(proxy).map_or_else(Vec::new, |front| front.waiting_for(name));
        for fetch in waiting {
            self.give(now, proxy, &fetch);
        }
    }

    /// Takes each layer from the slot that gives it soonest, and says when the last one
    /// does; nothing if there is none for the first. Layers are chunks of their own, and
    /// none delays what lies below it: one that somebody waits for is left out if its slot
    /// does not give it soon, and one that is of use to later viewers only if it does not
    /// give it at once.
    fn draw(&mut self, now: Time, proxy: usize, fetch: &Fetch) -> Option<(Staged, Time)> {
        let title = self.titles.iter().position(|title| title.facts.title == fetch.title)?;
        let users = self.fronts.get(proxy)?.watching.get(title)?;
        let waits = |user: &&usize| self.seats.get(**user).filter(|seat| seat.next == fetch.block);
        let awaited = users.iter().filter_map(|user| Some(waits(&user)?.quality)).max().unwrap_or_default();
        let mut staged = Staged { fetch: fetch.clone(), quality: fetch.have, from: Vec::new() };
        let mut when = now;
        for layer in Layer::first(fetch.want.layers()).skip(usize::from(fetch.have.layers())) {
            let slots = users
                .iter()
                .filter(|user| self.world.viewers().get(**user).is_some_and(|viewer| viewer.gets(layer)));
            let ready = |user: &usize| {
                let slot = self.seats.get(*user).and_then(|seat| seat.slots.get(layer.index()));
                slot.map(|slot| (slot.ready(now), *user))
            };
            let Some((ready, user)) = slots.filter_map(ready).min() else { break };
            let patience = if awaited.includes(layer) { ENHANCEMENT_PATIENCE } else { Span::ZERO };
            if !staged.from.is_empty() && ready > now + patience {
                break;
            }
            staged.from.push((user, layer));
            staged.quality = Quality(layer.0 + 1);
            when = when.max(ready);
        }
        for (user, layer) in &staged.from {
            if let Some(slot) = self.seats.get_mut(*user).and_then(|seat| seat.slot_mut(*layer)) {
                slot.take(now, block_size());
            }
        }
        (staged.quality > fetch.have).then_some((staged, when))
    }
}

pub(super) fn client_id(user: usize) -> ClientId {
    ClientId(u64::try_from(user).unwrap_or(u64::MAX))
}

fn user_of(client: ClientId) -> usize {
    usize::try_from(client.0).unwrap_or(usize::MAX)
}
