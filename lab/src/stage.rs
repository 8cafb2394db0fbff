//! A network of nodes on this machine, each as a process of its own that knows
//! one other address and organises the rest with the others: an origin with the
//! titles, so many nodes at each level that begin with nothing, and a proxy.

mod ask;
mod host;
mod process;

pub use ask::Inquiry;
pub use host::Host;
pub use process::{NodeEvent, Process};

use media::library::{Library, LibraryError, copy_layers};
use media::{Layer, TitleName};
use protocol::{NodeAddress, NodeStatus, PeerId};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout_at};

/// Events of nodes that wait for a slow listener; older ones are lost to it.
const EVENTS: usize = 16_384;
/// How long the titles may take to spread.
const SPREADING: Duration = Duration::from_mins(1);
/// How often the origin is asked how far they are.
const POLL: Duration = Duration::from_millis(100);

/// How many nodes there are at each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// At the edge.
    pub base: u8,
    /// At each level between the edge and the top.
    pub middle: u8,
    /// At the level of the highest layer.
    pub top: u8,
}

impl Size {
    /// The network of the demonstration.
    pub const DEMO: Self = Self { base: 8, middle: 4, top: 2 };
    /// The smallest in which every node has another one to stand in for it.
    pub const SMALL: Self = Self { base: 3, middle: 2, top: 2 };

    fn of(self, layer: Layer, top: Layer) -> u8 {
        if layer == Layer::BASE {
            self.base
        } else if layer == top {
            self.top
        } else {
            self.middle
        }
    }
}

/// What a network is made from.
#[derive(Debug, Clone)]
pub struct StagePlan {
    /// The `lamina` program.
    pub program: PathBuf,
    /// A folder for the nodes' libraries, keys and logs.
    pub folder: PathBuf,
    /// Where the titles are.
    pub library: PathBuf,
    /// The titles that the origin has and publishes.
    pub titles: Vec<TitleName>,
    /// The number of layers of the title with the most.
    pub layers: u8,
    /// How many nodes there are.
    pub size: Size,
    /// Whether the origin gives the topmost layer to viewers too.
    pub origin_has_top: bool,
    /// Further arguments of every node.
    pub arguments: Vec<String>,
}

/// The network, ready to be asked.
#[derive(Debug)]
pub struct Stage {
    plan: StagePlan,
    parts: Vec<Part>,
    processes: Vec<Process>,
    /// Where each listens, the proxy last.
    listening: Vec<NodeAddress>,
    /// Where others find each.
    addresses: Vec<NodeAddress>,
    keys: PathBuf,
    events: broadcast::Sender<NodeEvent>,
    /// Who runs on another machine.
    hosts: BTreeMap<PeerId, Host>,
}

/// What went wrong on the stage. What was started before is ended.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A folder or key could not be made.
    #[error("the stage cannot be set up in {folder}: {why}")]
    Setup {
        /// Where.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// A node's folder could not be filled.
    #[error("a node's folder cannot be filled")]
    Library(#[from] LibraryError),
    /// A process cannot be started.
    #[error("{peer} cannot be started: {why}")]
    Start {
        /// Which.
        peer: PeerId,
        /// Why.
        why: std::io::Error,
    },
    /// A process ended or stayed silent instead of becoming ready.
    #[error("{peer} did not become ready; the last it said was: {said}")]
    NotReady {
        /// Which.
        peer: PeerId,
        /// The last line of its log.
        said: String,
    },
    /// A process cannot be killed.
    #[error("{peer} cannot be killed: {why}")]
    Kill {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// A node does not say how it stands.
    #[error("{peer} does not say how it stands: {why}")]
    Ask {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// The titles did not reach every node in time.
    #[error("the titles did not reach every node: {0}")]
    NotSpread(String),
    /// There is nobody of this name.
    #[error("there is no {0} on the stage")]
    Nobody(PeerId),
}

/// One node to be.
#[derive(Debug)]
struct Part {
    peer: PeerId,
    level: String,
}

/// The nodes of a network for titles of `layers` layers, the origin first.
fn parts(layers: u8, size: Size) -> Vec<Part> {
    let top = Layer(layers.saturating_sub(1));
    let mut parts = Vec::new();
    let mut add = |peer: String, level: String| {
        parts.extend(peer.parse().ok().map(|peer| Part { peer, level }));
    };
    add("origin".into(), "origin".into());
    let inwards: Vec<Layer> = Layer::first(layers).collect();
    for layer in inwards.into_iter().rev() {
        for number in 1..=size.of(layer, top) {
            add(format!("{layer}-{number}"), layer.to_string());
        }
    }
    parts
}

impl Stage {
    /// Fills the origin's folder, makes the keys, starts every process, and waits
    /// until the titles have spread and everybody knows its neighbours.
    ///
    /// # Errors
    /// Anything that cannot be set up or started; nothing is left running.
    pub async fn start(plan: &StagePlan) -> Result<Self, StageError> {
        let mut stage = Self::set_up(plan)?;
        stage.raise().await?;
        Ok(stage)
    }

    /// Fills the origin's folder, makes the keys, and finds an address for
    /// everybody; nothing runs yet.
    ///
    /// # Errors
    /// Anything that cannot be set up.
    pub fn set_up(plan: &StagePlan) -> Result<Self, StageError> {
        let setup = |why: &dyn std::fmt::Display| StageError::Setup {
            folder: plan.folder.clone(),
            why: why.to_string(),
        };
        let parts = parts(plan.layers, plan.size);
        let (keys, logs) = (plan.folder.join("keys"), plan.folder.join("logs"));
        std::fs::create_dir_all(&logs).map_err(|why| setup(&why))?;
        transport::keys::Keys::open_or_init(&keys).map_err(|why| setup(&why))?;
        let proxy = "proxy-1".parse::<PeerId>().map_err(|why| setup(&why))?;
        let names = parts.iter().map(|part| part.peer).chain([proxy]);
        let addresses = free_addresses(names).map_err(|why| setup(&why))?;
        let (events, _) = broadcast::channel(EVENTS);
        fill(&plan.library, &plan.titles, &plan.folder.join("origin"))?;
        let listening = addresses.clone();
        Ok(Self {
            plan: plan.clone(),
            parts,
            processes: Vec::new(),
            listening,
            addresses,
            keys,
            events,
            hosts: BTreeMap::new(),
        })
    }

    /// Where a node listens can be reached by others only at this address: by a
    /// relay that loses what it is told to, for instance.
    ///
    /// # Errors
    /// There is nobody of this name.
    pub fn advertise(&mut self, peer: PeerId, address: SocketAddr) -> Result<(), StageError> {
        let found = self.addresses.iter_mut().find(|node| node.peer == peer);
        found.ok_or(StageError::Nobody(peer))?.address = address;
        Ok(())
    }

    /// A node is at this address of the machine, at a port that is free there: who
    /// dials from where is told apart by it.
    ///
    /// # Errors
    /// There is nobody of this name, or no such address.
    pub fn house(&mut self, peer: PeerId, home: IpAddr) -> Result<SocketAddr, StageError> {
        let socket = UdpSocket::bind((home, 0)).and_then(|socket| socket.local_addr());
        let address = socket.map_err(|why| StageError::Start { peer, why })?;
        self.advertise(peer, address)?;
        let found = self.listening.iter_mut().find(|node| node.peer == peer);
        found.ok_or(StageError::Nobody(peer))?.address = address;
        Ok(address)
    }

    /// The origin, and whoever else stays here, is found by others at this address
    /// of the machine.
    ///
    /// # Errors
    /// There is no such address.
    pub fn house_all(&mut self, here: IpAddr) -> Result<(), StageError> {
        let all: Vec<PeerId> = self.addresses.iter().map(|node| node.peer).collect();
        all.into_iter().try_for_each(|peer| self.house(peer, here).map(drop))
    }

    /// A node runs on another machine, where it listens at every address and is
    /// found at this one.
    ///
    /// # Errors
    /// There is nobody of this name.
    pub fn place(&mut self, peer: PeerId, host: Host, address: SocketAddr) -> Result<(), StageError> {
        self.advertise(peer, address)?;
        self.hosts.insert(peer, host);
        Ok(())
    }

    /// Where each listens, or others find it if that was changed.
    pub fn addresses(&self) -> impl Iterator<Item = (PeerId, SocketAddr)> {
        self.addresses.iter().map(|node| (node.peer, node.address))
    }

    /// Starts every process and waits until the titles have spread.
    ///
    /// # Errors
    /// Anything that cannot be started.
    pub async fn raise(&mut self) -> Result<(), StageError> {
        self.raise_all(|_| true).await
    }

    /// The same without the proxy.
    ///
    /// # Errors
    /// Anything that cannot be started.
    pub async fn raise_nodes(&mut self) -> Result<(), StageError> {
        let nodes: Vec<PeerId> = self.parts.iter().map(|part| part.peer).collect();
        self.raise_all(|peer| nodes.contains(&peer)).await
    }

    async fn raise_all(&mut self, wanted: impl Fn(PeerId) -> bool) -> Result<(), StageError> {
        for place in self.listening.clone().into_iter().filter(|place| wanted(place.peer)) {
            let log = self.plan.folder.join("logs").join(format!("{}.log", place.peer));
            let arguments = match self.parts.iter().find(|part| part.peer == place.peer) {
                Some(part) => self.node_arguments(part, place)?,
                None => self.proxy_arguments(place)?,
            };
            let mut process =
                Process::new(place.peer, &self.plan.program, arguments, log, self.events.clone());
            if let Some(host) = self.hosts.get(&place.peer) {
                host.give_keys(place.peer, &self.keys).await?;
                process.on(host.clone());
            }
            process.start().await?;
            self.processes.push(process);
        }
        self.spread().await
    }

    /// Waits until every node of a level has its layer of every title.
    async fn spread(&self) -> Result<(), StageError> {
        let plan = &self.plan;
        let origin = self.addresses.first().ok_or_else(|| StageError::NotSpread("no origin".into()))?;
        let mut inquiry = Inquiry::of(&self.keys, origin.peer, origin.address).await?;
        let late = Instant::now() + SPREADING;
        let top = Layer(plan.layers.saturating_sub(1));
        let whole = |status: &NodeStatus| {
            let wanted = |layer: Layer| u16::from(plan.size.of(layer, top));
            let title = |name: &TitleName| {
                let line = status.placements.iter().find(|line| line.title == *name);
                line.is_some_and(|line| line.layers.iter().all(|(layer, whole, _)| *whole >= wanted(*layer)))
            };
            plan.titles.iter().all(title)
        };
        let spreading = async {
            loop {
                let status = inquiry.status().await?;
                if whole(&status) {
                    return Ok(());
                }
                if Instant::now() + POLL > late {
                    return Err(StageError::NotSpread(format!("{:?}", status.placements)));
                }
                sleep(POLL).await;
            }
        };
        let timed = timeout_at(late, spreading).await;
        timed.unwrap_or_else(|_| Err(StageError::NotSpread("the origin does not say".into())))
    }

    /// Where the network's certificate authority is.
    pub fn keys(&self) -> &Path {
        &self.keys
    }

    /// What nodes tell from now on.
    pub fn events(&self) -> broadcast::Receiver<NodeEvent> {
        self.events.subscribe()
    }

    /// A conversation with a node about how it stands.
    ///
    /// # Errors
    /// There is nobody of this name, or it does not answer.
    pub async fn inquiry(&self, peer: PeerId) -> Result<Inquiry, StageError> {
        Inquiry::of(&self.keys, peer, self.address(peer)?).await
    }

    /// Where a node or proxy listens.
    ///
    /// # Errors
    /// There is nobody of this name.
    pub fn address(&self, peer: PeerId) -> Result<SocketAddr, StageError> {
        let found = self.addresses.iter().find(|node| node.peer == peer);
        found.map(|node| node.address).ok_or(StageError::Nobody(peer))
    }

    /// The process of a node or proxy.
    ///
    /// # Errors
    /// There is nobody of this name.
    pub fn process(&mut self, peer: PeerId) -> Result<&mut Process, StageError> {
        let found = self.processes.iter_mut().find(|process| process.peer() == peer);
        found.ok_or(StageError::Nobody(peer))
    }

    /// Everybody on the stage: name, address, and whether it runs.
    pub fn everybody(&self) -> impl Iterator<Item = (PeerId, SocketAddr, bool)> {
        let both = self.addresses.iter().zip(&self.processes);
        both.map(|(node, process)| (node.peer, node.address, process.is_running()))
    }

    /// The command line of a node: its level, its folder, and one address.
    fn node_arguments(&self, part: &Part, place: NodeAddress) -> Result<Vec<OsString>, StageError> {
        let (plan, told) = (&self.plan, self.address(part.peer)?);
        let host = self.hosts.get(&part.peer);
        let library = host.map_or(plan.folder.as_path(), |host| &host.folder).join(part.peer.as_str());
        let mut arguments = match host {
            None => common("serve", place, &self.keys),
            Some(host) => {
                let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, told.port()));
                common("serve", NodeAddress { peer: place.peer, address: everywhere }, &host.keys())
            }
        };
        if told != place.address || host.is_some() {
            arguments.extend(["--advertise".into(), told.to_string().into()]);
        }
        arguments.extend(["--level".into(), part.level.clone().into(), "--library".into(), library.into()]);
        arguments.push("--events".into());
        if part.level == "origin" {
            arguments.extend(["--publish".into(), "0".into()]);
            let below = plan.layers.saturating_sub(1);
            if !plan.origin_has_top && below > 0 {
                let offer: Vec<String> = Layer::first(below).map(|layer| layer.to_string()).collect();
                arguments.extend(["--offer".into(), offer.join(",").into()]);
            }
        } else if let Some(origin) = self.addresses.first() {
            arguments.extend(["--join".into(), origin.to_string().into()]);
        }
        arguments.extend(plan.arguments.iter().map(OsString::from));
        Ok(arguments)
    }

    fn proxy_arguments(&self, place: NodeAddress) -> Result<Vec<OsString>, StageError> {
        let mut arguments = common("proxy", place, &self.keys);
        for part in self.parts.iter().filter(|part| part.level == Layer::BASE.to_string()) {
            let address = self.address(part.peer)?;
            arguments.extend(["--upstream".into(), format!("{}@{address}", part.peer).into()]);
        }
        Ok(arguments)
    }
}

/// The part of a command line that nodes and proxies share.
fn common(command: &str, place: NodeAddress, keys: &Path) -> Vec<OsString> {
    vec![
        command.into(),
        "--peer".into(),
        place.peer.as_str().into(),
        "--listen".into(),
        place.address.to_string().into(),
        "--keys".into(),
        keys.into(),
        "--exit-with-parent".into(),
    ]
}

/// Gives the origin its own folder, with every layer of each title.
fn fill(from: &Path, titles: &[TitleName], to: &Path) -> Result<(), LibraryError> {
    let (from, to) = (Library::open(from)?, Library::create(to)?);
    for title in titles {
        let title = from.title(title)?;
        let layers: Vec<Layer> = title.layers().collect();
        copy_layers(&title, &layers, &to, true)?;
    }
    Ok(())
}

/// Loopback addresses with UDP ports that are free now. All are held until the
/// last is found, so that none is given twice.
fn free_addresses(peers: impl Iterator<Item = PeerId>) -> std::io::Result<Vec<NodeAddress>> {
    let mut held = Vec::new();
    for peer in peers {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        held.push((peer, socket));
    }
    held.iter().map(|(peer, socket)| Ok(NodeAddress { peer: *peer, address: socket.local_addr()? })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layers: u8, size: Size) -> Vec<String> {
        parts(layers, size).iter().map(|part| part.peer.to_string()).collect()
    }

    #[test]
    fn a_network_has_an_origin_and_so_many_nodes_at_each_level() {
        let small = Size { base: 2, middle: 1, top: 2 };
        assert_eq!(names(3, small), ["origin", "enh2-1", "enh2-2", "enh1-1", "base-1", "base-2"]);
        assert_eq!(names(1, small), ["origin", "base-1", "base-2"]);
        assert_eq!(names(3, Size::DEMO).len(), 15);
    }
}
