//! Fetching one chunk from one source, for nobody in particular.

use crate::block::{Attempt, Block, Growing};
use crate::line::Line;
use crate::upstream::{Pool, UpstreamError};
use media::ChunkId;
use protocol::proxy::{FillFailure, Upstream};
use protocol::{ChunkRequest, Refusal, StreamRequest};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tracing::debug;
use transport::{Expect, RequestError};

/// How long one source may take for a chunk: so long, and as much longer as its length
/// takes on the slowest line of any use. Who gives sooner up what is coming has it
/// carried twice.
const ALL: Duration = Duration::from_secs(15);
/// Bytes a second of the slowest line of any use.
const SLOWEST: u64 = 4_000;
/// How many round trips a source has to say something, where that is longer: a packet
/// may be lost, and what replaces it as well.
const ROUND_TRIPS: u32 = 5;
/// How many times longer it is waited for who may stand behind others on a full line.
const CROWDED: u32 = 3;
/// Less than this since it was last told is told with what comes next.
const WORTH_TELLING: u64 = 4 * 1024;

/// Fetches `id` into `growing`. Whoever follows sees it come; `on_more` is told how much
/// more has come, and says whether it heard.
pub(crate) async fn fill(
    pool: &Pool,
    from: (Upstream, Option<Arc<Line>>),
    id: &ChunkId,
    growing: &Growing,
    on_more: impl Fn(u64) -> bool,
) -> Result<Block, FillFailure> {
    let all = ALL + Duration::from_secs(growing.length / SLOWEST);
    let filled = timeout(all, fetch(pool, from, id, growing, on_more)).await;
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
    on_more: impl Fn(u64) -> bool,
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
    let (mut untold, mut first) = (0_u64, true);
    while let Some(piece) = patiently(pool, &line, reader.next_piece()).await?? {
        untold = untold.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if (first || untold >= WORTH_TELLING) && on_more(untold) {
            (untold, first) = (0, false);
        }
        line.delivers();
        pool.delivers();
        growing.append(&mut attempt, piece);
    }
    Ok(growing.complete())
}

/// Waits for what a source does next. One that delivers other chunks meanwhile is
/// not silent: this one comes in its turn. While others deliver, it may be behind them
/// on a line that all share.
async fn patiently<T>(pool: &Pool, line: &Line, step: impl Future<Output = T>) -> Result<T, RequestError> {
    let mut step = std::pin::pin!(step);
    let began = Instant::now();
    loop {
        let patience = pool.progress.max(line.connection().rtt() * ROUND_TRIPS);
        if let Ok(done) = timeout(patience, &mut step).await {
            return Ok(done);
        }
        let ago = |when: Option<Instant>| when.map_or(Duration::MAX, |when| when.elapsed());
        if !is_borne(patience, began.elapsed(), ago(line.delivered()), ago(pool.delivered())) {
            return Err(RequestError::Timeout);
        }
    }
}

/// Whether it is waited on for a chunk of which nothing has come for so long, while its
/// source delivered something else so long ago, and anybody something.
fn is_borne(patience: Duration, silent: Duration, source: Duration, anybody: Duration) -> bool {
    source < patience || (anybody < patience && silent < patience * CROWDED)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_stand_behind_others_on_a_full_line_is_not_silent_yet() {
        let ms = Duration::from_millis;
        let borne = |silent, source, anybody| is_borne(ms(1000), ms(silent), source, anybody);
        assert!(!borne(1000, Duration::MAX, Duration::MAX), "nothing comes from anybody");
        assert!(borne(1000, Duration::MAX, ms(20)), "others take the line");
        assert!(!borne(3000, ms(3000), ms(20)), "but not for ever");
        assert!(borne(9000, ms(20), ms(20)), "it sends something else");
    }
}
