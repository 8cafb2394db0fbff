//! A node that does as it is told, well or badly.

use crate::film::{self, LENGTH};
use bytes::Bytes;
use media::{ChunkId, Hash, Layer, Quality};
use protocol::{LayerSources, Message, NodeAddress, Opened, PeerId, Refusal, Role, SessionId, StreamRequest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use transport::{Connection, Endpoint, EndpointConfig, Happening, Host, Keys, Responder};

/// How a node serves chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Well,
    /// One bit is wrong in the second half.
    Bent,
    /// Breaks off after the first half.
    Half,
    /// Sends the first half and waits for the word to go on.
    Waiting,
    Refusing,
}

pub(crate) struct Node {
    pub(crate) at: NodeAddress,
    pub(crate) manner: watch::Sender<Manner>,
    pub(crate) asked: Arc<Mutex<BTreeMap<ChunkId, usize>>>,
    /// Set to let what waits go on.
    pub(crate) go: watch::Sender<bool>,
    endpoint: Endpoint,
}

impl Node {
    /// Starts a node that names `others` behind itself as sources of Base.
    pub(crate) fn start(keys: &Keys, name: &str, others: &[NodeAddress]) -> Self {
        let peer: PeerId = name.parse().unwrap();
        let identity = keys.identity(peer).unwrap();
        let config = EndpointConfig::member(Role::Node, &identity, keys.authority().unwrap());
        let endpoint = Endpoint::open(&config).unwrap();
        let at = NodeAddress { peer, address: endpoint.local_address().unwrap() };
        let (manner, go) = (watch::Sender::new(Manner::Well), watch::Sender::new(false));
        let asked = Arc::<Mutex<BTreeMap<ChunkId, usize>>>::default();
        let host = Host::start(endpoint.clone(), at.address);
        let base: Vec<NodeAddress> = [at].into_iter().chain(others.iter().copied()).collect();
        let script =
            Script { base, at, manner: manner.subscribe(), go: go.subscribe(), asked: Arc::clone(&asked) };
        tokio::spawn(script.run(host, endpoint.clone()));
        Self { at, manner, asked, go, endpoint }
    }

    pub(crate) fn kill(&self) {
        self.endpoint.close_now();
    }

    /// How often any chunk was asked for.
    pub(crate) fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }
}

struct Script {
    base: Vec<NodeAddress>,
    at: NodeAddress,
    manner: watch::Receiver<Manner>,
    go: watch::Receiver<bool>,
    asked: Arc<Mutex<BTreeMap<ChunkId, usize>>>,
}

impl Script {
    async fn run(self, mut host: Host, endpoint: Endpoint) {
        let mut links: BTreeMap<_, Connection> = BTreeMap::new();
        while let Some(happening) = host.next().await {
            match happening {
                Happening::Linked { link, connection, .. } => {
                    connection.send(Message::Hello(endpoint.hello())).unwrap();
                    links.insert(link, connection);
                }
                Happening::Heard { link, message } => {
                    if let Some(answer) = self.answer(message) {
                        links[&link].send(answer).unwrap();
                    }
                }
                Happening::Asked { request, responder, .. } => self.serve(request, responder),
                Happening::Gone { link, .. } => drop(links.remove(&link)),
            }
        }
    }

    fn answer(&self, message: Message) -> Option<Message> {
        match message {
            Message::Probe(number) => Some(Message::Alive(number)),
            Message::ListTitles => Some(Message::Titles(vec![film::manifest().summary()])),
            Message::Open(open) if open.title.as_str() != "film" => {
                Some(Message::Refused { request: open.request, why: Refusal::NoSuchTitle })
            }
            Message::Open(open) => {
                let manifest = film::manifest().to_bytes().unwrap();
                let sources = |layer| LayerSources {
                    layer,
                    nodes: if layer == Layer::BASE { self.base.clone() } else { vec![self.at] },
                };
                Some(Message::Opened(Opened {
                    request: open.request,
                    session: SessionId(1),
                    quality: Quality::GOLD,
                    manifest_length: u64::try_from(manifest.len()).unwrap(),
                    manifest_hash: Hash::of(&manifest),
                    sources: Layer::first(3).map(sources).collect(),
                    backup: None,
                    epoch: 0,
                    doors: Vec::new(),
                }))
            }
            _ => None,
        }
    }

    fn serve(&self, request: StreamRequest, responder: Responder) {
        let (manner, go) = (*self.manner.borrow(), self.go.clone());
        let bytes = match request {
            StreamRequest::Manifest(_) => film::manifest().to_bytes().unwrap().into(),
            StreamRequest::Chunk(chunk) => {
                let bytes = film::chunk_bytes(chunk.id.block, chunk.id.layer);
                *self.asked.lock().unwrap().entry(chunk.id).or_default() += 1;
                tokio::spawn(badly(manner, go, bytes, responder));
                return;
            }
        };
        tokio::spawn(badly(Manner::Well, go, bytes, responder));
    }
}

async fn badly(manner: Manner, mut go: watch::Receiver<bool>, bytes: Bytes, mut to: Responder) {
    let length = u64::try_from(bytes.len()).unwrap();
    if manner == Manner::Refusing {
        let _ = to.refuse(Refusal::Damaged).await;
        return;
    }
    to.grant(length, Hash::of(&bytes)).unwrap();
    let mut second = bytes;
    let first = second.split_to(second.len().min(LENGTH / 2));
    if to.send(first).await.is_err() {
        return;
    }
    match manner {
        Manner::Half => {
            // Not before the first half has arrived: a reset would overtake it.
            go.wait_for(|go| *go).await.unwrap();
            return;
        }
        Manner::Waiting => drop(go.wait_for(|go| *go).await.unwrap()),
        Manner::Bent => {
            let mut bent = second.to_vec();
            bent[1000] ^= 1;
            second = bent.into();
        }
        Manner::Well | Manner::Refusing => {}
    }
    if to.send(second).await.is_ok() {
        let _ = to.finish().await;
    }
}
