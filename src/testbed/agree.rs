//! `lamina testbed agree`: the simulator beside the testbed.

use super::{explain, kept_up, perform};
use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome, refuse};
use crate::{cache, running};
use anyhow::Context as _;
use lab::testbed::{Agreement, Options, Read, RunReport, Title};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct Agree {
    /// A file of TOML, or the name of a scenario in the program
    #[arg(default_value = "base-death")]
    scenario: String,
    /// How often, in each
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Decides what is decided by lot
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare with what the testbed saw before: the folder of its report
    #[arg(long, value_name = "DIR", conflicts_with_all = ["repeat", "seed"])]
    seen: Option<PathBuf>,
    /// A folder for the testbed's report, and agreement.json [default: in the cache]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

pub(super) fn run(args: &Agree) -> Outcome {
    let read = lab::testbed::read(&args.scenario);
    let read = read.or_else(|error| {
        let hint = error.hint();
        Err(error).hint(hint)
    })?;
    let cache = cache::folder()?;
    let folder =
        args.output.clone().unwrap_or_else(|| cache.join("testbed").join(format!("agree-{}", read.name)));
    let (title, runs) = running::block_on(async {
        tokio::select! {
            both = both(args, &read, &cache, &folder) => both,
            () = running::told_to_end(args.exit_with_parent) => {
                refuse("stopped", "every process it started is gone")
            }
        }
    })?;
    let agreement = Agreement::of(&read, &title, &runs).or_else(explain)?;
    let json = serde_json::to_string_pretty(&agreement)?;
    let path = folder.join("agreement.json");
    let write = || std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &json));
    write()
        .with_context(|| format!("cannot write {}", path.display()))
        .hint("-o DIR names another folder")?;
    if args.json {
        outln!("{json}");
    } else {
        out!("{agreement}");
    }
    eprintln!("{}", path.display());
    Ok(if agreement.holds { DONE } else { CHECK_FAILED })
}

/// The title, and what the testbed saw, now or before.
async fn both(
    args: &Agree,
    read: &Read,
    cache: &Path,
    folder: &Path,
) -> anyhow::Result<(Title, Vec<RunReport>)> {
    let lasts = read.scenario.lasts.0;
    let mut say = |line: &str| eprintln!("{line}");
    if let Some(seen) = &args.seen {
        let runs = before(&seen.join("report.json"), read)?;
        let title = lab::testbed::prepare(&read.scenario.film, lasts, &read.folder, cache, &mut say).await;
        return Ok((title.or_else(explain)?, runs));
    }
    let options = Options {
        program: std::env::current_exe().context("the program does not know where it lies")?,
        repeats: args.repeat,
        seed: args.seed,
        hosts: None,
    };
    let (title, report) = perform(&options, read, cache).await?;
    report.write(folder).with_context(|| format!("cannot write into {}", folder.display()))?;
    kept_up(&report)?;
    Ok((title, report.runs))
}

/// The runs of an earlier report of this scenario.
fn before(path: &Path, read: &Read) -> anyhow::Result<Vec<RunReport>> {
    #[derive(serde::Deserialize)]
    struct Report {
        scenario: String,
        runs: Vec<RunReport>,
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let text = text.hint("`lamina testbed run base-death --repeat 30 -o DIR` leaves one")?;
    let report: Report = serde_json::from_str(&text)
        .with_context(|| format!("{} is no report of the testbed", path.display()))?;
    if report.scenario != read.text {
        return refuse(
            format!("{} is about another scenario", path.display()),
            "name the one that was played",
        );
    }
    Ok(report.runs)
}
