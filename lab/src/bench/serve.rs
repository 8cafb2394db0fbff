//! Serving chunks: a node with a library on disk against bare quinn with one
//! static payload, over loopback, both clients discarding what comes.
//!
//! Everything takes turns within one process, round by round, so that both
//! sides meet the same machine. The checksum, which the client leaves out here
//! and a player does not, is measured apart.

pub(super) mod film;
pub(super) mod load;

use crate::bench::stats::Median;
use crate::bench::table::Table;
use crate::bench::{BenchError, Machine, Say};
use load::{Bare, Ours, Turn};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// How the bench is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Connections, each from a socket of its own.
    pub connections: usize,
    /// Requests that each connection keeps open.
    pub open: usize,
    /// Length of a chunk in bytes.
    pub chunk_bytes: usize,
    /// Chunks in the library. Whatever memory the node keeps for chunks, its
    /// second row reads each one from the file.
    pub chunks: u32,
    /// How often everything is done, in turns; from six on the intervals hold
    /// with 95 %.
    pub rounds: u32,
    /// How long each turn takes.
    pub turn: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 50,
            open: 2,
            chunk_bytes: 200_000,
            chunks: 200,
            rounds: 8,
            turn: Duration::from_millis(1500),
        }
    }
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Connections at once.
    pub connections: usize,
    /// Requests open on each.
    pub open: usize,
    /// Length of a chunk in bytes.
    pub chunk_bytes: usize,
    /// Times that everything was done.
    pub rounds: u32,
    /// Bare quinn, in Gbit/s.
    pub bare: Median,
    /// Its processor time for a gigabyte, both sides together, in seconds.
    pub bare_cost: Median,
    /// A node as it is set by default.
    pub node: Row,
    /// A node that keeps no chunk in memory.
    pub from_disk: Row,
    /// BLAKE3 of one chunk on one core, in Gbit/s.
    pub checksum: f64,
}

/// One way of serving.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Payload in Gbit/s.
    pub rate: Median,
    /// The same over bare quinn's of the same round.
    pub ratio: Median,
    /// Processor time for a gigabyte, both sides together, in seconds.
    pub cost: Median,
}

/// Runs the bench. Must be called inside a tokio runtime.
pub async fn run(options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    let folder = tempfile::Builder::new().prefix("lamina-serve-").tempdir();
    let folder = folder.map_err(|error| BenchError::file("making", std::env::temp_dir(), error))?;
    say(&format!("{} connections to bare QUIC and to two nodes", options.connections));
    let setup = load::Setup::make(folder.path(), options)?;
    let bare = Bare::start(&setup, options).await?;
    let node = Ours::start(&setup, options, None).await?;
    let from_disk = Ours::start(&setup, options, Some(0)).await?;

    let (mut yardstick, mut by_default, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let turns = (bare.turn(options).await?, node.turn(options).await?, from_disk.turn(options).await?);
        if round == 0 {
            say("the first round was to warm up");
            continue;
        }
        let (one, two, three) = (turns.0.rate, turns.1.rate, turns.2.rate);
        say(&format!("round {round} of {}: {one:.2} {two:.2} {three:.2} Gbit/s", options.rounds));
        yardstick.push(turns.0);
        by_default.push(turns.1);
        read.push(turns.2);
    }
    let none = || BenchError::Setting("nothing is measured in no round".to_owned());
    let median = |values: Vec<f64>| Median::of(&values).ok_or_else(none);
    let row = |turns: &[Turn]| {
        let ratios = turns.iter().zip(&yardstick).map(|(ours, bare)| ours.rate / bare.rate).collect();
        let (rate, cost) = rates_and_costs(turns);
        Ok::<_, BenchError>(Row { rate: median(rate)?, ratio: median(ratios)?, cost: median(cost)? })
    };
    let (rates, costs) = rates_and_costs(&yardstick);
    Ok(Report {
        machine: Machine::look(),
        connections: options.connections,
        open: options.open,
        chunk_bytes: options.chunk_bytes,
        rounds: options.rounds,
        bare: median(rates)?,
        bare_cost: median(costs)?,
        node: row(&by_default)?,
        from_disk: row(&read)?,
        checksum: checksum(options.chunk_bytes),
    })
}

fn rates_and_costs(turns: &[Turn]) -> (Vec<f64>, Vec<f64>) {
    turns.iter().map(|turn| (turn.rate, turn.cost)).unzip()
}

/// How fast one core hashes chunks, in Gbit/s.
fn checksum(length: usize) -> f64 {
    let bytes = film::chunk_bytes(0, length);
    let start = Instant::now();
    let mut hashed = 0_usize;
    while start.elapsed() < Duration::from_millis(300) {
        std::hint::black_box(media::Hash::of(std::hint::black_box(&bytes)));
        hashed = hashed.saturating_add(length);
    }
    gigabits(u64::try_from(hashed).unwrap_or(u64::MAX), start.elapsed())
}

/// A rate in Gbit/s.
#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for people and figures")]
pub(super) fn gigabits(bytes: u64, over: Duration) -> f64 {
    bytes as f64 * 8e-9 / over.as_secs_f64().max(f64::MIN_POSITIVE)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, connections, open, chunk_bytes, rounds, .. } = self;
        write!(f, "{machine}")?;
        writeln!(
            f,
            "load       {connections} connections, {open} requests open on each, chunks of {chunk_bytes} bytes, \
             loopback; {rounds} rounds in turns"
        )?;
        writeln!(f, "bare       quinn as it comes, the same sockets and certificates, one static payload")?;
        writeln!(
            f,
            "node       library on disk, machine, transport; the client leaves out the checksum\n           and slots are without bound, as nobody is paced by bare quinn either\n"
        )?;
        let mut table = Table::new(&["served by", "Gbit/s", "interval", "over bare", "interval", "CPU s/GB"]);
        let interval =
            |it: &Median| format!("{:.2}..{:.2} ({:.0} %)", it.low, it.high, 100.0 * it.confidence);
        let rate = |it: &Median| [format!("{:.2}", it.median), interval(it)];
        let cost = |it: &Median| [format!("{:.2}", it.median)];
        let one = ["1".to_owned(), String::new()];
        let bare = [&["bare quinn".to_owned()], &rate(&self.bare)[..], &one, &cost(&self.bare_cost)].concat();
        table.row(bare);
        for (name, row) in [("node", &self.node), ("node, each chunk from its file", &self.from_disk)] {
            let figures = [&rate(&row.rate)[..], &rate(&row.ratio)].concat();
            table.row([&[name.to_owned()], &figures[..], &cost(&row.cost)].concat());
        }
        writeln!(f, "{table}")?;
        writeln!(f, "checksum   BLAKE3 {:.1} Gbit/s on one core, paid by whoever receives", self.checksum)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_short_run_serves_both_ways_and_prints_a_table() {
        let options = Options {
            connections: 2,
            open: 1,
            chunk_bytes: 20_000,
            chunks: 5,
            rounds: 1,
            turn: Duration::from_millis(50),
        };
        let mut lines = 0;
        let report = run(&options, &mut |_| lines += 1).await.unwrap();
        assert!(report.bare.median > 0.0 && report.node.rate.median > 0.0, "{report}");
        assert!(report.from_disk.ratio.median > 0.0, "{report}");
        assert_eq!(lines, 3);
        assert!(report.to_string().contains("node, each chunk from its file"), "{report}");
    }
}
