//! A node: a library on disk behind a [`protocol::node`] machine, on QUIC.
//!
//! One task owns the machine and drives it; a librarian looks through the
//! library when somebody asks what there is; each granted request is answered
//! by a task of its own, from disk or from a bounded cache of chunks that were
//! read lately. A chunk is checked against its hash when it is first read, and
//! a damaged one is refused by that name.

mod answer;
mod archive;
mod config;
mod driver;
mod fetcher;
mod gate;
mod librarian;
mod memory;
mod news;
mod running;
mod starts;
mod store;

pub use config::{ConfigError, DoorError, DoorName, LayerName, LevelName, NodeName, ServeConfig, Threshold};
pub use running::{StartError, serve};
pub use store::{Store, StoreError};
pub use transport::{Ready, Running};
