//! The settings of `lamina proxy`, from flags and a TOML file alike.

use media::{ByteCount, Quality, Span};
use protocol::proxy::cooperation::CooperationConfig;
use protocol::proxy::{Insistence, Upstream};
use protocol::{GuestLimits, NodeAddress, PeerId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Bytes of chunks in memory unless something else is said.
const IN_MEMORY: u64 = 256 * 1024 * 1024;
/// Bytes of chunks in a folder unless something else is said.
const ON_DISK: u64 = 2_000_000_000;

/// What a proxy is told when it starts. All but `upstream` have a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyConfig {
    /// The proxy's name, which its certificate carries; none means `proxy`.
    pub peer: Option<PeerId>,
    /// Address and UDP port to listen on; port 0 takes a free one. Default
    /// `127.0.0.1:0`: this machine alone.
    pub listen: SocketAddr,
    /// The address that clients are told, if it is not the one they came by.
    pub advertise: Option<SocketAddr>,
    /// The nodes to ask, in the order to be tried.
    pub upstream: Vec<UpstreamFlag>,
    /// Other proxies, written `NAME@ADDRESS:PORT`: asked for what they hold, and told
    /// to clients, who turn to them if this one dies.
    #[serde(with = "written")]
    pub peers: Vec<NodeAddress>,
    /// The address of this machine from which nodes and peers are dialled; none
    /// leaves it to the system.
    pub dial_from: Option<IpAddr>,
    /// The most layers given to anybody; none means no limit.
    pub max_layers: Option<u8>,
    /// The folder in which chunks are kept, made if it is missing, for one process
    /// alone; none means that they are kept in memory and lost at the end.
    pub cache: Option<PathBuf>,
    /// The most bytes of chunks that are kept; none means 2 GB in a folder and 256
    /// MiB in memory.
    pub cache_bytes: Option<u64>,
    /// Of what is kept in a folder, the most bytes that are in memory too. Default
    /// 256 MiB.
    pub memory_bytes: u64,
    /// Whether the peers are asked for what they hold, and told what is held here;
    /// without it they are only told to clients. Default true.
    pub cooperate: bool,
    /// Whether blocks are fetched before anybody asks for them, where a line is idle.
    /// Default true.
    pub prefetch: bool,
    /// How many blocks from where each client is, and from the head of the title, the
    /// peers are asked about (I). 1 to 1000, default 20.
    pub inquiry: u32,
    /// How many blocks ahead of each client are fetched (P), fewer than `inquiry`.
    /// Default 10.
    pub ahead: u32,
    /// What is added to the time that a block is expected to take, against jitter and
    /// errors of the estimates (delta), in milliseconds. Default 300.
    pub margin_ms: u64,
    /// How much clients insist on what they ask for (beta): with 1 a block is fetched
    /// whole or late, near 0 as much of it as comes in time. It is 0 while a client's
    /// service fails over. Default 0.6.
    pub beta: f64,
    /// The same for a client whose quality is gold. Default 0.8.
    pub beta_gold: f64,
    /// What is added to either for a VIP, up to 1. Default 0.2.
    pub beta_vip: f64,
    /// How many sessions there may be. Default 200.
    pub capacity: usize,
    /// How many requests of one session may be open. 1 to 64, default 64.
    pub requests: usize,
    /// The folder of keys; none means [`transport::Keys::default_folder`].
    pub keys: Option<PathBuf>,
    /// How long a node upstream may send nothing before the next is asked, in
    /// milliseconds. Default 1000.
    pub progress_ms: u64,
    /// How long open requests may go on after the order to stop, in
    /// milliseconds. Default 5000.
    pub drain_ms: u64,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        let guests = GuestLimits::default();
        Self {
            peer: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            upstream: Vec::new(),
            peers: Vec::new(),
            dial_from: None,
            max_layers: None,
            cache: None,
            cache_bytes: None,
            memory_bytes: IN_MEMORY,
            cooperate: true,
            prefetch: true,
            inquiry: 20,
            ahead: 10,
            margin_ms: 300,
            beta: 0.6,
            beta_gold: 0.8,
            beta_vip: 0.2,
            capacity: guests.sessions,
            requests: guests.requests,
            keys: None,
            progress_ms: 1000,
            drain_ms: 5000,
        }
    }
}

impl ProxyConfig {
    /// The proxy's name: the one given, or `proxy`.
    pub fn peer(&self) -> Option<PeerId> {
        self.peer.or_else(|| "proxy".parse().ok())
    }

    /// The most bytes of chunks that are kept, wherever they lie.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let usual = if self.cache.is_some() { ON_DISK } else { IN_MEMORY };
        self.cache_bytes.unwrap_or(usual)
    }

    /// What the machine needs of it.
    pub(crate) fn machine(&self) -> protocol::proxy::ProxyConfig {
        let guests =
            GuestLimits { sessions: self.capacity, requests: self.requests, ..GuestLimits::default() };
        let inquiry = self.inquiry.clamp(1, 1000);
        let cooperation = CooperationConfig {
            cooperate: self.cooperate,
            prefetch: self.prefetch,
            inquiry,
            ahead: self.ahead.min(inquiry.saturating_sub(1)),
            margin: Span::from_millis(self.margin_ms),
            ..CooperationConfig::production(ByteCount(self.capacity_bytes()))
        };
        protocol::proxy::ProxyConfig {
            guests,
            cooperation,
            insistence: Insistence {
                usual: thousandths(self.beta),
                gold: thousandths(self.beta_gold),
                vip: thousandths(self.beta_vip),
            },
            upstream: self.upstream.iter().map(|flag| flag.0).collect(),
            peers: self.peers.clone(),
            top: Quality(self.max_layers.unwrap_or(u8::MAX)),
            advertise: self.advertise,
            drain: Span::from_millis(self.drain_ms),
            ..protocol::proxy::ProxyConfig::default()
        }
    }
}

/// A share from 0 to 1 in thousandths.
fn thousandths(share: f64) -> u16 {
    (0..1000_u16).find(|part| f64::from(*part) >= share * 1000.0).unwrap_or(1000)
}

/// Nodes as people write them.
mod written {
    use super::{Deserialize as _, Deserializer, NodeAddress, Serializer};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(nodes: &[NodeAddress], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(nodes.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<NodeAddress>, D::Error> {
        let written = Vec::<String>::deserialize(deserializer)?;
        written.iter().map(|node| node.parse().map_err(D::Error::custom)).collect()
    }
}

/// A node upstream, written `NAME@ADDRESS:PORT` or `ADDRESS:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamFlag(pub Upstream);

impl fmt::Display for UpstreamFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.peer {
            Some(peer) => write!(f, "{}", NodeAddress { peer, address: self.0.address }),
            None => write!(f, "{}", self.0.address),
        }
    }
}

impl FromStr for UpstreamFlag {
    type Err = UpstreamFlagError;

    fn from_str(text: &str) -> Result<Self, UpstreamFlagError> {
        if text.contains('@') {
            let node: NodeAddress = text.parse().map_err(|_| UpstreamFlagError)?;
            return Ok(Self(node.into()));
        }
        let address = text.parse().map_err(|_| UpstreamFlagError)?;
        Ok(Self(Upstream { peer: None, address }))
    }
}

impl Serialize for UpstreamFlag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UpstreamFlag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A text that names no node upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a node upstream is written ADDRESS:PORT or NAME@ADDRESS:PORT, such as base-1@127.0.0.1:4460")]
pub struct UpstreamFlagError;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_nodes_as_flags_do() {
        let file = r#"
            upstream = ["base-1@127.0.0.1:4460", "[::1]:4461"]
            peers = ["proxy-2@127.0.0.1:4471"]
            max_layers = 1
        "#;
        let config: ProxyConfig = toml::from_str(file).unwrap();
        let written: Vec<String> = config.upstream.iter().map(ToString::to_string).collect();
        assert_eq!(written, ["base-1@127.0.0.1:4460", "[::1]:4461"]);
        assert_eq!(config.machine().top, Quality::BRONZE);
        assert_eq!(config.machine().peers, ["proxy-2@127.0.0.1:4471".parse().unwrap()]);
        assert_eq!(toml::from_str::<ProxyConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        assert_eq!("base-1@nowhere".parse::<UpstreamFlag>(), Err(UpstreamFlagError));
        assert_eq!("nowhere".parse::<UpstreamFlag>(), Err(UpstreamFlagError));
    }
}
