//! Starting a node, and stopping it.

use crate::config::{ConfigError, ServeConfig};
use crate::driver::{Driver, Trust};
use crate::store::{Store, StoreError};
use crate::{archive, memory, starts};
use media::library::Library;
use media::{Time, TitleName};
use protocol::node::{Event, Node, NodeConfig};
use protocol::{Level, PeerId, Role};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::info;
use transport::keys::revoked::Revocations;
use transport::{
    Authority, Endpoint, EndpointConfig, EndpointError, Host, Identity, Keys, KeysError, Running,
};

/// Why a node does not start. Nothing listens then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings make no sense together.
    #[error("the settings do not fit together")]
    Config(#[from] ConfigError),
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
    config.check()?;
    let peer = config.peer().ok_or(StartError::NoName)?;
    let prepare = {
        let config = config.clone();
        move || prepare(&config, peer)
    };
    let from_archive = config.origin_rate;
    let (store, identity, authority, revocations, since, withdrawn) =
        tokio::task::spawn_blocking(prepare).await.map_err(|_| StartError::Runtime)??;
    let bind = config.listen;
    let member = EndpointConfig::member(Role::Node, &identity, authority.clone());
    let endpoint = Endpoint::open(&EndpointConfig { bind, ..member })?;
    let level = config.level;
    let node = Running::start(peer, endpoint.clone(), |address, ordered| {
        let config = NodeConfig { withdrawn, ..config.node(address, since) };
        let machine = Node::new(Time::ZERO, peer, config, seed());
        let host = Host::start(endpoint.clone(), address);
        let (store, on_event) = ((Arc::new(store), from_archive), Box::new(on_event));
        let trust = Trust { authority, revocations: Arc::new(revocations) };
        Driver::new(machine, (endpoint, trust), host, store, ordered, on_event).run()
    });
    let node = node.map_err(StartError::Address)?;
    info!(%peer, address = %node.address(), %level, "serving");
    Ok(node)
}

/// The clock, in milliseconds of the Unix epoch.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// By lot, so that nodes started together do not beat together.
fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// What a node has before anything listens, the number of its start, and what was
/// withdrawn in earlier lives.
type Prepared = (Store, Identity, Authority, Revocations, u64, Vec<TitleName>);

/// What comes from disk before anything listens.
fn prepare(config: &ServeConfig, peer: PeerId) -> Result<Prepared, StartError> {
    // Who is given layers by the network may begin with an empty folder.
    let library = match config.level.0 {
        Level::Origin => Library::open(&config.library),
        Level::Layer(_) => Library::create(&config.library),
    };
    let library = library.map_err(StoreError::from)?;
    let archive = (config.store_limit > 0).then(|| archive::open(library.path())).transpose();
    let store = Store::open_with(library, archive.map_err(StoreError::from)?, config.cache_bytes)?;
    let folder = config.keys.clone().map_or_else(Keys::default_folder, Ok)?;
    let identity = Identity::obtain(&folder, peer)?;
    let authority = Authority::load(&folder)?;
    let revocations = Revocations::load(authority.clone(), &folder)?;
    let since = starts::next(&config.library, clock());
    Ok((store, identity, authority, revocations, since, memory::withdrawn(&config.library)))
}
