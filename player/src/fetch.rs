//! One chunk, fetched by a task of its own.

use crate::link::{News, Stopper};
use media::{ChunkId, ChunkInfo, Half};
use protocol::player::{FetchFailure, RequestId, SourceId};
use std::time::Duration;
use tokio::sync::mpsc;
use transport::{Connection, RequestError};

/// What to fetch, and from whom.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) request: RequestId,
    pub(crate) source: SourceId,
    pub(crate) id: ChunkId,
    pub(crate) info: ChunkInfo,
    /// Its first half, if it comes in halves.
    pub(crate) half: Option<Half>,
    pub(crate) within: Duration,
}

/// Fetches a chunk and checks it; dropping the result tells the source to stop.
pub(crate) fn fetch(connection: Connection, errand: Errand, news: mpsc::Sender<News>) -> Stopper {
    let task = tokio::spawn(async move {
        let Errand { request, source, id, info, half, within } = errand;
        let result = connection.request_part(&id, (&info, half.as_ref()), within).await;
        let result = result.map(|(chunk, part)| (chunk.into_bytes(), part)).map_err(|error| {
            tracing::debug!(chunk = %id, source = source.0, %error, "a chunk did not come");
            failure(&error)
        });
        let (block, layer) = (id.block, id.layer);
        // If nobody listens the film is over.
        let _ = news.send(News::Fetched { request, source, block, layer, result }).await;
    });
    Stopper(task.abort_handle())
}

/// The machine's word for what went wrong.
fn failure(error: &RequestError) -> FetchFailure {
    match error {
        RequestError::Refused(why) => FetchFailure::Refused(*why),
        RequestError::Timeout => FetchFailure::Late,
        error if error.is_lie() => FetchFailure::Corrupt,
        _ => FetchFailure::Broken,
    }
}
