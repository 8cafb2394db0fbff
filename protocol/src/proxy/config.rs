//! What a proxy is told when it starts.

use super::cooperation::CooperationConfig;
use super::insistence::Insistence;
use crate::guests::GuestLimits;
use crate::message::NodeAddress;
use crate::peer::PeerId;
use crate::quality::StepConfig;
use crate::service::Hedge;
use media::{ByteCount, Quality, Span};
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
    /// Other proxies: asked for what they hold, and told to clients, who turn to them
    /// if this one dies.
    pub peers: Vec<NodeAddress>,
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
    /// What is asked of a server at once before it was measured what its line carries,
    /// and by how much more with each byte that came: then it is what that carries in
    /// a round trip. Base that a client waits for stands behind no enhancement.
    /// Default 32 KiB.
    pub first_window: ByteCount,
    /// How much is asked for beyond a round trip, so that a line does not fall idle.
    /// Default 100 ms.
    pub ahead_of_line: Span,
    /// How long a source that did not deliver is asked last: each try costs the
    /// time it takes to find out. Default 5 s.
    pub avoid_silent: Span,
    /// How long a source that delivered wrong bytes is asked last. Default 60 s.
    pub avoid_liar: Span,
    /// How long open requests may go on after the order to stop. Default 5 s.
    pub drain: Span,
    /// A node not heard for this long is asked whether it is there, and then each
    /// time this passes. Default 100 ms.
    pub probe_every: Span,
    /// A node that answered nothing for this long is silent. Default 400 ms.
    pub silent_after: Span,
    /// From one dial of a lost or silent node to the next. Default 1 s.
    pub redial_every: Span,
    /// How long a client that was lost may take to come back; until then it keeps
    /// its place in the network. Default 10 s.
    pub lease: Span,
    /// From one report of a client to its Base node to the next. Default 1 s.
    pub report_every: Span,
    /// How long it has to answer, at least, before a backup's word is taken for
    /// it. Default 100 ms.
    pub doubt: Span,
    /// The pause before a node that does not serve a client yet is asked again.
    /// Default 100 ms.
    pub ask_again: Span,
    /// How long nobody may serve a client before service is sought anew.
    /// Default 900 ms.
    pub repull_after: Span,
    /// How long one door has to find service. Default 3 s.
    pub seek_patience: Span,
    /// The pause once every door was tried in vain. Default 500 ms.
    pub seek_pause: Span,
    /// How long a chunk of Base waits for somebody to serve it. Default 10 s.
    pub base_patience: Span,
    /// The same for an enhancement. Default 1 s.
    pub enhancement_patience: Span,
    /// How proxies cooperate, and what is kept.
    pub cooperation: CooperationConfig,
    /// How much clients insist on what they ask for, by class.
    pub insistence: Insistence,
    /// When a VIP's chunk of Base is asked of the standby too.
    pub hedge: Hedge,
    /// When a client's quality steps down and up.
    pub step: StepConfig,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            guests: GuestLimits::default(),
            upstream: Vec::new(),
            peers: Vec::new(),
            top: Quality(u8::MAX),
            advertise: None,
            max_titles: 64,
            fresh: Span::from_secs(10),
            max_fills: 256,
            max_fill_bytes: 256 * 1024 * 1024,
            first_window: ByteCount(32 * 1024),
            ahead_of_line: Span::from_millis(100),
            avoid_silent: Span::from_secs(5),
            avoid_liar: Span::from_secs(60),
            drain: Span::from_secs(5),
            probe_every: Span::from_millis(100),
            silent_after: Span::from_millis(400),
            redial_every: Span::from_secs(1),
            lease: Span::from_secs(10),
            report_every: Span::from_secs(1),
            doubt: Span::from_millis(100),
            ask_again: Span::from_millis(100),
            repull_after: Span::from_millis(900),
            seek_patience: Span::from_secs(3),
            seek_pause: Span::from_millis(500),
            base_patience: Span::from_secs(10),
            enhancement_patience: Span::from_secs(1),
            cooperation: CooperationConfig::production(ByteCount(256 * 1024 * 1024)),
            insistence: Insistence::default(),
            hedge: Hedge::default(),
            step: StepConfig::default(),
        }
    }
}
