//! Keys, a proxy, and viewers that ask it.

use crate::film;
use crate::node::Node;
use media::{ChunkId, Layer, Quality};
use protocol::proxy::Event;
use protocol::{
    ChunkRequest, Message, NodeAddress, Open, Opened, Part, Progress, Refusal, StreamRequest, UserId, Visit,
};
use proxy::{ProxyConfig, Running, UpstreamFlag};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use transport::{
    Authority, Connection, Endpoint, EndpointConfig, Expect, Inbox, Keys, PayloadReader, RequestError,
};

/// Long enough for a busy machine; never waited for when things go right.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Each viewing has a number of its own.
static VIEWERS: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) keys: Keys,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

pub(crate) struct Viewer {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
    user: UserId,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::init(folder.path()).unwrap();
        Self { folder, keys, events: Arc::default() }
    }

    pub(crate) fn node(&self, name: &str, others: &[NodeAddress]) -> Node {
        Node::start(&self.keys, name, others)
    }

    pub(crate) fn config(&self, upstream: &[NodeAddress]) -> ProxyConfig {
        ProxyConfig {
            upstream: upstream.iter().map(|node| UpstreamFlag((*node).into())).collect(),
            keys: Some(self.folder.path().to_owned()),
            progress_ms: u64::try_from(PATIENCE.as_millis()).unwrap(),
            // What is fetched is what is asked for.
            prefetch: false,
            ..ProxyConfig::default()
        }
    }

    pub(crate) async fn proxy(&self, upstream: &[NodeAddress]) -> Running {
        self.start(self.config(upstream)).await
    }

    pub(crate) async fn start(&self, config: ProxyConfig) -> Running {
        let events = Arc::clone(&self.events);
        proxy::start(config, move |event| events.lock().unwrap().push(event.clone())).await.unwrap()
    }

    pub(crate) fn fetches(&self) -> usize {
        self.events.lock().unwrap().iter().filter(|event| matches!(event, Event::Filling { .. })).count()
    }

    /// A socket from which viewers dial who let so many bytes come unread.
    pub(crate) fn socket(&self, window: Option<u32>) -> Endpoint {
        let authority = Authority::load(self.folder.path()).unwrap();
        let usual = EndpointConfig::viewer("viewer".parse().unwrap(), authority);
        let payload_window = window.unwrap_or(usual.payload_window);
        Endpoint::open(&EndpointConfig { payload_window, ..usual }).unwrap()
    }

    pub(crate) async fn viewer(&self, proxy: &Running) -> Viewer {
        Viewer::dial(&self.socket(None), proxy).await
    }

    /// Who runs the network.
    pub(crate) async fn member(&self, name: &str, proxy: &Running) -> (Connection, Inbox) {
        let identity = self.keys.identity(name.parse().unwrap()).unwrap();
        let config = EndpointConfig::operator(&identity, self.keys.authority().unwrap());
        let endpoint = Endpoint::open(&config).unwrap();
        endpoint.dial(proxy.address(), Some(proxy.peer()), PATIENCE).await.unwrap()
    }

    /// A viewer with a session for the film.
    pub(crate) async fn watching(&self, proxy: &Running, quality: Quality) -> Viewer {
        let mut viewer = self.viewer(proxy).await;
        viewer.open("film", quality).await.unwrap();
        viewer
    }
}

impl Viewer {
    pub(crate) async fn dial(from: &Endpoint, proxy: &Running) -> Self {
        let (connection, inbox) = from.dial(proxy.address(), Some(proxy.peer()), PATIENCE).await.unwrap();
        let user = UserId(VIEWERS.fetch_add(1, Ordering::Relaxed));
        Self { connection, inbox, user }
    }

    pub(crate) async fn open(&mut self, title: &str, quality: Quality) -> Result<Opened, Refusal> {
        let title = title.parse().unwrap();
        let visit = Visit::Seek(Progress::default());
        self.connection.send(Message::Open(Open::new(1, title, quality, self.user, visit))).unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Opened(opened) => Ok(opened),
            Message::Refused { request: 1, why } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    /// Asks for a chunk, whole and right.
    pub(crate) async fn chunk(&self, block: u32, layer: Layer) -> Result<(), RequestError> {
        let manifest = film::manifest();
        let info = manifest.chunk(block, layer).unwrap();
        let chunk = self.connection.request_chunk(&id(block, layer), info, PATIENCE).await?;
        assert_eq!(chunk.bytes(), &film::chunk_bytes(block, layer));
        Ok(())
    }

    /// Asks for the first half of a chunk, whole and right.
    pub(crate) async fn half(&self, block: u32, layer: Layer) -> Result<(), RequestError> {
        let whole = ChunkRequest::whole(id(block, layer), 1000);
        let request = StreamRequest::Chunk(ChunkRequest { part: Part::First, ..whole });
        let half = film::manifest().half(block, layer).copied();
        let expect = half
            .map_or(Expect::AtMost(1 << 20), |half| Expect::Exactly { length: half.length, hash: half.hash });
        let got = self.connection.request(&request, expect, PATIENCE).await?;
        assert_eq!(got.bytes[..], film::chunk_bytes(block, layer)[..100_000]);
        Ok(())
    }

    /// Starts to ask for a chunk.
    pub(crate) async fn begin(&self, block: u32, layer: Layer) -> PayloadReader {
        let request = StreamRequest::Chunk(ChunkRequest::whole(id(block, layer), 1000));
        self.connection.open(&request, Expect::AtMost(1 << 20)).await.unwrap()
    }
}

pub(crate) fn id(block: u32, layer: Layer) -> ChunkId {
    ChunkId { title: "film".parse().unwrap(), block, layer }
}

/// Reads on until so many bytes are here.
pub(crate) async fn read(reader: &mut PayloadReader, bytes: usize) {
    let mut got = 0;
    while got < bytes {
        got += reader.next_piece().await.unwrap().unwrap().len();
    }
}
