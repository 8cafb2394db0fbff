//! The machine of a node: alone, and among others in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests state exact values"
)]

mod chaos;
mod classes;
mod disk;
mod failures;
mod people;
mod rig;
mod shapes;
mod single;
mod slots;
mod spread;
mod stories;
