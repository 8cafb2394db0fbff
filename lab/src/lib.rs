//! The trial: what the whole is held to, and what it shows.

pub mod bench;
pub mod sheet;
pub mod stored;
