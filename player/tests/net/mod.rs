//! Nodes that serve a title from memory over real QUIC, and fail on command.

pub mod relay;

use crate::support::title::Title;
use bytes::Bytes;
use media::{Hash, Layer};
use player::{Command, PlayError, PlayOptions, PlayReport, PlayerEvent};
use protocol::{
    Hello, LayerSources, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, PeerId, Refusal, Role,
    SessionId, StreamRequest, Visit,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// So many attachments are refused before one is granted.
    pub refusals: AtomicU32,
    /// Milliseconds until it answers anything but requests.
    pub greets_after: AtomicU64,
    /// Who comes from now on is not greeted.
    pub greets_nobody: AtomicBool,
    /// It serves nobody: it holds itself ready, or knows who serves.
    pub stands_by: AtomicBool,
    /// Everything heard but greetings and probes.
    pub heard: Mutex<Vec<Message>>,
    links: Mutex<BTreeMap<u64, Connection>>,
}

impl Moods {
    fn refuses(&self) -> bool {
        self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
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
    /// Nodes speak as those of a network that organises itself: each names
    /// itself as the one source of Base, or says who it is.
    autonomous: bool,
}

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

impl Network {
    /// base-1 and base-2, enh1-1, enh2-1 and enh2-2, all on loopback.
    pub fn start(title: &'static Title) -> Self {
        Self::through(title, |direct| direct)
    }

    /// base-1 serves Base, enh1-1 and enh2-1 the rest; base-2 stands by.
    pub fn autonomous(title: &'static Title) -> Self {
        let network = Self::laid_out(title, |direct| direct, true);
        network.stand_by("base-2", true);
        network
    }

    /// As at the start, with every address told to viewers changed by `way`.
    pub fn through(
        title: &'static Title,
        way: impl FnOnce(BTreeMap<&'static str, SocketAddr>) -> BTreeMap<&'static str, SocketAddr>,
    ) -> Self {
        Self::laid_out(title, way, false)
    }

    fn laid_out(
        title: &'static Title,
        way: impl FnOnce(BTreeMap<&'static str, SocketAddr>) -> BTreeMap<&'static str, SocketAddr>,
        autonomous: bool,
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
        let backup = Some(nodes["base-2"].at).filter(|_| !autonomous);
        assert!(layout.set(Layout { sources, backup, autonomous }).is_ok());
        Self { nodes, authority, title, _folder: folder }
    }

    pub fn hang(&self, name: &str, hangs: bool) {
        self.nodes[name].moods.hangs.store(hangs, Ordering::SeqCst);
    }

    pub fn stand_by(&self, name: &str, stands_by: bool) {
        self.nodes[name].moods.stands_by.store(stands_by, Ordering::SeqCst);
    }

    /// A node says something to everybody who is connected to it.
    pub fn say(&self, name: &str, message: &Message) {
        for connection in self.nodes[name].moods.links.lock().unwrap().values() {
            let _ = connection.send(message.clone());
        }
    }

    pub fn heard(&self, name: &str) -> Vec<Message> {
        self.nodes[name].moods.heard.lock().unwrap().clone()
    }

    /// How the title was opened at a node, each time.
    pub fn opens(&self, name: &str) -> Vec<Open> {
        let open = |message| if let Message::Open(open) = message { Some(open) } else { None };
        self.heard(name).into_iter().filter_map(open).collect()
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
    while let Some(happening) = host.next().await {
        if moods.hangs.load(Ordering::SeqCst) {
            // What was said meanwhile is lost, as on a machine that swaps.
            if let Happening::Asked { responder, .. } = happening {
                std::mem::forget(responder);
            }
            continue;
        }
        match happening {
            Happening::Linked { .. } if moods.greets_nobody.load(Ordering::SeqCst) => {}
            Happening::Linked { link, connection, .. } => {
                let hello = Hello { version: PROTOCOL_VERSION, peer: name, role: Role::Node };
                say(&connection, Message::Hello(hello), moods.greets_after.load(Ordering::SeqCst));
                moods.links.lock().unwrap().insert(link.0, connection);
            }
            Happening::Heard { link, message } => {
                if !matches!(message, Message::Hello(_) | Message::Probe(_)) {
                    moods.heard.lock().unwrap().push(message.clone());
                }
                if let Some(answer) = answer(message, name, &moods, title, &layout)
                    && let Some(connection) = moods.links.lock().unwrap().get(&link.0)
                {
                    // Never before the greeting.
                    let late = moods.greets_after.load(Ordering::SeqCst);
                    say(connection, answer, late + late.min(10));
                }
            }
            Happening::Asked { request, responder, .. } => {
                tokio::spawn(give(request, responder, layer, title, moods.clone()));
            }
            Happening::Gone { link, .. } => {
                moods.links.lock().unwrap().remove(&link.0);
            }
        }
    }
}

/// Says it after so many milliseconds.
fn say(connection: &Connection, message: Message, after: u64) {
    if after == 0 {
        let _ = connection.send(message);
        return;
    }
    let connection = connection.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(after)).await;
        let _ = connection.send(message);
    });
}

fn answer(
    message: Message,
    name: PeerId,
    moods: &Moods,
    title: &Title,
    layout: &OnceLock<Layout>,
) -> Option<Message> {
    match message {
        Message::Probe(number) => Some(Message::Alive(number)),
        Message::Open(open) if open.visit == Visit::Attach && moods.refuses() => {
            Some(Message::Refused { request: open.request, why: Refusal::NotServing })
        }
        Message::Open(open) if open.title == title.manifest.title => {
            let bytes = title.manifest.to_bytes().unwrap();
            let layout = layout.get()?;
            let included = |sources: &&LayerSources| open.quality.includes(sources.layer);
            let mut sources: Vec<_> = layout.sources.iter().filter(included).cloned().collect();
            let mut epoch = 0;
            if layout.autonomous {
                let stands_by = moods.stands_by.load(Ordering::SeqCst);
                let base = sources[0].nodes.clone();
                if stands_by && matches!(open.visit, Visit::Seek(_)) {
                    return Some(Message::Elsewhere { request: open.request, base: base[0], epoch: 1 });
                }
                epoch = base.iter().position(|node| node.peer == name).map_or(0, |place| place as u64 + 1);
                sources[0].nodes.retain(|node| node.peer == name);
                for layer in &mut sources {
                    layer.nodes.truncate(1);
                }
                if stands_by || epoch == 0 {
                    (sources, epoch) = (Vec::new(), 1);
                }
            }
            Some(Message::Opened(Opened {
                request: open.request,
                session: SessionId(1),
                quality: open.quality,
                manifest_length: bytes.len() as u64,
                manifest_hash: Hash::of(&bytes),
                sources,
                backup: layout.backup,
                epoch,
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
        StreamRequest::Chunk(_) if moods.stands_by.load(Ordering::SeqCst) => {
            let _ = responder.refuse(Refusal::NotServing).await;
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
