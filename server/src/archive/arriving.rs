//! A title that comes: which chunks are here, which are on their way, and who
//! waits for them.

use super::origin::Looked;
use bytes::Bytes;
use media::library::{Gathered, LibraryError};
use media::{ChunkId, Hash, Layer, Manifest};
use protocol::Refusal;
use protocol::node::Outcome;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};
use transport::{Responder, ServeError};

/// A chunk by its place.
pub(super) type Place = (u32, Layer);

/// A title that is being copied into the store.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) bytes: Bytes,
    pub(crate) hash: Hash,
    gathered: OnceLock<Gathered>,
    state: Mutex<State>,
    /// Somebody has begun to wait.
    asked: Notify,
    /// Nothing: it goes on.
    end: watch::Sender<Option<bool>>,
}

#[derive(Debug, Default)]
struct State {
    here: BTreeSet<Place>,
    /// Chunks that come, or that somebody waits for.
    growing: BTreeMap<Place, Arc<Growing>>,
    /// Those that somebody waits for and nobody fetches, in the order of asking.
    wanted: VecDeque<Place>,
    fetched: BTreeSet<Place>,
    /// Everything before it is here or fetched.
    next: usize,
}

/// A chunk on its way: one writes, many follow.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    pieces: Vec<Bytes>,
    end: Option<Result<(), Refusal>>,
}

/// How somebody comes by a chunk.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It is on the disk: [`Arriving::read`].
    Here,
    /// It comes.
    Comes(Arc<Growing>),
}

impl Growing {
    pub(super) fn add(&self, piece: Bytes) {
        self.progress.send_modify(|progress| progress.pieces.push(piece));
    }

    /// All that came. Whoever follows has all of it by then.
    pub(super) fn whole(&self) -> Vec<u8> {
        let mut pieces = Vec::new();
        self.progress.send_modify(|progress| {
            progress.end = Some(Ok(()));
            pieces.clone_from(&progress.pieces);
        });
        pieces.concat()
    }

    fn has_begun(&self) -> bool {
        !self.progress.borrow().pieces.is_empty()
    }

    fn fail(&self, why: Refusal) {
        self.progress.send_modify(|progress| progress.end = Some(Err(why)));
    }
}

impl Arriving {
    pub(crate) fn new(looked: &Looked) -> Self {
        Self {
            manifest: Arc::clone(&looked.manifest),
            bytes: looked.bytes.clone(),
            hash: looked.hash,
            gathered: OnceLock::new(),
            state: Mutex::default(),
            asked: Notify::new(),
            end: watch::Sender::new(None),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here the chunks are read.
    pub(super) fn lies_in(&self, gathered: Gathered) {
        // There is one download, which says it once.
        let _ = self.gathered.set(gathered);
    }

    /// Somebody wants a chunk: it is fetched before those that nobody wants.
    pub(crate) fn ask(&self, id: &ChunkId) -> Followed {
        let place = (id.block, id.layer);
        let mut state = self.state();
        if state.here.contains(&place) {
            return Followed::Here;
        }
        if !state.fetched.contains(&place) && !state.wanted.contains(&place) {
            state.wanted.push_back(place);
            self.asked.notify_one();
        }
        let growing = Arc::clone(state.growing.entry(place).or_default());
        drop(state);
        if *self.end.borrow() == Some(false) {
            growing.fail(Refusal::Upstream);
        }
        Followed::Comes(growing)
    }

    /// Reads a chunk that is here. Blocks on the disk.
    pub(crate) fn read(&self, id: &ChunkId) -> Result<Bytes, LibraryError> {
        let gathered = self.gathered.get().ok_or_else(|| LibraryError::NotKept(id.clone()))?;
        gathered.read(id.block, id.layer)
    }

    /// What is to be fetched now: what somebody waits for, else what comes next in
    /// the film, Base first.
    pub(super) fn next(&self) -> Option<(Place, Arc<Growing>)> {
        let mut state = self.state();
        let layers = self.manifest.layers.len().max(1);
        let all = self.manifest.blocks.len().saturating_mul(layers);
        let place = loop {
            let place = match state.wanted.pop_front() {
                Some(place) => place,
                None if state.next < all => {
                    let (block, layer) = (state.next / layers, state.next % layers);
                    state.next = state.next.saturating_add(1);
                    let layer = Layer(u8::try_from(layer).unwrap_or(u8::MAX));
                    (u32::try_from(block).unwrap_or(u32::MAX), layer)
                }
                None => return None,
            };
            if !state.here.contains(&place) && state.fetched.insert(place) {
                break place;
            }
        };
        Some((place, Arc::clone(state.growing.entry(place).or_default())))
    }

    /// A chunk is on the disk.
    pub(super) fn is_here(&self, place: Place) {
        let mut state = self.state();
        state.fetched.remove(&place);
        state.growing.remove(&place);
        state.here.insert(place);
    }

    /// A chunk did not come, and is to be fetched again. Who has seen some of it is
    /// told, and asks again; who has seen nothing goes on waiting.
    pub(super) fn not_come(&self, place: Place) {
        let mut state = self.state();
        state.fetched.remove(&place);
        let begun = state.growing.get(&place).is_some_and(|growing| growing.has_begun());
        if begun && let Some(growing) = state.growing.remove(&place) {
            growing.fail(Refusal::Upstream);
        }
        state.wanted.push_front(place);
    }

    /// Somebody has begun to wait since this was asked last.
    pub(super) async fn somebody_asks(&self) {
        self.asked.notified().await;
    }

    /// The download has ended.
    pub(super) fn ends(&self, whole: bool) {
        self.end.send_replace(Some(whole));
        let growing = std::mem::take(&mut self.state().growing);
        for growing in growing.into_values().filter(|_| !whole) {
            growing.fail(Refusal::Upstream);
        }
    }

    /// Whether all of it is in the store.
    pub(crate) fn is_whole(&self) -> bool {
        *self.end.borrow() == Some(true)
    }
}

/// Gives a chunk to somebody as it comes. It is granted with its first piece, so
/// that one that does not come can be refused by its name; one that breaks off is
/// reset, which dropping the responder does.
pub(crate) async fn give(
    growing: &Growing,
    (length, hash): (u64, Hash),
    mut responder: Responder,
) -> Result<Outcome, ServeError> {
    let mut progress = growing.progress.subscribe();
    let (mut next, mut left) = (0, length);
    loop {
        let step = {
            let news = |progress: &Progress| progress.pieces.len() > next || progress.end.is_some();
            let progress = tokio::select! {
                progress = progress.wait_for(news) => progress,
                () = responder.cancelled() => return Err(ServeError::Cancelled),
            };
            // The writer is gone without a word: the node stops.
            progress.map_or(Err(Some(Refusal::Draining)), |progress| {
                match (progress.pieces.get(next), progress.end) {
                    (Some(piece), _) => Ok(piece.clone()),
                    (None, Some(Err(why))) => Err(Some(why)),
                    (None, _) => Err(None),
                }
            })
        };
        match step {
            // Of what is asked for only in part, no more than that goes out.
            Ok(mut piece) if left > 0 => {
                if next == 0 {
                    responder.grant(length, hash)?;
                }
                next = next.saturating_add(1);
                piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left = left.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                responder.send(piece).await?;
            }
            Ok(_) | Err(None) => {
                responder.finish().await?;
                return Ok(Outcome::Sent { bytes: length });
            }
            Err(Some(why)) => {
                if next == 0 {
                    responder.refuse(why).await?;
                }
                return Ok(Outcome::GivenUp);
            }
        }
    }
}
