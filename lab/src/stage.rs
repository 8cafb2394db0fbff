//! A small network on this machine: an origin, two Base nodes, one node for
//! each further enhancement and two for the topmost, and a proxy, each as a
//! process of its own with a folder that holds just its layers.

mod process;

pub use process::Process;

use media::library::{Library, LibraryError, copy_layers};
use media::{Layer, TitleName};
use protocol::{NodeAddress, PeerId};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// What a network is made from.
#[derive(Debug, Clone)]
pub struct StagePlan {
    /// The `lamina` program.
    pub program: PathBuf,
    /// A folder for the nodes' libraries, keys and logs.
    pub folder: PathBuf,
    /// Where the titles are.
    pub library: PathBuf,
    /// The titles that every node gets its layers of.
    pub titles: Vec<TitleName>,
    /// The number of layers of the title with the most.
    pub layers: u8,
    /// Whether the origin serves the topmost layer too.
    pub origin_has_top: bool,
}

/// The network, ready to be asked.
#[derive(Debug)]
pub struct Stage {
    processes: Vec<Process>,
    addresses: Vec<NodeAddress>,
    keys: PathBuf,
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
    /// There is nobody of this name.
    #[error("there is no {0} on the stage")]
    Nobody(PeerId),
}

/// One node to be: its name, its level, what it holds and whether it offers it.
struct Part {
    peer: PeerId,
    level: String,
    layers: Vec<Layer>,
}

/// The nodes of a network for titles of `layers` layers.
fn parts(layers: u8, origin_has_top: bool) -> Vec<Part> {
    let top = Layer(layers.saturating_sub(1));
    let name = |text: String| text.parse::<PeerId>().ok();
    let mut parts = Vec::new();
    let mut add = |peer: String, level: String, layers: Vec<Layer>| {
        parts.extend(name(peer).map(|peer| Part { peer, level, layers }));
    };
    let offered = Layer::first(layers).filter(|layer| origin_has_top || *layer != top || layers == 1);
    add("origin".into(), "origin".into(), offered.collect());
    for layer in Layer::first(layers) {
        let copies = if layer == Layer::BASE || layer == top { 2 } else { 1 };
        for copy in 1..=copies {
            add(format!("{layer}-{copy}"), layer.to_string(), vec![layer]);
        }
    }
    parts
}

impl Stage {
    /// Fills the folders, makes the keys and starts every process.
    ///
    /// # Errors
    /// Anything that cannot be set up or started; nothing is left running.
    pub async fn start(plan: &StagePlan) -> Result<Self, StageError> {
        let setup = |why: &dyn std::fmt::Display| StageError::Setup {
            folder: plan.folder.clone(),
            why: why.to_string(),
        };
        let parts = parts(plan.layers, plan.origin_has_top);
        let keys = plan.folder.join("keys");
        let logs = plan.folder.join("logs");
        std::fs::create_dir_all(&logs).map_err(|why| setup(&why))?;
        transport::keys::Keys::open_or_init(&keys).map_err(|why| setup(&why))?;
        let proxy = "proxy-1".parse::<PeerId>().map_err(|why| setup(&why))?;
        let names = parts.iter().map(|part| part.peer).chain([proxy]);
        let addresses = free_addresses(names).map_err(|why| setup(&why))?;
        let mut stage = Self { processes: Vec::new(), addresses, keys };
        for part in &parts {
            let library = plan.folder.join(part.peer.as_str());
            fill(&plan.library, &plan.titles, &part.layers, &library)?;
            let arguments = stage.node_arguments(part, &parts, &library)?;
            stage.add(part.peer, plan, arguments, &logs);
        }
        let arguments = stage.proxy_arguments(proxy, &parts)?;
        stage.add(proxy, plan, arguments, &logs);
        for process in &mut stage.processes {
            process.start().await?;
        }
        Ok(stage)
    }

    fn add(&mut self, peer: PeerId, plan: &StagePlan, arguments: Vec<OsString>, logs: &Path) {
        let log = logs.join(format!("{peer}.log"));
        self.processes.push(Process::new(peer, &plan.program, arguments, log));
    }

    /// Where the network's certificate authority is.
    pub fn keys(&self) -> &Path {
        &self.keys
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

    /// The command line of a node. Each Base node names itself first and the
    /// other as its backup; who serves what is configuration here.
    fn node_arguments(&self, part: &Part, all: &[Part], library: &Path) -> Result<Vec<OsString>, StageError> {
        let own = self.address(part.peer)?;
        let offer: Vec<String> = part.layers.iter().map(ToString::to_string).collect();
        let mut arguments = common("serve", part.peer, own, &self.keys);
        arguments.extend(["--level".into(), part.level.clone().into(), "--library".into(), library.into()]);
        arguments.extend(["--offer".into(), offer.join(",").into()]);
        for (layer, node) in self.sources(part, all)? {
            arguments.extend(["--source".into(), format!("{layer}={}@{}", node.peer, node.address).into()]);
        }
        let backup = all.iter().find(|other| other.level == part.level && other.peer != part.peer);
        if let Some(backup) = backup.filter(|_| part.level == Layer::BASE.to_string()) {
            let address = self.address(backup.peer)?;
            arguments.extend(["--backup".into(), format!("{}@{address}", backup.peer).into()]);
        }
        Ok(arguments)
    }

    fn proxy_arguments(&self, proxy: PeerId, all: &[Part]) -> Result<Vec<OsString>, StageError> {
        let mut arguments = common("proxy", proxy, self.address(proxy)?, &self.keys);
        for part in all.iter().filter(|part| part.level == Layer::BASE.to_string()) {
            let address = self.address(part.peer)?;
            arguments.extend(["--upstream".into(), format!("{}@{address}", part.peer).into()]);
        }
        Ok(arguments)
    }

    /// Who has which layer, in the order in which a client of `part` asks:
    /// itself, its equals, the origin last.
    fn sources(&self, part: &Part, all: &[Part]) -> Result<Vec<(Layer, NodeAddress)>, StageError> {
        let mut rows = Vec::new();
        for (order, other) in all.iter().enumerate() {
            for layer in &other.layers {
                let is_origin = other.layers.len() > 1 || other.level == "origin";
                let address = self.address(other.peer)?;
                let node = NodeAddress { peer: other.peer, address };
                rows.push((*layer, is_origin, other.peer != part.peer, order, node));
            }
        }
        rows.sort();
        Ok(rows.into_iter().map(|(layer, _, _, _, node)| (layer, node)).collect())
    }
}

/// The part of a command line that nodes and proxies share.
fn common(command: &str, peer: PeerId, address: SocketAddr, keys: &Path) -> Vec<OsString> {
    vec![
        command.into(),
        "--peer".into(),
        peer.as_str().into(),
        "--listen".into(),
        address.to_string().into(),
        "--keys".into(),
        keys.into(),
        "--exit-with-parent".into(),
    ]
}

/// Gives a node its own folder, with its layers and the manifest of each title.
fn fill(from: &Path, titles: &[TitleName], layers: &[Layer], to: &Path) -> Result<(), LibraryError> {
    let (from, to) = (Library::open(from)?, Library::create(to)?);
    for title in titles {
        let title = from.title(title)?;
        let there: Vec<Layer> = layers.iter().copied().filter(|layer| title.has(*layer)).collect();
        copy_layers(&title, &there, &to, true)?;
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

    #[test]
    fn three_layers_make_an_origin_two_base_one_enh1_and_two_enh2_nodes() {
        let names: Vec<String> = parts(3, false).iter().map(|part| part.peer.to_string()).collect();
        assert_eq!(names, ["origin", "base-1", "base-2", "enh1-1", "enh2-1", "enh2-2"]);
        assert_eq!(parts(3, false)[0].layers, [Layer::BASE, Layer::ENH1]);
        assert_eq!(parts(3, true)[0].layers, [Layer::BASE, Layer::ENH1, Layer::ENH2]);
        assert_eq!(parts(1, false)[0].layers, [Layer::BASE]);
    }

    #[test]
    fn a_client_asks_its_own_node_then_its_equal_then_the_origin() {
        let all = parts(3, true);
        let addresses = free_addresses(all.iter().map(|part| part.peer)).unwrap();
        let stage = Stage { processes: Vec::new(), addresses, keys: PathBuf::new() };
        let second = all.iter().find(|part| part.peer.as_str() == "base-2").unwrap();
        let rows = stage.sources(second, &all).unwrap();
        let told: Vec<String> = rows.iter().map(|(layer, node)| format!("{layer}={}", node.peer)).collect();
        assert_eq!(
            told,
            [
                "base=base-2",
                "base=base-1",
                "base=origin",
                "enh1=enh1-1",
                "enh1=origin",
                "enh2=enh2-1",
                "enh2=enh2-2",
                "enh2=origin"
            ]
        );
    }
}
