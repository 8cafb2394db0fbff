//! The settings of `lamina proxy`, from flags and a TOML file alike.

use media::{Quality, Span};
use protocol::proxy::Upstream;
use protocol::{GuestLimits, NodeAddress, PeerId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// What a proxy is told when it starts. All but `upstream` have a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The most layers given to anybody; none means no limit.
    pub max_layers: Option<u8>,
    /// Bytes of chunks kept in memory. Default 256 MiB.
    pub cache_bytes: u64,
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
            max_layers: None,
            cache_bytes: 256 * 1024 * 1024,
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

    /// What the machine needs of it.
    pub(crate) fn machine(&self) -> protocol::proxy::ProxyConfig {
        let guests =
            GuestLimits { sessions: self.capacity, requests: self.requests, ..GuestLimits::default() };
        protocol::proxy::ProxyConfig {
            guests,
            upstream: self.upstream.iter().map(|flag| flag.0).collect(),
            top: Quality(self.max_layers.unwrap_or(u8::MAX)),
            advertise: self.advertise,
            drain: Span::from_millis(self.drain_ms),
            ..protocol::proxy::ProxyConfig::default()
        }
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
            max_layers = 1
        "#;
        let config: ProxyConfig = toml::from_str(file).unwrap();
        let written: Vec<String> = config.upstream.iter().map(ToString::to_string).collect();
        assert_eq!(written, ["base-1@127.0.0.1:4460", "[::1]:4461"]);
        assert_eq!(config.machine().top, Quality::BRONZE);
        assert_eq!(toml::from_str::<ProxyConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        assert_eq!("base-1@nowhere".parse::<UpstreamFlag>(), Err(UpstreamFlagError));
        assert_eq!("nowhere".parse::<UpstreamFlag>(), Err(UpstreamFlagError));
    }
}
