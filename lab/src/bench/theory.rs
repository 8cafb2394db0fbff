//! How long the exact blocking probabilities take, by convolution, for three
//! classes with a threshold on the third.

use crate::bench::{BenchError, Machine, Say};
use ::sim::eval::admission;
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// The systems that are solved, the erlangs of each class (none: a third of the
/// servers), and the milliseconds that each may take.
const SERVERS: [(u32, Option<f64>, f64); 5] = [
    (100, None, 1.0),
    (1_000, None, 20.0),
    (1_000, Some(1e6), 20.0),
    (10_000, None, 2_000.0),
    (10_000, Some(1e6), 2_000.0),
];

/// One system.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Solved {
    /// C.
    pub servers: u32,
    /// The erlangs of each class.
    pub erlangs: f64,
    /// How long it took, the best of three.
    pub milliseconds: f64,
    /// How long it may take.
    pub allowed: f64,
    /// `B_1`.
    pub blocking: f64,
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// The systems.
    pub solved: Vec<Solved>,
}

/// Solves each system three times, on one core.
pub fn run(say: Say<'_>) -> Result<Report, BenchError> {
    let mut solved = Vec::new();
    for (servers, erlangs, allowed) in SERVERS {
        say(&format!("{servers} servers"));
        let rho = erlangs.unwrap_or(f64::from(servers) / 3.0);
        let system = admission::system(servers, [rho; 3], Some(servers / 5))?;
        let (mut milliseconds, mut blocking) = (f64::INFINITY, f64::NAN);
        for _ in 0..3 {
            let start = Instant::now();
            blocking = system.blocking().first().copied().unwrap_or(f64::NAN);
            milliseconds = milliseconds.min(start.elapsed().as_secs_f64() * 1e3);
        }
        solved.push(Solved { servers, erlangs: rho, milliseconds, allowed, blocking });
    }
    Ok(Report { machine: Machine::look(), solved })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(f, "servers   erlangs      ms  allowed  B_1")?;
        for Solved { servers, erlangs, milliseconds, allowed, blocking } in &self.solved {
            writeln!(f, "{servers:>7}{erlangs:>10.0}{milliseconds:>8.2}{allowed:>9.0}  {blocking:.8}")?;
        }
        Ok(())
    }
}
