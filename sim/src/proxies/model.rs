//! The loop: what happens at proxies, servers and clients, one thing after the
//! other.

use super::client::Client;
use super::session::Session;
use super::{Audience, Setting};
use crate::queue::Queue;
use media::{ByteCount, Quality, Span, Time, TitleName};
use protocol::PeerId;
use protocol::proxy::cooperation::{
    ClientId, Cooperation, Counts, Fetch, FetchFailure, FetchId, Input, Output, Server,
};
use protocol::proxy::{BlockTable, Query, Reply};
use std::sync::Arc;

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// For each proxy.
    pub proxies: Vec<ProxyOutcome>,
    /// How many things happened.
    pub happened: u64,
    /// Requests for what was already on its way in that session.
    pub twice: u64,
    /// The longest time for which one session was busy beyond the time there was.
    pub overdrawn: Span,
}

/// What a run gave at one proxy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyOutcome {
    /// Mean wait of a block in seconds, for each client in the order of arrival.
    pub freeze: Vec<f64>,
    /// Mean of received over requested quality, likewise.
    pub ratio: Vec<f64>,
    /// The least received over requested quality of any block.
    pub least_ratio: f64,
    /// The most that the cache weighed.
    pub peak: ByteCount,
    /// What the machine counted.
    pub counts: Counts,
    /// How what was predicted of waits came true.
    pub waits: Waits,
}

/// Equation 5 against what happened: waits for blocks that were not held, of
/// clients that play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub seen: u64,
    /// The longest of them.
    pub longest: Span,
    /// By how much one was longer than predicted, at most.
    pub late: Span,
    /// By how much one was shorter, at most.
    pub early: Span,
}

impl Waits {
    fn note(&mut self, predicted: Span, wait: Span) {
        self.seen += 1;
        self.longest = self.longest.max(wait);
        self.late = self.late.max(wait.saturating_sub(predicted));
        self.early = self.early.max(predicted.saturating_sub(wait));
    }
}

enum Happens {
    Arrives { proxy: usize, client: usize },
    Asks { proxy: usize, client: usize, buffered: Span },
    Received { proxy: usize, client: usize, quality: Quality },
    FetchAt { server: usize, proxy: usize, fetch: Fetch },
    CancelAt { server: usize, proxy: usize, fetch: FetchId },
    Sent { server: usize, proxy: usize },
    Begun { proxy: usize, fetch: FetchId },
    Fetched { proxy: usize, fetch: FetchId, quality: Quality, bytes: ByteCount, begun: Time },
    Failed { proxy: usize, fetch: FetchId, why: FetchFailure },
    Asked { proxy: usize, from: usize, query: Query },
    Told { proxy: usize, from: usize, reply: Reply },
    Timeout { proxy: usize },
}

struct Proxy {
    mind: Cooperation,
    clients: Vec<Client>,
    timeout: Option<Time>,
    outcome: ProxyOutcome,
}

struct Model<'a> {
    setting: &'a Setting,
    title: TitleName,
    table: Arc<BlockTable>,
    names: Vec<PeerId>,
    proxies: Vec<Proxy>,
    /// By server, the origin first, then by proxy.
    sessions: Vec<Vec<Session>>,
    queue: Queue<Happens>,
}

/// Runs a setting to the end of the last session. The same setting gives the
/// same outcome.
pub fn run(setting: &Setting) -> Outcome {
    let Some(mut model) = Model::new(setting) else { return Outcome::default() };
    while let Some(happens) = model.queue.take_until(Time::from_nanos(u64::MAX)) {
        model.happen(happens);
    }
    model.outcome()
}

impl<'a> Model<'a> {
    fn new(setting: &'a Setting) -> Option<Self> {
        let count = setting.proxies();
        let names: Vec<PeerId> =
            (1..=count).filter_map(|proxy| format!("proxy-{proxy}").parse().ok()).collect();
        let title: TitleName = "film".parse().ok()?;
        let even = || Arc::new(setting.ladder.table(setting.blocks, setting.tau));
        let table = setting.title.clone().unwrap_or_else(even);
        let proxy = |(at, watchers): (usize, Vec<super::Watcher>)| {
            let mut mind = Cooperation::new(setting.rules());
            mind.handle_input(Time::ZERO, Input::Title { title: title.clone(), blocks: Arc::clone(&table) });
            for server in (0..=count).filter(|server| *server != at + 1) {
                let (rate, delay) = setting.link(server, at);
                let id = match server.checked_sub(1).and_then(|peer| names.get(peer)) {
                    None => Server::Origin,
                    Some(peer) => {
                        mind.handle_input(Time::ZERO, Input::PeerFound { peer: *peer });
                        Server::Peer(*peer)
                    }
                };
                let measured = Input::Measured { server: id, delay: Some(delay), rate: Some(rate) };
                mind.handle_input(Time::ZERO, measured);
            }
            let clients = watchers.into_iter().map(Client::new).collect();
            let outcome = ProxyOutcome { least_ratio: 1.0, ..ProxyOutcome::default() };
            Proxy { mind, clients, timeout: None, outcome }
        };
        let audience = Audience::of(setting);
        let mut queue = Queue::default();
        for (proxy, watchers) in audience.proxies.iter().enumerate() {
            for (client, watcher) in watchers.iter().enumerate() {
                queue.plan(watcher.start, Happens::Arrives { proxy, client });
            }
        }
        let size = setting.rules.prefetch_queue;
        let session = |server, proxy| Session::new(setting.link(server, proxy), size);
        let sessions =
            (0..=count).map(|server| (0..count).map(|proxy| session(server, proxy)).collect()).collect();
        let proxies = audience.proxies.into_iter().enumerate().map(proxy).collect();
        Some(Self { setting, title: title.clone(), table, names, proxies, sessions, queue })
    }

    fn happen(&mut self, happens: Happens) {
        let now = self.queue.now();
        match happens {
            Happens::Arrives { proxy, client } => self.arrive(now, proxy, client),
            Happens::Asks { proxy, client, buffered } => self.ask(now, proxy, client, buffered),
            Happens::Received { proxy, client, quality } => self.receive(now, proxy, client, quality),
            Happens::FetchAt { server, proxy, fetch } => {
                let Some(session) = self.session(server, proxy) else { return };
                let delay = session.delay;
                for gone in session.ask(fetch) {
                    let why = FetchFailure::Overwritten;
                    self.queue.plan(now + delay, Happens::Failed { proxy, fetch: gone.id, why });
                }
                self.send_next(now, server, proxy);
            }
            Happens::CancelAt { server, proxy, fetch } => {
                let Some(session) = self.session(server, proxy) else { return };
                let delay = session.delay;
                if session.cancel(fetch).is_some() {
                    let why = FetchFailure::Overwritten;
                    self.queue.plan(now + delay, Happens::Failed { proxy, fetch, why });
                }
            }
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
                if let Some(proxy) = self.proxies.get_mut(proxy) {
                    proxy.timeout = None;
                }
                self.tell(now, proxy, Input::Timeout, None);
            }
        }
    }

    fn session(&mut self, server: usize, proxy: usize) -> Option<&mut Session> {
        self.sessions.get_mut(server)?.get_mut(proxy)
    }

    fn arrive(&mut self, now: Time, proxy: usize, client: usize) {
        let (rate, delay) = self.setting.client;
        let (id, title, beta) = (client_id(client), self.title.clone(), self.setting.beta);
        self.tell(now, proxy, Input::Arrived { client: id, title, beta, delay, rate }, None);
        self.queue.plan(now + delay, Happens::Asks { proxy, client, buffered: Span::ZERO });
    }

    fn ask(&mut self, now: Time, proxy: usize, client: usize, buffered: Span) {
        let ladder = self.setting.ladder;
        let Some(row) = self.proxies.get_mut(proxy).and_then(|proxy| proxy.clients.get_mut(client)) else {
            return;
        };
        row.asked = now;
        let (block, quality, starting) = (row.next, ladder.wanted(row.level()), row.is_starting());
        let input = Input::Asked { client: client_id(client), block, quality, buffered, starting };
        self.tell(now, proxy, input, None);
    }

    fn receive(&mut self, now: Time, proxy: usize, client: usize, quality: Quality) {
        let Setting { tau, start_blocks, ladder, buffer, client: (_, delay), .. } = *self.setting;
        let Some(at) = self.proxies.get_mut(proxy) else { return };
        let Some(row) = at.clients.get_mut(client) else { return };
        let ratio = ladder.ratio(quality, row.level());
        at.outcome.least_ratio = at.outcome.least_ratio.min(ratio);
        if let Some((predicted, wait)) = row.receive(now, tau, start_blocks, ratio) {
            at.outcome.waits.note(predicted, wait);
        }
        if row.next < self.table.blocks() {
            let ahead = row.buffered(now, tau);
            let pause = buffer.map_or(Span::ZERO, |buffer| (ahead + tau).saturating_sub(buffer)).min(ahead);
            let buffered = ahead.saturating_sub(pause);
            self.queue.plan(now + pause + delay, Happens::Asks { proxy, client, buffered });
        } else {
            self.tell(now, proxy, Input::Left { client: client_id(client) }, None);
        }
    }

    /// A server sends what waits, if it has it.
    fn send_next(&mut self, now: Time, server: usize, proxy: usize) {
        while let Some(fetch) = self.session(server, proxy).and_then(Session::take) {
            let held = match server.checked_sub(1).and_then(|peer| self.proxies.get(peer)) {
                None => self.table.top(),
                Some(peer) => peer.mind.held(&self.title, fetch.block),
            };
            let quality = fetch.want.min(held);
            let bytes = self.table.between(fetch.block, fetch.have, quality);
            let Some(session) = self.session(server, proxy) else { return };
            let (delay, id) = (session.delay, fetch.id);
            if quality <= fetch.have {
                let why = FetchFailure::Absent;
                self.queue.plan(now + delay, Happens::Failed { proxy, fetch: id, why });
                continue;
            }
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
    fn tell(&mut self, now: Time, at: usize, input: Input, begun: Option<Time>) {
        let Some(proxy) = self.proxies.get_mut(at) else { return };
        proxy.mind.handle_input(now, input);
        while let Some(output) = self.proxies.get_mut(at).and_then(|proxy| proxy.mind.poll_output()) {
            self.obey(now, at, output, begun);
        }
        let Some(proxy) = self.proxies.get_mut(at) else { return };
        proxy.outcome.peak = proxy.outcome.peak.max(proxy.mind.used());
        if let Some(next) = proxy.mind.poll_timeout().filter(|_| proxy.timeout.is_none()) {
            proxy.timeout = Some(next);
            self.queue.plan(next, Happens::Timeout { proxy: at });
        }
    }

    fn obey(&mut self, now: Time, at: usize, output: Output, begun: Option<Time>) {
        match output {
            Output::Query { to, query } => {
                let Some((to, delay)) = self.peer(at, to) else { return };
                self.queue.plan(now + delay, Happens::Asked { proxy: to, from: at, query });
            }
            Output::Reply { to, reply } => {
                let Some((to, delay)) = self.peer(at, to) else { return };
                self.queue.plan(now + delay, Happens::Told { proxy: to, from: at, reply });
            }
            Output::Fetch(fetch) => {
                let server = self.server(fetch.server);
                let (_, delay) = self.setting.link(server, at);
                self.queue.plan(now + delay, Happens::FetchAt { server, proxy: at, fetch });
            }
            Output::Cancel { fetch, server } => {
                let server = self.server(server);
                let (_, delay) = self.setting.link(server, at);
                self.queue.plan(now + delay, Happens::CancelAt { server, proxy: at, fetch });
            }
            Output::Serve { client, block, quality, .. } => {
                self.serve(now, at, client, block, quality, begun);
            }
            Output::Refuse { client, .. } => {
                let client = usize::try_from(client.0).unwrap_or(usize::MAX);
                let later = now + self.setting.tau;
                self.queue.plan(later, Happens::Asks { proxy: at, client, buffered: Span::ZERO });
            }
            Output::Wait { client, block, freeze, .. } => {
                let client = usize::try_from(client.0).unwrap_or(usize::MAX);
                let row = self.proxies.get_mut(at).and_then(|proxy| proxy.clients.get_mut(client));
                if let Some(row) = row.filter(|row| row.next == block) {
                    row.predicted = Some(freeze);
                }
            }
            Output::Keep { .. } | Output::Drop { .. } | Output::Event(_) => {}
        }
    }

    /// A block goes to a client: all of it is there at the earliest when this
    /// proxy has it, and as its own link allows since it began to come.
    fn serve(
        &mut self,
        now: Time,
        at: usize,
        client: ClientId,
        block: u32,
        quality: Quality,
        begun: Option<Time>,
    ) {
        let (rate, delay) = self.setting.client;
        let client = usize::try_from(client.0).unwrap_or(usize::MAX);
        let row = self.proxies.get(at).and_then(|proxy| proxy.clients.get(client));
        let Some(row) = row.filter(|row| row.next == block) else { return };
        let since =
            begun.filter(|_| self.setting.rules.relay == protocol::proxy::cooperation::Relay::CutThrough);
        let since = since.map_or(now, |begun| begun.max(row.asked));
        let there = now.max(since + rate.time_for(self.table.size(block, quality))) + delay;
        self.queue.plan(there, Happens::Received { proxy: at, client, quality });
    }

    fn server(&self, server: Server) -> usize {
        match server {
            Server::Origin => 0,
            Server::Peer(peer) => {
                self.names.iter().position(|name| *name == peer).map_or(usize::MAX, |peer| peer + 1)
            }
        }
    }

    fn peer(&self, from: usize, to: PeerId) -> Option<(usize, Span)> {
        let to = self.names.iter().position(|name| *name == to)?;
        Some((to, self.setting.link(to + 1, from).1))
    }

    fn outcome(self) -> Outcome {
        let (happened, end) = (self.queue.taken(), self.queue.now() - Time::ZERO);
        let sessions = || self.sessions.iter().flatten();
        let twice = sessions().map(|session| session.twice).sum();
        let overdrawn = sessions().map(|session| session.busy.saturating_sub(end)).max().unwrap_or_default();
        let proxies = self.proxies.into_iter().map(|proxy| {
            let of = |each: fn(&Client) -> f64| proxy.clients.iter().map(each).collect();
            ProxyOutcome {
                freeze: of(|client| client.waited.as_secs_f64() / f64::from(client.blocks.max(1))),
                ratio: of(|client| client.ratio / f64::from(client.blocks.max(1))),
                counts: proxy.mind.counts(),
                ..proxy.outcome
            }
        });
        Outcome { proxies: proxies.collect(), happened, twice, overdrawn }
    }
}

fn client_id(client: usize) -> ClientId {
    ClientId(u64::try_from(client).unwrap_or(u64::MAX))
}
