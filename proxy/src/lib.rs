//! A proxy: chunks kept in memory or on disk, one fetch for each, and to every
//! client the layers of its own quality.
//!
//! A [`protocol::proxy`] machine decides; one task drives it. A chunk that is
//! being fetched grows in one place, and whoever asked for it follows at their
//! own pace, so that a slow client delays nobody and a client that leaves takes
//! nothing with it. What is kept survives a restart; see [`ProxyConfig::cache`]. To
//! a player the proxy looks like a node.

mod block;
mod config;
mod driver;
mod fill;
mod following;
mod line;
mod news;
mod nodes;
mod reading;
mod running;
mod shelf;
mod store;
mod upstream;

pub use config::{ProxyConfig, UpstreamFlag, UpstreamFlagError};
pub use running::{StartError, start};
pub use store::StoreError;
pub use transport::{Ready, Running};
