//! What the bench of a proxy prints.

use super::{Beside, Memory, Slow};
use crate::bench::Machine;
use crate::bench::serve::{self, Row};
use crate::bench::stats::Median;
use crate::bench::table::Table;
use serde::Serialize;
use std::fmt;

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// The load.
    #[serde(skip)]
    pub load: serve::Options,
    /// Bare quinn, in Gbit/s.
    pub bare: Median,
    /// Its processor time for a gigabyte, both sides together, in seconds.
    pub bare_cost: Median,
    /// A proxy that keeps its chunks in memory.
    pub memory: Row,
    /// A proxy that reads each chunk from its disk and checks it.
    pub disk: Row,
    /// For a second of processor time, beside nginx.
    pub beside: Option<Beside>,
    /// Memory while chunks pass.
    pub passing: Vec<Memory>,
    /// Waiting beside slow clients.
    pub slow: Slow,
}

fn interval(it: &Median) -> String {
    format!("{:.2}..{:.2} ({:.0} %)", it.low, it.high, 100.0 * it.confidence)
}

/// Whether a claim holds.
fn verdict(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        let serve::Options { connections, open, chunk_bytes, rounds, .. } = self.load;
        writeln!(
            f,
            "load       {connections} connections, {open} requests open on each, chunks of {chunk_bytes} bytes, \
             loopback; {rounds} rounds in turns\n"
        )?;
        let mut table = Table::new(&["served by", "Gbit/s", "interval", "over bare", "interval", "CPU s/GB"]);
        let cost = |it: &Median| format!("{:.2}", it.median);
        let pair = |it: &Median| [format!("{:.2}", it.median), interval(it)];
        table.row(
            [
                &["bare quinn".to_owned()],
                &pair(&self.bare)[..],
                &["1".to_owned(), String::new(), cost(&self.bare_cost)],
            ]
            .concat(),
        );
        for (name, row) in
            [("proxy, from memory", &self.memory), ("proxy, each chunk from its disk", &self.disk)]
        {
            table.row(
                [&[name.to_owned()], &pair(&row.rate)[..], &pair(&row.ratio), &[cost(&row.cost)]].concat(),
            );
        }
        writeln!(f, "{table}")?;
        let ratio = self.memory.ratio.median;
        writeln!(f, "at least 0.8 of bare quinn from memory: {} ({ratio:.2})\n", verdict(ratio >= 0.8))?;
        if let Some(beside) = &self.beside {
            beside.fmt_table(f)?;
        }
        for passing in &self.passing {
            let Memory { on_disk, chunks, bytes, cache_bytes, kept, seconds, resident, deviation } = passing;
            let place = if *on_disk { format!("on disk ({kept} files)") } else { "in memory".to_owned() };
            let held: Vec<String> = resident.iter().map(|held| format!("{held:.0}")).collect();
            writeln!(
                f,
                "{chunks} chunks, {bytes} bytes, through {cache_bytes} bytes {place} in {seconds:.0} s: resident MB {}",
                held.join(" ")
            )?;
            let flat = verdict(*deviation <= 0.05);
            writeln!(f, "within 5 % of their middle: {flat} ({:.1} %)\n", 100.0 * deviation)?;
        }
        let Slow { slow, requests, alone, beside } = self.slow;
        writeln!(
            f,
            "p99 of {requests} requests: {alone:.1} ms, beside {slow} clients that read 1 KB/s {beside:.1} ms"
        )?;
        let delay = beside - alone;
        writeln!(f, "delayed by at most 50 ms: {} ({delay:.1} ms)", verdict(delay <= 50.0))
    }
}

impl Beside {
    fn fmt_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["one process", "GB for a CPU second", "interval", "over nginx"]);
        let nginx = format!("{}, HTTPS", self.version);
        for (name, it) in [
            (nginx.as_str(), &self.nginx),
            ("proxy, from memory", &self.memory),
            ("proxy, from its disk", &self.disk),
        ] {
            let over = it.median / self.nginx.median.max(f64::MIN_POSITIVE);
            table.row(vec![name.to_owned(), format!("{:.2}", it.median), interval(it), format!("{over:.2}")]);
        }
        writeln!(f, "{table}")
    }
}
