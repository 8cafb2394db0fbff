//! What peers say to each other.
//!
//! One control stream per connection carries [`Message`]s, each framed as a
//! 32-bit big-endian length and a postcard body. Every chunk and manifest has a
//! bidirectional stream of its own: a [`StreamRequest`] goes out, a
//! [`StreamReply`] comes back, and the payload follows a granted one.
//! Variants are only ever added at the end, since their number is their name.

mod stream;

pub use stream::{ChunkRequest, Part, StreamReply, StreamRequest};

use crate::node::autonomy::{AgentMessage, Level, UserId};
use crate::peer::PeerId;
use crate::proxy::{Query, Reply};
use crate::status::{NodeStatus, ProxyStatus};
use crate::token::SignedToken;
use media::{Hash, Layer, Quality, Span, TitleName, TitleSummary};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The most nodes that are told that a user is served elsewhere.
pub const MAX_FORMER: usize = 2;

/// The version spoken here; another one is refused at [`Message::Hello`].
pub const PROTOCOL_VERSION: u16 = 5;
/// A chunk of Base is of use so long after its time, since without it nothing can be
/// shown at all: a request for one names its time and this.
pub const BASE_GRACE: Span = Span::from_secs(10);
/// The application protocol of the TLS handshake (RFC 7301).
pub const ALPN: &[u8] = b"lamina/1";
/// The longest framed message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// The longest framed request or reply on a chunk's stream in bytes.
pub const MAX_STREAM_HEADER_BYTES: usize = 1024;
/// The most titles in one list.
pub const MAX_TITLES: usize = 1000;
/// The most sources named for one layer, and the most other doors named.
pub const MAX_SOURCES: usize = 16;
/// The most nodes in one message about where nodes are.
pub const MAX_CONTACTS: usize = 512;

/// One message on the control stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The first message, both ways.
    Hello(Hello),
    /// "What can be watched here?"
    ListTitles,
    /// The answer, at most [`MAX_TITLES`] lines.
    Titles(Vec<TitleSummary>),
    /// "I want to watch this." Answered by `Opened` or `Refused`.
    Open(Open),
    /// "You may; here is who has it."
    Opened(Opened),
    /// "No, because"; `request` names the `Open` it answers.
    Refused {
        /// The number of the request that is answered.
        request: u32,
        /// The reason.
        why: Refusal,
    },
    /// The viewer is done with a session.
    Close(SessionId),
    /// "Are you alive?" Answered at once by [`Message::Alive`].
    Probe(u32),
    /// The answer to the probe of the same number.
    Alive(u32),
    /// "I am about to stop: finish what is open, ask others for the rest."
    Draining,
    /// Node to node: an agent, or a message about one.
    Agent(AgentMessage),
    /// Node to viewer: who takes over if this node dies. The viewer opens a
    /// quiet connection there at once, since nodes never dial viewers.
    BackupIs {
        /// The user, as the node numbers it.
        user: UserId,
        /// Where the backup is.
        backup: NodeAddress,
        /// Counts the nodes that have served the user.
        epoch: u64,
    },
    /// Backup to viewer: "I serve you from now on". Answered by
    /// [`Message::StillServed`] if the old node still delivers.
    DeliveryStart {
        /// The user.
        user: UserId,
        /// Played so far, as last reported.
        position: Span,
        /// The new epoch; an older one is over.
        epoch: u64,
    },
    /// Viewer to backup: "my old node still delivers".
    StillServed {
        /// The user.
        user: UserId,
        /// The epoch of the delivery start that this answers.
        epoch: u64,
    },
    /// Node to node: where nodes are, at most [`MAX_CONTACTS`] of them. What is
    /// news is passed on once.
    Contacts(Vec<Contact>),
    /// The answer to an [`Open`] that seeks, where another node serves Base: the
    /// viewer attaches itself there.
    Elsewhere {
        /// The number of the request that is answered.
        request: u32,
        /// The node that serves Base.
        base: NodeAddress,
        /// The epoch of that service.
        epoch: u64,
    },
    /// Base node to viewer: this layer comes from another node from now on, or
    /// from nobody.
    LayerAt {
        /// The user.
        user: UserId,
        /// The layer.
        layer: Layer,
        /// Who serves it.
        node: Option<NodeAddress>,
        /// In which epoch.
        epoch: u64,
    },
    /// Viewer to Base node, about once a second: how it stands. Renews its lease.
    Position {
        /// The user.
        user: UserId,
        /// Played so far.
        position: Span,
        /// In the buffer.
        buffer: Span,
        /// Whether the viewer has paused: who does for long gives its slot back.
        paused: bool,
    },
    /// Operator to origin: spread a title over the network. Answered by `Done`
    /// or `Refused`; how far it got stands in the status.
    Publish {
        /// A number by which the answer refers to this request.
        request: u32,
        /// The title.
        title: TitleName,
        /// How many copies each level must have; 0: whoever is willing.
        copies: u16,
        /// How much it is wanted, in thousandths of the most wanted one.
        popularity: u16,
    },
    /// Operator to origin: delete a title on all other nodes. Answered by `Done`
    /// or `Refused`.
    Unpublish {
        /// A number by which the answer refers to this request.
        request: u32,
        /// The title.
        title: TitleName,
    },
    /// An operator's order is being carried out.
    Done {
        /// The number of the request that is answered.
        request: u32,
    },
    /// "How do you stand?" Asked by operators and nodes.
    AskStatus,
    /// The answer.
    Status(Box<NodeStatus>),
    /// Node to node: "this is me; we are neighbours from now on", and send each
    /// other survival signals. Answered likewise.
    Neighbour(Contact),
    /// Proxy to proxy: "what do you have of these blocks? I shall want them".
    /// Answered by `Reply`.
    Query(Query),
    /// Proxy to proxy: what is held of the blocks that were asked about.
    Reply(Reply),
    /// A proxy's answer to `AskStatus`.
    ProxyStatus(Box<ProxyStatus>),
}

/// Who speaks, and in which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the speaker.
    pub version: u16,
    /// The speaker's name; that of nodes and proxies must be in its certificate.
    pub peer: PeerId,
    /// The speaker's part.
    pub role: Role,
}

/// The name in the certificate of whoever runs the network; no node has it.
pub const OPERATOR: &str = "operator";

/// The part somebody plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Watches. Shows no certificate.
    Viewer,
    /// Stores layers and serves them.
    Node,
    /// Caches chunks and filters them per client.
    Proxy,
    /// Runs the network: publishes titles and asks how nodes stand.
    Operator,
}

/// A request to watch a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// A number by which the answer refers to this request.
    pub request: u32,
    /// The title.
    pub title: TitleName,
    /// The best quality the viewer wants.
    pub quality: Quality,
    /// Who watches: a number drawn by lot for each viewing. Whoever knows it
    /// can speak for the user, so it is told to nobody but nodes.
    pub user: UserId,
    /// What the viewer wants of this node.
    pub visit: Visit,
    /// What the viewer was promised; none means a normal user.
    pub token: Option<SignedToken>,
    /// Who served a user that seeks anew, and who stood behind it and may have
    /// taken over by now: they are told that somebody else serves it. At most
    /// [`MAX_FORMER`] are.
    pub former: Vec<PeerId>,
}

impl Open {
    /// A request of a user who shows no token.
    pub fn new(request: u32, title: TitleName, quality: Quality, user: UserId, visit: Visit) -> Self {
        Self { request, title, quality, user, visit, token: None, former: Vec::new() }
    }
}

/// What somebody who opens a title wants of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visit {
    /// "Find me nodes": the search for service begins here. Answered by
    /// `Opened` if this node serves Base, by `Elsewhere` if another one does.
    Seek(Progress),
    /// "I was sent here": to a node that serves a layer, or stands by. Chunks
    /// are granted as long as the node serves the user, or holds a slot ready.
    Attach,
    /// A node copies a layer. No slot is taken; members only.
    Copy,
}

/// How far a viewer is who seeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether it has begun to watch already, served by another node.
    pub started: bool,
    /// The highest epoch it has heard of; 0 for none.
    pub epoch: u64,
    /// Played so far.
    pub position: Span,
    /// The size of its buffer.
    pub buffer: Span,
}

/// Where a node is to be found, at which level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Its name and address.
    pub node: NodeAddress,
    /// Its level.
    pub level: Level,
    /// When it started, in milliseconds of the Unix epoch by its own clock: of
    /// two contacts of one node the later start is right.
    pub since: u64,
}

/// A session, named by the node or proxy that granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// A granted session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The number of the request that is answered.
    pub request: u32,
    /// The session's name on the granting peer.
    pub session: SessionId,
    /// The best quality granted, at most the one asked for.
    pub quality: Quality,
    /// Length of the manifest in bytes.
    pub manifest_length: u64,
    /// BLAKE3 of the manifest.
    pub manifest_hash: Hash,
    /// For each layer, who serves it, in the order to be tried. Empty for
    /// somebody who attached to a node that does not serve its Base.
    pub sources: Vec<LayerSources>,
    /// The node that takes over if this one dies, if there is one already.
    pub backup: Option<NodeAddress>,
    /// Counts the nodes that have served the user; a later one is right.
    pub epoch: u64,
    /// Other nodes at which a search for service can begin, at most
    /// [`MAX_SOURCES`].
    pub doors: Vec<NodeAddress>,
}

/// Who serves a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSources {
    /// The layer.
    pub layer: Layer,
    /// At most [`MAX_SOURCES`] nodes, the first to be tried first.
    pub nodes: Vec<NodeAddress>,
}

/// Where a node is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeAddress {
    /// Its name, which its certificate must carry.
    pub peer: PeerId,
    /// Its address and UDP port.
    pub address: SocketAddr,
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.peer, self.address)
    }
}

impl FromStr for NodeAddress {
    type Err = NodeAddressError;

    fn from_str(text: &str) -> Result<Self, NodeAddressError> {
        let (peer, address) = text.split_once('@').ok_or(NodeAddressError)?;
        let peer = peer.parse().map_err(|_| NodeAddressError)?;
        let address = address.parse().map_err(|_| NodeAddressError)?;
        Ok(Self { peer, address })
    }
}

/// A text that says of no node where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a node is written NAME@ADDRESS:PORT, such as base-1@127.0.0.1:4460")]
pub struct NodeAddressError;

/// Why somebody says no. Each refusal has one name, everywhere.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error,
)]
pub enum Refusal {
    /// The title is not known here.
    #[error("no such title")]
    NoSuchTitle,
    /// The title has no such block or layer.
    #[error("no such block or layer in the title")]
    NoSuchChunk,
    /// The layer exists but is not stored or not offered here.
    #[error("this layer is not offered here")]
    LayerNotOffered,
    /// The layer is above the quality granted to this viewer.
    #[error("above the quality granted to this viewer")]
    AboveQuality,
    /// Every session the node may serve is taken.
    #[error("all sessions are taken")]
    Full,
    /// The viewer has too many requests open at once.
    #[error("too many requests open at once")]
    TooManyRequests,
    /// The viewer asks for chunks without a session.
    #[error("no session is open for this title")]
    NoSession,
    /// The node is about to stop.
    #[error("the node is about to stop")]
    Draining,
    /// The node's own copy is damaged or cannot be read.
    #[error("the stored copy is damaged")]
    Damaged,
    /// A proxy could not get the chunk from any source in time.
    #[error("no source upstream could deliver it")]
    Upstream,
    /// The speaker uses another version of the protocol.
    #[error("another version of the protocol")]
    Version,
    /// What was said makes no sense at this point.
    #[error("the request makes no sense here")]
    Malformed,
    /// A node or proxy whose certificate does not carry the name it claims.
    #[error("the certificate does not carry the name that was claimed")]
    Identity,
    /// The node does not serve this viewer, or not yet.
    #[error("this viewer is not served here")]
    NotServing,
    /// The viewer's token is not one of this cluster, or has expired.
    #[error("the viewer's token is not valid here, or has expired")]
    Token,
    /// Only members of the cluster may ask for this.
    #[error("only members of the cluster may ask for this")]
    NotAllowed,
    /// Only an origin publishes titles.
    #[error("only an origin publishes titles")]
    NotOrigin,
    /// A search for nodes was not answered in time.
    #[error("the search for nodes was not answered in time")]
    SearchLost,
    /// A proxy leaves the layer out of this block: the viewer's line does not
    /// carry it.
    #[error("left out, since the line does not carry it")]
    Filtered,
    /// A proxy does not keep the chunk that another proxy asks for; it fetches
    /// nothing for others.
    #[error("not kept here")]
    NotHeld,
    /// As many titles of this class are watched as may be.
    #[error("as many titles of this class are being watched as the node allows")]
    Threshold,
    /// Few slots are free, and they are kept for who ranks higher.
    #[error("the last slots are kept for viewers who rank higher")]
    BottomLine,
    /// No slot is free, and no backup may leave for this viewer.
    #[error("no slot is free, and nobody may be moved for this viewer")]
    NothingToDisplace,
    /// The link to the viewers has no room.
    #[error("the link to the viewers is full")]
    ViewerLink,
    /// The link to the origin has no room.
    #[error("the link to the origin is full, and the title is not stored here")]
    OriginLink,
    /// The store has no room, and nothing in it may be deleted.
    #[error("the store is full of titles that are being watched")]
    Storage,
    /// The title is on its way from the origin's archive, and is given out once all
    /// of it is here. No fault: whoever asks waits and asks again.
    #[error("the title is being fetched from the archive, and can be watched once all of it is here")]
    Coming,
}
