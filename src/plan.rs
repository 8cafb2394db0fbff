//! `lamina plan`: how many are refused at a site, and which threshold to set.

use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome, refuse};
use anyhow::Context as _;
use lab::plan::{self, PlanFile};
use std::path::{Path, PathBuf};

/// The example that ships with the program.
const EXAMPLE: &str = include_str!("../docs/examples/school-district.toml");
/// No plan is longer, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Arguments of `lamina plan`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina plan --example > district.toml   a school district, to begin with
  lamina plan district.toml               who is refused, and the threshold to set
  lamina plan district.toml --svg district.svg --json
Exit code 1 means that the targets are missed."
)]
pub(crate) struct Args {
    /// The plan
    #[arg(required_unless_present = "example")]
    file: Option<PathBuf>,
    /// Print a plan of a school district, and stop
    #[arg(long)]
    example: bool,
    /// Draw who is refused at which threshold
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let Some(path) = args.file.as_deref().filter(|_| !args.example) else {
        out!("{EXAMPLE}");
        return Ok(DONE);
    };
    let file = read(path)?;
    let report = match plan::plan(&file) {
        Ok(report) => report,
        Err(error) => {
            let hint = error.hint();
            return refuse(format!("{} makes no plan: {}", path.display(), in_one_line(&error)), hint);
        }
    };
    if let Some(svg) = &args.svg {
        std::fs::write(svg, &report.svg).with_context(|| format!("{} cannot be written", svg.display()))?;
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        out!("{report}");
    }
    Ok(if report.met { DONE } else { CHECK_FAILED })
}

fn read(path: &Path) -> anyhow::Result<PlanFile> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()));
    let file = file.hint("`lamina plan --example` prints one to begin with")?;
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if u64::try_from(text.len()).is_ok_and(|length| length >= MAX_FILE) {
        let what = format!("{} is not understood: it has a megabyte or more", path.display());
        return refuse(what, "`lamina plan --example` shows every field");
    }
    toml::from_str(&text).or_else(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        let why = error.message().lines().collect::<Vec<_>>().join(", ");
        let what = format!("{} is not understood, line {line}: {why}", path.display());
        refuse(what, "`lamina plan --example` shows every field")
    })
}

/// An error and all that caused it.
fn in_one_line(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {}", in_one_line(cause)))
}
