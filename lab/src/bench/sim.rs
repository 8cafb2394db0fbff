//! The simulator's speed: one network of 1600 users built user by user, then one
//! failure in a fork of it. There is no yardstick: nobody else simulates these
//! machines.

use crate::bench::{BenchError, Machine, Say};
use ::sim::eval::continuity::{Plan, Variant, fail_each, stable};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// How the bench is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Users of the run.
    pub users: u32,
    /// How many of a thousand are VIPs.
    pub vip_permille: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { users: 1600, vip_permille: 200 }
    }
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Users of the run.
    pub users: u32,
    /// Seconds until the network was stable, on one core.
    pub build_seconds: f64,
    /// What happened until then.
    pub build_events: u64,
    /// Seconds with the failure of each Base node, on one core.
    pub run_seconds: f64,
    /// What happened in all.
    pub run_events: u64,
    /// Events a second over the whole run.
    pub events_per_second: f64,
    /// The most memory this process ever held, in megabytes; nothing where the
    /// system does not tell.
    pub peak_megabytes: Option<f64>,
}

/// Builds once and fails every node once.
pub fn run(options: &Options, say: Say<'_>) -> Result<Report, BenchError> {
    let plan = Plan::paper(options.users, options.vip_permille, 1);
    say(&format!("building a network of {} users", options.users));
    let start = Instant::now();
    let world = stable(&plan, Variant::With.config())?;
    let (build_seconds, build_events) = (start.elapsed().as_secs_f64(), world.happened());
    say("failing each of its Base nodes");
    let outcome = fail_each(world, Variant::With, plan.seed);
    let run_seconds = start.elapsed().as_secs_f64();
    let events = f64::from(u32::try_from(outcome.happened).unwrap_or(u32::MAX));
    Ok(Report {
        machine: Machine::look(),
        users: options.users,
        build_seconds,
        build_events,
        run_seconds,
        run_events: outcome.happened,
        events_per_second: events / run_seconds.max(1e-9),
        peak_megabytes: peak_megabytes(),
    })
}

fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(f, "users                    {}", self.users)?;
        writeln!(f, "build                    {:.2} s, {} events", self.build_seconds, self.build_events)?;
        writeln!(f, "build and all failures   {:.2} s, {} events", self.run_seconds, self.run_events)?;
        writeln!(f, "events per second        {:.0}", self.events_per_second)?;
        match self.peak_megabytes {
            Some(peak) => writeln!(f, "peak memory              {peak:.0} MB"),
            None => writeln!(f, "peak memory              unknown"),
        }
    }
}
