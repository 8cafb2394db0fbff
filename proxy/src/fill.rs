//! Fetching one chunk from one source, for nobody in particular.

use crate::block::{Attempt, Block, Growing};
use crate::line::Line;
use crate::upstream::{Pool, UpstreamError};
use media::ChunkId;
use protocol::proxy::{FillFailure, Upstream};
use protocol::{ChunkRequest, Refusal, StreamRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tracing::debug;
use transport::{Expect, RequestError};

/// How long one source may take for a chunk.
const ALL: Duration = Duration::from_secs(15);

/// Fetches `id` into `growing`. Whoever follows sees it come.
pub(crate) async fn fill(
    pool: &Pool,
    from: (Upstream, Option<Arc<Line>>),
    id: &ChunkId,
    growing: &Growing,
    on_first: impl FnOnce(),
) -> Result<Block, FillFailure> {
    let filled = timeout(ALL, fetch(pool, from, id, growing, on_first)).await;
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

async fn fetch(
    pool: &Pool,
    (from, line): (Upstream, Option<Arc<Line>>),
    id: &ChunkId,
    growing: &Growing,
    on_first: impl FnOnce(),
) -> Result<Block, UpstreamError> {
    let line = match line {
        Some(line) => line,
        None => pool.line(from).await?,
    };
    let deadline_ms = u32::try_from(ALL.as_millis()).unwrap_or(u32::MAX);
    let request = StreamRequest::Chunk(ChunkRequest::whole(id.clone(), deadline_ms));
    let expect = Expect::Exactly { length: growing.length, hash: growing.hash };
    let mut reader = patiently(pool, &line, line.connection().open(&request, expect)).await??;
    let mut attempt = Attempt::default();
    let mut on_first = Some(on_first);
    while let Some(piece) = patiently(pool, &line, reader.next_piece()).await?? {
        if let Some(on_first) = on_first.take() {
            on_first();
        }
        line.delivers();
        growing.append(&mut attempt, piece);
    }
    Ok(growing.complete())
}

/// Waits for what a source does next. One that delivers other chunks meanwhile is
/// not silent: this one comes in its turn.
async fn patiently<T>(pool: &Pool, line: &Line, step: impl Future<Output = T>) -> Result<T, RequestError> {
    let mut step = std::pin::pin!(step);
    loop {
        if let Ok(done) = timeout(pool.progress, &mut step).await {
            return Ok(done);
        }
        if line.delivered().is_none_or(|when| when.elapsed() >= pool.progress) {
            return Err(RequestError::Timeout);
        }
    }
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
