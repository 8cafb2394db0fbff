//! Reading a chunk from the disk without waiting for a disk that hangs.

use crate::block::Block;
use crate::store::Reading;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

/// A disk that takes longer is slower than any node upstream.
const PATIENCE: Duration = Duration::from_secs(1);

/// What came of it, and of which chunk of its name.
#[derive(Debug)]
pub(crate) enum Read {
    /// It is what was written.
    Right(u64, Block),
    /// It is not.
    Bad(u64),
    /// The disk does not answer in time.
    Late,
}

/// Reads and checks one chunk as soon as `reads` has room. A read that hangs keeps
/// its room, so that a disk that hangs costs a few threads and no more.
pub(crate) async fn read(reading: Reading, reads: Arc<Semaphore>) -> Read {
    let serial = reading.serial;
    let read = async {
        let room = reads.acquire_owned().await.ok()?;
        let read = spawn_blocking(move || {
            let read = reading.read();
            drop(room);
            read
        });
        read.await.ok()
    };
    match timeout(PATIENCE, read).await {
        Ok(Some(Ok(block))) => Read::Right(serial, block),
        Ok(Some(Err(error))) => {
            warn!(%error, "a chunk cannot be read back");
            Read::Bad(serial)
        }
        Ok(None) | Err(_) => Read::Late,
    }
}
