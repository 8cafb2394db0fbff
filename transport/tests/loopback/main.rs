//! Two peers over real QUIC on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod payloads;
mod rig;
mod rude;
mod strangers;
