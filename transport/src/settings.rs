//! How an endpoint is set, and what QUIC is told about it.

use crate::keys::{Authority, Identity};
use crate::socket::SOCKET_BUFFER_BYTES;
use protocol::{PeerId, Role};
use quinn::{IdleTimeout, TransportConfig, VarInt};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The most streams one peer may have open at once, the control stream
/// included: what a connection can hold grows with this number.
pub(crate) const MAX_STREAMS: u32 = 64;
/// A connection without a word for this long is lost.
const IDLE: Duration = Duration::from_secs(5);
/// A quiet connection says something this often.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Unacknowledged bytes per connection. It holds the requests that a player
/// keeps open, so that the scheduler sees all of them and priorities count.
const SEND_WINDOW: u64 = 8 * 1024 * 1024;
/// Bytes that may arrive unread, by stream and by connection, where payloads
/// are received: 2 MiB at 100 ms carry 160 Mbit/s.
const PAYLOAD_STREAM_WINDOW: u32 = 2 * 1024 * 1024;
pub(crate) const PAYLOAD_WINDOW: u32 = 8 * 1024 * 1024;
/// The same where only requests and messages are received.
const REQUEST_STREAM_WINDOW: u32 = 64 * 1024;
const REQUEST_WINDOW: u32 = 512 * 1024;

/// The algorithm that decides how fast to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 9002, section 7.
    NewReno,
    /// Bottleneck bandwidth and round-trip time; unfinished in every library.
    Bbr,
}

/// Who speaks at an endpoint, where, and whom it believes.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The name told to peers.
    pub peer: PeerId,
    /// The part played; all but viewers need an identity of the same name.
    pub role: Role,
    /// The address to bind; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Whose certificates are believed.
    pub authority: Authority,
    /// The certificate shown; none for a viewer.
    pub identity: Option<Identity>,
    /// Whether others may dial in; needs an identity. Operators never accept.
    pub accepts: bool,
    /// Congestion control of every connection.
    pub congestion: Congestion,
    /// Bytes of payloads that may be under way on one dialled connection at
    /// first. A player begins with little and [widens] it as its line proves
    /// wide, since all that is under way stands in the queue of a narrow one.
    ///
    /// [widens]: crate::Connection::widen
    pub payload_window: u32,
    /// Size asked of the kernel for each socket buffer, in bytes. 4 MB lets a
    /// thousand viewers dial within a second.
    pub socket_buffer: usize,
}

impl EndpointConfig {
    /// A viewer on a free port, able to reach both IPv4 and IPv6.
    pub fn viewer(peer: PeerId, authority: Authority) -> Self {
        Self {
            peer,
            role: Role::Viewer,
            bind: SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            authority,
            identity: None,
            accepts: false,
            congestion: Congestion::default(),
            payload_window: PAYLOAD_WINDOW,
            socket_buffer: SOCKET_BUFFER_BYTES,
        }
    }

    /// A node or proxy named by its certificate, on a free port of loopback
    /// unless `bind` is changed.
    pub fn member(role: Role, identity: &Identity, authority: Authority) -> Self {
        Self {
            role,
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            identity: Some(identity.clone()),
            accepts: true,
            ..Self::viewer(identity.peer(), authority)
        }
    }

    /// Somebody who runs the network, named by a certificate, on a free port,
    /// able to reach both IPv4 and IPv6. An operator accepts nobody.
    pub fn operator(identity: &Identity, authority: Authority) -> Self {
        Self::member(Role::Operator, identity, authority).dialling_only()
    }

    /// The same peer where it only dials: on a free port, able to reach both
    /// IPv4 and IPv6, and not to be reached by anybody.
    #[must_use]
    pub fn dialling_only(&self) -> Self {
        let bind = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        Self { bind, accepts: false, ..self.clone() }
    }
}

/// QUIC's settings for connections that are accepted.
pub(crate) fn accepting(congestion: Congestion) -> Arc<TransportConfig> {
    let mut config = common(congestion);
    config
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .stream_receive_window(REQUEST_STREAM_WINDOW.into())
        .receive_window(REQUEST_WINDOW.into());
    Arc::new(config)
}

/// QUIC's settings for connections that are dialled; nobody opens streams
/// towards a dialler.
pub(crate) fn dialling(congestion: Congestion, payload_window: u32) -> Arc<TransportConfig> {
    let mut config = common(congestion);
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(PAYLOAD_STREAM_WINDOW.into())
        .receive_window(payload_window.into());
    Arc::new(config)
}

fn common(congestion: Congestion) -> TransportConfig {
    let idle = IdleTimeout::try_from(IDLE).ok();
    let mut config = TransportConfig::default();
    config
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(idle)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .send_window(SEND_WINDOW);
    match congestion {
        Congestion::Cubic => {
            config.congestion_controller_factory(Arc::new(quinn::congestion::CubicConfig::default()));
        }
        Congestion::NewReno => {
            config.congestion_controller_factory(Arc::new(quinn::congestion::NewRenoConfig::default()));
        }
        Congestion::Bbr => {
            config.congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default()));
        }
    }
    config
}
