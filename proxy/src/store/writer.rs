//! One thread that writes to the folder, so that nobody else waits for the disk.
//!
//! It does things in the order in which it is told. Chunks that wait are bounded
//! in number and in bytes, and what is beyond is dropped; orders to remove are as
//! many as there are files at most.

use super::folder::{Folder, StoreError};
use bytes::Bytes;
use media::{ChunkId, TitleName};
use protocol::proxy::NotKept;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::warn;

/// The most chunks that wait to be written.
const MAX_WAITING: usize = 512;
/// The most bytes of chunks that wait to be written; one is always let in.
const MAX_WAITING_BYTES: u64 = 64 * 1024 * 1024;

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
    waiting: usize,
    waiting_bytes: u64,
}

#[derive(Debug)]
enum Job {
    Learn(TitleName, Bytes),
    Forget(TitleName),
    Write(ChunkId, u64, Bytes),
    Remove(ChunkId),
}

/// A write that is over.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) id: ChunkId,
    pub(crate) serial: u64,
    pub(crate) outcome: io::Result<()>,
    length: u64,
}

/// Where it is told which writes are over; as many as wait at most.
#[derive(Debug)]
pub(crate) struct Writes(UnboundedReceiver<Written>);

impl Writes {
    /// Nothing is ever written.
    pub(super) fn none() -> Self {
        Self(unbounded_channel().1)
    }

    /// The next one; nothing if there will be none. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> Option<Written> {
        self.0.recv().await
    }
}

impl Writer {
    pub(super) fn start(folder: Arc<Folder>) -> Result<(Self, Writes), StoreError> {
        let (jobs, queue) = mpsc::channel();
        let (done, writes) = unbounded_channel();
        let thread =
            Builder::new().name("cache-writer".to_owned()).spawn(move || work(&folder, &queue, &done));
        let thread =
            thread.map_err(StoreError::io("start the thread that writes", Path::new("the cache")))?;
        Ok((Self { jobs, thread, waiting: 0, waiting_bytes: 0 }, Writes(writes)))
    }

    pub(super) fn learn(&mut self, title: TitleName, manifest: Bytes) {
        self.tell(Job::Learn(title, manifest));
    }

    pub(super) fn forget(&mut self, title: TitleName) {
        self.tell(Job::Forget(title));
    }

    pub(super) fn remove(&mut self, id: ChunkId) {
        self.tell(Job::Remove(id));
    }

    /// # Errors
    /// [`NotKept::Busy`] if too much waits already.
    pub(super) fn write(&mut self, id: &ChunkId, serial: u64, bytes: Bytes) -> Result<(), NotKept> {
        let all = self.waiting_bytes.saturating_add(length(&bytes));
        if self.waiting >= MAX_WAITING || (self.waiting > 0 && all > MAX_WAITING_BYTES) {
            return Err(NotKept::Busy);
        }
        self.waiting = self.waiting.saturating_add(1);
        self.waiting_bytes = all;
        self.tell(Job::Write(id.clone(), serial, bytes));
        Ok(())
    }

    /// A write is over, well or badly.
    pub(super) fn done(&mut self, written: &Written) {
        self.waiting = self.waiting.saturating_sub(1);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(written.length);
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Waits until all is done.
    pub(super) fn finish(self) {
        drop(self.jobs);
        if self.thread.join().is_err() {
            warn!("the thread that writes to the cache broke down");
        }
    }

    fn tell(&self, job: Job) {
        // The thread ends only after this is dropped.
        let _ = self.jobs.send(job);
    }
}

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn work(folder: &Folder, queue: &mpsc::Receiver<Job>, done: &UnboundedSender<Written>) {
    for job in queue {
        let other = match job {
            Job::Write(id, serial, bytes) => {
                let (outcome, length) = (folder.write_chunk(&id, &bytes), length(&bytes));
                // If nobody listens the proxy stops, and what waits is written all the same.
                let _ = done.send(Written { id, serial, outcome, length });
                continue;
            }
            Job::Learn(title, manifest) => folder.write_title(&title, &manifest),
            Job::Forget(title) => folder.remove_title(&title),
            Job::Remove(id) => folder.remove_chunk(&id),
        };
        if let Err(error) = other {
            // Without its manifest nothing of a title is found again, and a file that
            // could not be removed is removed with its title or at the next start.
            warn!(%error, "the disk of the cache refuses");
        }
    }
}
