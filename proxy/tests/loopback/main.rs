//! A proxy between viewers and scripted nodes, over real QUIC on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod crowd;
mod film;
mod kept;
mod node;
mod peers;
mod rig;
mod stories;
