//! How long clients wait for their chunks while others read a kilobyte a second.
//! Half of the title fits into the cache, so that some chunks are kept and others
//! are fetched, and the slow ones are the first to ask for theirs.

use super::{Options, behind};
use crate::bench::serve::load::{Ours, PATIENCE, Setup, dial, discard, failed};
use crate::bench::{BenchError, Say};
use media::{Layer, Manifest};
use protocol::{ChunkRequest, StreamRequest, UserId};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use transport::{Connection, Expect};

/// How often each client asks.
const EVERY: Duration = Duration::from_millis(100);
/// Bytes that come to a slow client unread.
const WINDOW: u32 = 1024;

/// Milliseconds until a chunk is whole, of a hundred the second longest (p99).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slow {
    /// Clients that read a kilobyte a second.
    pub slow: usize,
    /// Requests of the others, in each case.
    pub requests: usize,
    /// Without slow clients.
    pub alone: f64,
    /// Beside them.
    pub beside: f64,
}

/// In turns, without and with the slow ones.
pub(super) async fn run(setup: &Setup, options: &Options, say: Say<'_>) -> Result<Slow, BenchError> {
    say(&format!("{} clients read a kilobyte a second", options.slow));
    let all: u64 =
        setup.manifest.blocks.iter().flat_map(|block| &block.chunks).map(|chunk| chunk.length).sum();
    let half = |config: &mut ::proxy::ProxyConfig| config.cache_bytes = Some(all / 2);
    let quick = behind(setup, options, half).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..options.load.rounds {
        let mut slow = JoinSet::new();
        for number in 0..u32::try_from(options.slow).unwrap_or(u32::MAX) {
            let user = UserId(1_000_000 + u64::from(number));
            let viewer = dial(setup, &setup.manifest.title, quick.at, user, Some(WINDOW)).await?;
            let manifest = Arc::clone(&setup.manifest);
            let block = round.wrapping_mul(31).wrapping_add(number) % manifest.block_count().max(1);
            slow.spawn(async move { read_slowly(&viewer, &manifest, block).await });
        }
        beside.extend(turn(&quick, options, round).await?);
        if slow.try_join_next().is_some() {
            return Err(BenchError::Setting("a slow client was not slow, or was broken off".to_owned()));
        }
        slow.shutdown().await;
        alone.extend(turn(&quick, options, round).await?);
    }
    Ok(Slow { slow: options.slow, requests: alone.len(), alone: p99(alone), beside: p99(beside) })
}

/// What each request of a turn took, in milliseconds.
async fn turn(quick: &Ours, options: &Options, round: u32) -> Result<Vec<f64>, BenchError> {
    let end = Instant::now() + options.load.turn;
    let mut asking = JoinSet::new();
    for (number, viewer) in quick.viewers.iter().enumerate() {
        let (viewer, manifest) = (viewer.clone(), Arc::clone(&quick.manifest));
        let first = u32::try_from(number).unwrap_or(0).wrapping_mul(7).wrapping_add(round.wrapping_mul(31));
        asking.spawn(async move {
            let (mut took, mut block) = (Vec::new(), first);
            let mut clock = interval(EVERY);
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while Instant::now() < end {
                clock.tick().await;
                block = block.wrapping_add(1) % manifest.block_count().max(1);
                let start = Instant::now();
                let asked = discard(&viewer, &manifest, block);
                timeout(PATIENCE, asked).await.ok()??;
                took.push(start.elapsed().as_secs_f64() * 1e3);
            }
            Some(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = asking.join_next().await {
        let broke = || BenchError::Setting("a chunk did not come beside slow clients".to_owned());
        all.extend(took.map_err(failed("a request"))?.ok_or_else(broke)?);
    }
    Ok(all)
}

/// Begins to read a chunk and goes on by a kilobyte each second.
async fn read_slowly(viewer: &Connection, manifest: &Manifest, block: u32) -> Option<()> {
    let id = manifest.chunk_id(block, Layer::BASE);
    let info = manifest.chunk(block, Layer::BASE)?;
    let expect = Expect::Exactly { length: info.length, hash: info.hash };
    let request = StreamRequest::Chunk(ChunkRequest::whole(id, 1000));
    let mut reader = viewer.open(&request, expect).await.ok()?;
    while reader.next_piece().await.ok()?.is_some() {
        sleep(Duration::from_secs(1)).await;
    }
    Some(())
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let beyond = values.len() / 100;
    values.iter().rev().nth(beyond).copied().unwrap_or(0.0)
}
