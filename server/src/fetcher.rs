//! Copies layers from other nodes: agents carry names, and who accepts one
//! fetches the layer itself.
//!
//! A few layers are copied at a time, and one that fails is begun again after a
//! moment, until it is whole or not wanted any more. What is on its way is out
//! of sight in the library. Every try goes to where the node was last heard to be.

use crate::gate::Gate;
use media::library::{LayerReceiver, Library, LibraryError, remove_layer};
use media::{Chunk, Hash, Layer, Quality, TitleName};
use protocol::{Message, NodeAddress, Open, Refusal, StreamRequest, UserId, Visit};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::{mpsc, watch};
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
    running: BTreeMap<Order, Copying>,
    gate: Gate,
    /// Counts the orders about layers on disk.
    orders: u64,
    done: mpsc::Sender<Order>,
}

/// One copy under way.
#[derive(Debug)]
struct Copying {
    task: AbortHandle,
    version: Hash,
    /// Where the node was last heard to be.
    from: watch::Sender<NodeAddress>,
}

impl Fetcher {
    /// Nothing is copied yet. What is whole is told through `done`.
    pub(crate) fn new(endpoint: Endpoint, library: Library, done: mpsc::Sender<Order>) -> Self {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let (running, gate) = (BTreeMap::new(), Gate::default());
        Self { endpoint, library, turns, running, gate, orders: 0, done }
    }

    /// Copies this version of a layer. If that is being done, it is done from
    /// there from now on; if it is another version, that one is given up.
    pub(crate) fn fetch(&mut self, title: TitleName, layer: Layer, from: NodeAddress, version: Hash) {
        self.running.retain(|_, copying| !copying.task.is_finished());
        let order = (title, layer);
        if let Some(copying) = self.running.get(&order).filter(|copying| copying.version == version) {
            copying.from.send_replace(from);
            return;
        }
        self.stop(&order);
        self.orders = self.orders.saturating_add(1);
        let (sender, from) = watch::channel(from);
        let job = Job {
            endpoint: self.endpoint.clone(),
            library: self.library.clone(),
            gate: self.gate.clone(),
            number: self.orders,
            order: order.clone(),
            version,
        };
        let task = tokio::spawn(job.run(from, Arc::clone(&self.turns), self.done.clone()));
        self.running.insert(order, Copying { task: task.abort_handle(), version, from: sender });
    }

    /// Stops to copy a layer and deletes what is there of it. What is to be done on
    /// a thread that may block: the outcome is whether anything was deleted.
    pub(crate) fn remove(
        &mut self,
        title: &TitleName,
        layer: Layer,
    ) -> impl FnOnce() -> Result<bool, LibraryError> + Send + 'static {
        let order = (title.clone(), layer);
        self.stop(&order);
        self.orders = self.orders.saturating_add(1);
        let (gate, library, number) = (self.gate.clone(), self.library.clone(), self.orders);
        move || gate.pass(number, &order, || remove_layer(&library, &order.0, order.1)).unwrap_or(Ok(false))
    }

    fn stop(&mut self, order: &Order) {
        if let Some(copying) = self.running.remove(order) {
            copying.task.abort();
        }
    }
}

/// What one copy needs.
struct Job {
    endpoint: Endpoint,
    library: Library,
    gate: Gate,
    number: u64,
    order: Order,
    version: Hash,
}

impl Job {
    async fn run(
        self,
        mut from: watch::Receiver<NodeAddress>,
        turns: Arc<Semaphore>,
        done: mpsc::Sender<Order>,
    ) {
        let (title, layer) = &self.order;
        let mut pause = PAUSES.0;
        loop {
            let Ok(turn) = turns.acquire().await else { return };
            let node = *from.borrow_and_update();
            match self.copy(node).await {
                Ok(true) => {
                    info!(%title, %layer, from = %node.peer, "a layer was copied");
                    break;
                }
                // Another order about the layer came in between.
                Ok(false) => return,
                Err(error) => warn!(%title, %layer, from = %node.peer, %error, "a layer was not copied"),
            }
            drop(turn);
            // Where it is by now is worth a try at once.
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(PAUSES.1),
                Ok(()) = from.changed() => pause = PAUSES.0,
            }
        }
        // If nobody hears it, the node has stopped.
        let _ = done.send(self.order).await;
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        for copying in self.running.values() {
            copying.task.abort();
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the title is refused: {0}")]
    Refused(Refusal),
    #[error("it has another version of the title")]
    OtherVersion,
    #[error("no answer in time")]
    Silent,
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("the node is about to stop")]
    Runtime,
}

impl Job {
    /// One try. Whether the layer is there now; if not, it is not wanted any more.
    async fn copy(&self, from: NodeAddress) -> Result<bool, CopyError> {
        let (title, layer) = &self.order;
        let (connection, mut inbox) = self.endpoint.dial(from.address, Some(from.peer), OPENING).await?;
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
        if opened.manifest_hash != self.version {
            return Err(CopyError::OtherVersion);
        }
        let expect = Expect::Exactly { length: opened.manifest_length, hash: opened.manifest_hash };
        if opened.manifest_length > media::manifest::MAX_MANIFEST_BYTES {
            return Err(CopyError::Refused(Refusal::Malformed));
        }
        let manifest =
            connection.request(&StreamRequest::Manifest(title.clone()), expect, PAYLOAD).await?.bytes;
        let (library, layer, named) = (self.library.clone(), *layer, title.clone());
        let begin = move || {
            let receiver = LayerReceiver::create(&library, &manifest, layer)?;
            Ok::<_, LibraryError>((receiver.manifest().title == named).then_some(receiver))
        };
        let receiver = spawn_blocking(begin).await.map_err(|_| CopyError::Runtime)??;
        let mut receiver = receiver.ok_or(CopyError::Refused(Refusal::Malformed))?;
        let manifest = Arc::clone(receiver.manifest());
        for block in 0..manifest.block_count() {
            let Some(info) = manifest.chunk(block, layer) else { break };
            let chunk: Chunk =
                connection.request_chunk(&manifest.chunk_id(block, layer), info, PAYLOAD).await?;
            let write = move || receiver.append(&chunk).map(|()| receiver);
            receiver = spawn_blocking(write).await.map_err(|_| CopyError::Runtime)??;
        }
        let (gate, number, order) = (self.gate.clone(), self.number, self.order.clone());
        let finish = move || gate.pass(number, &order, || receiver.finish()).transpose();
        let shown = spawn_blocking(finish).await.map_err(|_| CopyError::Runtime)??;
        Ok(shown.is_some())
    }
}
