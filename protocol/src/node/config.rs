//! What a node is told when it starts.

use crate::guests::GuestLimits;
use crate::message::{LayerSources, NodeAddress};
use media::{Layer, Span};
use std::net::SocketAddr;

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// How many connections, sessions and requests are let in.
    pub guests: GuestLimits,
    /// The layers that are given to others; none named means all that are held.
    pub offer: Option<Vec<Layer>>,
    /// For each layer, who serves it, in the order to be tried. Where this node
    /// offers a layer and is not named for it, it stands first.
    pub sources: Vec<LayerSources>,
    /// The node that takes over if this one dies.
    pub backup: Option<NodeAddress>,
    /// The address that others are told to find this node at; none means the
    /// one at which the asker found it.
    pub advertise: Option<SocketAddr>,
    /// The most titles that are listed. Default 1000, the most a message holds.
    pub max_titles: usize,
    /// How long open requests may go on after the order to stop. Default 5 s.
    pub drain: Span,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            guests: GuestLimits::default(),
            offer: None,
            sources: Vec::new(),
            backup: None,
            advertise: None,
            max_titles: crate::message::MAX_TITLES,
            drain: Span::from_secs(5),
        }
    }
}

impl NodeConfig {
    /// Whether the layer is given to others, if it is held.
    pub fn offers(&self, layer: Layer) -> bool {
        self.offer.as_ref().is_none_or(|layers| layers.contains(&layer))
    }
}
