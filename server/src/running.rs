//! Starting a node, and stopping it.

use crate::config::ServeConfig;
use crate::driver::Driver;
use crate::store::{Store, StoreError};
use media::Time;
use protocol::node::{Event, Node};
use protocol::{PeerId, Role};
use std::io;
use std::sync::Arc;
use tracing::info;
use transport::{
    Authority, Endpoint, EndpointConfig, EndpointError, Host, Identity, Keys, KeysError, Running,
};

/// Why a node does not start. Nothing listens then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The library cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The node has no keys, or unusable ones.
    #[error("the node has no certificate")]
    Keys(#[from] KeysError),
    /// The address cannot be bound.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The system does not tell the address that was bound.
    #[error("the address that was bound is unknown")]
    Address(#[source] io::Error),
    /// No name was given, and the level's is too long for one.
    #[error("the node has no name")]
    NoName,
    /// A task of the runtime was ended from outside.
    #[error("the runtime is shutting down")]
    Runtime,
}

/// Starts a node. `on_event` hears everything that is for people and figures,
/// on the task that drives the machine: it must be quick. Must be called inside
/// a tokio runtime.
pub async fn serve(
    config: ServeConfig,
    on_event: impl Fn(&Event) + Send + 'static,
) -> Result<Running, StartError> {
    let peer = config.peer().ok_or(StartError::NoName)?;
    let prepare = {
        let config = config.clone();
        move || prepare(&config, peer)
    };
    let (store, identity, authority) =
        tokio::task::spawn_blocking(prepare).await.map_err(|_| StartError::Runtime)??;
    let bind = config.listen;
    let endpoint =
        Endpoint::open(&EndpointConfig { bind, ..EndpointConfig::member(Role::Node, &identity, authority) })?;
    let machine = Node::new(Time::ZERO, peer, config.node(), 0);
    let node = Running::start(peer, endpoint.clone(), |address, ordered| {
        let host = Host::start(endpoint, address);
        Driver::new(machine, host, Arc::new(store), ordered, Box::new(on_event)).run()
    });
    let node = node.map_err(StartError::Address)?;
    info!(%peer, address = %node.address(), level = %config.level, "serving");
    Ok(node)
}

/// What comes from disk before anything listens.
fn prepare(config: &ServeConfig, peer: PeerId) -> Result<(Store, Identity, Authority), StartError> {
    let store = Store::open(config.library.clone(), config.cache_bytes)?;
    let folder = config.keys.clone().map_or_else(Keys::default_folder, Ok)?;
    let identity = Identity::obtain(&folder, peer)?;
    let authority = Authority::load(&folder)?;
    Ok((store, identity, authority))
}
