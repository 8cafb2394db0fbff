//! The mind of Lamina, pure: the messages that peers exchange and the state
//! machines that decide what to do about them.
//!
//! Machines see names, lengths and times, never payload. Nothing here knows
//! sockets, an asynchronous runtime, `GStreamer`, threads or the wall clock;
//! drivers in `server`, `proxy` and `player` carry the bytes, and a simulator
//! is only another driver.

pub mod frame;
pub mod guests;
pub mod message;
pub mod node;
pub mod peer;
pub mod player;
pub mod proxy;
pub mod quality;
pub mod service;
pub mod status;
pub mod token;

pub use guests::{GuestLimits, LinkId, StreamId};
pub use message::{
    ChunkRequest, Contact, Hello, LayerSources, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, Part,
    Progress, Refusal, Role, SessionId, StreamReply, StreamRequest, Visit,
};
pub use node::autonomy::{Level, Sla, UserId};
pub use peer::{PeerId, PeerIdError};
pub use status::NodeStatus;
pub use token::{Claims, Promise, SignedToken};
