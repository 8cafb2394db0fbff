//! `lamina testbed`: networks on this machine, over links of our own making.

use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome};
use lab::links::accuracy::{self, AccuracyError};

/// Arguments of `lamina testbed`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina testbed links                  50 links at once: rates, delays, loss
  lamina testbed links --links 10 --seconds 2 --json
Exit code 1 means that a link is not what it should be, 2 that this machine cannot keep
up, so that nothing can be said."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Measure how true emulated links are on this machine
    Links {
        /// How many at once
        #[arg(long, default_value_t = 50)]
        links: u8,
        /// How long each of two parts takes
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
        seconds: u32,
        /// What is lost, by lot
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args) -> Outcome {
    let What::Links { links, seconds, seed, json } = args.what;
    let options = accuracy::Options { links, seconds, seed };
    let report = match accuracy::run(options, &mut |line| eprintln!("{line}")) {
        Err(error @ AccuracyError::CannotKeepUp { .. }) => {
            return Err(error)
                .hint("end what else runs here, or measure fewer --links; a release build is faster");
        }
        other => other?,
    };
    if json {
        outln!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        out!("{report}");
    }
    Ok(if report.holds { DONE } else { CHECK_FAILED })
}
