//! `lamina export`: a title becomes a file that any player opens.

use crate::door::{DONE, HintExt, Outcome};
use crate::{encode, inspect, progress};
use encoder::{ExportOptions, ExportReport};
use media::Quality;
use std::path::PathBuf;

/// Arguments of `lamina export`.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("where").required(true).args(["output", "hls"])),
    after_help = "\
Examples:
  lamina export library/film --quality gold -o film.mp4
  lamina export library/film --quality bronze -o base.mp4   copied, not encoded again
  lamina export library/film --hls web                      Base for hls.js and ffplay
Silver and gold are recombined and encoded anew as H.264; sides are rounded up to even."
)]
pub(crate) struct Args {
    /// The title's folder
    title: PathBuf,
    /// bronze, silver, gold or a number of layers [default: the best that is kept here]
    #[arg(long)]
    quality: Option<Quality>,
    /// The file to write
    #[arg(short, long, value_name = "FILE", conflicts_with = "hls")]
    output: Option<PathBuf>,
    /// Write an HLS playlist of Base into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "quality")]
    hls: Option<PathBuf>,
    /// Rate factor of H.264 at silver and gold; lower is better and larger
    #[arg(long, default_value_t = 18, value_parser = clap::value_parser!(u32).range(0..=50))]
    crf: u32,
    /// Replace what is there
    #[arg(long)]
    replace: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let folder = inspect::open(&args.title)?;
    let cancel = encode::cancelled_by_ctrl_c()?;
    let kept = folder.layers().zip(0_u8..).take_while(|(layer, n)| layer.0 == *n).count();
    let best = Quality(u8::try_from(kept).unwrap_or(1).max(1));
    let bar = progress::bar(u64::from(folder.manifest().block_count()), "exporting");
    let told = |done: u32| bar.set_position(u64::from(done));
    let outcome = match (&args.hls, &args.output) {
        (Some(hls), _) => encoder::export_hls(&folder, hls, args.replace),
        (None, output) => {
            let options = ExportOptions {
                quality: args.quality.unwrap_or(best),
                file: output.clone().unwrap_or_default(),
                crf: args.crf,
                replace: args.replace,
            };
            encoder::export(&folder, &options, &told, &cancel)
        }
    };
    bar.finish_and_clear();
    let report = outcome.or_else(|error| {
        let hint = error.hint().unwrap_or("`lamina verify` says what is wrong with a title");
        Err(anyhow::Error::new(error).context("the title cannot be exported")).hint(hint)
    })?;
    tell(&report, args.json)?;
    Ok(DONE)
}

fn tell(report: &ExportReport, json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string_pretty(report)?);
        return Ok(());
    }
    let how = if report.copied { "copied" } else { "encoded as H.264" };
    outln!(
        "{} ({}, {how}, {} pictures, {:.2} s, {:.0} kbit/s)",
        report.written,
        report.quality,
        report.pictures,
        report.seconds,
        report.kbit_s
    );
    Ok(())
}
