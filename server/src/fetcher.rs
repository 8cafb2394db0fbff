//! Copies layers from other nodes: agents carry names, and who accepts one
//! fetches the layer itself.
//!
//! A few layers are copied at a time, and one that fails is begun again after a
//! moment, until it is whole or not wanted any more. What is on its way is out
//! of sight in the library.

use media::library::{LayerReceiver, Library, LibraryError};
use media::{Chunk, Layer, Quality, TitleName};
use protocol::{Message, NodeAddress, Open, Refusal, StreamRequest, UserId, Visit};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use transport::{DialError, Endpoint, Expect, RequestError};

/// Layers copied at once.
const AT_ONCE: usize = 2;
/// How long a node may take to be reached, and then to open a title.
const OPENING: Duration = Duration::from_secs(5);
/// How long a chunk or manifest may take.
const PAYLOAD: Duration = Duration::from_secs(30);
/// Before a copy that failed is begun again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// A layer that is copied or waits for it.
type Order = (TitleName, Layer);

/// All copies under way.
#[derive(Debug)]
pub(crate) struct Fetcher {
    endpoint: Endpoint,
    library: Library,
    turns: Arc<Semaphore>,
    running: BTreeMap<Order, AbortHandle>,
    done: mpsc::Sender<Order>,
}

impl Fetcher {
    /// Nothing is copied yet. What is whole is told through `done`.
    pub(crate) fn new(endpoint: Endpoint, library: Library, done: mpsc::Sender<Order>) -> Self {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        Self { endpoint, library, turns, running: BTreeMap::new(), done }
    }

    /// Copies a layer, unless that is being done.
    pub(crate) fn fetch(&mut self, title: TitleName, layer: Layer, from: NodeAddress) {
        self.running.retain(|_, copy| !copy.is_finished());
        let order = (title, layer);
        if self.running.contains_key(&order) {
            return;
        }
        let (endpoint, library) = (self.endpoint.clone(), self.library.clone());
        let (turns, done, copied) = (Arc::clone(&self.turns), self.done.clone(), order.clone());
        let copy = tokio::spawn(async move {
            let mut pause = PAUSES.0;
            loop {
                let Ok(turn) = turns.acquire().await else { return };
                match copy(&endpoint, &library, &copied, from).await {
                    Ok(()) => break,
                    Err(error) => {
                        let (title, layer) = &copied;
                        warn!(%title, %layer, from = %from.peer, %error, "a layer was not copied");
                    }
                }
                drop(turn);
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
            info!(title = %copied.0, layer = %copied.1, from = %from.peer, "a layer was copied");
            // If nobody hears it, the node has stopped.
            let _ = done.send(copied).await;
        });
        self.running.insert(order, copy.abort_handle());
    }

    /// Stops to copy a layer.
    pub(crate) fn cancel(&mut self, title: &TitleName, layer: Layer) {
        if let Some(copy) = self.running.remove(&(title.clone(), layer)) {
            copy.abort();
        }
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        for copy in self.running.values() {
            copy.abort();
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the title is refused: {0}")]
    Refused(Refusal),
    #[error("no answer in time")]
    Silent,
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("the node is about to stop")]
    Runtime,
}

async fn copy(
    endpoint: &Endpoint,
    library: &Library,
    (title, layer): &Order,
    from: NodeAddress,
) -> Result<(), CopyError> {
    let (connection, mut inbox) = endpoint.dial(from.address, Some(from.peer), OPENING).await?;
    let open = Open::new(1, title.clone(), Quality(u8::MAX), UserId(0), Visit::Copy);
    connection.send(Message::Open(open)).map_err(|_| CopyError::Silent)?;
    let answer = async {
        loop {
            match inbox.recv().await {
                Ok(Message::Opened(opened)) => return Ok(opened),
                Ok(Message::Refused { why, .. }) => return Err(CopyError::Refused(why)),
                Ok(_) => {}
                Err(_) => return Err(CopyError::Silent),
            }
        }
    };
    let opened = timeout(OPENING, answer).await.map_err(|_| CopyError::Silent)??;
    let expect = Expect::Exactly { length: opened.manifest_length, hash: opened.manifest_hash };
    if opened.manifest_length > media::manifest::MAX_MANIFEST_BYTES {
        return Err(CopyError::Refused(Refusal::Malformed));
    }
    let manifest = connection.request(&StreamRequest::Manifest(title.clone()), expect, PAYLOAD).await?.bytes;
    let (library, layer, named) = (library.clone(), *layer, title.clone());
    let begin = move || {
        let receiver = LayerReceiver::create(&library, &manifest, layer)?;
        Ok::<_, LibraryError>((receiver.manifest().title == named).then_some(receiver))
    };
    let receiver = spawn_blocking(begin).await.map_err(|_| CopyError::Runtime)??;
    let mut receiver = receiver.ok_or(CopyError::Refused(Refusal::Malformed))?;
    let manifest = Arc::clone(receiver.manifest());
    for block in 0..manifest.block_count() {
        let Some(info) = manifest.chunk(block, layer) else { break };
        let chunk: Chunk = connection.request_chunk(&manifest.chunk_id(block, layer), info, PAYLOAD).await?;
        let write = move || receiver.append(&chunk).map(|()| receiver);
        receiver = spawn_blocking(write).await.map_err(|_| CopyError::Runtime)??;
    }
    spawn_blocking(move || receiver.finish()).await.map_err(|_| CopyError::Runtime)??;
    Ok(())
}
