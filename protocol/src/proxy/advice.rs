//! The mind of a cooperating proxy at work: it is told what clients ask for, what
//! came and what did not, and what it orders is done here, chunk by chunk. It
//! never makes a client of Base wait for a decision: what it does not provide is
//! fetched as if there were no mind.

use super::Proxy;
use super::cooperation::{
    ClientId, Cooperation, CooperationConfig, Fetch, FetchFailure, Input as MindInput, Output as MindOutput,
    Server,
};
use super::fills::{Choice, Next};
use super::flows::Flows;
use super::io::Output;
use super::lines::NodeId;
use super::plans::{Over, Plans, chunks};
use super::titles::Shape;
use crate::node::autonomy::UserId;
use crate::peer::PeerId;
use crate::proxy::BlockTable;
use crate::status::ProxyCounts;
use media::{ChunkId, Hash, Layer, Quality, Span, Time, TitleName};
use std::collections::BTreeMap;

/// Everything that belongs to cooperation.
#[derive(Clone, Debug)]
pub(super) struct Advisor {
    pub(super) mind: Cooperation,
    pub(super) plans: Plans,
    pub(super) flows: Flows,
    pub(super) counts: ProxyCounts,
    /// Other proxies that are dialled.
    pub(super) peers: Vec<(PeerId, NodeId)>,
    /// Of which titles the mind knows, and which version.
    known: BTreeMap<TitleName, Hash>,
    /// Whose request is being decided, and what the mind said.
    asking: Option<(ClientId, u32)>,
    advice: Option<Quality>,
    origin_lost: bool,
}

impl Advisor {
    pub(super) fn new(config: CooperationConfig) -> Self {
        Self {
            mind: Cooperation::new(config),
            plans: Plans::new(config.prefetch_queue, config.max_fetches),
            flows: Flows::default(),
            counts: ProxyCounts::default(),
            peers: Vec::new(),
            known: BTreeMap::new(),
            asking: None,
            advice: None,
            origin_lost: false,
        }
    }

    pub(super) fn is_peer(&self, node: NodeId) -> bool {
        self.peers.iter().any(|(_, peer)| *peer == node)
    }
}

/// The number under which a user is a client of the mind.
pub(super) fn client(user: UserId) -> ClientId {
    ClientId(user.0)
}

fn table(shape: &Shape) -> BlockTable {
    let lengths = |lengths: &[media::ByteCount]| lengths.iter().map(|length| length.0).collect::<Vec<u64>>();
    let blocks: Vec<(Span, Vec<u64>)> =
        shape.paces.iter().map(|pace| (pace.duration, lengths(&pace.lengths))).collect();
    BlockTable::new(shape.top_quality(), blocks.iter().map(|(span, layers)| (*span, layers.as_slice())))
}

impl Proxy {
    /// Tells the mind something, and does what it wants done.
    pub(super) fn think(&mut self, now: Time, input: MindInput) {
        self.advisor.mind.handle_input(now, input);
        while let Some(output) = self.advisor.mind.poll_output() {
            self.obey(now, output);
        }
        for chunk in self.advisor.plans.useless() {
            self.outputs.push_back(Output::Discard { chunk });
        }
    }

    fn obey(&mut self, now: Time, output: MindOutput) {
        match output {
            MindOutput::Query { to, query } => self.say_query(to, query),
            MindOutput::Reply { to, reply } => self.say_reply(to, reply),
            MindOutput::Fetch(fetch) => self.order(now, fetch),
            MindOutput::Cancel { fetch, server } => {
                if let Some(cancelled) = self.advisor.plans.cancel(server, fetch) {
                    self.overwritten(now, &cancelled);
                }
            }
            MindOutput::Serve { client, block, quality, .. }
            | MindOutput::Wait { client, block, quality, .. } => {
                if self.advisor.asking == Some((client, block)) {
                    self.advisor.advice = Some(quality);
                }
            }
            MindOutput::Keep { title, block, quality } => {
                for layer in Layer::first(quality.layers()) {
                    let chunk = ChunkId { title: title.clone(), block, layer };
                    if self.advisor.plans.kept(&chunk) {
                        self.outputs.push_back(Output::Keep { chunk });
                    }
                }
            }
            MindOutput::Drop { title, block, quality } => self.remove_above(&title, block, quality),
            // Clients follow what comes by themselves; counts say the rest.
            MindOutput::Refuse { .. } | MindOutput::Event(_) => {}
        }
    }

    fn remove_above(&mut self, title: &TitleName, block: u32, quality: Quality) {
        let top = self.titles.shape(title).map_or(Quality(8), Shape::top_quality);
        for layer in Layer::first(top.layers()).filter(|layer| !quality.includes(*layer)) {
            self.outputs.push_back(Output::Remove { chunk: ChunkId { title: title.clone(), block, layer } });
        }
    }

    fn overwritten(&mut self, now: Time, fetch: &Fetch) {
        let input = MindInput::FetchFailed { fetch: fetch.id, why: FetchFailure::Overwritten };
        self.advisor.mind.handle_input(now, input);
    }

    fn order(&mut self, now: Time, fetch: Fetch) {
        let server = fetch.server;
        for out in self.advisor.plans.push(fetch) {
            self.overwritten(now, &out);
        }
        self.begin_at(now, server);
    }

    fn begin_at(&mut self, now: Time, server: Server) {
        while let Some(fetch) = self.advisor.plans.next(server) {
            self.begin(now, &fetch);
        }
    }

    /// Starts what a fetch moves and is not on its way yet.
    fn begin(&mut self, now: Time, fetch: &Fetch) {
        let server = fetch.server;
        self.advisor.plans.begin(fetch.clone());
        for chunk in chunks(fetch) {
            if self.advisor.plans.has_landed(&chunk) {
                let (_, over) = self.advisor.plans.arrived(&chunk, 0);
                self.conclude(now, over);
                continue;
            }
            if self.fills.is_under_way(&chunk) {
                // Whoever can deliver it now does.
                let choice = self.choice_at(now, server, &chunk);
                if self.fills.source(&chunk).is_none() && !choice.sources.is_empty() {
                    let next = self.fills.retry(now, &chunk, &choice, &self.config);
                    self.go_on(&chunk, next);
                }
                continue;
            }
            let (choice, length) = (self.choice_of(now, fetch, &chunk), self.length(&chunk));
            match self.fills.start(now, &chunk, length, &choice, &self.config) {
                Ok(Next::Parked) => self.changed = true,
                Ok(_) => {}
                Err(_) => {
                    let over = self.advisor.plans.lacks(&chunk, Some(server));
                    self.conclude(now, over);
                    break;
                }
            }
        }
    }

    /// Who can be asked for a chunk of what the mind orders: a peer that has it before
    /// the nodes.
    fn choice_of(&self, now: Time, fetch: &Fetch, chunk: &ChunkId) -> Choice {
        if fetch.server == Server::Origin
            && let Some(peer) = self.advisor.mind.spares_origin(now, fetch, chunk.layer)
        {
            let choice = self.choice_at(now, Server::Peer(peer), chunk);
            if !choice.sources.is_empty() {
                return choice;
            }
        }
        self.choice_at(now, fetch.server, chunk)
    }

    /// Who can be asked for a chunk that the mind orders there.
    fn choice_at(&self, now: Time, server: Server, chunk: &ChunkId) -> Choice {
        match server {
            Server::Origin => self.choice(now, chunk, None),
            Server::Peer(peer) => {
                let node = self.advisor.peers.iter().find(|(other, _)| *other == peer);
                let at = node
                    .filter(|(_, node)| self.lines.is_usable(*node))
                    .and_then(|(_, node)| self.lines.at(*node));
                Choice { sources: at.into_iter().collect(), hope: false }
            }
        }
    }

    /// The length of a chunk by the manifest.
    pub(super) fn length(&self, chunk: &ChunkId) -> u64 {
        let shape = self.titles.shape(&chunk.title);
        let pace = shape.and_then(|shape| shape.paces.get(usize::try_from(chunk.block).ok()?));
        pace.and_then(|pace| pace.lengths.get(chunk.layer.index())).map_or(0, |length| length.0)
    }

    /// Fetches are over: the mind hears of it, and what it wants done is done by
    /// whoever drains it.
    fn conclude(&mut self, now: Time, over: Vec<Over>) {
        for Over { fetch, quality, bytes } in over {
            let input = if quality > fetch.have {
                // Rates are measured over everything that a server delivers.
                MindInput::Fetched { fetch: fetch.id, quality, bytes, took: Span::ZERO }
            } else {
                MindInput::FetchFailed { fetch: fetch.id, why: FetchFailure::Absent }
            };
            self.advisor.mind.handle_input(now, input);
            self.begin_at(now, fetch.server);
        }
    }

    /// Does what the mind wants done after fetches ended.
    fn settle_fetches(&mut self, now: Time, over: Vec<Over>) {
        self.conclude(now, over);
        // It drains, and changes nothing else.
        self.think(now, MindInput::Timeout);
        for server in self.advisor.plans.servers() {
            self.begin_at(now, server);
        }
    }

    /// A client asks for a chunk: how many layers of its block it is to have. None
    /// if the mind cannot say.
    pub(super) fn consult(
        &mut self,
        now: Time,
        id: UserId,
        chunk: &ChunkId,
        quality: Quality,
        within: Span,
    ) -> Option<Quality> {
        self.insist(now, id);
        let user = self.users.get(&id)?;
        let (starting, rate) = (!user.progress.started, user.filter.measured());
        let asking = client(id);
        if rate.is_some() {
            let measured = MindInput::ClientMeasured { client: asking, delay: None, rate };
            self.advisor.mind.handle_input(now, measured);
        }
        (self.advisor.asking, self.advisor.advice) = (Some((asking, chunk.block)), None);
        let asked =
            MindInput::Asked { client: asking, block: chunk.block, quality, buffered: within, starting };
        self.think(now, asked);
        self.advisor.asking = None;
        self.advisor.advice.take()
    }

    /// The mind thinks that a chunk is kept which is not here.
    pub(super) fn missing(&mut self, now: Time, chunk: &ChunkId) {
        let held = self.advisor.mind.held(&chunk.title, chunk.block);
        if held.includes(chunk.layer) && !self.advisor.plans.has_landed(chunk) {
            self.not_kept(now, chunk);
        }
    }

    /// A chunk is not kept any more, or could not be: what lies above it is of no
    /// use either.
    pub(super) fn not_kept(&mut self, now: Time, chunk: &ChunkId) {
        let quality = Quality(chunk.layer.0);
        self.remove_above(&chunk.title, chunk.block, quality);
        let damaged = MindInput::Damaged { title: chunk.title.clone(), block: chunk.block, quality };
        self.think(now, damaged);
    }

    /// So much more of a chunk is here.
    pub(super) fn came(&mut self, now: Time, chunk: &ChunkId, bytes: u64) {
        let from = self.fills.source(chunk).filter(|_| self.fills.is_sent(chunk));
        let Some(from) = from else { return };
        self.fills.came(chunk, bytes);
        if let Some(node) = self.lines.find(from.address) {
            self.lines.delivered(now, node);
        }
        self.advisor.flows.came(now, chunk, self.server_at(from.address), bytes);
        for fetch in self.advisor.plans.begun(chunk) {
            self.think(now, MindInput::Begun { fetch });
        }
    }

    /// A chunk is here, from this server.
    pub(super) fn landed(&mut self, now: Time, chunk: &ChunkId, server: Server, round_trip: Span) {
        let length = self.length(chunk);
        let counts = &mut self.advisor.counts;
        let from = match server {
            Server::Origin => &mut counts.bytes_from_nodes,
            Server::Peer(_) => &mut counts.bytes_from_peers,
        };
        *from = from.saturating_add(length);
        let rate = self.advisor.flows.rate(server);
        let delay = (round_trip > Span::ZERO).then(|| Span::from_nanos(round_trip.as_nanos() / 2));
        self.advisor.mind.handle_input(now, MindInput::Measured { server, delay, rate });
        let (meant, over) = self.advisor.plans.arrived(chunk, length);
        if !meant {
            self.outputs.push_back(Output::Discard { chunk: chunk.clone() });
        }
        self.keep_lower_layers(now);
        self.settle_fetches(now, over);
    }

    /// What is here of blocks whose upper layers are still coming is kept, and others
    /// hear of it.
    fn keep_lower_layers(&mut self, now: Time) {
        for (fetch, quality) in self.advisor.plans.partly() {
            self.advisor.mind.handle_input(now, MindInput::Partly { fetch, quality });
            let mind = &self.advisor.mind;
            let block = self.advisor.plans.block(fetch);
            if block.is_some_and(|(title, block)| mind.held(title, block) >= quality) {
                while let Some(output) = self.advisor.mind.poll_output() {
                    self.obey(now, output);
                }
                self.advisor.plans.keeps(fetch, quality);
            }
        }
    }

    /// A chunk does not come, from this server or from anybody.
    pub(super) fn lacking(&mut self, now: Time, chunk: &ChunkId, server: Option<Server>) {
        self.advisor.flows.over(now, chunk);
        let over = self.advisor.plans.lacks(chunk, server);
        self.settle_fetches(now, over);
    }

    /// The mind hears of a title, and of what is kept of it; of a new version as of
    /// another title.
    pub(super) fn teach(&mut self, now: Time, title: &TitleName, shape: &Shape, kept: &[(u32, Quality)]) {
        match self.advisor.known.get(title) {
            Some(version) if *version == shape.manifest_hash => return,
            Some(_) => self.unlearn(now, title),
            None => self.make_room_for_title(now),
        }
        self.advisor.known.insert(title.clone(), shape.manifest_hash);
        let blocks = std::sync::Arc::new(table(shape));
        self.think(now, MindInput::Title { title: title.clone(), blocks });
        for (block, quality) in kept {
            self.think(now, MindInput::Restored { title: title.clone(), block: *block, quality: *quality });
        }
        let watching = self.users.iter().filter(|(_, user)| user.title == *title);
        let watching: Vec<UserId> = watching.map(|(id, _)| *id).collect();
        for user in watching {
            self.introduce(now, user, title);
        }
    }

    /// What an earlier life left of a title that nobody has asked for yet goes first.
    fn make_room_for_title(&mut self, now: Time) {
        if self.advisor.known.len() < self.config.cooperation.max_titles {
            return;
        }
        let idle = self.advisor.known.keys().find(|title| self.titles.shape(title).is_none()).cloned();
        if let Some(title) = idle {
            self.unlearn(now, &title);
            self.outputs.push_back(Output::Forget { title });
        }
    }

    /// A title is forgotten, or replaced.
    pub(super) fn unlearn(&mut self, now: Time, title: &TitleName) {
        self.advisor.known.remove(title);
        self.advisor.plans.forget(title);
        self.think(now, MindInput::Forgotten { title: title.clone() });
    }

    /// A client begins to watch.
    pub(super) fn introduce(&mut self, now: Time, user: UserId, title: &TitleName) {
        let config = self.config.cooperation;
        let Some(row) = self.users.get_mut(&user) else { return };
        let beta = self.config.insistence.of(row.sla(), row.quality);
        row.beta = Some(beta);
        let arrived = MindInput::Arrived {
            client: client(user),
            title: title.clone(),
            beta,
            delay: config.first_delay,
            rate: config.first_rate,
        };
        self.think(now, arrived);
    }

    /// Whether anybody upstream can be asked for anything: the mind hears of it
    /// where there are others to ask instead.
    pub(super) fn look_at_origin(&mut self, now: Time) {
        let can_ask = |user: &super::users::User| {
            let mut nodes = user.sources(Layer::BASE);
            nodes.any(|node| user.may_ask(now, node) && self.lines.is_usable(node))
        };
        let usable = self.users.is_empty() || self.users.values().any(can_ask);
        let helped = self.advisor.peers.iter().any(|(_, node)| self.lines.is_usable(*node));
        if usable && self.advisor.origin_lost {
            self.advisor.origin_lost = false;
            self.think(now, MindInput::OriginFound);
        } else if !usable && helped && !self.advisor.origin_lost {
            self.advisor.origin_lost = true;
            self.advisor.plans.lose(Server::Origin);
            self.think(now, MindInput::Lost { server: Server::Origin });
        }
    }
}
