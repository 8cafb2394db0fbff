//! The network of one run: nodes and proxies as processes, and the links between
//! all of them and the viewers.
//!
//! Everybody has an address of its own in 127/8, so that the relay knows who dials.
//! Between two nodes lies a link of theirs; a proxy has one line to all nodes and one
//! to each other proxy; a viewer has one line to everybody.

use super::scenario::{Line, Scenario};
use super::{Options, TestbedError, Title, shipped};
use crate::links::{DoorId, LinkId, LinkShape, Links, Way};
use crate::stage::{Process, Stage, StageError, StagePlan};
use media::Layer;
use protocol::PeerId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use tokio::sync::broadcast;

/// Everything but the audience and what goes wrong.
pub(super) struct City {
    // Ended before the relay, so that nothing speaks into the void.
    proxies: Vec<Process>,
    pub(super) stage: Stage,
    pub(super) links: Links,
    pub(super) members: Vec<Member>,
    /// Between two nodes or proxies, the earlier member first.
    pub(super) pairs: BTreeMap<(PeerId, PeerId), (LinkId, LinkShape)>,
    /// From each proxy to all nodes.
    pub(super) proxy_lines: BTreeMap<PeerId, (LinkId, LinkShape)>,
    /// Of each viewer, in order.
    pub(super) viewer_lines: Vec<(LinkId, LinkShape)>,
    /// Whether nodes are on other machines, so that lines are real ones.
    pub(super) real_lines: bool,
    /// Whether the relay was allowed to have real-time priority.
    pub(super) hurried: bool,
}

/// A node or proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) peer: PeerId,
    pub(super) door: Option<DoorId>,
    pub(super) home: IpAddr,
    /// Where others find it.
    pub(super) address: SocketAddr,
    pub(super) proxy: bool,
}

/// From where the member or viewer of this number dials.
pub(super) fn home(viewer: bool, number: usize) -> IpAddr {
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    let [high, low] = (number + 1).to_be_bytes();
    Ipv4Addr::new(127, if viewer { 77 } else { 76 }, high, low).into()
}

impl City {
    /// Starts it all, and waits until the title has spread.
    pub(super) async fn raise(
        options: &Options,
        (scenario, from): (&Scenario, &Path),
        title: &Title,
        seed: u64,
        folder: &Path,
    ) -> Result<Self, TestbedError> {
        let links = Links::start(seed).map_err(TestbedError::Links)?;
        let hurried = links.hurry();
        let plan = StagePlan {
            program: options.program.clone(),
            folder: folder.to_owned(),
            library: title.library.clone(),
            titles: vec![title.name()],
            layers: title.folder.manifest().top_quality().layers(),
            size: scenario.nodes.size(),
            origin_has_top: scenario.nodes.origin_has_top,
            arguments: Vec::new(),
        };
        let mut stage = Stage::set_up(&plan)?;
        let nodes: Vec<PeerId> = stage
            .addresses()
            .map(|(peer, _)| peer)
            .filter(|peer| !peer.as_str().starts_with("proxy"))
            .collect();
        let mut city = Self {
            proxies: Vec::new(),
            members: Vec::new(),
            pairs: BTreeMap::new(),
            proxy_lines: BTreeMap::new(),
            viewer_lines: Vec::new(),
            real_lines: options.hosts.is_some(),
            hurried,
            links,
            stage: {
                if let Some(hosts) = &options.hosts {
                    stage.house_all(hosts.here)?;
                    for (peer, host, at) in hosts.place(nodes.get(1..).unwrap_or_default()) {
                        stage.place(peer, host, at)?;
                    }
                }
                stage
            },
        };
        city.nodes(&nodes, scenario)?;
        city.stage.raise_nodes().await?;
        city.proxies(options, scenario, folder).await?;
        city.lines(scenario, from)?;
        Ok(city)
    }

    /// Gives each node an address and a door, and each pair a link.
    fn nodes(&mut self, nodes: &[PeerId], scenario: &Scenario) -> Result<(), TestbedError> {
        for (number, peer) in nodes.iter().enumerate() {
            let home = home(false, number);
            let member = if self.real_lines {
                Member { peer: *peer, door: None, home, address: self.stage.address(*peer)?, proxy: false }
            } else {
                let listens = self.stage.house(*peer, home)?;
                let (door, address) = self.links.door(listens).map_err(TestbedError::Links)?;
                self.stage.advertise(*peer, address)?;
                Member { peer: *peer, door: Some(door), home, address, proxy: false }
            };
            self.link_with_all(member, &scenario.links.nodes);
        }
        Ok(())
    }

    /// Lays a link between a new member and all others of its kind.
    fn link_with_all(&mut self, member: Member, line: &Line) {
        let shape = LinkShape::both(line.shape());
        for other in self.members.iter().filter(|other| other.proxy == member.proxy) {
            let Some((mine, theirs)) = member.door.zip(other.door) else { continue };
            let link = self.links.link(shape);
            self.links.route(mine, other.home, link, Way::Along);
            self.links.route(theirs, member.home, link, Way::Against);
            self.pairs.insert((other.peer, member.peer), (link, shape));
        }
        self.members.push(member);
    }

    /// Starts the proxies, each with a line to all nodes.
    async fn proxies(
        &mut self,
        options: &Options,
        scenario: &Scenario,
        folder: &Path,
    ) -> Result<(), TestbedError> {
        let nodes = self.members.clone();
        let mut places = Vec::new();
        for number in 0..usize::from(scenario.nodes.proxies) {
            let home = home(false, nodes.len() + number);
            let peer = format!("proxy-{}", number + 1).parse::<PeerId>();
            let peer = peer.map_err(|error| TestbedError::Broken(error.to_string()))?;
            let socket = UdpSocket::bind((home, 0)).and_then(|socket| socket.local_addr());
            let listens = socket.map_err(TestbedError::Links)?;
            let (door, address) = self.links.door(listens).map_err(TestbedError::Links)?;
            let member = Member { peer, door: Some(door), home, address, proxy: true };
            self.link_with_all(member, &scenario.links.peers);
            let shape = LinkShape::both(scenario.links.proxies.shape());
            let line = self.links.link(shape);
            for door in nodes.iter().filter_map(|node| node.door) {
                self.links.route(door, home, line, Way::Along);
            }
            self.proxy_lines.insert(peer, (line, shape));
            places.push((member, listens));
        }
        for (member, listens) in &places {
            let arguments = proxy_arguments(member, *listens, (&nodes, &places), scenario, self.stage.keys());
            let log = folder.join("logs").join(format!("{}.log", member.peer));
            let (events, _) = broadcast::channel(1);
            let mut proxy = Process::new(member.peer, &options.program, arguments, log, events);
            proxy.start().await?;
            self.proxies.push(proxy);
        }
        Ok(())
    }

    /// Gives each viewer a line of its own to everybody.
    fn lines(&mut self, scenario: &Scenario, from: &Path) -> Result<(), TestbedError> {
        let of = &scenario.links.viewers;
        let trace = of.trace.as_ref().map(|name| shipped::trace(name, from)).transpose()?;
        let shape = LinkShape::both(of.shape());
        let many: usize = scenario.viewers.iter().map(|group| usize::from(group.get_ref().count)).sum();
        for number in 0..many {
            let link = self.links.link(shape);
            if trace.is_some() {
                self.links.follow(link, None, trace.clone());
            }
            for door in self.members.iter().filter_map(|member| member.door) {
                self.links.route(door, home(true, number), link, Way::Along);
            }
            self.viewer_lines.push((link, shape));
        }
        Ok(())
    }

    /// The names of a level's nodes.
    pub(super) fn level(&self, layer: Layer) -> Vec<PeerId> {
        let level = format!("{layer}-");
        self.members
            .iter()
            .map(|member| member.peer)
            .filter(|peer| peer.as_str().starts_with(&level))
            .collect()
    }

    /// The process of a node or proxy.
    pub(super) fn process(&mut self, peer: PeerId) -> Result<&mut Process, StageError> {
        match self.proxies.iter_mut().find(|proxy| proxy.peer() == peer) {
            Some(proxy) => Ok(proxy),
            None => self.stage.process(peer),
        }
    }

    /// A node or proxy.
    pub(super) fn member(&self, peer: PeerId) -> Result<Member, StageError> {
        self.members.iter().find(|member| member.peer == peer).copied().ok_or(StageError::Nobody(peer))
    }
}

fn proxy_arguments(
    member: &Member,
    listens: SocketAddr,
    (nodes, proxies): (&[Member], &[(Member, SocketAddr)]),
    scenario: &Scenario,
    keys: &Path,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["proxy".into(), "--peer".into(), member.peer.as_str().into()];
    let mut say = |flag: &str, value: String| arguments.extend([flag.into(), value.into()]);
    say("--listen", listens.to_string());
    say("--advertise", member.address.to_string());
    say("--dial-from", member.home.to_string());
    say("--keys", keys.display().to_string());
    for node in nodes.iter().filter(|node| node.peer.as_str().starts_with("base")) {
        say("--upstream", format!("{}@{}", node.peer, node.address));
    }
    for (other, _) in proxies.iter().filter(|(other, _)| other.peer != member.peer) {
        say("--peers", format!("{}@{}", other.peer, other.address));
    }
    let switch = if scenario.nodes.cooperate { "on" } else { "off" };
    say("--cooperate", switch.into());
    say("--prefetch", switch.into());
    arguments.push("--exit-with-parent".into());
    arguments
}
