//! A viewing in virtual time: the machines of nodes and players that run in
//! production, over the lines of the testbed's relay ([`Pipe`]), with the chunks of a
//! real title as lengths. What the testbed plays with processes is played here again,
//! to see whether both say the same.
//!
//! What is modelled is what lies between the machines: a dial takes two round trips,
//! chunks come in datagrams, by priority within a connection and within a window that
//! follows the line; a picture is shown when its Base is there. Nothing is decoded, no
//! process starts, and nobody is slow.
//!
//! [`Pipe`]: crate::link::Pipe

mod call;
mod flow;
mod hear;
mod net;
mod picture;
mod seat;
mod town;

use crate::link::PipeShape;
use media::{ByteCount, Quality, Span, TitleName};
use protocol::node::ChunkLengths;
use protocol::player::TitleShape;
use protocol::{PeerId, Sla};
use std::sync::Arc;

/// What is watched: times and lengths.
#[derive(Clone, Debug)]
pub struct Title {
    /// Its name.
    pub name: TitleName,
    /// What players know of it.
    pub shape: Arc<TitleShape>,
    /// What nodes know of it.
    pub lengths: Arc<ChunkLengths>,
    /// What each layer takes on disk, Base first.
    pub sizes: Vec<ByteCount>,
    /// Of its manifest, in bytes.
    pub manifest_length: u64,
}

impl Title {
    /// A title of these chunks; `manifest_length` in bytes.
    pub fn new(name: TitleName, shape: TitleShape, manifest_length: u64) -> Self {
        let layers = usize::from(shape.layers);
        let lengths_of = |layer: usize| -> Vec<ByteCount> {
            shape.blocks.iter().map(|block| block.lengths.get(layer).copied().unwrap_or_default()).collect()
        };
        let lengths: Vec<Vec<ByteCount>> = (0..layers).map(lengths_of).collect();
        let sizes = lengths.iter().map(|layer| layer.iter().fold(ByteCount(0), |sum, one| sum + *one));
        let durations = shape.blocks.iter().map(|block| block.duration).collect();
        Self {
            name,
            sizes: sizes.collect(),
            lengths: Arc::new(ChunkLengths::new(durations, lengths)),
            shape: Arc::new(shape),
            manifest_length,
        }
    }
}

/// Somebody who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The class of the contract.
    pub sla: Sla,
    /// The best quality wanted.
    pub quality: Quality,
    /// The node at which it knocks.
    pub at: PeerId,
    /// When it comes, counted from the moment the network stands.
    pub comes: Span,
}

/// Whom a death strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The node of this name.
    Named(PeerId),
    /// The Base node that most take Base from; of equal ones the first.
    Serving,
}

/// What is played.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is watched.
    pub title: Title,
    /// Nodes of each level, Base first.
    pub nodes: Vec<u8>,
    /// Whether the origin gives the topmost layer to viewers too.
    pub origin_has_top: bool,
    /// The most programme ahead of the picture.
    pub buffer: Span,
    /// From the moment the network stands to the end.
    pub lasts: Span,
    /// One direction between any two nodes.
    pub between: PipeShape,
    /// One direction between a viewer and everybody.
    pub last_mile: PipeShape,
    /// Who watches.
    pub guests: Vec<Guest>,
    /// Who dies when.
    pub deaths: Vec<(Span, Whom)>,
    /// Decides whatever is decided by lot.
    pub seed: u64,
}

/// What a viewer saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// From the first picture to the end.
    pub watched: Span,
    /// How long the picture stood.
    pub frozen: Span,
    /// How often.
    pub freezes: u64,
    /// Layers shown over layers wanted, by programme.
    pub quality: f64,
    /// For each time that Base came from somebody else: since the old node was heard
    /// last.
    pub recoveries: Vec<Span>,
    /// Since when that was known then.
    pub verdicts: Vec<Span>,
    /// From its coming to its first picture; nothing if there was none.
    pub startup: Option<Span>,
    /// What lay in its buffer when the node died that served it.
    pub struck_with: Option<Span>,
}

/// Plays it. The same plan gives the same.
pub fn run(plan: &Plan) -> Vec<Seen> {
    net::Net::new(plan).run(plan)
}

#[cfg(test)]
mod tests;
