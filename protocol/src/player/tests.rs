//! The machine on a rig: a little network and a little pipeline in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::struct_excessive_bools,
    reason = "tests state exact values"
)]

mod filtered;
mod laws;
mod links;
mod pipe;
mod rig;
mod stories;
mod takeover;
