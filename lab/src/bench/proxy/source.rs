//! A node that has one long title of which nothing lies anywhere: chunks are made
//! when they are asked for. Their lengths differ, as those of films do, so that
//! the memory of whoever keeps them has gaps.

use crate::bench::BenchError;
use crate::bench::serve::film::chunk_bytes;
use crate::bench::serve::load::failed;
use bytes::Bytes;
use media::manifest::{Color, MANIFEST_VERSION, Made, Ratio};
use media::{BlockInfo, ChunkId, ChunkInfo, Hash, Layer, LayerInfo, Manifest, TitleName};
use protocol::{LayerSources, Message, NodeAddress, Opened, PeerId, Refusal, Role, SessionId, StreamRequest};
use std::collections::BTreeMap;
use std::sync::Arc;
use transport::{Authority, Connection, Endpoint, EndpointConfig, Happening, Host, Identity, Responder};

/// Layers of the title.
pub(super) const LAYERS: u8 = 3;

/// A node that serves as long as this lives.
pub(super) struct Source {
    pub(super) at: NodeAddress,
    pub(super) manifest: Arc<Manifest>,
    endpoint: Endpoint,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.endpoint.close_now();
    }
}

impl Source {
    /// Starts it with a title of so many blocks.
    pub(super) fn start(
        authority: &Authority,
        keys: &std::path::Path,
        blocks: u32,
    ) -> Result<Self, BenchError> {
        let peer: PeerId = "source".parse().map_err(failed("a name"))?;
        let identity = Identity::obtain(keys, peer).map_err(failed("keys"))?;
        let config = EndpointConfig::member(Role::Node, &identity, authority.clone());
        let endpoint = Endpoint::open(&config).map_err(failed("a source"))?;
        let address = endpoint.local_address().map_err(failed("a source"))?;
        let at = NodeAddress { peer, address };
        let title: TitleName = "long".parse().map_err(failed("a title"))?;
        let manifest = Arc::new(manifest(&title, blocks));
        let bytes = Bytes::from(manifest.to_bytes().map_err(failed("a manifest"))?);
        let host = Host::start(endpoint.clone(), address);
        tokio::spawn(run(host, endpoint.clone(), at, bytes));
        Ok(Self { at, manifest, endpoint })
    }
}

/// Bytes of a chunk: 4 to 28 KiB, 16 KiB on the average.
fn chunk(block: u32, layer: Layer) -> Vec<u8> {
    let number = block.wrapping_mul(LAYERS.into()).wrapping_add(layer.0.into());
    // Knuth's multiplicative hash: neighbours get lengths far apart.
    let spread = number.wrapping_mul(2_654_435_761).wrapping_shr(16) % (24 * 1024);
    chunk_bytes(number, usize::try_from(4 * 1024 + spread).unwrap_or(4096))
}

fn manifest(title: &TitleName, blocks: u32) -> Manifest {
    let layers = || Layer::first(LAYERS);
    let layer = |layer: Layer| LayerInfo {
        factor: 1,
        width: 64,
        height: 64,
        codec: if layer == Layer::BASE { "avc1.640020".to_owned() } else { "lenh".to_owned() },
        file: format!("{layer}.mp4"),
        init: vec![0],
        delay: 0,
        sync_every: None,
        halves: false,
    };
    let info = |block: u32, layer: Layer| {
        let bytes = chunk(block, layer);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        // Room for the longest one, since no file lies behind it.
        ChunkInfo { offset: 1024 + u64::from(block) * 32 * 1024, length, hash: Hash::of(&bytes) }
    };
    let block = |number: u32| BlockInfo {
        start: number.into(),
        duration: 1,
        frames: 1,
        base_hash: Hash::of(b""),
        quality_hashes: vec![Hash::of(b""); LAYERS.into()],
        chunks: layers().map(|layer| info(number, layer)).collect(),
        halves: Vec::new(),
    };
    Manifest {
        version: MANIFEST_VERSION,
        title: title.clone(),
        width: 64,
        height: 64,
        frame_rate: Ratio { num: 1, den: 1 },
        timescale: 1,
        duration: blocks.into(),
        color: Color { full_range: false, primaries: 2, transfer: 2, matrix: 2 },
        pixel_aspect: Ratio { num: 1, den: 1 },
        class: media::TitleClass::Archived,
        made: Made {
            by: "a bench".to_owned(),
            preset: "none".to_owned(),
            crf_centi: 0,
            quantizers: vec![0; usize::from(LAYERS).saturating_sub(1)],
            block_ms: 1000,
        },
        audio: None,
        layers: layers().map(layer).collect(),
        blocks: (0..blocks).map(block).collect(),
    }
}

async fn run(mut host: Host, endpoint: Endpoint, at: NodeAddress, manifest: Bytes) {
    let mut links: BTreeMap<_, Connection> = BTreeMap::new();
    let hash = Hash::of(&manifest);
    let say = |connection: Option<&Connection>, message| {
        // Whoever is gone need not hear it.
        let _ = connection.map(|connection| connection.send(message));
    };
    while let Some(happening) = host.next().await {
        match happening {
            Happening::Linked { link, connection, .. } => {
                say(Some(&connection), Message::Hello(endpoint.hello()));
                links.insert(link, connection);
            }
            Happening::Heard { link, message: Message::Open(open) } => {
                let sources = |layer| LayerSources { layer, nodes: vec![at] };
                let opened = Opened {
                    request: open.request,
                    session: SessionId(1),
                    quality: open.quality,
                    manifest_length: u64::try_from(manifest.len()).unwrap_or(u64::MAX),
                    manifest_hash: hash,
                    sources: Layer::first(LAYERS).map(sources).collect(),
                    backup: None,
                    epoch: 0,
                    doors: Vec::new(),
                };
                say(links.get(&link), Message::Opened(opened));
            }
            Happening::Heard { .. } => {}
            Happening::Asked { request, responder, .. } => {
                tokio::spawn(answer(request, responder, manifest.clone()));
            }
            Happening::Gone { link, .. } => drop(links.remove(&link)),
        }
    }
}

async fn answer(request: StreamRequest, mut to: Responder, manifest: Bytes) {
    let bytes = match request {
        StreamRequest::Manifest(_) => manifest,
        StreamRequest::Chunk(chunk) => self::chunk(chunk.id.block, chunk.id.layer).into(),
    };
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if to.grant(length, Hash::of(&bytes)).is_err() {
        let _ = to.refuse(Refusal::Damaged).await;
    } else if to.send(bytes).await.is_ok() {
        // A proxy that is gone ends its connection.
        let _ = to.finish().await;
    }
}

/// The name of the chunk that comes at this place of the title.
pub(super) fn nth(manifest: &Manifest, place: u32) -> Option<ChunkId> {
    let layer = u8::try_from(place % u32::from(LAYERS)).ok().map(Layer)?;
    let block = place / u32::from(LAYERS);
    manifest.chunk(block, layer)?;
    Some(manifest.chunk_id(block, layer))
}
