//! A node with a library on disk, asked over real QUIC on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod film;
mod network;
mod rig;
mod slots;
mod stories;
