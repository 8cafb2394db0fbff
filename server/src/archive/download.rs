//! Copying one title from the archive, a few chunks at a time, until it is whole.

use super::arriving::{Arriving, Growing, Place};
use super::origin::{Line, Looked, dial};
use crate::gate::Gate;
use crate::store::Store;
use bytes::Bytes;
use media::library::{LibraryError, TitleGatherer};
use media::{Chunk, Layer, TitleName};
use protocol::node::Door;
use protocol::{ChunkRequest, Refusal, StreamRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};
use transport::{Connection, Endpoint, Expect, RequestError};

/// Chunks under way at once: enough to keep the link busy from one to the next.
const AT_ONCE: usize = 3;
/// How long a chunk may take.
const CHUNK: Duration = Duration::from_secs(30);
/// Before the archive is dialled again.
const PAUSE: Duration = Duration::from_millis(500);
/// A download to which nothing has come for so long is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// What the link may be ahead of its rate.
const AHEAD: Duration = Duration::from_millis(100);

/// The rate of the link to the archive, for all downloads together.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bits a second; 0: no bound.
    rate: u64,
    free_at: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(rate: u64) -> Self {
        Self { rate, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until the link has room for so many bytes more.
    async fn wait(&self, bytes: u64) {
        if self.rate == 0 {
            return;
        }
        let mut free_at = self.free_at.lock().await;
        let begin = (*free_at).max(Instant::now());
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.rate);
        *free_at = begin + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2));
        drop(free_at);
        sleep_until(begin.checked_sub(AHEAD).unwrap_or(begin)).await;
    }
}

/// What one download needs.
pub(super) struct Job {
    pub(super) endpoint: Endpoint,
    pub(super) store: Arc<Store>,
    pub(super) arriving: Arc<Arriving>,
    pub(super) pace: Arc<Pace>,
    pub(super) gate: Gate,
    pub(super) number: u64,
    pub(super) from: Door,
    pub(super) fetched: Arc<AtomicU64>,
}

#[derive(Debug, thiserror::Error)]
enum DownloadError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("the archive has delivered nothing for {} s", GIVE_UP.as_secs())]
    Silent,
    #[error("the archive has another version of the title by now")]
    OtherVersion,
    #[error("another order about the title came in between")]
    Overtaken,
    #[error("the node is about to stop")]
    Runtime,
}

/// How the fetching of one chunk ended.
type Fetched = (Place, Arc<Growing>, Result<(), RequestError>);

impl Job {
    pub(super) async fn run(self, looked: Looked, ended: mpsc::Sender<(TitleName, bool)>) {
        let title = looked.title.clone();
        let outcome = self.copy(looked.line).await;
        match &outcome {
            Ok(()) => info!(%title, "a title was copied from the archive"),
            Err(error) => warn!(%title, %error, "a title was not copied from the archive"),
        }
        self.arriving.ends(outcome.is_ok());
        // If nobody hears it, the node has stopped.
        let _ = ended.send((title, outcome.is_ok())).await;
    }

    async fn copy(&self, line: Line) -> Result<(), DownloadError> {
        let (store, bytes) = (Arc::clone(&self.store), self.arriving.bytes.clone());
        let begin = move || store.archive().map(|library| TitleGatherer::create(library, bytes)).transpose();
        let begun = spawn_blocking(begin).await.map_err(|_| DownloadError::Runtime)??;
        let (mut gatherer, gathered) = begun.ok_or(DownloadError::Runtime)?;
        self.arriving.lies_in(gathered);
        let (mut line, mut heard) = (Some(line), Instant::now());
        let mut under_way: JoinSet<Fetched> = JoinSet::new();
        loop {
            let Some(Line { connection, .. }) = &line else {
                line = Some(self.redial(heard).await?);
                continue;
            };
            while under_way.len() < AT_ONCE
                && let Some((place, growing)) = self.arriving.next()
            {
                under_way.spawn(self.fetch(connection.clone(), place, growing));
            }
            let ended = tokio::select! {
                ended = under_way.join_next() => ended,
                () = self.arriving.somebody_asks(), if under_way.len() < AT_ONCE => continue,
            };
            let Some(ended) = ended else { break };
            let (place, growing, outcome) = ended.map_err(|_| DownloadError::Runtime)?;
            match outcome {
                Ok(()) => {
                    gatherer = self.keep(gatherer, place, &growing).await?;
                    heard = Instant::now();
                }
                Err(error) => {
                    warn!(%error, block = place.0, layer = %place.1, "a chunk did not come from the archive");
                    self.arriving.not_come(place);
                    line = None;
                }
            }
        }
        let (gate, number) = (self.gate.clone(), self.number);
        let order = (self.arriving.manifest.title.clone(), Layer::BASE);
        let finish = move || gate.pass(number, &order, || gatherer.finish()).transpose();
        let shown = spawn_blocking(finish).await.map_err(|_| DownloadError::Runtime)??;
        shown.map(drop).ok_or(DownloadError::Overtaken)
    }

    /// A new connection on which the title is open, in the same version.
    async fn redial(&self, heard: Instant) -> Result<Line, DownloadError> {
        loop {
            if heard.elapsed() > GIVE_UP {
                return Err(DownloadError::Silent);
            }
            sleep(PAUSE).await;
            let title = &self.arriving.manifest.title;
            match timeout(GIVE_UP, dial(&self.endpoint, title, self.from)).await {
                Ok(Ok((line, _, hash))) if hash == self.arriving.hash => return Ok(line),
                Ok(Ok(_) | Err(Refusal::NoSuchTitle)) => return Err(DownloadError::OtherVersion),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Fetches one chunk. Whoever waits for it sees it come.
    fn fetch(
        &self,
        connection: Connection,
        place: Place,
        growing: Arc<Growing>,
    ) -> impl Future<Output = Fetched> + Send + 'static {
        let (arriving, pace) = (Arc::clone(&self.arriving), Arc::clone(&self.pace));
        let fetched = Arc::clone(&self.fetched);
        async move {
            let coming = async {
                let manifest = &arriving.manifest;
                let info = manifest.chunk(place.0, place.1).ok_or(RequestError::Unexpected)?;
                let deadline_ms = u32::try_from(CHUNK.as_millis()).unwrap_or(u32::MAX);
                let id = manifest.chunk_id(place.0, place.1);
                let request = StreamRequest::Chunk(ChunkRequest::whole(id, deadline_ms));
                pace.wait(info.length).await;
                let expect = Expect::Exactly { length: info.length, hash: info.hash };
                let come = async {
                    let mut reader = connection.open(&request, expect).await?;
                    while let Some(piece) = reader.next_piece().await? {
                        fetched.fetch_add(u64::try_from(piece.len()).unwrap_or(0), Ordering::Relaxed);
                        growing.add(piece);
                    }
                    Ok(())
                };
                timeout(CHUNK, come).await.unwrap_or(Err(RequestError::Timeout))
            };
            let outcome = coming.await;
            (place, growing, outcome)
        }
    }

    /// Puts a chunk that came whole, and right, onto the disk.
    async fn keep(
        &self,
        mut gatherer: TitleGatherer,
        place: Place,
        growing: &Growing,
    ) -> Result<TitleGatherer, DownloadError> {
        let arriving = Arc::clone(&self.arriving);
        let bytes = Bytes::from(growing.whole());
        let put = move || {
            let id = arriving.manifest.chunk_id(place.0, place.1);
            let none = || LibraryError::NoSuchChunk(id.clone());
            let info = arriving.manifest.chunk(place.0, place.1).ok_or_else(none)?;
            let chunk = Chunk::verify(id.clone(), bytes, info.length, &info.hash).map_err(|_| none())?;
            gatherer.put(&chunk)?;
            Ok::<_, LibraryError>(gatherer)
        };
        let gatherer = spawn_blocking(put).await.map_err(|_| DownloadError::Runtime)??;
        self.arriving.is_here(place);
        Ok(gatherer)
    }
}
