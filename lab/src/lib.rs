//! The trial: what the whole is held to, and what it shows.

pub mod bench;
pub mod demo;
pub mod figure;
pub mod links;
pub mod plan;
pub mod sample;
pub mod sheet;
pub mod stage;
pub mod stored;
pub mod testbed;
