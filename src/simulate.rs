//! `lamina simulate`: the network's machines under virtual time.

use crate::door::{CHECK_FAILED, DONE};
use crate::progress;
use sim::chaos;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Arguments of `lamina simulate`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina simulate chaos                 200 random networks, every checker on
  lamina simulate chaos --seed 17       one of them, as it was
Exit code 1 means that a rule was broken."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Random faults with every checker on; a seed decides all
    Chaos {
        /// How many seeds, from 0 on
        #[arg(long, default_value_t = 200)]
        seeds: u64,
        /// This seed alone
        #[arg(long, conflicts_with = "seeds")]
        seed: Option<u64>,
    },
}

pub(crate) fn run(args: &Args) -> u8 {
    let What::Chaos { seeds, seed } = args.what;
    let (first, count) = seed.map_or((0, seeds), |seed| (seed, 1));
    let objections = chaos_in_parallel(first, count);
    for (_, objection) in &objections {
        outln!("{objection}");
    }
    outln!("{count} seeds, {} with a broken rule", objections.len());
    if objections.is_empty() { DONE } else { CHECK_FAILED }
}

/// Every seed on the next free core; what was objected to, in order of seeds.
fn chaos_in_parallel(first: u64, count: u64) -> Vec<(u64, String)> {
    let (next, objections) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let bar = progress::bar(count, "simulating");
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let seed = first.saturating_add(number);
            if let Err(error) = chaos::run(seed) {
                let mut objections = objections.lock().unwrap_or_else(PoisonError::into_inner);
                objections.push((seed, error.to_string()));
            }
            bar.inc(1);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    let mut objections = objections.into_inner().unwrap_or_else(PoisonError::into_inner);
    objections.sort();
    objections
}
