//! What a proxy is told when it starts.

use crate::guests::GuestLimits;
use crate::message::NodeAddress;
use crate::peer::PeerId;
use media::{Quality, Span};
use serde::Serialize;
use std::net::SocketAddr;

/// A node to fetch from. Its name is checked against its certificate if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Upstream {
    /// Its name, if known.
    pub peer: Option<PeerId>,
    /// Its address and UDP port.
    pub address: SocketAddr,
}

impl From<NodeAddress> for Upstream {
    fn from(node: NodeAddress) -> Self {
        Self { peer: Some(node.peer), address: node.address }
    }
}

/// The settings of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// How many connections, sessions and requests are let in.
    pub guests: GuestLimits,
    /// The nodes that are asked what there is and who has it, in the order to
    /// be tried.
    pub upstream: Vec<Upstream>,
    /// The best quality given to anybody. Default: no limit.
    pub top: Quality,
    /// The address that clients are told to find the proxy at; none means the
    /// one at which the client found it.
    pub advertise: Option<SocketAddr>,
    /// The most titles known at once. Default 64.
    pub max_titles: usize,
    /// How long what was learnt about a title is not asked again. Default 10 s.
    pub fresh: Span,
    /// The most chunks being fetched at once. Default 256.
    pub max_fills: usize,
    /// The most bytes being fetched at once. Default 256 MiB.
    pub max_fill_bytes: u64,
    /// How long a source that did not deliver is asked last: each try costs the
    /// time it takes to find out. Default 5 s.
    pub avoid_silent: Span,
    /// How long a source that delivered wrong bytes is asked last. Default 60 s.
    pub avoid_liar: Span,
    /// How long open requests may go on after the order to stop. Default 5 s.
    pub drain: Span,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            guests: GuestLimits::default(),
            upstream: Vec::new(),
            top: Quality(u8::MAX),
            advertise: None,
            max_titles: 64,
            fresh: Span::from_secs(10),
            max_fills: 256,
            max_fill_bytes: 256 * 1024 * 1024,
            avoid_silent: Span::from_secs(5),
            avoid_liar: Span::from_secs(60),
            drain: Span::from_secs(5),
        }
    }
}
