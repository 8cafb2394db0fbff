//! A few nodes in virtual time: messages take the time of their link, direct
//! ones a fixed time, and whoever is killed hears and says nothing.

use crate::node::autonomy::*;
use crate::peer::PeerId;
use media::{Quality, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What was sent: when, by whom, to whom, what.
pub(super) type Sent = (Time, PeerId, PeerId, AgentMessage);

pub(super) struct Rig {
    pub(super) nodes: BTreeMap<PeerId, Autonomy>,
    pub(super) now: Time,
    pub(super) sent: Vec<Sent>,
    pub(super) log: Vec<(Time, PeerId, AutonomyOutput)>,
    /// Messages for which this is true are lost.
    pub(super) lose: fn(&Sent) -> bool,
    config: AutonomyConfig,
    links: BTreeMap<(PeerId, PeerId), Span>,
    down: BTreeSet<PeerId>,
    queue: BTreeMap<(Time, u64), (PeerId, PeerId, AgentMessage, Span)>,
    serial: u64,
}

/// What a direct message takes.
pub(super) const DIRECT: Span = Span::from_millis(100);

pub(super) fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

pub(super) fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

pub(super) fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// The level that a name speaks of: `b..` Base, `e..` Enh1, `f..` Enh2, `o` origin.
fn level(name: &str) -> Level {
    match &name[..1] {
        "b" => Level::BASE,
        "e" => Level::ENH1,
        "f" => Level::ENH2,
        _ => Level::Origin,
    }
}

impl Rig {
    /// Nodes joined by links such as `"b1-e1 e1-b2"`, each of 100 ms; another
    /// number of milliseconds is written `"b1-e1:40"`. No signals are sent.
    pub(super) fn new(config: AutonomyConfig, links: &str) -> Self {
        let mut rig = Self {
            nodes: BTreeMap::new(),
            now: Time::ZERO,
            sent: Vec::new(),
            log: Vec::new(),
            lose: |_| false,
            config,
            links: BTreeMap::new(),
            down: BTreeSet::new(),
            queue: BTreeMap::new(),
            serial: 0,
        };
        for link in links.split_whitespace() {
            let (ends, time) = link.split_once(':').unwrap_or((link, "100"));
            let (a, b) = ends.split_once('-').unwrap();
            rig.link(a, b, millis(time.parse().unwrap()));
        }
        rig
    }

    /// As a rig of the paper's profile, with signals.
    pub(super) fn watching(config: AutonomyConfig, links: &str) -> Self {
        let mut rig = Self::new(config, links);
        let names: Vec<PeerId> = rig.nodes.keys().copied().collect();
        for name in names {
            rig.put(name, AutonomyInput::Signals(true));
        }
        rig
    }

    fn add(&mut self, name: &str) {
        let id = peer(name);
        if !self.nodes.contains_key(&id) {
            let seed = self.nodes.len() as u64 * 37_000_000;
            let node = Autonomy::new(self.now, id, level(name), self.config, seed);
            self.nodes.insert(id, node);
            self.put(id, AutonomyInput::Signals(false));
        }
    }

    pub(super) fn link(&mut self, a: &str, b: &str, travel: Span) {
        self.add(a);
        self.add(b);
        for (from, to) in [(a, b), (b, a)] {
            self.links.insert((peer(from), peer(to)), travel);
            self.put(peer(from), AutonomyInput::NeighbourIs { peer: peer(to), level: level(to), travel });
        }
    }

    pub(super) fn node(&self, name: &str) -> &Autonomy {
        &self.nodes[&peer(name)]
    }

    /// Gives a node other settings; only before it has done anything.
    pub(super) fn configure(&mut self, name: &str, change: impl FnOnce(&mut AutonomyConfig)) {
        let node = self.nodes.get_mut(&peer(name)).unwrap();
        change(&mut node.config);
    }

    pub(super) fn kill(&mut self, name: &str) {
        self.down.insert(peer(name));
    }

    /// What hung goes on with all it knew.
    pub(super) fn wake(&mut self, name: &str) {
        self.down.remove(&peer(name));
        self.put(peer(name), AutonomyInput::Timeout);
    }

    pub(super) fn put(&mut self, name: PeerId, input: AutonomyInput) {
        let now = self.now;
        let node = self.nodes.get_mut(&name).unwrap();
        node.handle_input(now, input);
        let outputs: Vec<AutonomyOutput> = std::iter::from_fn(|| node.poll_output()).collect();
        assert!(node.poll_output().is_none());
        for output in outputs {
            if let AutonomyOutput::Send { to, message } = &output {
                self.post(name, *to, message.clone());
            }
            self.log.push((now, name, output));
        }
        self.check();
    }

    fn post(&mut self, from: PeerId, to: PeerId, message: AgentMessage) {
        let sent = (self.now, from, to, message.clone());
        let lost = (self.lose)(&sent);
        self.sent.push(sent);
        if !lost {
            let travel = self.links.get(&(from, to)).copied().unwrap_or(DIRECT);
            self.serial += 1;
            self.queue.insert((self.now + travel, self.serial), (from, to, message, travel));
        }
    }

    /// What must hold at any moment.
    fn check(&self) {
        for (name, node) in &self.nodes {
            let config = node.config();
            assert!(node.level() == Level::Origin || node.used() <= config.capacity, "{name} over capacity");
            for record in node.records() {
                assert!(node.row(record.info.user).is_none(), "{name} backs itself up");
            }
        }
    }

    pub(super) fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let message = self.queue.keys().next().copied();
            let living = self.nodes.iter().filter(|(name, _)| !self.down.contains(*name));
            let timer = living.filter_map(|(name, node)| Some((node.poll_timeout()?, *name))).min();
            // At one time messages come before timers.
            match (message, timer) {
                (Some((at, key)), timer) if at <= end && timer.is_none_or(|(t, _)| at <= t) => {
                    self.now = self.now.max(at);
                    let (from, to, message, travel) = self.queue.remove(&(at, key)).unwrap();
                    if self.nodes.contains_key(&to) && !self.down.contains(&to) {
                        self.put(to, AutonomyInput::Heard { from, message, travel });
                    }
                }
                (_, Some((at, name))) if at <= end => {
                    self.now = self.now.max(at);
                    self.put(name, AutonomyInput::Timeout);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub(super) fn request(user: u64, sla: Sla) -> UserRequest {
        UserRequest {
            user: UserId(user),
            title: "film".parse().unwrap(),
            quality: Quality::BRONZE,
            sla,
            started: false,
            epoch: 0,
            position: Span::ZERO,
            remaining: secs(1_000 + user),
            buffer: Span::ZERO,
        }
    }

    /// A user of bronze comes to a node and everything settles.
    pub(super) fn arrive(&mut self, name: &str, user: u64, sla: Sla) {
        self.ask(name, Self::request(user, sla));
        self.run(secs(40));
    }

    pub(super) fn ask(&mut self, name: &str, request: UserRequest) {
        self.put(peer(name), AutonomyInput::Arrive { request });
    }

    /// The living node that serves a user, and how often it is served.
    pub(super) fn source_of(&self, user: u64) -> Vec<&str> {
        let living = self.nodes.iter().filter(|(name, _)| !self.down.contains(*name));
        let serving = living.filter(|(_, node)| node.record(UserId(user)).is_some());
        serving.map(|(name, _)| name.as_str()).collect()
    }

    /// The living nodes that back a user up.
    pub(super) fn backups_of(&self, user: u64) -> Vec<(&str, EntryKind)> {
        let living = self.nodes.iter().filter(|(name, _)| !self.down.contains(*name));
        living.filter_map(|(name, node)| Some((name.as_str(), node.row(UserId(user))?.kind))).collect()
    }

    pub(super) fn events(&self) -> impl Iterator<Item = (Time, &str, &AutonomyEvent)> {
        self.log.iter().filter_map(|(at, name, output)| match output {
            AutonomyOutput::Event(event) => Some((*at, name.as_str(), event)),
            _ => None,
        })
    }

    /// Forgets what was said and done so far.
    pub(super) fn clear(&mut self) {
        self.sent.clear();
        self.log.clear();
    }

    /// Users for whom a search began, with the reason.
    pub(super) fn searches(&self) -> Vec<(u64, SearchWhy)> {
        let started = self.events().filter_map(|(_, _, event)| match event {
            AutonomyEvent::SearchStarted { search, why, .. } => Some((search.user.0, *why)),
            _ => None,
        });
        started.collect()
    }

    pub(super) fn tentative(&self) -> usize {
        self.nodes.values().map(|node| node.tentative().count()).sum()
    }
}
