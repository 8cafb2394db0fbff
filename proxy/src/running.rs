//! Starting a proxy, and stopping it.

use crate::config::ProxyConfig;
use crate::driver::Driver;
use crate::shelf::Shelf;
use crate::upstream::Pool;
use media::Time;
use protocol::proxy::{Event, Proxy};
use protocol::{PeerId, Role};
use serde::Serialize;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;
use transport::{Authority, Endpoint, EndpointConfig, EndpointError, Host, Identity, Keys, KeysError};

/// A proxy that serves. Dropping it ends it at once.
#[derive(Debug)]
pub struct Running {
    peer: PeerId,
    address: SocketAddr,
    endpoint: Endpoint,
    drain: watch::Sender<bool>,
    driver: JoinHandle<()>,
}

/// What a proxy says on standard output when it can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true.
    pub ready: bool,
    /// The proxy's name.
    pub peer: PeerId,
    /// Where it listens.
    pub address: SocketAddr,
}

/// Why a proxy does not start. Nothing listens then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nobody to fetch from.
    #[error("a proxy needs at least one node upstream")]
    NoUpstream,
    /// The proxy has no keys, or unusable ones.
    #[error("the proxy has no certificate")]
    Keys(#[from] KeysError),
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
    let outwards = Endpoint::open(&settings.dialling_only())?;
    let address = endpoint.local_address().map_err(StartError::Address)?;
    let (drain, ordered) = watch::channel(false);
    let machine = Proxy::new(Time::ZERO, peer, config.machine(), 0);
    let host = Host::start(endpoint.clone(), address);
    let progress = Duration::from_millis(config.progress_ms);
    let (pool, shelf) = (Pool::new(outwards, progress), Shelf::new(config.cache_bytes));
    let driver = Driver::new(machine, host, pool, shelf, ordered, Box::new(on_event));
    info!(%peer, %address, "serving");
    Ok(Running { peer, address, endpoint, drain, driver: tokio::spawn(driver.run()) })
}

impl Running {
    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The proxy's name.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The line for whoever started the proxy.
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
