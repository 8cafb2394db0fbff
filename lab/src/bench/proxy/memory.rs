//! What a proxy holds in memory while ten times its cache passes through it.

use super::Options;
use super::program::{Plan, Program, resident_megabytes};
use super::source::{self, Source};
use crate::bench::serve::load::{Setup, dial, failed};
use crate::bench::{BenchError, Say};
use protocol::{ChunkRequest, StreamRequest, UserId};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;
use transport::{Connection, Expect};

/// Connections that ask, each for one chunk after another.
const VIEWERS: usize = 8;
/// Requests that each keeps open.
const OPEN: usize = 4;
/// How long one chunk may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one proxy held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Where it kept its chunks.
    pub on_disk: bool,
    /// Chunks that passed.
    pub chunks: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the cache had room for.
    pub cache_bytes: u64,
    /// Chunks that lie on its disk in the end.
    pub kept: usize,
    /// Seconds that it took.
    pub seconds: f64,
    /// Resident memory in megabytes at each tenth, from two tenths on: by then the
    /// cache is full.
    pub resident: Vec<f64>,
    /// The farthest of these from their middle, as a share of it.
    pub deviation: f64,
}

/// Lets all chunks pass, once each.
pub(super) async fn run(
    setup: &Setup,
    folder: &Path,
    program: &Path,
    options: &Options,
    on_disk: bool,
    say: Say<'_>,
) -> Result<Memory, BenchError> {
    let where_to = if on_disk { "on disk" } else { "in memory" };
    say(&format!("{} chunks pass through a cache {where_to}", options.passing));
    let blocks = options.passing.div_ceil(source::LAYERS.into());
    let source = Source::start(&setup.authority, &setup.keys, blocks)?;
    let all = source.manifest.blocks.iter().flat_map(|block| &block.chunks);
    let bytes = all.fold(0_u64, |sum, chunk| sum.saturating_add(chunk.length));
    let cache_bytes = bytes / 10;
    let cache = on_disk.then(|| folder.join("passing"));
    let plan = Plan { program, keys: &setup.keys, folder, upstream: source.at, cache_bytes, cache };
    let files = folder.join("passing/lamina-chunks").join(source.manifest.title.as_str());
    let proxy = Program::start(plan).await?;
    let mut viewers = Vec::new();
    for user in (1..).map(UserId).take(VIEWERS) {
        viewers.push(dial(setup, &source.manifest.title, proxy.at, user, None).await?);
    }
    let (start, mut resident) = (Instant::now(), Vec::new());
    for tenth in 1..=10 {
        let (from, to) = (options.passing / 10 * (tenth - 1), options.passing / 10 * tenth);
        pass(&viewers, &source, from, to).await?;
        let held = resident_megabytes(&proxy.id());
        let held = held.ok_or_else(|| BenchError::Setting("the proxy ended during the bench".to_owned()))?;
        say(&format!("{to} chunks: {held:.1} MB"));
        if tenth >= 2 {
            resident.push(held);
        }
    }
    let least = resident.iter().copied().fold(f64::INFINITY, f64::min);
    let most = resident.iter().copied().fold(0.0, f64::max);
    Ok(Memory {
        on_disk,
        chunks: options.passing,
        bytes,
        cache_bytes,
        // All but the manifest.
        kept: std::fs::read_dir(files).map_or(0, |files| files.count().saturating_sub(1)),
        seconds: start.elapsed().as_secs_f64(),
        deviation: (most - least) / (most + least).max(f64::MIN_POSITIVE),
        resident,
    })
}

/// Asks for the chunks at these places of the title, each once.
async fn pass(viewers: &[Connection], source: &Source, from: u32, to: u32) -> Result<(), BenchError> {
    let next = Arc::new(AtomicU32::new(from));
    let mut asking = JoinSet::new();
    for viewer in viewers {
        for _ in 0..OPEN {
            let (viewer, manifest, next) = (viewer.clone(), Arc::clone(&source.manifest), Arc::clone(&next));
            asking.spawn(async move {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= to {
                        return Some(());
                    }
                    let id = source::nth(&manifest, place)?;
                    let info = manifest.chunk(id.block, id.layer)?;
                    let expect = Expect::Exactly { length: info.length, hash: info.hash };
                    let request = StreamRequest::Chunk(ChunkRequest::whole(id, 1000));
                    let asked = async { viewer.open(&request, expect).await?.discard().await };
                    timeout(PATIENCE, asked).await.ok()?.ok()?;
                }
            });
        }
    }
    while let Some(asked) = asking.join_next().await {
        let broke = || BenchError::Setting("a chunk did not come through the proxy".to_owned());
        asked.map_err(failed("a request"))?.ok_or_else(broke)?;
    }
    Ok(())
}
