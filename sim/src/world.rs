//! The world: machines, links, viewers and faults under one clock.
//!
//! It is a driver like any other. It hands each machine its inputs, carries out
//! its outputs, and knows, besides, the truth: who is really alive, who really
//! gets data from whom. A world is `Clone`, so that one stable state can be
//! built once and forked for every failure.

mod act;
mod host;
mod stats;
mod viewer;

pub use host::{Host, HostState};
pub use stats::Stats;
pub use viewer::{Outage, Viewer, Wish};

use crate::faults::Fault;
use crate::link::{LinkModel, Links};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::topology::{SiteId, Topology};
use crate::workload::Arrival;
use media::{ByteCount, Hash, Layer, Quality, Span, Time, TitleName};
use protocol::node::autonomy::{
    AgentMessage, Autonomy, AutonomyConfig, AutonomyEvent, AutonomyInput, LayerOrder, Level, PlacementOrder,
    UserId, ViewerNotice,
};
use protocol::node::classes::TitleFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The manifest of the one film there is.
const FILM: Hash = Hash::from_bytes([1; 32]);

/// What a world is made of, beside its topology.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldConfig {
    /// The settings of every machine.
    pub autonomy: AutonomyConfig,
    /// The links.
    pub links: LinkModel,
    /// `T_process` for the news of a failure at each node, and for the start of
    /// a delivery.
    pub process: Span,
    /// `T_process` for everything else; nothing in the paper (section 3.1).
    pub process_agents: Span,
    /// The share of agents (searches of any kind) that are lost, 0 to 1.
    pub agent_loss: f64,
    /// Whether nodes search for backups of normal users; off for networks that
    /// only react to failures.
    pub normals_search: bool,
    /// Whether nodes search for backups of anybody: without it there is no node
    /// allocation, and whoever loses its node has to pull anew.
    pub backups: bool,
    /// How often a viewer tells its node where it is; nothing: never.
    pub report_every: Option<Span>,
    /// A viewer who has got nothing for so long pulls again; nothing: never. Who
    /// reports looks when it does, everybody else when this has passed.
    pub repull_after: Option<Span>,
    /// The viewers' buffer.
    pub buffer: Span,
    /// The quality that viewers want who are expected without a wish.
    pub quality: Quality,
    /// Whether what happens is written down, see [`World::log`].
    pub keep_log: bool,
}

impl WorldConfig {
    /// Table 1 of ADVODS.
    pub const fn paper() -> Self {
        let autonomy = AutonomyConfig::paper();
        Self {
            links: LinkModel::PAPER,
            process: autonomy.process,
            process_agents: Span::ZERO,
            agent_loss: 0.0,
            normals_search: true,
            backups: true,
            report_every: None,
            repull_after: None,
            buffer: autonomy.buffer,
            quality: Quality::BRONZE,
            keep_log: false,
            autonomy,
        }
    }

    /// Real films: fast signals, small buffers, viewers who report and pull again.
    pub const fn production() -> Self {
        let autonomy = AutonomyConfig::production();
        Self {
            autonomy,
            links: LinkModel { trans: autonomy.trans, jitter: Span::from_millis(2), loss: 0.0 },
            process: autonomy.process,
            process_agents: autonomy.process,
            report_every: Some(Span::from_secs(1)),
            repull_after: Some(Span::from_secs(2)),
            buffer: autonomy.buffer,
            keep_log: false,
            agent_loss: 0.0,
            normals_search: true,
            backups: true,
            quality: Quality::BRONZE,
        }
    }
}

/// Something that is going to happen.
#[derive(Clone, Debug)]
enum Happening {
    /// A message reaches its node.
    Message { from: SiteId, to: SiteId, message: AgentMessage, travel: Span },
    /// A machine's timeout, in one of the node's lives.
    Wake { site: SiteId, life: u32 },
    /// A viewer asks a node to be served.
    Ask { user: usize, site: SiteId },
    /// A viewer is done.
    Depart { user: usize },
    /// A node's word reaches a viewer.
    Notice { from: SiteId, user: usize, notice: ViewerNotice },
    /// A viewer tells its node where it is, and looks whether it gets anything.
    Report { user: usize },
    /// A viewer that does not report and has lost its node looks whether it gets
    /// anything again.
    Look { user: usize },
    /// A layer that a node fetched is there.
    Stored { site: SiteId, life: u32, title: TitleName, layer: Layer },
    /// Something goes wrong.
    Fault(Fault),
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Time,
    /// Where.
    pub site: SiteId,
    /// What.
    pub event: AutonomyEvent,
}

/// The world.
#[derive(Clone, Debug)]
pub struct World {
    config: Arc<WorldConfig>,
    topology: Arc<Topology>,
    seed: u64,
    queue: Queue<Happening>,
    links: Links,
    rng: Rng,
    hosts: Vec<Host>,
    viewers: Vec<Viewer>,
    stats: Stats,
    log: Vec<Line>,
    titles: Vec<TitleName>,
    /// What admission is told of titles.
    facts: Vec<TitleFacts>,
    /// What layers take on disk, Base first; those of titles not named a byte.
    sizes: BTreeMap<TitleName, Vec<ByteCount>>,
    /// Viewers for whom something has changed, see [`World::take_stirred`].
    stirred: BTreeSet<usize>,
    /// What nodes are fetching, in which of their lives.
    fetching: BTreeSet<(SiteId, u32, TitleName, Layer)>,
    /// Which life of a neighbour each node, in its own life, heard last; only
    /// what began anew is written down.
    heard: BTreeMap<(SiteId, u32, SiteId), u32>,
    /// Whether any node has begun anew.
    revived: bool,
}

impl World {
    /// A network in which every node has just started.
    pub fn new(topology: Arc<Topology>, config: WorldConfig, seed: u64) -> Self {
        let links = Links::new(&topology, config.links);
        let mut world = Self {
            config: Arc::new(config),
            seed,
            queue: Queue::default(),
            links,
            rng: Rng::stream(seed, 7),
            hosts: Vec::new(),
            viewers: Vec::new(),
            stats: Stats::default(),
            log: Vec::new(),
            titles: "film".parse().into_iter().collect(),
            facts: Vec::new(),
            sizes: BTreeMap::new(),
            stirred: BTreeSet::new(),
            fetching: BTreeSet::new(),
            heard: BTreeMap::new(),
            revived: false,
            topology,
        };
        for site in world.topology.clone().sites() {
            let host = Host::new(world.machine(site, 0));
            world.hosts.push(host);
        }
        for site in world.topology.clone().sites() {
            world.introduce(site);
        }
        world
    }

    fn machine(&self, site: SiteId, life: u32) -> Option<Autonomy> {
        let (id, level) = (self.topology.peer(site)?, self.topology.level(site)?);
        let seed = Rng::stream(self.seed, (u64::from(site.0) << 32) | u64::from(life)).bits();
        let mut config = self.config.autonomy;
        // Thresholds are the edge's: further in there are layers of viewings that
        // passed them.
        if level != Level::BASE {
            config.thresholds = media::ByClass::of(|_| u64::MAX);
        }
        Some(Autonomy::new(self.queue.now(), id, level, config, seed))
    }

    /// Tells a node who its neighbours are.
    fn introduce(&mut self, site: SiteId) {
        let topology = self.topology.clone();
        if !self.facts.is_empty() {
            self.input(site, AutonomyInput::Titles(self.facts.clone()));
        }
        for near in topology.links(site) {
            if let (Some(peer), Some(level)) = (topology.peer(*near), topology.level(*near)) {
                let travel = self.links.delay(site, *near);
                self.input(site, AutonomyInput::NeighbourIs { peer, level, travel });
            }
        }
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.queue.now()
    }

    /// Everything that has happened so far, counted.
    pub const fn happened(&self) -> u64 {
        self.queue.taken()
    }

    /// The settings.
    pub fn config(&self) -> &WorldConfig {
        &self.config
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A node.
    pub fn host(&self, site: SiteId) -> Option<&Host> {
        self.hosts.get(site.index())
    }

    /// A node's machine, if the node is up.
    pub fn machine_of(&self, site: SiteId) -> Option<&Autonomy> {
        self.host(site).filter(|host| host.is_up()).and_then(Host::machine)
    }

    /// The titles, the one that viewers watch first.
    pub fn titles(&self) -> &[TitleName] {
        &self.titles
    }

    /// The viewers, by number.
    pub fn viewers(&self) -> &[Viewer] {
        &self.viewers
    }

    /// What was sent so far.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What the machines told, if the settings ask for it to be kept.
    pub fn log(&self) -> &[Line] {
        &self.log
    }

    /// Forgets what the log holds.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// Plans the coming of viewers.
    pub fn expect(&mut self, arrivals: &[Arrival]) {
        let wish = Wish { title: 0, quality: self.config.quality };
        for arrival in arrivals {
            self.expect_one(*arrival, wish);
        }
    }

    /// Plans the coming of one viewer, who wants this.
    pub fn expect_one(&mut self, arrival: Arrival, wish: Wish) {
        let user = self.viewers.len();
        self.viewers.push(Viewer::new(arrival, wish));
        self.queue.plan(arrival.at, Happening::Ask { user, site: arrival.target });
    }

    /// Viewers for whom something has changed since this was asked last: found a
    /// node, lost one, was refused.
    pub fn take_stirred(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.stirred)
    }

    /// Whether there are any.
    pub fn is_stirred(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// Plans that a viewer pulls anew from this node.
    pub fn pull_again(&mut self, user: usize, site: SiteId, at: Time) {
        self.queue.plan(at, Happening::Ask { user, site });
    }

    /// Plans what goes wrong.
    pub fn suffer(&mut self, faults: &[(Time, Fault)]) {
        for (at, fault) in faults {
            self.queue.plan(*at, Happening::Fault(fault.clone()));
        }
    }

    /// Plans that a viewer leaves.
    pub fn depart(&mut self, user: usize, at: Time) {
        self.queue.plan(at, Happening::Depart { user });
    }

    /// Publishes the film at the origin, which has all of it, with so many copies
    /// on each level. Sizes are not simulated: each layer takes one byte.
    pub fn publish(&mut self, layers: u8, copies: u16) {
        let (Some(title), Some(origin)) = (self.titles.first().cloned(), self.origin()) else { return };
        let layers: Vec<LayerOrder> = Layer::first(layers)
            .map(|layer| LayerOrder { layer, size: ByteCount(1), importance: 100 })
            .collect();
        for order in &layers {
            let (title, layer) = (title.clone(), order.layer);
            self.input(origin, AutonomyInput::Stored { title, layer, size: order.size, version: FILM });
        }
        let order = PlacementOrder { title, layers: layers.into(), popularity: 1000, copies, version: FILM };
        self.input(origin, AutonomyInput::Publish(order));
    }

    /// Stocks the origin with these titles instead of the film, with what their
    /// layers take on disk, and publishes them to whoever is willing.
    pub fn stock(&mut self, titles: &[(TitleFacts, Vec<ByteCount>)]) {
        let Some(origin) = self.origin() else { return };
        self.facts = titles.iter().map(|(facts, _)| facts.clone()).collect();
        self.titles = titles.iter().map(|(facts, _)| facts.title.clone()).collect();
        self.sizes = titles.iter().map(|(facts, sizes)| (facts.title.clone(), sizes.clone())).collect();
        for site in self.topology.clone().sites() {
            self.input(site, AutonomyInput::Titles(self.facts.clone()));
        }
        for (facts, sizes) in titles {
            let layers = Layer::first(u8::try_from(sizes.len()).unwrap_or(u8::MAX)).zip(sizes);
            let layers: Vec<LayerOrder> =
                layers.map(|(layer, size)| LayerOrder { layer, size: *size, importance: 100 }).collect();
            for order in &layers {
                let (title, layer, size) = (facts.title.clone(), order.layer, order.size);
                self.input(origin, AutonomyInput::Stored { title, layer, size, version: FILM });
            }
            let (title, layers) = (facts.title.clone(), layers.into());
            let order = PlacementOrder { title, layers, popularity: 1000, copies: 0, version: FILM };
            self.input(origin, AutonomyInput::Publish(order));
        }
    }

    /// What the nodes that are up hold of the titles, the origin apart.
    pub fn stored(&self) -> ByteCount {
        let mut sum = ByteCount(0);
        for machine in self.topology.sites().filter_map(|site| self.machine_of(site)) {
            let Level::Layer(layer) = machine.level() else { continue };
            for title in self.titles.iter().filter(|title| machine.stores(title, layer)) {
                sum += self.size_of(title, layer);
            }
        }
        sum
    }

    fn size_of(&self, title: &TitleName, layer: Layer) -> ByteCount {
        self.sizes.get(title).and_then(|sizes| sizes.get(layer.index())).copied().unwrap_or(ByteCount(1))
    }

    /// Deletes the film everywhere but at the origin.
    pub fn unpublish(&mut self) {
        if let (Some(title), Some(origin)) = (self.titles.first().cloned(), self.origin()) {
            self.input(origin, AutonomyInput::Unpublish { title });
        }
    }

    /// The service provider's node.
    pub fn origin(&self) -> Option<SiteId> {
        self.topology.sites().find(|site| self.topology.level(*site) == Some(Level::Origin))
    }

    /// Whether machines send and await survival signals. While a network fills
    /// without a fault they cost more than all else and change nothing.
    pub fn signals(&mut self, on: bool) {
        for site in self.topology.clone().sites() {
            self.input(site, AutonomyInput::Signals(on));
        }
    }

    /// Lets time pass up to and including `limit`.
    pub fn run_until(&mut self, limit: Time) {
        while let Some(happening) = self.queue.take_until(limit) {
            self.happen(happening);
        }
        self.queue.set_forward(limit);
    }

    /// Lets so much time pass.
    pub fn run(&mut self, span: Span) {
        self.run_until(self.now() + span);
    }

    /// Lets time pass until `done`, which is asked after each happening, or
    /// until `limit`. Whether it was done.
    pub fn run_until_done(&mut self, limit: Time, done: impl Fn(&Self) -> bool) -> bool {
        while let Some(happening) = self.queue.take_until(limit) {
            self.happen(happening);
            if done(self) {
                return true;
            }
        }
        self.queue.set_forward(limit);
        false
    }

    /// Lets so much time pass in which viewers hear what was said to them, and
    /// nothing else happens: nodes stand still from here on. The last thing to do
    /// with a fork of which only the viewers are still of interest.
    pub fn hear_out(&mut self, span: Span) {
        self.queue.keep(|happening| matches!(happening, Happening::Notice { .. }));
        self.run(span);
    }

    /// Something goes wrong now.
    pub fn strike(&mut self, fault: Fault) {
        self.happen(Happening::Fault(fault));
    }

    /// What is in the air beside survival signals: messages and words to viewers.
    pub fn in_flight(&self) -> usize {
        self.queue
            .iter()
            .filter(|happening| match happening {
                Happening::Message { message, .. } => {
                    !matches!(message, AgentMessage::Signal | AgentMessage::Digest(_))
                }
                Happening::Notice { .. } | Happening::Ask { .. } | Happening::Stored { .. } => true,
                Happening::Wake { .. }
                | Happening::Depart { .. }
                | Happening::Report { .. }
                | Happening::Look { .. }
                | Happening::Fault(_) => false,
            })
            .count()
    }

    fn user_id(user: usize) -> UserId {
        UserId(u64::try_from(user).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
