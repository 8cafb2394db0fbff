#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::large_types_passed_by_value,
    clippy::print_stdout,
    reason = "tests state exact values"
)]

mod classes;
mod death;
mod discovery;
mod graphs;
mod moves;
mod placement;
mod rig;
mod search;
mod tries;
