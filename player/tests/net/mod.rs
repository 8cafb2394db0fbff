//! Nodes that serve a title from memory over real QUIC, and fail on command.

pub mod relay;

use crate::support::title::Title;
use bytes::Bytes;
use media::{Hash, Layer};
use player::{Command, PlayError, PlayOptions, PlayReport, PlayerEvent};
use protocol::{
    Hello, LayerSources, Message, NodeAddress, Opened, PROTOCOL_VERSION, PeerId, Refusal, Role, SessionId,
    StreamRequest,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::mpsc;
use transport::{Authority, Connection, Endpoint, EndpointConfig, Happening, Host, Keys, Responder};

/// What a node does, changed while it runs.
#[derive(Debug, Default)]
pub struct Moods {
    /// It answers nothing and nobody, though its connections stand.
    pub hangs: AtomicBool,
    /// Every chunk it sends has one bit turned over.
    pub lies: AtomicBool,
    pub chunks: AtomicU32,
}

/// One node.
pub struct TestNode {
    pub moods: Arc<Moods>,
    pub at: NodeAddress,
    _endpoint: Endpoint,
}

/// A few nodes of one title.
pub struct Network {
    pub nodes: BTreeMap<&'static str, TestNode>,
    pub authority: Authority,
    pub title: &'static Title,
    _folder: tempfile::TempDir,
}

/// What the opening reply says.
struct Layout {
    sources: Vec<LayerSources>,
    backup: Option<NodeAddress>,
}

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

impl Network {
    /// base-1 and base-2, enh1-1, enh2-1 and enh2-2, all on loopback.
    pub fn start(title: &'static Title) -> Self {
        Self::through(title, |direct| direct)
    }

    /// The same, with every address told to viewers changed by `way`.
    pub fn through(
        title: &'static Title,
        way: impl FnOnce(BTreeMap<&'static str, SocketAddr>) -> BTreeMap<&'static str, SocketAddr>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::init(&folder.path().join("keys")).unwrap();
        let authority = keys.authority().unwrap();
        let layout = Arc::new(OnceLock::new());
        let names = [
            ("base-1", Layer::BASE),
            ("base-2", Layer::BASE),
            ("enh1-1", Layer::ENH1),
            ("enh2-1", Layer::ENH2),
            ("enh2-2", Layer::ENH2),
        ];
        let mut nodes = BTreeMap::new();
        for (name, layer) in names {
            let identity = keys.identity(peer(name)).unwrap();
            let config = EndpointConfig::member(Role::Node, &identity, authority.clone());
            let endpoint = Endpoint::open(&config).unwrap();
            let own = endpoint.local_address().unwrap();
            let host = Host::start(endpoint.clone(), own);
            let moods = Arc::new(Moods::default());
            tokio::spawn(serve(host, peer(name), layer, title, layout.clone(), moods.clone()));
            let at = NodeAddress { peer: peer(name), address: own };
            nodes.insert(name, TestNode { moods, at, _endpoint: endpoint });
        }
        let told = way(nodes.iter().map(|(name, node)| (*name, node.at.address)).collect());
        for (name, address) in told {
            nodes.get_mut(name).unwrap().at.address = address;
        }
        let at = |names: &[&str]| names.iter().map(|name| nodes[name].at).collect();
        let sources = vec![
            LayerSources { layer: Layer::BASE, nodes: at(&["base-1", "base-2"]) },
            LayerSources { layer: Layer::ENH1, nodes: at(&["enh1-1"]) },
            LayerSources { layer: Layer::ENH2, nodes: at(&["enh2-1", "enh2-2"]) },
        ];
        let backup = Some(nodes["base-2"].at);
        assert!(layout.set(Layout { sources, backup }).is_ok());
        Self { nodes, authority, title, _folder: folder }
    }

    pub fn hang(&self, name: &str, hangs: bool) {
        self.nodes[name].moods.hangs.store(hangs, Ordering::SeqCst);
    }

    pub fn lie(&self, name: &str) {
        self.nodes[name].moods.lies.store(true, Ordering::SeqCst);
    }

    pub fn chunks_of(&self, name: &str) -> u32 {
        self.nodes[name].moods.chunks.load(Ordering::SeqCst)
    }

    pub fn options(&self) -> PlayOptions {
        let title = self.title.manifest.title.clone();
        let (at, name) = (self.nodes["base-1"].at.address, peer("viewer-1"));
        PlayOptions::new(at, title, self.authority.clone(), name)
    }

    /// Plays while `story` is told the events, and may command.
    pub async fn play(
        &self,
        options: PlayOptions,
        mut story: impl FnMut(&PlayerEvent, &mpsc::Sender<Command>),
    ) -> Result<PlayReport, PlayError> {
        let (commands, asked) = mpsc::channel(16);
        let (events, mut heard) = mpsc::channel(1_024);
        let played = tokio::spawn(player::play(options, asked, events));
        let log = Mutex::new(Vec::new());
        while let Some(event) = heard.recv().await {
            story(&event, &commands);
            if !matches!(event, PlayerEvent::Status { .. }) {
                log.lock().unwrap().push(event);
            }
        }
        let report = played.await.unwrap();
        // Shown only when the test fails.
        println!("{:#?}", log.lock().unwrap());
        report
    }
}

async fn serve(
    mut host: Host,
    name: PeerId,
    layer: Layer,
    title: &'static Title,
    layout: Arc<OnceLock<Layout>>,
    moods: Arc<Moods>,
) {
    let mut links: BTreeMap<u64, Connection> = BTreeMap::new();
    while let Some(happening) = host.next().await {
        if moods.hangs.load(Ordering::SeqCst) {
            // What was said meanwhile is lost, as on a machine that swaps.
            if let Happening::Asked { responder, .. } = happening {
                std::mem::forget(responder);
            }
            continue;
        }
        match happening {
            Happening::Linked { link, connection, .. } => {
                let hello = Hello { version: PROTOCOL_VERSION, peer: name, role: Role::Node };
                let _ = connection.send(Message::Hello(hello));
                links.insert(link.0, connection);
            }
            Happening::Heard { link, message } => {
                if let Some(answer) = answer(message, title, &layout)
                    && let Some(connection) = links.get(&link.0)
                {
                    let _ = connection.send(answer);
                }
            }
            Happening::Asked { request, responder, .. } => {
                tokio::spawn(give(request, responder, layer, title, moods.clone()));
            }
            Happening::Gone { link } => {
                links.remove(&link.0);
            }
        }
    }
}

fn answer(message: Message, title: &Title, layout: &OnceLock<Layout>) -> Option<Message> {
    match message {
        Message::Probe(number) => Some(Message::Alive(number)),
        Message::Open(open) if open.title == title.manifest.title => {
            let bytes = title.manifest.to_bytes().unwrap();
            let layout = layout.get()?;
            let included = |sources: &&LayerSources| open.quality.includes(sources.layer);
            Some(Message::Opened(Opened {
                request: open.request,
                session: SessionId(1),
                quality: open.quality,
                manifest_length: bytes.len() as u64,
                manifest_hash: Hash::of(&bytes),
                sources: layout.sources.iter().filter(included).cloned().collect(),
                backup: layout.backup,
                epoch: 0,
                doors: Vec::new(),
            }))
        }
        Message::Open(open) => Some(Message::Refused { request: open.request, why: Refusal::NoSuchTitle }),
        _ => None,
    }
}

async fn give(
    request: StreamRequest,
    mut responder: Responder,
    layer: Layer,
    title: &'static Title,
    moods: Arc<Moods>,
) {
    let is_chunk = matches!(request, StreamRequest::Chunk(_));
    let bytes = match request {
        StreamRequest::Manifest(_) => Bytes::from(title.manifest.to_bytes().unwrap()),
        StreamRequest::Chunk(chunk) if chunk.id.layer != layer => {
            let _ = responder.refuse(Refusal::LayerNotOffered).await;
            return;
        }
        StreamRequest::Chunk(chunk) => {
            moods.chunks.fetch_add(1, Ordering::SeqCst);
            title.chunks[chunk.id.block as usize][layer.index()].clone()
        }
    };
    let _ = responder.grant(bytes.len() as u64, Hash::of(&bytes));
    let bytes = if is_chunk && moods.lies.load(Ordering::SeqCst) {
        let mut bent = bytes.to_vec();
        let middle = bent.len() / 2;
        bent[middle] ^= 1;
        Bytes::from(bent)
    } else {
        bytes
    };
    if responder.send(bytes).await.is_ok() {
        let _ = responder.finish().await;
    }
}
