#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "tests state exact values"
)]

mod death;
mod discovery;
mod graphs;
mod moves;
mod placement;
mod rig;
mod search;
mod tries;
