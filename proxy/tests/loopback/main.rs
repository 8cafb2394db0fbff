//! A proxy between viewers and scripted nodes, over real QUIC on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod film;
mod node;
mod rig;
mod stories;
