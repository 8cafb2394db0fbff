//! The settings of `lamina serve`, from flags and a TOML file alike.

use media::{BitRate, ByClass, ByteCount, Layer, Span, TitleClass};
use protocol::node::autonomy::AutonomyConfig;
use protocol::node::classes::Hold;
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
#[allow(clippy::struct_excessive_bools, reason = "each one is a rule that can be switched")]
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
    /// For each class of titles, how many viewings of it there may be at once
    /// (`T_k`), backups not counted; none: no threshold.
    pub thresholds: ByClass<Option<u64>>,
    /// Whether the thresholds do not hold for VIPs. Default no.
    pub vip_exempt: bool,
    /// Bits a second that all deliveries may take of the link to the viewers, at
    /// the mean rates of their layers. Default 0: no bound.
    pub link_rate: u64,
    /// To how many further nodes a viewer is sent whom a Base node refused, the
    /// origin included; 0 to 255. Default 2.
    pub redirects: u8,
    /// Whether a viewer to whom enhancements are refused for want of room may
    /// begin with the layers below them. Default yes.
    pub downgrade: bool,
    /// With how many hundredths of the wanted layers a viewer who begins is
    /// content. 0 to 100, default 0: Base is enough.
    pub beta: u8,
    /// Whether the bottom line also refuses viewers, and not only backups, though
    /// slots are free. Default yes.
    pub bottom_line_for_primaries: bool,
    /// Whether a backup may have to leave for a viewer who has not begun to watch.
    /// Default yes.
    pub new_may_displace_backups: bool,
    /// Bytes of titles that the node stores at most. Default 100 GB.
    pub storage: u64,
    /// Bytes of titles that a Base node fetches from the origin's archive while
    /// they are watched and were not placed there, and keeps; the least important
    /// class leaves first. Default 0: it fetches none.
    pub store_limit: u64,
    /// The origin whose archive that is, as `NAME@ADDRESS:PORT` or `ADDRESS:PORT`;
    /// none named means one that is heard of in the network.
    pub archive: Option<DoorName>,
    /// Bits a second that what is fetched may take of the link to the archive.
    /// Default 0: no bound.
    pub origin_rate: u64,
    /// For how long a title takes its mean rate of that link: `download` until it
    /// is here, `session` as long as the viewing lasts for which it is fetched.
    /// Default `download`.
    pub origin_hold: Hold,
    /// Whether what is fetched is watched only once it is whole; viewers are told so
    /// and wait. Default no.
    pub archive_first: bool,
    /// How many requests of one session may be open. 1 to 64, default 64.
    pub requests: usize,
    /// What a viewer may be sent of a layer, in hundredths of the rate of the
    /// layer's busiest stretch; who asks for more waits. 100 or more, default
    /// 150; 0: no bound.
    pub slot_rate: u64,
    /// How much programme a viewer may be sent at once, in milliseconds: the
    /// largest buffer of a viewer. Default 4000.
    pub slot_burst_ms: u64,
    /// Ts: between two survival signals, in milliseconds. Default 100.
    pub signal_ms: u64,
    /// Td: a neighbour silent for so long is dead, in milliseconds; more than
    /// `signal_ms`. Default 400.
    pub dead_ms: u64,
    /// How long a user who says nothing is served, in milliseconds. Default
    /// 10000.
    pub lease_ms: u64,
    /// After how many milliseconds a viewer who has paused gives its slot back.
    /// Default 60000; 0: never.
    pub pause_ms: u64,
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
            thresholds: ByClass::default(),
            vip_exempt: network.vip_exempt,
            link_rate: 0,
            redirects: network.redirects.unwrap_or(u8::MAX),
            downgrade: true,
            beta: 0,
            bottom_line_for_primaries: network.bottom_line_for_primaries,
            new_may_displace_backups: network.new_may_displace_backups,
            storage: network.storage.0,
            store_limit: 0,
            archive: None,
            origin_rate: 0,
            origin_hold: network.origin_hold,
            archive_first: false,
            requests: guests.requests,
            slot_rate: 150,
            slot_burst_ms: 4000,
            signal_ms: network.signal_every.as_millis(),
            dead_ms: network.dead_after.as_millis(),
            lease_ms: network.lease.map_or(0, Span::as_millis),
            pause_ms: 60_000,
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
        let off = self.slot_rate == 0;
        if !off && (self.slot_rate < 100 || self.slot_burst_ms == 0) {
            let (slot_rate, slot_burst_ms) = (self.slot_rate, self.slot_burst_ms);
            return Err(ConfigError::Slot { slot_rate, slot_burst_ms });
        }
        if self.beta > 100 {
            return Err(ConfigError::Beta(self.beta));
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
            thresholds: ByClass::of(|class| self.thresholds[class].unwrap_or(u64::MAX)),
            vip_exempt: self.vip_exempt,
            link_rate: BitRate(if self.link_rate == 0 { u64::MAX } else { self.link_rate }),
            store_limit: ByteCount(self.store_limit),
            origin_rate: BitRate(if self.origin_rate == 0 { u64::MAX } else { self.origin_rate }),
            origin_hold: self.origin_hold,
            redirects: Some(self.redirects),
            bottom_line_for_primaries: self.bottom_line_for_primaries,
            new_may_displace_backups: self.new_may_displace_backups,
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
            slot_rate: self.slot_rate,
            slot_burst: Span::from_millis(self.slot_burst_ms),
            downgrade: self.downgrade,
            beta: self.beta,
            pause: Span::from_millis(self.pause_ms),
            archive: self.archive.map(|door| door.0),
            archive_first: self.archive_first,
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
    /// No viewer could play on.
    #[error("a slot of {slot_rate} hundredths of a layer's rate, and {slot_burst_ms} ms of it at once")]
    Slot {
        /// Hundredths of the nominal rate.
        slot_rate: u64,
        /// The burst.
        slot_burst_ms: u64,
    },
    /// Nobody is content with more than everything.
    #[error("a beta of {0} hundredths: 0 to 100 makes sense")]
    Beta(u8),
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

/// A threshold of a class, written `CLASS=VIEWINGS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The class.
    pub class: TitleClass,
    /// How many viewings there may be.
    pub viewings: u64,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let (class, viewings) = text.split_once('=').ok_or(ThresholdError)?;
        let class = class.parse().map_err(|_| ThresholdError)?;
        let viewings = viewings.parse().map_err(|_| ThresholdError)?;
        Ok(Self { class, viewings })
    }
}

/// A text that says nothing about viewings of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a threshold is written CLASS=VIEWINGS, such as ad-hoc=10; classes are archived, first-time, ad-hoc")]
pub struct ThresholdError;

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
            [thresholds]
            ad-hoc = 10
        "#;
        let config: ServeConfig = toml::from_str(file).unwrap();
        assert_eq!(config.level.0, Level::ENH1);
        assert_eq!(config.join.last().unwrap().to_string(), "origin@[::1]:4470");
        let node = config.node(config.listen, 7);
        assert_eq!((node.guests.sessions, node.offer, node.since), (200, Some(vec![Layer::ENH1]), 7));
        assert_eq!((node.autonomy.capacity, node.autonomy.bottom_line), (50, 5));
        let thresholds = node.autonomy.thresholds;
        assert_eq!((thresholds.ad_hoc, thresholds.archived), (10, u64::MAX));
        let named = |text: &str| text.parse::<Threshold>();
        assert_eq!(named("ad-hoc=10").unwrap(), Threshold { class: TitleClass::AdHoc, viewings: 10 });
        assert!(named("ad-hoc").is_err() && named("new=1").is_err() && named("ad-hoc=-1").is_err());
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
        let slow = |slot_rate| ServeConfig { slot_rate, ..ServeConfig::default() }.check();
        assert_eq!(slow(99), Err(ConfigError::Slot { slot_rate: 99, slot_burst_ms: 4000 }));
        assert_eq!((slow(0), slow(100)), (Ok(()), Ok(())), "none at all is no bound");
        let anywhere: SocketAddr = "0.0.0.0:4460".parse().unwrap();
        let mut config = ServeConfig { listen: anywhere, ..ServeConfig::default() };
        assert_eq!(config.check(), Ok(()), "an origin alone is found by who knows its address");
        config.join = vec!["127.0.0.1:1".parse().unwrap()];
        assert_eq!(config.check(), Err(ConfigError::Nowhere(anywhere)));
        config.advertise = Some("127.0.0.1:4460".parse().unwrap());
        assert_eq!(config.check(), Ok(()));
    }
}
