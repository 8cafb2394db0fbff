//! The voice of Lamina: QUIC endpoints, identities, control streams, and one
//! bidirectional stream for every chunk and manifest.
//!
//! Nothing is decided here. Whoever owns an [`Endpoint`] dials and accepts
//! [`Connection`]s; on each, [`protocol::Message`]s travel on one control stream
//! and payloads on streams of their own, by name, with priorities and with a
//! deadline on every wait. What comes from a peer is bounded and checked before
//! it is believed: a payload is whole and matches its hash, or it is an error.

pub mod connection;
pub mod endpoint;
pub mod error;
pub mod host;
pub mod keys;
pub mod payload;
pub mod priority;
pub mod responder;
pub mod running;
mod settings;
mod socket;
mod tls;
mod turns;
mod wire;
pub mod yardstick;

pub use connection::{Connection, Inbox};
pub use endpoint::{Arrival, Endpoint, Knock, Line};
pub use error::{
    AcceptError, ClosedBy, DialError, DialWhy, EndpointError, LinkError, RequestError, SendError,
};
pub use host::{Happening, Host};
pub use keys::token::TokenError;
pub use keys::{Authority, Identity, Keys, KeysError, ViewerKey};
pub use payload::{Expect, Payload, PayloadReader};
pub use priority::Priority;
pub use responder::{Form, PendingRequest, Responder, ServeError};
pub use running::{Ready, Running};
pub use settings::{Congestion, EndpointConfig};
pub use socket::{SOCKET_BUFFER_BYTES, granted_socket_buffer};
