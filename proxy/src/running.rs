//! Starting a proxy, and stopping it.

use crate::config::ProxyConfig;
use crate::driver::Driver;
use crate::shelf::Shelf;
use crate::store::{Store, StoreError};
use crate::upstream::Pool;
use media::Time;
use protocol::Role;
use protocol::proxy::{Event, Proxy};
use std::io;
use std::time::Duration;
use tracing::info;
use transport::{
    Authority, Endpoint, EndpointConfig, EndpointError, Host, Identity, Keys, KeysError, Running,
};

/// Why a proxy does not start. Nothing listens then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nobody to fetch from.
    #[error("a proxy needs at least one node upstream")]
    NoUpstream,
    /// The proxy has no keys, or unusable ones.
    #[error("the proxy has no certificate")]
    Keys(#[from] KeysError),
    /// The cache cannot be used.
    #[error("there is no cache")]
    Store(#[from] StoreError),
    /// The address cannot be bound.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The system does not tell the address that was bound.
    #[error("the address that was bound is unknown")]
    Address(#[source] io::Error),
    /// No name was given.
    #[error("the proxy has no name")]
    NoName,
    /// A task of the runtime was ended from outside.
    #[error("the runtime is shutting down")]
    Runtime,
}

/// Starts a proxy. `on_event` hears everything that is for people and figures,
/// on the task that drives the machine: it must be quick. Must be called inside
/// a tokio runtime. Nodes upstream are dialled when first needed.
pub async fn start(
    config: ProxyConfig,
    on_event: impl Fn(&Event) + Send + 'static,
) -> Result<Running, StartError> {
    let peer = config.peer().ok_or(StartError::NoName)?;
    if config.upstream.is_empty() {
        return Err(StartError::NoUpstream);
    }
    let keys = config.keys.clone();
    let prepare = move || {
        let folder = keys.map_or_else(Keys::default_folder, Ok)?;
        Ok::<_, KeysError>((Identity::obtain(&folder, peer)?, Authority::load(&folder)?))
    };
    let (identity, authority) =
        tokio::task::spawn_blocking(prepare).await.map_err(|_| StartError::Runtime)??;
    let bind = config.listen;
    let settings = EndpointConfig { bind, ..EndpointConfig::member(Role::Proxy, &identity, authority) };
    let endpoint = Endpoint::open(&settings)?;
    // Clients may be let in on one interface while nodes are on another.
    let mut dialling = settings.dialling_only();
    if let Some(from) = config.dial_from {
        dialling.bind = (from, 0).into();
    }
    let outwards = Endpoint::open(&dialling)?;
    let (folder, capacity, memory) = (config.cache.clone(), config.capacity_bytes(), config.memory_bytes);
    let prepare = move || {
        let (store, writes) = match folder {
            Some(folder) => Store::open(&folder, capacity, memory)?,
            None => Store::in_memory(capacity),
        };
        Ok::<_, StoreError>((Shelf::new(store, capacity), writes))
    };
    let shelf = tokio::task::spawn_blocking(prepare).await.map_err(|_| StartError::Runtime)??;
    let machine = Proxy::new(Time::ZERO, peer, config.machine(), 0);
    let progress = Duration::from_millis(config.progress_ms);
    let upstream = Pool::new(outwards, progress);
    let proxy = Running::start(peer, endpoint.clone(), |address, ordered| {
        let host = Host::start(endpoint, address);
        Driver::new(machine, host, upstream, shelf, ordered, Box::new(on_event)).run()
    });
    let proxy = proxy.map_err(StartError::Address)?;
    info!(%peer, address = %proxy.address(), "serving");
    Ok(proxy)
}
