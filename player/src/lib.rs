//! The player: a `protocol::player` machine with GStreamer at its end.

pub mod pipeline;
