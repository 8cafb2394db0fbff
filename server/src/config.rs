//! The settings of `lamina serve`, from flags and a TOML file alike.

use media::{Layer, Span};
use protocol::node::NodeConfig;
use protocol::{GuestLimits, LayerSources, NodeAddress, PeerId};
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
    /// The address that others are told, if it is not the one they came by.
    pub advertise: Option<SocketAddr>,
    /// Where the node stands in the network. Default `origin`.
    pub level: Level,
    /// The folder with the titles. Default `library`.
    pub library: PathBuf,
    /// The layers given to others; none named means those of the level: all for
    /// an origin, one for the others.
    pub offer: Option<Vec<LayerName>>,
    /// How many sessions there may be. Default 200.
    pub capacity: usize,
    /// How many requests of one session may be open. 1 to 64, default 64.
    pub requests: usize,
    /// Who serves which layer, in the order to be tried.
    pub sources: Vec<LayerSource>,
    /// The node that takes over if this one dies, as `NAME@ADDRESS:PORT`.
    #[serde(with = "as_text")]
    pub backup: Option<NodeAddress>,
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
        let guests = GuestLimits::default();
        Self {
            peer: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            level: Level::Origin,
            library: PathBuf::from("library"),
            offer: None,
            capacity: guests.sessions,
            requests: guests.requests,
            sources: Vec::new(),
            backup: None,
            keys: None,
            cache_bytes: 64 * 1024 * 1024,
            drain_ms: 5000,
        }
    }
}

impl ServeConfig {
    /// The node's name: the one given or that of its level.
    pub fn peer(&self) -> Option<PeerId> {
        self.peer.or_else(|| self.level.to_string().parse().ok())
    }

    /// What the machine needs of it.
    pub(crate) fn node(&self) -> NodeConfig {
        let offer = match (&self.offer, self.level) {
            (Some(layers), _) => Some(layers.iter().map(|layer| layer.0).collect()),
            (None, Level::Origin) => None,
            (None, Level::Layer(layer)) => Some(vec![layer]),
        };
        let guests =
            GuestLimits { sessions: self.capacity, requests: self.requests, ..GuestLimits::default() };
        NodeConfig {
            guests,
            offer,
            sources: by_layer(&self.sources),
            backup: self.backup,
            advertise: self.advertise,
            drain: Span::from_millis(self.drain_ms),
            ..NodeConfig::default()
        }
    }
}

/// Gathers the nodes of each layer, in their order.
fn by_layer(sources: &[LayerSource]) -> Vec<LayerSources> {
    let mut gathered: Vec<LayerSources> = Vec::new();
    for source in sources {
        match gathered.iter_mut().find(|layer| layer.layer == source.layer) {
            Some(layer) => layer.nodes.push(source.node),
            None => gathered.push(LayerSources { layer: source.layer, nodes: vec![source.node] }),
        }
    }
    gathered
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Has everything.
    Origin,
    /// Serves this layer.
    Layer(Layer),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin => f.write_str("origin"),
            Self::Layer(layer) => layer.fmt(f),
        }
    }
}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        match text {
            "origin" => Ok(Self::Origin),
            _ => text.parse().map(Self::Layer).map_err(|_| LevelError),
        }
    }
}

/// A text that names no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `origin`, `base`, `enh1`, `enh2` and so on")]
pub struct LevelError;

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

/// A node that serves a layer, written `enh1=enh1-2@127.0.0.1:4461`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSource {
    /// The layer.
    pub layer: Layer,
    /// The node.
    pub node: NodeAddress,
}

impl fmt::Display for LayerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.layer, self.node)
    }
}

impl FromStr for LayerSource {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (layer, node) = text.split_once('=').ok_or(SourceError)?;
        let layer = layer.parse().map_err(|_| SourceError)?;
        let node = node.parse().map_err(|_| SourceError)?;
        Ok(Self { layer, node })
    }
}

/// A text that names no source of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a source is written LAYER=NAME@ADDRESS:PORT, such as enh1=enh1-2@127.0.0.1:4461")]
pub struct SourceError;

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
text_in_files!(Level, LayerName, LayerSource);

/// An optional value that is one text in a file.
mod as_text {
    use super::{Deserialize, Deserializer, FromStr, Serialize, Serializer, fmt};
    use serde::de::Error as _;

    #[allow(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer, T: fmt::Display>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(ToString::to_string).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

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
            sources = ["enh1=enh1-1@127.0.0.1:4460", "enh1=origin@[::1]:4470"]
            backup = "base-2@127.0.0.1:4462"
        "#;
        let config: ServeConfig = toml::from_str(file).unwrap();
        assert_eq!(config.level, Level::Layer(Layer::ENH1));
        assert_eq!(config.backup.unwrap().to_string(), "base-2@127.0.0.1:4462");
        assert_eq!(config.sources.last().unwrap().to_string(), "enh1=origin@[::1]:4470");
        let node = config.node();
        assert_eq!((node.guests.sessions, node.offer), (200, Some(vec![Layer::ENH1])));
        assert_eq!(node.sources.len(), 1);
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<ServeConfig>(&written).unwrap(), config);
    }

    #[test]
    fn the_level_decides_what_is_offered_unless_told_otherwise() {
        let at = |level: &str| ServeConfig { level: level.parse().unwrap(), ..ServeConfig::default() };
        assert_eq!(at("origin").node().offer, None);
        assert_eq!(at("base").node().offer, Some(vec![Layer::BASE]));
        assert_eq!(at("enh2").peer().unwrap().to_string(), "enh2");
        assert_eq!("top".parse::<Level>(), Err(LevelError));
        assert_eq!("enh1=origin".parse::<LayerSource>(), Err(SourceError));
        assert!(toml::from_str::<ServeConfig>("colour = 'red'").is_err());
    }
}
