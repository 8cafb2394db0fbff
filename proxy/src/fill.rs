//! Fetching one chunk from one source, for nobody in particular.

use crate::block::{Attempt, Block, Growing};
use crate::upstream::{Pool, UpstreamError};
use media::ChunkId;
use protocol::proxy::{FillFailure, Upstream};
use protocol::{ChunkRequest, Refusal, StreamRequest};
use std::time::Duration;
use tokio::time::timeout;
use tracing::debug;
use transport::{Expect, RequestError};

/// How long one source may take for a chunk.
const ALL: Duration = Duration::from_secs(15);

/// Fetches `id` into `growing`. Whoever follows sees it come.
pub(crate) async fn fill(
    pool: &Pool,
    from: Upstream,
    id: &ChunkId,
    growing: &Growing,
) -> Result<Block, FillFailure> {
    let filled = timeout(ALL, fetch(pool, from, id, growing)).await;
    let failure = match filled {
        Ok(Ok(block)) => return Ok(block),
        Ok(Err(error)) => {
            debug!(chunk = %id, %error, "a source did not deliver");
            failure(&error)
        }
        Err(_) => FillFailure::Silent,
    };
    if failure == FillFailure::Lie {
        growing.restart();
    }
    Err(failure)
}

async fn fetch(pool: &Pool, from: Upstream, id: &ChunkId, growing: &Growing) -> Result<Block, UpstreamError> {
    let line = pool.line(from).await?;
    line.session(&id.title).await?;
    let deadline_ms = u32::try_from(ALL.as_millis()).unwrap_or(u32::MAX);
    let request = StreamRequest::Chunk(ChunkRequest { id: id.clone(), deadline_ms });
    let expect = Expect::Exactly { length: growing.length, hash: growing.hash };
    let late = |_| RequestError::Timeout;
    let mut reader =
        timeout(pool.progress, line.connection().open(&request, expect)).await.map_err(late)??;
    let mut attempt = Attempt::default();
    while let Some(piece) = timeout(pool.progress, reader.next_piece()).await.map_err(late)?? {
        growing.append(&mut attempt, piece);
    }
    Ok(growing.complete())
}

fn failure(error: &UpstreamError) -> FillFailure {
    match error {
        UpstreamError::Refused(why) | UpstreamError::Request(RequestError::Refused(why)) => {
            FillFailure::Refused(*why)
        }
        // Another manifest than ours: the title was replaced there, or here.
        UpstreamError::Request(RequestError::Unexpected) => FillFailure::Refused(Refusal::NoSuchChunk),
        UpstreamError::Request(error) if error.is_lie() => FillFailure::Lie,
        UpstreamError::Request(_) | UpstreamError::Dial(_) | UpstreamError::Silent => FillFailure::Silent,
    }
}
