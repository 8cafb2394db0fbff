//! The settings of `lamina serve`, from flags and a TOML file alike.

use media::{ByteCount, Layer, Span};
use protocol::node::autonomy::AutonomyConfig;
use protocol::node::{Door, NodeConfig};
use protocol::{GuestLimits, Level, NodeAddress, PeerId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// What a node is told when it starts. Every field has a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// The node's name, which its certificate carries; none means the name of
    /// its level.
    pub peer: Option<PeerId>,
    /// Address and UDP port to listen on; port 0 takes a free one. Default
    /// `127.0.0.1:0`: this machine alone.
    pub listen: SocketAddr,
    /// The address that others are told, if it is not the one listened on.
    pub advertise: Option<SocketAddr>,
    /// Where the node stands in the network. Default `origin`.
    pub level: LevelName,
    /// The folder with the titles. Default `library`.
    pub library: PathBuf,
    /// The layers given to others; none named means those of the level: all for
    /// an origin, one for the others.
    pub offer: Option<Vec<LayerName>>,
    /// Nodes of the network that is joined, as `NAME@ADDRESS:PORT` or
    /// `ADDRESS:PORT`; one is enough. None: a network begins here.
    pub join: Vec<DoorName>,
    /// The node's neighbours, as `NAME@ADDRESS:PORT`; none named means that it
    /// chooses them itself.
    pub neighbours: Vec<NodeName>,
    /// Whether an origin publishes all its titles by itself, with how many copies
    /// for each level; 0: one on every node that is willing. None: by order only.
    pub publish: Option<u16>,
    /// C: deliveries at once. Default 200; of an origin 1000.
    pub capacity: Option<u32>,
    /// b: with so many free slots or fewer, reservations are moved elsewhere.
    /// Default a tenth of the capacity.
    pub bottom_line: Option<u32>,
    /// Bytes of titles that the node stores at most. Default 100 GB.
    pub storage: u64,
    /// How many requests of one session may be open. 1 to 64, default 64.
    pub requests: usize,
    /// Ts: between two survival signals, in milliseconds. Default 100.
    pub signal_ms: u64,
    /// Td: a neighbour silent for so long is dead, in milliseconds; more than
    /// `signal_ms`. Default 400.
    pub dead_ms: u64,
    /// How long a user who says nothing is served, in milliseconds. Default
    /// 10000.
    pub lease_ms: u64,
    /// The folder of keys; none means [`transport::Keys::default_folder`].
    pub keys: Option<PathBuf>,
    /// Bytes of chunks kept in memory after they were read. Default 64 MiB.
    pub cache_bytes: u64,
    /// How long open requests may go on after the order to stop, in
    /// milliseconds. Default 5000.
    pub drain_ms: u64,
}

impl Default for ServeConfig {
    fn default() -> Self {
        let (guests, network) = (GuestLimits::default(), AutonomyConfig::production());
        Self {
            peer: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            level: LevelName(Level::Origin),
            library: PathBuf::from("library"),
            offer: None,
            join: Vec::new(),
            neighbours: Vec::new(),
            publish: None,
            capacity: None,
            bottom_line: None,
            storage: network.storage.0,
            requests: guests.requests,
            signal_ms: network.signal_every.as_millis(),
            dead_ms: network.dead_after.as_millis(),
            lease_ms: network.lease.map_or(0, Span::as_millis),
            keys: None,
            cache_bytes: 64 * 1024 * 1024,
            drain_ms: 5000,
        }
    }
}

/// Sessions there may be for each delivery: reservations and copies need one too.
const SESSIONS_PER_SLOT: usize = 4;
/// Deliveries of a node at once.
const CAPACITY: u32 = 200;
/// Deliveries of an origin at once.
const ORIGIN_CAPACITY: u32 = 1000;

impl ServeConfig {
    /// The node's name: the one given or that of its level.
    pub fn peer(&self) -> Option<PeerId> {
        self.peer.or_else(|| self.level.0.to_string().parse().ok())
    }

    /// Whether the values make sense together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.signal_ms == 0 || self.dead_ms <= self.signal_ms {
            return Err(ConfigError::Signals { signal_ms: self.signal_ms, dead_ms: self.dead_ms });
        }
        let told = self.advertise.unwrap_or(self.listen);
        let alone = self.join.is_empty() && self.neighbours.is_empty();
        if told.ip().is_unspecified() && (!alone || self.level.0 != Level::Origin) {
            return Err(ConfigError::Nowhere(told));
        }
        Ok(())
    }

    /// What the machine needs of it. `bound` is the address listened on, `since`
    /// the time of the start in milliseconds of the Unix epoch.
    pub(crate) fn node(&self, bound: SocketAddr, since: u64) -> NodeConfig {
        let level = self.level.0;
        let offer = match (&self.offer, level) {
            (Some(layers), _) => Some(layers.iter().map(|layer| layer.0).collect()),
            (None, Level::Origin) => None,
            (None, Level::Layer(layer)) => Some(vec![layer]),
        };
        let most = if level == Level::Origin { ORIGIN_CAPACITY } else { CAPACITY };
        let capacity = self.capacity.unwrap_or(most);
        let sessions = usize::try_from(capacity).unwrap_or(usize::MAX).saturating_mul(SESSIONS_PER_SLOT);
        let guests = GuestLimits { sessions, requests: self.requests, ..GuestLimits::default() };
        let lease = (self.lease_ms > 0).then(|| Span::from_millis(self.lease_ms));
        let autonomy = AutonomyConfig {
            signal_every: Span::from_millis(self.signal_ms),
            dead_after: Span::from_millis(self.dead_ms),
            capacity,
            origin_capacity: capacity,
            bottom_line: self.bottom_line.unwrap_or(capacity / 10),
            lease,
            storage: ByteCount(self.storage),
            ..AutonomyConfig::production()
        };
        NodeConfig {
            address: self.advertise.unwrap_or(bound),
            since,
            join: self.join.iter().map(|door| door.0).collect(),
            neighbours: self.neighbours.iter().map(|node| node.0).collect(),
            guests,
            offer,
            publish: self.publish,
            autonomy,
            drain: Span::from_millis(self.drain_ms),
            ..NodeConfig::new(level)
        }
    }
}

/// Settings that make no sense together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A node would be thought dead between two of its signals.
    #[error("a signal every {signal_ms} ms, and dead after {dead_ms} ms without one")]
    Signals {
        /// Ts.
        signal_ms: u64,
        /// Td.
        dead_ms: u64,
    },
    /// Nobody could find the node there.
    #[error("other nodes cannot find this one at {0}")]
    Nowhere(SocketAddr),
}

/// A level by its name: `origin`, `base`, `enh1` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelName(pub Level);

/// A node, written `NAME@ADDRESS:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeName(pub NodeAddress);

/// A node to join through, written `NAME@ADDRESS:PORT` or `ADDRESS:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorName(pub Door);

impl fmt::Display for LevelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LevelName {
    type Err = protocol::node::autonomy::agent::LevelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeName {
    type Err = protocol::message::NodeAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for DoorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.peer {
            Some(peer) => NodeAddress { peer, address: self.0.address }.fmt(f),
            None => self.0.address.fmt(f),
        }
    }
}

impl FromStr for DoorName {
    type Err = DoorError;

    fn from_str(text: &str) -> Result<Self, DoorError> {
        let named = text.parse::<NodeAddress>().map(Door::from);
        let plain = || text.parse().map(|address| Door { address, peer: None });
        named.or_else(|_| plain()).map(Self).map_err(|_| DoorError)
    }
}

/// A text that says of no node where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a node to join through is written ADDRESS:PORT or NAME@ADDRESS:PORT, such as 127.0.0.1:4460")]
pub struct DoorError;

/// A layer by its name, `base` or `enh1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerName(pub Layer);

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LayerName {
    type Err = media::layer::LayerParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Types that are one text in a file.
macro_rules! text_in_files {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
text_in_files!(LevelName, LayerName, NodeName, DoorName);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_layers_and_nodes_as_flags_do() {
        let file = r#"
            peer = "enh1-1"
            level = "enh1"
            listen = "127.0.0.1:4460"
            library = "/srv/films"
            offer = ["enh1"]
            join = ["127.0.0.1:4470", "origin@[::1]:4470"]
            neighbours = ["base-2@127.0.0.1:4462"]
            capacity = 50
        "#;
        let config: ServeConfig = toml::from_str(file).unwrap();
        assert_eq!(config.level.0, Level::ENH1);
        assert_eq!(config.join.last().unwrap().to_string(), "origin@[::1]:4470");
        let node = config.node(config.listen, 7);
        assert_eq!((node.guests.sessions, node.offer, node.since), (200, Some(vec![Layer::ENH1]), 7));
        assert_eq!((node.autonomy.capacity, node.autonomy.bottom_line), (50, 5));
        assert_eq!((node.join.len(), node.neighbours.len()), (2, 1));
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<ServeConfig>(&written).unwrap(), config);
    }

    #[test]
    fn the_level_decides_what_is_offered_unless_told_otherwise() {
        let at = |level: &str| ServeConfig { level: level.parse().unwrap(), ..ServeConfig::default() };
        let offer = |level: &str| at(level).node(at(level).listen, 0).offer;
        assert_eq!((offer("origin"), offer("base")), (None, Some(vec![Layer::BASE])));
        assert_eq!(at("enh2").peer().unwrap().to_string(), "enh2");
        assert!("top".parse::<LevelName>().is_err() && "nowhere".parse::<DoorName>().is_err());
        assert!(toml::from_str::<ServeConfig>("colour = 'red'").is_err());
    }

    #[test]
    fn nonsense_is_refused_before_anything_listens() {
        let config = ServeConfig { signal_ms: 400, ..ServeConfig::default() };
        assert_eq!(config.check(), Err(ConfigError::Signals { signal_ms: 400, dead_ms: 400 }));
        let anywhere: SocketAddr = "0.0.0.0:4460".parse().unwrap();
        let mut config = ServeConfig { listen: anywhere, ..ServeConfig::default() };
        assert_eq!(config.check(), Ok(()), "an origin alone is found by who knows its address");
        config.join = vec!["127.0.0.1:1".parse().unwrap()];
        assert_eq!(config.check(), Err(ConfigError::Nowhere(anywhere)));
        config.advertise = Some("127.0.0.1:4460".parse().unwrap());
        assert_eq!(config.check(), Ok(()));
    }
}
