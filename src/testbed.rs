//! `lamina testbed`: networks on this machine, over links of our own making.

mod agree;

use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome, refuse};
use crate::{cache, progress, running};
use anyhow::Context as _;
use indicatif::ProgressBar;
use lab::links::accuracy::{self, AccuracyError};
use lab::testbed::compare::{self, CompareOptions, Death, Row};
use lab::testbed::{Hosts, Options, Progress, Read, Report, TestbedError, Title};
use std::path::PathBuf;

/// Arguments of `lamina testbed`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina testbed links                  50 links at once: rates, delays, loss
  lamina testbed list                   the scenarios that are in the program
  lamina testbed run base-death --repeat 30 -o out
  lamina testbed show base-death > mine.toml; lamina testbed run mine.toml
  lamina testbed agree base-death       the simulator beside it, 30 runs of each
Exit code 1 means that something is not as expected, 2 that it could not run or that this
machine cannot keep up, so that nothing can be said."
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
    /// List the scenarios that are in the program
    List,
    /// Print a scenario that is in the program, to begin one's own with
    Show {
        /// Its name
        name: String,
    },
    /// Play a scenario with real processes, and measure what its viewers see
    Run(Run),
    /// The same film, line and death of a server: ours beside what people use instead
    Compare(Compare),
    /// The same scenario with real processes and in the simulator, and the gap between
    Agree(agree::Agree),
}

#[derive(Debug, clap::Args)]
struct Compare {
    /// What happens
    #[arg(value_parser = ["base-death"])]
    what: String,
    /// How often
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Decides when the server dies
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Whether buffers are four seconds for all, or as everybody comes
    #[arg(long, value_enum, default_value_t = Rows::Both)]
    buffers: Rows,
    /// Whether its machine loses power, which nobody hears, or its process is killed,
    /// which is the same for us, but closes TCP connections, so that browsers hear it
    #[arg(long, value_enum, default_value_t = Dies::Power)]
    death: Dies,
    /// A folder for report.json and viewings.csv [default: in the cache]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Rows {
    Matched,
    Defaults,
    Both,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Dies {
    Process,
    Power,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// A file of TOML, or the name of a scenario in the program
    scenario: String,
    /// How often, each time in a new network
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Decides what is decided by lot
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder for the report, the tables and the page [default: in the cache]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Other machines for the nodes: a file of TOML
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Links { links, seconds, seed, json } => {
            measure(accuracy::Options { links: *links, seconds: *seconds, seed: *seed }, *json)
        }
        What::List => list(),
        What::Show { name } => match lab::testbed::text_of(name) {
            Some(text) => {
                out!("{text}");
                Ok(DONE)
            }
            None => refuse(format!("there is no scenario {name}"), "`lamina testbed list` names them"),
        },
        What::Run(run) => play(run),
        What::Compare(args) => beside(args),
        What::Agree(args) => agree::run(args),
    }
}

fn measure(options: accuracy::Options, json: bool) -> Outcome {
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

fn list() -> Outcome {
    for name in lab::testbed::names() {
        let read = lab::testbed::read(name)?;
        let lasts = read.scenario.lasts.0.as_secs_f64();
        outln!("{name:<22} {lasts:>3.0} s  {}", read.scenario.about);
    }
    Ok(DONE)
}

fn play(args: &Run) -> Outcome {
    let read = lab::testbed::read(&args.scenario);
    let read = read.or_else(|error| {
        let hint = error.hint();
        Err(error).hint(hint)
    })?;
    let hosts = args.hosts.as_deref().map(Hosts::read).transpose();
    let hosts = hosts.hint("docs/operating.md shows such a file")?;
    let cache = cache::folder()?;
    let options = Options {
        program: std::env::current_exe().context("the program does not know where it lies")?,
        repeats: args.repeat,
        seed: args.seed,
        hosts,
    };
    let folder = args.output.clone().unwrap_or_else(|| cache.join("testbed").join(&read.name));
    let (_, report) = running::block_on(async {
        tokio::select! {
            report = perform(&options, &read, &cache) => report,
            () = running::told_to_end(args.exit_with_parent) => {
                refuse("stopped", "every process it started is gone")
            }
        }
    })?;
    let write = || format!("cannot write into {}", folder.display());
    report.write(&folder).with_context(write).hint("-o DIR names another folder")?;
    if args.json {
        outln!("{}", serde_json::to_string(&report)?);
    } else {
        out!("{report}");
    }
    eprintln!("index.html, report.json and tables are in {}", folder.display());
    kept_up(&report)?;
    Ok(if report.holds { DONE } else { CHECK_FAILED })
}

/// A machine that was too slow has been measured itself.
fn kept_up(report: &Report) -> anyhow::Result<()> {
    let Some(run) = report.runs.iter().find(|run| !run.kept_up) else { return Ok(()) };
    let why = format!("one datagram in a hundred left a link {:.1} ms late", run.late_ms);
    explain(TestbedError::CannotKeepUp(why))
}

fn beside(args: &Compare) -> Outcome {
    let cache = cache::folder()?;
    let folder =
        args.output.clone().unwrap_or_else(|| cache.join("testbed").join(format!("compare-{}", args.what)));
    let options = CompareOptions {
        program: std::env::current_exe().context("the program does not know where it lies")?,
        repeats: args.repeat,
        seed: args.seed,
        rows: match args.buffers {
            Rows::Matched => vec![Row::Matched],
            Rows::Defaults => vec![Row::Defaults],
            Rows::Both => vec![Row::Matched, Row::Defaults],
        },
        death: match args.death {
            Dies::Process => Death::Process,
            Dies::Power => Death::Power,
        },
        cache,
    };
    let comparison = running::block_on(async {
        let mut say = |line: &str| eprintln!("{line}");
        tokio::select! {
            found = compare::compare(&options, &mut say) => found.or_else(|error| {
                let hint = error.hint();
                Err(error).hint(hint)
            }),
            () = running::told_to_end(args.exit_with_parent) => {
                refuse("stopped", "every process it started is gone")
            }
        }
    })?;
    let write = || format!("cannot write into {}", folder.display());
    comparison.write(&folder).with_context(write).hint("-o DIR names another folder")?;
    if args.json {
        outln!("{}", serde_json::to_string(&comparison)?);
    } else {
        out!("{comparison}");
    }
    eprintln!("report.json and viewings.csv are in {}", folder.display());
    Ok(if comparison.holds { DONE } else { CHECK_FAILED })
}

async fn perform(options: &Options, read: &Read, cache: &std::path::Path) -> anyhow::Result<(Title, Report)> {
    let mut shown = Shown::default();
    let lasts = read.scenario.lasts.0;
    let mut say = |line: &str| eprintln!("{line}");
    let title = lab::testbed::prepare(&read.scenario.film, lasts, &read.folder, cache, &mut say).await;
    let title: Title = title.or_else(explain)?;
    let report = lab::testbed::run(options, read, &title, &mut |progress| shown.update(progress)).await;
    shown.clear();
    Ok((title, report.or_else(explain)?))
}

fn explain<T>(error: TestbedError) -> anyhow::Result<T> {
    let hint = error.hint();
    Err(error).hint(hint)
}

/// What is on the terminal.
#[derive(Default)]
struct Shown {
    bar: Option<(u32, ProgressBar)>,
}

impl Shown {
    fn update(&mut self, progress: Progress) {
        match progress {
            Progress::Said(line) => {
                self.clear();
                eprintln!("{line}");
            }
            Progress::Running { run, of, at_ms, lasts_ms } => {
                if self.bar.as_ref().is_none_or(|(shown, _)| *shown != run) {
                    self.clear();
                    self.bar = Some((run, progress::bar(lasts_ms, &format!("run {run} of {of}"))));
                }
                if let Some((_, bar)) = &self.bar {
                    bar.set_position(at_ms);
                }
            }
        }
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
