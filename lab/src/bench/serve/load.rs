//! Connections that ask, and whom they ask.

use super::{Options, film, gigabits};
use crate::bench::BenchError;
use bytes::Bytes;
use media::library::Library;
use media::{ChunkId, Layer, Manifest, Quality, TitleName};
use protocol::{
    ChunkRequest, Message, NodeAddress as At, Open, PeerId, Progress, StreamRequest, UserId, Visit,
};
use server::{Running, ServeConfig};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;
use transport::yardstick::{BareClient, BareServer};
use transport::{Authority, Connection, Endpoint, EndpointConfig, Expect, Identity, Keys};

/// How long anything but a turn may take.
pub(in crate::bench) const PATIENCE: Duration = Duration::from_secs(10);

/// What both sides share: keys, a library and what is in it.
pub(in crate::bench) struct Setup {
    pub(in crate::bench) keys: PathBuf,
    pub(in crate::bench) library: PathBuf,
    pub(in crate::bench) manifest: Arc<Manifest>,
    pub(in crate::bench) authority: Authority,
    identity: Identity,
}

impl Setup {
    pub(in crate::bench) fn make(folder: &Path, options: &Options) -> Result<Self, BenchError> {
        let keys = Keys::init(&folder.join("keys")).map_err(failed("keys"))?;
        let name: PeerId = "origin".parse().map_err(failed("a name"))?;
        let title: TitleName = "bench".parse().map_err(failed("a title"))?;
        let library = folder.join("library");
        let opened = Library::create(&library).map_err(failed("a library"))?;
        let manifest = film::write(&opened, &title, options.chunks, options.chunk_bytes)?;
        Ok(Self {
            authority: keys.authority().map_err(failed("keys"))?,
            identity: keys.identity(name).map_err(failed("keys"))?,
            keys: keys.folder().to_owned(),
            library,
            manifest: Arc::new(manifest),
        })
    }
}

/// Says what could not be set up.
pub(in crate::bench) fn failed<E: Error>(what: &'static str) -> impl FnOnce(E) -> BenchError {
    move |error| match error.source() {
        Some(cause) => BenchError::Setting(format!("{what}: {error}: {cause}")),
        None => BenchError::Setting(format!("{what}: {error}")),
    }
}

/// What one turn showed.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct Turn {
    /// Payload in bytes.
    pub(in crate::bench) bytes: u64,
    /// Payload in Gbit/s.
    pub(in crate::bench) rate: f64,
    /// Processor time of both sides in seconds for each gigabyte of payload;
    /// hardly touched by whatever else the machine does.
    pub(in crate::bench) cost: f64,
}

/// Asks from all connections until the turn is over.
async fn turn<F, Ask>(connections: usize, options: &Options, asker: F) -> Result<Turn, BenchError>
where
    F: Fn(usize, usize) -> Ask,
    Ask: Future<Output = Option<u64>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let (start, worked) = (Instant::now(), processor_seconds());
    for connection in 0..connections {
        for lane in 0..options.open {
            tasks.spawn(asker(connection, lane));
        }
    }
    let mut bytes = 0_u64;
    while let Some(sum) = tasks.join_next().await {
        let broke = || BenchError::Setting("a connection broke during the bench".to_owned());
        bytes = bytes.saturating_add(sum.ok().flatten().ok_or_else(broke)?);
    }
    let worked = processor_seconds() - worked;
    Ok(Turn { bytes, rate: gigabits(bytes, start.elapsed()), cost: worked / gigabytes(bytes) })
}

/// Processor time that this process has used, in user and system mode (fields
/// 14 and 15 of proc(5)'s stat, in hundredths of a second); 0 if untold.
fn processor_seconds() -> f64 {
    processor_seconds_of("self")
}

/// The same of a process by its identifier.
pub(in crate::bench) fn processor_seconds_of(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in field 2 may hold spaces, but nothing behind its bracket does.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u32 = fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    f64::from(ticks) / 100.0
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for people and figures")]
pub(in crate::bench) fn gigabytes(bytes: u64) -> f64 {
    (bytes as f64 * 1e-9).max(f64::MIN_POSITIVE)
}

/// Bare QUIC with its clients.
pub(in crate::bench) struct Bare {
    _server: BareServer,
    clients: Vec<BareClient>,
}

impl Bare {
    pub(in crate::bench) async fn start(setup: &Setup, options: &Options) -> Result<Self, BenchError> {
        let payload = Bytes::from(film::chunk_bytes(0, options.chunk_bytes));
        let server = BareServer::start(&setup.authority, &setup.identity, payload);
        let server = server.map_err(failed("bare QUIC"))?;
        let mut clients = Vec::new();
        for _ in 0..options.connections {
            let dialled = timeout(PATIENCE, BareClient::dial(&setup.authority, server.address())).await;
            let dialled = dialled.map_err(failed("a connection"))?;
            clients.push(dialled.map_err(failed("a connection"))?);
        }
        Ok(Self { _server: server, clients })
    }

    pub(in crate::bench) async fn turn(&self, options: &Options) -> Result<Turn, BenchError> {
        let end = Instant::now() + options.turn;
        turn(self.clients.len(), options, |connection, _| {
            let client = self.clients.get(connection).cloned();
            async move {
                let client = client?;
                let mut bytes = 0_u64;
                while Instant::now() < end {
                    let got = timeout(PATIENCE, client.discard()).await.ok()??;
                    bytes = bytes.saturating_add(got);
                }
                Some(bytes)
            }
        })
        .await
    }
}

/// A node or proxy with its viewers.
pub(in crate::bench) struct Ours {
    /// Running as long as this lives.
    _behind: Vec<Running>,
    pub(in crate::bench) at: At,
    pub(in crate::bench) viewers: Vec<Connection>,
    pub(in crate::bench) manifest: Arc<Manifest>,
}

impl Ours {
    /// `cache_bytes` of chunks are kept in memory, or as many as by default.
    pub(in crate::bench) async fn start(
        setup: &Setup,
        options: &Options,
        cache_bytes: Option<u64>,
    ) -> Result<Self, BenchError> {
        let mut config = ServeConfig {
            library: setup.library.clone(),
            keys: Some(setup.keys.clone()),
            // What the node can do is measured, and not what a slot is worth.
            slot_rate: 0,
            ..ServeConfig::default()
        };
        config.cache_bytes = cache_bytes.unwrap_or(config.cache_bytes);
        let node = server::serve(config, |_| ()).await.map_err(failed("a node"))?;
        let at = At { peer: node.peer(), address: node.address() };
        Self::viewing(setup, options, at, vec![node]).await
    }

    /// Viewers of whoever listens there; `behind` is kept running for them.
    pub(in crate::bench) async fn viewing(
        setup: &Setup,
        options: &Options,
        at: At,
        behind: Vec<Running>,
    ) -> Result<Self, BenchError> {
        let mut viewers = Vec::new();
        for user in (1..).map(UserId).take(options.connections) {
            viewers.push(dial(setup, &setup.manifest.title, at, user, None).await?);
        }
        Ok(Self { _behind: behind, at, viewers, manifest: Arc::clone(&setup.manifest) })
    }

    /// Asks for every chunk once.
    pub(in crate::bench) async fn warm(&self) -> Result<(), BenchError> {
        let broke = || BenchError::Setting("a chunk did not come while the cache was warmed".to_owned());
        let viewer = self.viewers.first().ok_or_else(broke)?;
        for block in 0..self.manifest.block_count() {
            discard(viewer, &self.manifest, block).await.ok_or_else(broke)?;
        }
        Ok(())
    }

    pub(in crate::bench) async fn turn(&self, options: &Options) -> Result<Turn, BenchError> {
        let end = Instant::now() + options.turn;
        turn(self.viewers.len(), options, |connection, lane| {
            let viewer = self.viewers.get(connection).cloned();
            let manifest = Arc::clone(&self.manifest);
            // Everybody starts elsewhere in the title.
            let first = connection.saturating_mul(7).saturating_add(lane);
            async move {
                let (viewer, mut block) = (viewer?, u32::try_from(first).ok()?);
                let mut bytes = 0_u64;
                while Instant::now() < end {
                    block = block.wrapping_add(1).checked_rem(manifest.block_count())?;
                    let asked = timeout(PATIENCE, discard(&viewer, &manifest, block)).await;
                    bytes = bytes.saturating_add(asked.ok()??);
                }
                Some(bytes)
            }
        })
        .await
    }
}

/// Connects from a socket of its own, to which so many bytes may come unread, and
/// opens a session.
pub(in crate::bench) async fn dial(
    setup: &Setup,
    title: &TitleName,
    at: At,
    user: UserId,
    window: Option<u32>,
) -> Result<Connection, BenchError> {
    let name: PeerId = "viewer".parse().map_err(failed("a name"))?;
    let mut config = EndpointConfig::viewer(name, setup.authority.clone());
    config.payload_window = window.unwrap_or(config.payload_window);
    let endpoint = Endpoint::open(&config);
    let endpoint = endpoint.map_err(failed("a viewer"))?;
    let dialled = endpoint.dial(at.address, Some(at.peer), PATIENCE).await;
    let (connection, mut inbox) = dialled.map_err(failed("a viewer"))?;
    let open = Open::new(1, title.clone(), Quality::GOLD, user, Visit::Seek(Progress::default()));
    connection.send(Message::Open(open)).map_err(failed("a viewer"))?;
    let answer = timeout(PATIENCE, inbox.recv()).await.map_err(failed("a session"))?;
    match answer.map_err(failed("a session"))? {
        Message::Opened(_) => {}
        other => return Err(BenchError::Setting(format!("a session was refused: {other:?}"))),
    }
    // The control stream stays open as long as somebody listens to it.
    tokio::spawn(async move { while inbox.recv().await.is_ok() {} });
    Ok(connection)
}

pub(in crate::bench) async fn discard(viewer: &Connection, manifest: &Manifest, block: u32) -> Option<u64> {
    let info = manifest.chunk(block, Layer::BASE)?;
    let id = ChunkId { title: manifest.title.clone(), block, layer: Layer::BASE };
    let request = StreamRequest::Chunk(ChunkRequest::whole(id, 1000));
    let expect = Expect::Exactly { length: info.length, hash: info.hash };
    viewer.open(&request, expect).await.ok()?.discard().await.ok()
}
