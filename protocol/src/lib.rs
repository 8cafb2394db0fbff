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

pub use guests::{GuestLimits, LinkId, StreamId};
pub use message::{
    ChunkRequest, Hello, LayerSources, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, Refusal, Role,
    SessionId, StreamReply, StreamRequest,
};
pub use peer::{PeerId, PeerIdError};
