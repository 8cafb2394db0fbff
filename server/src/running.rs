//! Starting a node, and stopping it.

use crate::config::ServeConfig;
use crate::driver::Driver;
use crate::store::{Store, StoreError};
use media::Time;
use protocol::node::{Event, Node};
use protocol::{PeerId, Role};
use serde::Serialize;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;
use transport::{Authority, Endpoint, EndpointConfig, EndpointError, Host, Identity, Keys, KeysError};

/// A node that serves. Dropping it ends it at once.
#[derive(Debug)]
pub struct Running {
    peer: PeerId,
    address: SocketAddr,
    endpoint: Endpoint,
    drain: watch::Sender<bool>,
    driver: JoinHandle<()>,
}

/// What a node says on standard output when it can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true.
    pub ready: bool,
    /// The node's name.
    pub peer: PeerId,
    /// Where it listens.
    pub address: SocketAddr,
}

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
    let address = endpoint.local_address().map_err(StartError::Address)?;
    let (drain, ordered) = watch::channel(false);
    let machine = Node::new(Time::ZERO, peer, config.node(), 0);
    let host = Host::start(endpoint.clone(), address);
    let driver = Driver::new(machine, host, Arc::new(store), ordered, Box::new(on_event));
    info!(%peer, %address, level = %config.level, "serving");
    Ok(Running { peer, address, endpoint, drain, driver: tokio::spawn(driver.run()) })
}

/// What comes from disk before anything listens.
fn prepare(config: &ServeConfig, peer: PeerId) -> Result<(Store, Identity, Authority), StartError> {
    let store = Store::open(config.library.clone(), config.cache_bytes)?;
    let folder = config.keys.clone().map_or_else(Keys::default_folder, Ok)?;
    let identity = Identity::obtain(&folder, peer)?;
    let authority = Authority::load(&folder)?;
    Ok((store, identity, authority))
}

impl Running {
    /// Where the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The node's name.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The line for whoever started the node.
    pub fn ready(&self) -> Ready {
        Ready { ready: true, peer: self.peer, address: self.address }
    }

    /// Serves until `stop` resolves, then [drains](Self::drain).
    pub async fn until(self, stop: impl Future<Output = ()>) {
        stop.await;
        self.drain().await;
    }

    /// Tells every peer, lets open requests finish within the time that the
    /// configuration gives them, and ends.
    pub async fn drain(mut self) {
        // The driver ends by itself: at once, or when the time is up.
        let _ = self.drain.send(true);
        let _ = (&mut self.driver).await;
        self.endpoint.close().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.driver.abort();
        self.endpoint.close_now();
    }
}
