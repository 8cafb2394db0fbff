//! Answering one request: with what lies on the disk, or comes from the archive.

use crate::archive::{self, Followed};
use crate::store::Store;
use bytes::Bytes;
use media::Hash;
use protocol::node::Outcome;
use protocol::{Part, Refusal, StreamRequest};
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};
use tracing::debug;
use transport::{Form, Responder, ServeError};

/// What a stream was granted for, and of which version of the title.
pub(crate) type Granted = (StreamRequest, Hash);
/// Waits for the word on a request that is held.
pub(crate) type Held = oneshot::Receiver<Result<Granted, Refusal>>;

/// What a request that is held is told; nothing if the peer wants no more of it,
/// or the node has stopped.
pub(crate) async fn released(held: Held, responder: &Responder) -> Option<Result<Granted, Refusal>> {
    tokio::select! {
        word = held => word.ok(),
        () = responder.cancelled() => None,
    }
}

pub(crate) async fn answer(
    store: Arc<Store>,
    disk: Arc<Semaphore>,
    granted: Granted,
    mut responder: Responder,
) -> Outcome {
    if is_half(&granted.0) {
        responder.set_form(Form::Half);
    }
    if let StreamRequest::Chunk(chunk) = &granted.0
        && let Some(arriving) = store.arriving(&chunk.id.title, granted.1)
        && let Followed::Comes(growing) = arriving.ask(&chunk.id)
    {
        let Some(info) = arriving.manifest.chunk(chunk.id.block, chunk.id.layer) else {
            return Outcome::GivenUp;
        };
        let what = match chunk.part {
            Part::Whole => Some((info.length, info.hash)),
            Part::First => arriving.manifest.half(chunk.id.block, chunk.id.layer).map(|h| (h.length, h.hash)),
        };
        let Some(what) = what else { return refuse(responder, Refusal::NoSuchChunk).await };
        let given = archive::give(&growing, what, responder).await;
        return given.unwrap_or_else(|error| {
            debug!(%error, "a payload was given up");
            Outcome::GivenUp
        });
    }
    match fetch(store, &disk, granted).await {
        Ok((bytes, hash)) => match send(responder, bytes, hash).await {
            Ok(bytes) => Outcome::Sent { bytes },
            Err(error) => {
                debug!(%error, "a payload was given up");
                Outcome::GivenUp
            }
        },
        Err(why) => refuse(responder, why).await,
    }
}

async fn refuse(responder: Responder, why: Refusal) -> Outcome {
    // A peer that is gone need not hear it.
    let _ = responder.refuse(why).await;
    if why == Refusal::Damaged { Outcome::Damaged } else { Outcome::GivenUp }
}

/// Whether the first half of a chunk is asked for.
fn is_half(request: &StreamRequest) -> bool {
    matches!(request, StreamRequest::Chunk(chunk) if chunk.part == Part::First)
}

/// From memory at once, otherwise from disk on a thread that may block.
async fn fetch(
    store: Arc<Store>,
    disk: &Semaphore,
    (request, version): Granted,
) -> Result<(Bytes, Hash), Refusal> {
    if let Some(found) = store.recent(&request, version) {
        return store.part(&request, version, found);
    }
    let _turn = disk.acquire().await.map_err(|_| Refusal::Draining)?;
    let read = move || store.part(&request, version, store.read(&request, version)?);
    tokio::task::spawn_blocking(read).await.unwrap_or(Err(Refusal::Damaged))
}

async fn send(mut responder: Responder, bytes: Bytes, hash: Hash) -> Result<u64, ServeError> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    responder.grant(length, hash)?;
    responder.send(bytes).await?;
    responder.finish().await?;
    Ok(length)
}
