//! A proxy with everything in its cache, or passing through it.
//!
//! *Serving*: chunks from memory and from the disk of a proxy, against bare quinn
//! with one static payload, in turns within one process as in the bench of a node.
//! *Beside nginx*: what a second of processor time of the server alone delivers,
//! a proxy over QUIC and nginx over HTTPS with the same objects. *Memory*: of a
//! proxy through which ten times its cache passes. *A slow client*: how long
//! others wait for chunks while some read a kilobyte a second.

mod beside;
mod memory;
mod program;
mod report;
mod slow;
mod source;

pub use beside::Beside;
pub use memory::Memory;
pub use report::Report;
pub use slow::Slow;

use crate::bench::serve::load::{Bare, Ours, Setup, Turn, failed};
use crate::bench::serve::{self, Row};
use crate::bench::stats::Median;
use crate::bench::{BenchError, Machine, Say};
use ::proxy::{ProxyConfig, Running, UpstreamFlag};
use protocol::NodeAddress;
use server::ServeConfig;
use std::path::{Path, PathBuf};

/// How the bench is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Connections, requests, chunks, rounds and turns, as in the bench of a node.
    pub load: serve::Options,
    /// The `lamina` program, for proxies in processes of their own; without it
    /// only what runs in this process is measured.
    pub program: Option<PathBuf>,
    /// Chunks that pass through the cache, whose room is for a tenth of them.
    pub passing: u32,
    /// Clients that read a kilobyte a second.
    pub slow: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { load: serve::Options::default(), program: None, passing: 100_000, slow: 10 }
    }
}

/// Runs the bench. Must be called inside a tokio runtime.
pub async fn run(options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    let folder = tempfile::Builder::new().prefix("lamina-proxy-").tempdir();
    let folder = folder.map_err(|error| BenchError::file("making", std::env::temp_dir(), error))?;
    let setup = Setup::make(folder.path(), &options.load)?;
    let ([bare, bare_cost], memory, disk) = serving(&setup, folder.path(), options, say).await?;
    let slow = slow::run(&setup, options, say).await?;
    let (mut beside, mut passing) = (None, Vec::new());
    if let Some(program) = &options.program {
        beside = Some(beside::run(&setup, folder.path(), program, options, say).await?);
        for on_disk in [false, true] {
            passing.push(memory::run(&setup, folder.path(), program, options, on_disk, say).await?);
        }
    }
    let load = options.load.clone();
    Ok(Report { machine: Machine::look(), load, bare, bare_cost, memory, disk, beside, passing, slow })
}

/// Bare quinn's rate and cost, then a proxy from memory and one from its disk.
async fn serving(
    setup: &Setup,
    folder: &Path,
    options: &Options,
    say: Say<'_>,
) -> Result<([Median; 2], Row, Row), BenchError> {
    say(&format!("{} connections to bare QUIC and to two proxies", options.load.connections));
    let bare = Bare::start(setup, &options.load).await?;
    let in_memory = behind(setup, options, |_| {}).await?;
    let on_disk = |config: &mut ProxyConfig| {
        config.cache = Some(folder.join("serving"));
        config.memory_bytes = 0;
    };
    let on_disk = behind(setup, options, on_disk).await?;
    in_memory.warm().await?;
    on_disk.warm().await?;

    let mut turns: Vec<[Turn; 3]> = Vec::new();
    for round in 0..=options.load.rounds {
        let turn = [
            bare.turn(&options.load).await?,
            in_memory.turn(&options.load).await?,
            on_disk.turn(&options.load).await?,
        ];
        if round > 0 {
            let [one, two, three] = turn.map(|turn| turn.rate);
            say(&format!("round {round} of {}: {one:.2} {two:.2} {three:.2} Gbit/s", options.load.rounds));
            turns.push(turn);
        }
    }
    let bare = [
        median(turns.iter().map(|[bare, _, _]| bare.rate).collect())?,
        median(turns.iter().map(|[bare, _, _]| bare.cost).collect())?,
    ];
    let row = |pick: fn(&[Turn; 3]) -> Turn| {
        let picked: Vec<Turn> = turns.iter().map(pick).collect();
        let ratio = picked.iter().zip(&turns).map(|(ours, [bare, _, _])| ours.rate / bare.rate).collect();
        Ok::<_, BenchError>(Row {
            rate: median(picked.iter().map(|turn| turn.rate).collect())?,
            ratio: median(ratio)?,
            cost: median(picked.iter().map(|turn| turn.cost).collect())?,
        })
    };
    Ok((bare, row(|[_, memory, _]| *memory)?, row(|[_, _, disk]| *disk)?))
}

#[allow(clippy::needless_pass_by_value, reason = "whoever collects them needs them no more")]
fn median(values: Vec<f64>) -> Result<Median, BenchError> {
    Median::of(&values).ok_or_else(|| BenchError::Setting("nothing is measured in no round".to_owned()))
}

/// A node with the library of the bench.
async fn node(setup: &Setup) -> Result<Running, BenchError> {
    let config = ServeConfig {
        library: setup.library.clone(),
        keys: Some(setup.keys.clone()),
        ..ServeConfig::default()
    };
    server::serve(config, |_| ()).await.map_err(failed("a node"))
}

/// A proxy in this process, with a node behind it and viewers before it.
async fn behind(
    setup: &Setup,
    options: &Options,
    change: impl FnOnce(&mut ProxyConfig),
) -> Result<Ours, BenchError> {
    let node = node(setup).await?;
    let upstream = NodeAddress { peer: node.peer(), address: node.address() };
    let mut config = ProxyConfig {
        upstream: vec![UpstreamFlag(upstream.into())],
        keys: Some(setup.keys.clone()),
        ..ProxyConfig::default()
    };
    change(&mut config);
    let proxy = ::proxy::start(config, |_| ()).await.map_err(failed("a proxy"))?;
    let at = NodeAddress { peer: proxy.peer(), address: proxy.address() };
    Ours::viewing(setup, &options.load, at, vec![node, proxy]).await
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_short_run_serves_both_ways_and_tells_how_long_clients_wait() {
        let load = serve::Options {
            connections: 2,
            open: 1,
            chunk_bytes: 20_000,
            chunks: 5,
            rounds: 1,
            turn: Duration::from_millis(50),
        };
        let options = Options { load, program: None, passing: 0, slow: 1 };
        let report = run(&options, &mut |_| ()).await.unwrap();
        assert!(report.memory.rate.median > 0.0 && report.disk.rate.median > 0.0, "{report}");
        assert!(report.slow.alone > 0.0 && report.slow.beside > 0.0, "{report}");
        assert!(report.to_string().contains("proxy, each chunk from its disk"), "{report}");
    }
}
