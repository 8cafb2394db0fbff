//! What can go wrong between two peers, by name.

use media::ChunkError;
use protocol::frame::FrameError;
use protocol::{PeerId, Refusal};
use quinn::ConnectionError;
use std::io;
use std::net::SocketAddr;

/// TLS alerts (RFC 8446, section 6) that speak about a certificate.
const CERTIFICATE_ALERTS: [u64; 9] = [42, 43, 44, 45, 46, 48, 49, 51, 116];
/// The TLS alert for "no application protocol in common" (RFC 7301).
const ALPN_ALERT: u64 = 120;
/// Where TLS alerts begin among QUIC's error codes (RFC 9001, section 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// How a connection came to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClosedBy {
    /// One side did not believe the other's certificate.
    #[error("certificate refused: {0}")]
    Certificate(String),
    /// The other side does not speak this protocol.
    #[error("the other side speaks another protocol: {0}")]
    OtherProtocol(String),
    /// Nothing was heard for too long.
    #[error("nothing was heard for too long")]
    Silence,
    /// The peer lost all memory of the connection, as after a restart.
    #[error("the peer does not know the connection any more")]
    Forgotten,
    /// The peer closed it, with a code and a word.
    #[error("the peer closed the connection: {0}")]
    Peer(String),
    /// We closed it.
    #[error("the connection was closed here")]
    Here,
    /// One side broke the rules of QUIC.
    #[error("a QUIC error: {0}")]
    Quic(String),
}

impl From<ConnectionError> for ClosedBy {
    fn from(error: ConnectionError) -> Self {
        let told = error.to_string();
        let code = match &error {
            ConnectionError::TransportError(error) => u64::from(error.code),
            ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            ConnectionError::VersionMismatch => return Self::OtherProtocol(told),
            ConnectionError::ApplicationClosed(close) => {
                return Self::Peer(String::from_utf8_lossy(&close.reason).chars().take(80).collect());
            }
            ConnectionError::Reset => return Self::Forgotten,
            ConnectionError::TimedOut => return Self::Silence,
            ConnectionError::LocallyClosed => return Self::Here,
            ConnectionError::CidsExhausted => 0,
        };
        match code.checked_sub(CRYPTO_ERROR) {
            Some(alert) if CERTIFICATE_ALERTS.contains(&alert) => Self::Certificate(told),
            Some(ALPN_ALERT) => Self::OtherProtocol(told),
            _ => Self::Quic(told),
        }
    }
}

/// An endpoint that could not be made. Nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A certificate or key that TLS cannot use.
    #[error("the certificate or its key cannot be used: {0}")]
    Tls(String),
    /// A node or proxy without a certificate of its name.
    #[error("a node or proxy needs a certificate of its own name")]
    NoIdentity,
}

/// A connection that did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot reach {address}")]
pub struct DialError {
    /// The address that was dialled.
    pub address: SocketAddr,
    /// The reason.
    #[source]
    pub why: DialWhy,
}

/// Why a connection did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialWhy {
    /// Nobody answered in time.
    #[error("nobody answered in time")]
    Timeout,
    /// Its certificate is not from the expected authority, names somebody else,
    /// or ours was not believed there.
    #[error("certificate refused: {0}")]
    Certificate(String),
    /// It answers, but not with this protocol.
    #[error("another protocol: {0}")]
    OtherProtocol(String),
    /// It introduced itself as somebody its certificate does not name.
    #[error("it calls itself {0}, which is not who was dialled or not in its certificate")]
    Claim(PeerId),
    /// It said no.
    #[error("refused: {0}")]
    Refused(#[source] Refusal),
    /// It said something that makes no sense.
    #[error("it does not introduce itself")]
    Misspoke(#[source] LinkError),
    /// The connection broke.
    #[error(transparent)]
    Lost(ClosedBy),
    /// The address cannot be dialled from here.
    #[error("the address cannot be dialled: {0}")]
    Address(String),
}

impl From<ClosedBy> for DialWhy {
    fn from(closed: ClosedBy) -> Self {
        match closed {
            ClosedBy::Certificate(why) => Self::Certificate(why),
            ClosedBy::OtherProtocol(why) => Self::OtherProtocol(why),
            ClosedBy::Silence => Self::Timeout,
            ClosedBy::Forgotten | ClosedBy::Peer(_) | ClosedBy::Here | ClosedBy::Quic(_) => {
                Self::Lost(closed)
            }
        }
    }
}

impl From<LinkError> for DialWhy {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Lost(closed) => closed.into(),
            LinkError::Frame(_) | LinkError::CutShort | LinkError::Reset | LinkError::Timeout => {
                Self::Misspoke(error)
            }
        }
    }
}

/// An arrival that did not become a connection. The peer was told, if it could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// It did not introduce itself in time.
    #[error("it did not introduce itself in time")]
    Timeout,
    /// The handshake or the connection broke.
    #[error(transparent)]
    Lost(ClosedBy),
    /// It claims a name that its certificate does not carry.
    #[error("it calls itself {0} without a certificate of that name")]
    Claim(PeerId),
    /// Its first words make no sense.
    #[error("it does not introduce itself")]
    Misspoke(#[source] LinkError),
}

/// What ends a control stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The peer sent bytes that are no message.
    #[error("the peer broke the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The stream ended in the middle of a message.
    #[error("the stream ended inside a message")]
    CutShort,
    /// The peer gave the stream up.
    #[error("the peer gave the stream up")]
    Reset,
    /// The peer did not take what was sent, or not send what was due, in time.
    #[error("no progress in time")]
    Timeout,
    /// The connection is over.
    #[error(transparent)]
    Lost(ClosedBy),
}

/// A message that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer reads too slowly: its queue is full.
    #[error("the peer does not take its messages")]
    Full,
    /// The connection is over.
    #[error("the connection is over")]
    Closed,
}

/// A payload that did not come whole. Nothing of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The peer said no.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// It was not whole in time; the peer was told to stop.
    #[error("not whole in time")]
    Timeout,
    /// The peer announces something else than the manifest states.
    #[error("the peer announces another length or hash than expected")]
    Unexpected,
    /// The peer announces more than was allowed.
    #[error("{length} bytes where {max} are allowed")]
    TooLong {
        /// The length announced.
        length: u64,
        /// The most that was allowed.
        max: u64,
    },
    /// The stream held another number of bytes than announced.
    #[error("the stream ended after {got} of {want} bytes, or went on behind them")]
    Length {
        /// Bytes announced.
        want: u64,
        /// Bytes received; more than announced if the stream went on.
        got: u64,
    },
    /// The bytes do not match their hash.
    #[error("the bytes do not match their hash")]
    Corrupt,
    /// The peer gave up in the middle.
    #[error("the peer gave up")]
    Reset,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The connection is over.
    #[error(transparent)]
    Lost(ClosedBy),
}

impl RequestError {
    /// Whether the peer delivered something it should not have: its copies are
    /// to be tried last from now on.
    pub fn is_lie(&self) -> bool {
        match self {
            Self::Unexpected
            | Self::TooLong { .. }
            | Self::Length { .. }
            | Self::Corrupt
            | Self::Frame(_) => true,
            Self::Refused(_) | Self::Timeout | Self::Reset | Self::Lost(_) => false,
        }
    }
}

impl From<LinkError> for RequestError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Frame(error) => Self::Frame(error),
            LinkError::CutShort | LinkError::Reset => Self::Reset,
            LinkError::Timeout => Self::Timeout,
            LinkError::Lost(closed) => Self::Lost(closed),
        }
    }
}

impl From<ChunkError> for RequestError {
    fn from(error: ChunkError) -> Self {
        match error {
            ChunkError::Length { want, got, .. } => Self::Length { want, got },
            ChunkError::Hash { .. } => Self::Corrupt,
        }
    }
}
