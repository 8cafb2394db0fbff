//! Keys, a proxy, and viewers that ask it.

use crate::film;
use crate::node::Node;
use media::{ChunkId, Layer, Quality};
use protocol::proxy::Event;
use protocol::{ChunkRequest, Message, NodeAddress, Open, Opened, Refusal, StreamRequest, UserId, Visit};
use proxy::{ProxyConfig, Running, UpstreamFlag};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use transport::{
    Authority, Connection, Endpoint, EndpointConfig, Expect, Inbox, Keys, PayloadReader, RequestError,
};

/// Long enough for a busy machine; never waited for when things go right.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) keys: Keys,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

pub(crate) struct Viewer {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
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

    pub(crate) async fn viewer(&self, proxy: &Running) -> Viewer {
        let authority = Authority::load(self.folder.path()).unwrap();
        let endpoint = Endpoint::open(&EndpointConfig::viewer("viewer".parse().unwrap(), authority)).unwrap();
        let (connection, inbox) = endpoint.dial(proxy.address(), Some(proxy.peer()), PATIENCE).await.unwrap();
        Viewer { connection, inbox }
    }

    /// A viewer with a session for the film.
    pub(crate) async fn watching(&self, proxy: &Running, quality: Quality) -> Viewer {
        let mut viewer = self.viewer(proxy).await;
        viewer.open("film", quality).await.unwrap();
        viewer
    }
}

impl Viewer {
    pub(crate) async fn open(&mut self, title: &str, quality: Quality) -> Result<Opened, Refusal> {
        let title = title.parse().unwrap();
        self.connection.send(Message::Open(Open::new(1, title, quality, UserId(1), Visit::Attach))).unwrap();
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

    /// Starts to ask for a chunk.
    pub(crate) async fn begin(&self, block: u32, layer: Layer) -> PayloadReader {
        let request = StreamRequest::Chunk(ChunkRequest { id: id(block, layer), deadline_ms: 1000 });
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
