//! `lamina figure`: the published evaluations, drawn anew by the machines.

use crate::door::{DONE, Outcome};
use crate::progress;
use lab::figure::{self, Figure, Options, Report};
use std::path::PathBuf;

/// Arguments of `lamina figure`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina figure reliability -o figures
  lamina figure continuity -o figures                       a few points, one run each
  lamina figure continuity -o figures --full                every published point, five runs
  lamina figure continuity -o figures --strict --reactive   other readings beside it
  lamina figure admission -o figures                        thresholds by class of title
  lamina figure freeze quality buffer -o figures            cooperating proxies
  lamina figure ablation -o figures                         the whole system, less a part
CSV and SVG go into the folder; each claim is told with our value, the published one, and
yes or no. A no is a finding, not an error."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// What is drawn, one after the other
    #[arg(value_enum, required = true)]
    what: Vec<What>,
    /// Folder for the files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Every published point instead of a few
    #[arg(long)]
    full: bool,
    /// Runs of each point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Only this number of users (continuity, recovery, detection)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1800))]
    users: Option<u32>,
    /// Which candidate is best; most-headroom is drawn beside the nearest
    #[arg(long, value_enum, default_value_t = Policy::Nearest)]
    policy: Policy,
    /// Beside it, reservations that need a free slot
    #[arg(long)]
    strict: bool,
    /// Beside it, normal users who search after the failure
    #[arg(long)]
    reactive: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// Reliability against the number of layers
    Reliability,
    /// Who plays on when a Base node fails
    Continuity,
    /// How long data stay away
    Recovery,
    /// What a search for a backup costs
    SearchCost,
    /// How soon a death is noticed
    Detection,
    /// Who is refused, by class, threshold and demand
    Admission,
    /// Cooperating proxies: how long clients wait
    Freeze,
    /// Cooperating proxies: what clients get of what they ask for
    Quality,
    /// Cooperating proxies: how much cache is enough
    Buffer,
    /// The whole system, and without one part after the other
    Ablation,
}

impl From<What> for Figure {
    fn from(what: What) -> Self {
        match what {
            What::Reliability => Self::Reliability,
            What::Continuity => Self::Continuity,
            What::Recovery => Self::Recovery,
            What::SearchCost => Self::SearchCost,
            What::Detection => Self::Detection,
            What::Admission => Self::Admission,
            What::Freeze => Self::Freeze,
            What::Quality => Self::Quality,
            What::Buffer => Self::Buffer,
            What::Ablation => Self::Ablation,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Policy {
    Nearest,
    MostHeadroom,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = Options {
        full: args.full,
        seeds: args.seeds,
        users: args.users,
        most_headroom: args.policy == Policy::MostHeadroom,
        strict: args.strict,
        reactive: args.reactive,
    };
    let mut report = Report::default();
    for what in &args.what {
        let bar = progress::bar(1, "drawing");
        report.append(figure::run((*what).into(), &options, &|done, of| {
            bar.set_length(u64::try_from(of).unwrap_or(u64::MAX));
            bar.set_position(u64::try_from(done).unwrap_or(0));
        })?);
        bar.finish_and_clear();
    }
    report.write(&args.output)?;
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        out!("{report}");
        for file in &report.files {
            eprintln!("{}", args.output.join(&file.name).display());
        }
    }
    Ok(DONE)
}
