//! What a node is told when it starts.

use super::autonomy::{AutonomyConfig, Level};
use super::mesh::Door;
use crate::guests::GuestLimits;
use crate::message::NodeAddress;
use media::{Layer, Span, TitleName};
use std::net::{Ipv4Addr, SocketAddr};

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where it stands.
    pub level: Level,
    /// The address at which others find it.
    pub address: SocketAddr,
    /// When it started, in milliseconds of the Unix epoch: it tells one life of
    /// a node from the next.
    pub since: u64,
    /// Nodes through which it joins the network; one is enough.
    pub join: Vec<Door>,
    /// Its neighbours, if they are not to be chosen by the node itself.
    pub neighbours: Vec<NodeAddress>,
    /// With how many nodes of the next level a node links itself: 3 at the edge,
    /// as in the evaluation of ADVODS, and 2 further in.
    pub links: usize,
    /// Between two dials of one node. Default 500 ms.
    pub redial: Span,
    /// Between two dials of a neighbour that is thought dead, and may have started
    /// anew or only be cut off. Default 2 s.
    pub recall: Span,
    /// How many connections, sessions and requests are let in. The sessions are
    /// a bound of the machine; who is served is decided by `autonomy.capacity`.
    pub guests: GuestLimits,
    /// The layers that are given to others; none named means all that are held.
    pub offer: Option<Vec<Layer>>,
    /// Whether an origin publishes every title that it holds, and with how many
    /// copies for each level; 0: whoever is willing. None: only by order.
    pub publish: Option<u16>,
    /// Titles that were withdrawn by order in an earlier life of the node: it does
    /// not publish them by itself.
    pub withdrawn: Vec<TitleName>,
    /// How long a search for a node may take. Default 2 s.
    pub seek_wait: Span,
    /// How long a viewer whose Base node is found waits to hear of the nodes of
    /// its enhancements. Default 300 ms.
    pub opening_wait: Span,
    /// A user of whom nothing was heard for so long, but who asks for chunks, is
    /// taken to be where it asks. Default 2 s.
    pub quiet: Span,
    /// What a viewer may be sent of a layer, in hundredths of the layer's nominal
    /// rate: that of its busiest stretch of `slot_burst`. Who asks for more waits.
    /// 100 or more; 0: no bound. Default 150.
    pub slot_rate: u64,
    /// How much programme a viewer may be sent at once: the largest buffer of a
    /// viewer. More than nothing, default 4 s.
    pub slot_burst: Span,
    /// Whether a viewer to whom some enhancements are refused for want of room may
    /// begin with the layers below them. Default on.
    pub downgrade: bool,
    /// With how much of what it wants a viewer is content who has not begun to
    /// watch, in hundredths: with q of Q layers if q is at least beta times Q
    /// (Wakamiya et al.). 0 to 100, default 0: Base is enough.
    pub beta: u8,
    /// A viewer who has paused for so long gives its slot back, and is let in again
    /// as one who has begun when it plays on. Default 60 s; nothing: never.
    pub pause: Span,
    /// The origin whose archive is asked for titles that were not placed here, if
    /// it is none that is heard of in the network.
    pub archive: Option<Door>,
    /// Whether a title from the archive is given out only once all of it is here;
    /// who asks before is told that it comes. Default off: while it comes.
    pub archive_first: bool,
    /// The rules of the network.
    pub autonomy: AutonomyConfig,
    /// The most titles that are listed. Default 1000, the most a message holds.
    pub max_titles: usize,
    /// How long open requests may go on after the order to stop. Default 5 s.
    pub drain: Span,
}

impl NodeConfig {
    /// The defaults of a node of this level.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            since: 0,
            join: Vec::new(),
            neighbours: Vec::new(),
            links: if level == Level::BASE { 3 } else { 2 },
            redial: Span::from_millis(500),
            recall: Span::from_secs(2),
            guests: GuestLimits::default(),
            offer: None,
            publish: None,
            withdrawn: Vec::new(),
            seek_wait: Span::from_secs(2),
            opening_wait: Span::from_millis(300),
            quiet: Span::from_secs(2),
            slot_rate: 150,
            slot_burst: Span::from_secs(4),
            downgrade: true,
            beta: 0,
            pause: Span::from_secs(60),
            archive: None,
            archive_first: false,
            autonomy: AutonomyConfig::production(),
            max_titles: crate::message::MAX_TITLES,
            drain: Span::from_secs(5),
        }
    }

    /// Slots that may be in use at a time: one for each layer of every session.
    pub(super) fn most_slots(&self) -> usize {
        self.guests.sessions.saturating_mul(media::layer::MAX_LAYERS)
    }

    /// Whether the layer is given to others, if it is held.
    pub fn offers(&self, layer: Layer) -> bool {
        self.offer.as_ref().is_none_or(|layers| layers.contains(&layer))
    }
}
