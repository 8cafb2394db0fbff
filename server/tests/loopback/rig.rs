//! A folder with keys and a library, nodes on it, and a viewer that asks.

use crate::film;
use media::library::Library;
use media::{Layer, Manifest, Quality};
use protocol::node::Event;
use protocol::{Message, Open, Opened, Refusal, StreamRequest, UserId, Visit};
use server::{Running, ServeConfig};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use transport::{Authority, Connection, Endpoint, EndpointConfig, Expect, Inbox, Keys, RequestError};

/// Long enough for a busy machine; never waited for when things go right.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Rig {
    pub(crate) folder: TempDir,
    pub(crate) library: Library,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

pub(crate) struct Viewer {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Keys::init(&folder.path().join("keys")).unwrap();
        let library = Library::create(folder.path().join("films")).unwrap();
        film::write(&library, "film");
        Self { folder, library, events: Arc::default() }
    }

    pub(crate) fn config(&self) -> ServeConfig {
        ServeConfig {
            library: self.library.path().to_owned(),
            keys: Some(self.folder.path().join("keys")),
            ..ServeConfig::default()
        }
    }

    pub(crate) async fn serve(&self, config: ServeConfig) -> Running {
        let events = Arc::clone(&self.events);
        server::serve(config, move |event| events.lock().unwrap().push(event.clone())).await.unwrap()
    }

    pub(crate) async fn viewer(&self, node: &Running) -> Viewer {
        let authority = Authority::load(&self.folder.path().join("keys")).unwrap();
        let endpoint = Endpoint::open(&EndpointConfig::viewer("viewer".parse().unwrap(), authority)).unwrap();
        let (connection, inbox) = endpoint.dial(node.address(), Some(node.peer()), PATIENCE).await.unwrap();
        Viewer { connection, inbox }
    }
}

impl Viewer {
    pub(crate) async fn titles(&mut self) -> Vec<String> {
        self.connection.send(Message::ListTitles).unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Titles(titles) => titles.into_iter().map(|line| line.title.to_string()).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn open(&mut self, title: &str) -> Result<Opened, Refusal> {
        let title = title.parse().unwrap();
        self.connection
            .send(Message::Open(Open::new(1, title, Quality::GOLD, UserId(1), Visit::Attach)))
            .unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Opened(opened) => Ok(opened),
            Message::Refused { request: 1, why } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn manifest(&mut self, title: &str) -> Manifest {
        let opened = self.open(title).await.unwrap();
        let request = StreamRequest::Manifest(title.parse().unwrap());
        let expect = Expect::Exactly { length: opened.manifest_length, hash: opened.manifest_hash };
        let payload = self.connection.request(&request, expect, PATIENCE).await.unwrap();
        Manifest::parse(&payload.bytes).unwrap()
    }

    pub(crate) async fn chunk(
        &self,
        manifest: &Manifest,
        block: u32,
        layer: Layer,
    ) -> Result<Vec<u8>, RequestError> {
        let info = manifest.chunk(block, layer).unwrap();
        let chunk = self.connection.request_chunk(&manifest.chunk_id(block, layer), info, PATIENCE).await?;
        Ok(chunk.into_bytes().to_vec())
    }
}
