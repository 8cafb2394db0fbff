//! A folder with keys and a library, nodes on it, and a viewer that asks.

use crate::film;
use media::library::Library;
use media::{Layer, Manifest, Quality};
use protocol::node::Event;
use protocol::{Message, Open, Opened, Progress, Refusal, Role, SignedToken, StreamRequest, UserId, Visit};
use server::{Running, ServeConfig};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use transport::{
    Authority, Connection, Endpoint, EndpointConfig, Expect, Identity, Inbox, Keys, RequestError,
};

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
    user: UserId,
}

/// Each viewer watches as somebody else.
static USERS: AtomicU64 = AtomicU64::new(1);

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
        Viewer { connection, inbox, user: UserId(USERS.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Whoever runs the network, connected to a node.
    pub(crate) async fn operator(&self, node: &Running) -> Viewer {
        let keys = self.folder.path().join("keys");
        let authority = Authority::load(&keys).unwrap();
        let identity = Identity::obtain(&keys, protocol::message::OPERATOR.parse().unwrap()).unwrap();
        let config = EndpointConfig::member(Role::Operator, &identity, authority);
        let endpoint = Endpoint::open(&config).unwrap();
        let (connection, inbox) = endpoint.dial(node.address(), Some(node.peer()), PATIENCE).await.unwrap();
        Viewer { connection, inbox, user: UserId(0) }
    }

    /// A node of this level that joins through another one, with an empty library.
    pub(crate) fn member(&self, name: &str, level: &str, door: &Running) -> ServeConfig {
        ServeConfig {
            peer: Some(name.parse().unwrap()),
            level: level.parse().unwrap(),
            library: self.folder.path().join(name),
            join: vec![door.address().to_string().parse().unwrap()],
            ..self.config()
        }
    }

    /// Waits until something has happened at some node.
    pub(crate) async fn until(&self, happened: impl Fn(&Event) -> bool) {
        self.until_times(1, happened).await;
    }

    /// Waits until something has happened so many times, wherever.
    pub(crate) async fn until_times(&self, times: usize, happened: impl Fn(&Event) -> bool) {
        let wait = async {
            while self.events.lock().unwrap().iter().filter(|event| happened(event)).count() < times {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap();
    }
}

impl Viewer {
    /// The next message that is not about a layer's node, in time.
    pub(crate) async fn next(&mut self) -> Message {
        let next = async {
            loop {
                match self.inbox.recv().await.unwrap() {
                    Message::LayerAt { .. } => {}
                    message => return message,
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.unwrap()
    }

    pub(crate) async fn titles(&mut self) -> Vec<String> {
        self.connection.send(Message::ListTitles).unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Titles(titles) => titles.into_iter().map(|line| line.title.to_string()).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn open(&mut self, title: &str) -> Result<Opened, Refusal> {
        self.open_with(title, Quality::GOLD, None).await
    }

    pub(crate) async fn open_with(
        &mut self,
        title: &str,
        quality: Quality,
        token: Option<SignedToken>,
    ) -> Result<Opened, Refusal> {
        let visit = Visit::Seek(Progress::default());
        let open = Open::new(1, title.parse().unwrap(), quality, self.user, visit);
        self.connection.send(Message::Open(Open { token, ..open })).unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Opened(opened) => Ok(opened),
            Message::Refused { request: 1, why } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    /// Seeks as another connection of the same viewer, which has heard of no epoch
    /// but the first.
    pub(crate) async fn seek_as(&mut self, other: &Self, former: &[&str]) -> Result<Opened, Refusal> {
        self.user = other.user;
        let visit = Visit::Seek(Progress { started: true, epoch: 1, ..Progress::default() });
        let open = Open::new(1, "film".parse().unwrap(), Quality::GOLD, self.user, visit);
        let former = former.iter().map(|name| name.parse().unwrap()).collect();
        self.connection.send(Message::Open(Open { former, ..open })).unwrap();
        match self.inbox.recv().await.unwrap() {
            Message::Opened(opened) => Ok(opened),
            Message::Refused { request: 1, why } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    /// Attaches as another connection of the same viewer.
    pub(crate) async fn attach_as(&mut self, other: &Self, title: &str) -> Result<Opened, Refusal> {
        self.user = other.user;
        let open = Open::new(1, title.parse().unwrap(), Quality::GOLD, self.user, Visit::Attach);
        self.connection.send(Message::Open(open)).unwrap();
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
