//! `lamina merge`: parts of a title become the title.

use crate::door::{DONE, HintExt, Outcome};
use crate::{encode, progress};
use encoder::Progress;
use std::path::PathBuf;

/// Arguments of `lamina merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina encode film.mp4 -o parts --shard 1/2 --preset fast
  lamina encode film.mp4 -o parts --shard 2/2 --preset fast
  lamina merge parts/film.part-1-of-2 parts/film.part-2-of-2 -o library
The title has the same bytes as if one process had encoded the whole film.
The parts stay; delete them when the title is there.")]
pub(crate) struct Args {
    /// The folders of all parts, in any order
    #[arg(required = true)]
    parts: Vec<PathBuf>,
    /// The library's folder; made if it is not there
    #[arg(short, long, value_name = "LIBRARY")]
    output: PathBuf,
    /// Replace an existing title of this name
    #[arg(long)]
    replace: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let cancel = encode::cancelled_by_ctrl_c()?;
    let bar = progress::spinner("merging");
    let mut shown = |told: Progress| {
        if let Progress::Block { index, .. } = told {
            bar.set_position(u64::from(index) + 1);
        }
    };
    let merged = encoder::merge(&args.parts, &args.output, args.replace, &mut shown, &cancel);
    bar.finish_and_clear();
    let report = merged.or_else(|error| {
        let hint = error.hint().unwrap_or("name the folders that `lamina encode --shard` printed");
        Err(anyhow::Error::new(error).context("the parts cannot be merged")).hint(hint)
    })?;
    encode::tell(&report, args.json)?;
    Ok(DONE)
}
