//! `lamina verify`: is a title what the encoder made?

use crate::door::{CHECK_FAILED, DONE, Outcome};
use crate::{inspect, progress};
use encoder::VerifyReport;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The most faults that are listed one by one.
const LISTED: usize = 20;

/// Arguments of `lamina verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  lamina verify library/film
Compares every chunk and every recombined picture with the hashes in the manifest.
Exit code 1 means that something differs.")]
pub(crate) struct Args {
    /// The title's folder
    title: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let folder = inspect::open(&args.title)?;
    let blocks = folder.manifest().block_count();
    let bar = progress::bar(u64::from(blocks), "verifying");
    let report =
        encoder::verify(&folder, None, &|done| bar.set_position(u64::from(done)), &AtomicBool::new(false))?;
    bar.finish_and_clear();
    tell(&report, args.json)?;
    Ok(if report.is_clean() { DONE } else { CHECK_FAILED })
}

fn tell(report: &VerifyReport, json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string_pretty(report)?);
        return Ok(());
    }
    let qualities: Vec<String> = report.qualities.iter().map(ToString::to_string).collect();
    outln!(
        "{}: {} blocks, {} chunks, {} pictures at {}",
        report.title,
        report.blocks,
        report.chunks,
        report.pictures,
        qualities.join(", ")
    );
    for layer in &report.missing {
        outln!("  {layer} is not kept here");
    }
    for fault in report.faults.iter().take(LISTED) {
        outln!("  {fault}");
    }
    if let Some(more @ 1..) = report.faults.len().checked_sub(LISTED) {
        outln!("  and {more} more");
    }
    outln!("{}", if report.is_clean() { "clean" } else { "DAMAGED" });
    Ok(())
}
