//! The store of titles from the origin's archive: a hidden folder of the library,
//! filled while the titles are watched and emptied by order.
//!
//! Each title is fetched once, whoever asks: its chunks in the order of the film,
//! those that somebody waits for first, and who waits for one sees it come. What
//! is not whole is out of sight, and nothing of it remains after a crash.

mod arriving;
mod download;
mod origin;

pub(crate) use arriving::{Arriving, Followed, give};
pub(crate) use origin::{Looked, look};

use crate::gate::Gate;
use crate::store::Store;
use download::{Job, Pace};
use media::library::{Library, LibraryError, remove_title};
use media::{Layer, TitleName};
use protocol::node::Door;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::{error, warn};
use transport::Endpoint;

/// The folder in the library, hidden from whoever looks for titles.
const FOLDER: &str = ".archive";

/// Opens the store of a library; what an earlier life left half-written is
/// deleted. Blocks on the disk.
///
/// # Errors
/// What the disk refuses.
pub(crate) fn open(library: &Path) -> Result<Library, LibraryError> {
    let store = Library::create(library.join(FOLDER))?;
    let unreadable = |source| LibraryError::Io { action: "read", path: store.path().to_owned(), source };
    for entry in std::fs::read_dir(store.path()).map_err(unreadable)?.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with('.')
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            warn!(path = %entry.path().display(), %error, "remains of a title are not deleted");
        }
    }
    Ok(store)
}

/// What is downloaded, by title, and what was.
#[derive(Debug)]
pub(crate) struct Archive {
    endpoint: Endpoint,
    store: Arc<Store>,
    pace: Arc<Pace>,
    running: BTreeMap<TitleName, AbortHandle>,
    gate: Gate,
    /// Counts the orders about titles on disk.
    orders: u64,
    fetched: Arc<AtomicU64>,
    ended: mpsc::Sender<(TitleName, bool)>,
}

impl Archive {
    /// Nothing is downloaded yet. `rate`: bits a second for all downloads, 0 for no
    /// bound. What has ended is told through `ended`.
    pub(crate) fn new(
        endpoint: Endpoint,
        store: Arc<Store>,
        rate: u64,
        ended: mpsc::Sender<(TitleName, bool)>,
    ) -> Self {
        Self {
            endpoint,
            store,
            pace: Arc::new(Pace::new(rate)),
            running: BTreeMap::new(),
            gate: Gate::default(),
            orders: 0,
            fetched: Arc::default(),
            ended,
        }
    }

    /// Bytes of payload that came from the archive since the start.
    pub(crate) fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Begins to copy a title into the store.
    pub(crate) fn download(&mut self, looked: Looked, from: Door) {
        self.running.retain(|_, task| !task.is_finished());
        let title = looked.title.clone();
        self.orders = self.orders.saturating_add(1);
        let arriving = Arc::new(Arriving::new(&looked));
        self.store.arrives(title.clone(), Arc::clone(&arriving));
        let job = Job {
            endpoint: self.endpoint.clone(),
            store: Arc::clone(&self.store),
            arriving,
            pace: Arc::clone(&self.pace),
            gate: self.gate.clone(),
            number: self.orders,
            from,
            fetched: Arc::clone(&self.fetched),
        };
        let task = tokio::spawn(job.run(looked, self.ended.clone()));
        if let Some(before) = self.running.insert(title, task.abort_handle()) {
            before.abort();
        }
    }

    /// Takes a title out of the store. What is to be done on a thread that may
    /// block.
    pub(crate) fn evict(&mut self, title: TitleName) -> impl FnOnce() + Send + 'static {
        if let Some(task) = self.running.remove(&title) {
            task.abort();
        }
        self.store.stays_away(&title);
        self.orders = self.orders.saturating_add(1);
        let (gate, store, number) = (self.gate.clone(), Arc::clone(&self.store), self.orders);
        move || {
            let Some(library) = store.archive() else { return };
            let order = (title, Layer::BASE);
            let remove = || if library.contains(&order.0) { remove_title(library, &order.0) } else { Ok(()) };
            if let Some(Err(error)) = gate.pass(number, &order, remove) {
                error!(title = %order.0, %error, "a title was not deleted from the store");
            }
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        for task in self.running.values() {
            task.abort();
        }
    }
}
