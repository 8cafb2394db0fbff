//! `lamina encode`: a film becomes a title.

use crate::aims::AimArgs;
use crate::door::{DONE, HintExt, Outcome, refuse};
use crate::progress;
use anyhow::Context as _;
use codec::Preset;
use encoder::{EncodeError, EncodeOptions, EncodeReport, Input, Metrics, Progress, Share};
use indicatif::ProgressBar;
use media::library::LibraryError;
use media::{Span, TitleClass, TitleName};
use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Beyond this the fast preset is worth a word.
const LONG: Duration = Duration::from_mins(10);

/// Arguments of `lamina encode`.
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina encode film.mp4 -o library                  the title `film` in ./library
  lamina encode film.mkv -o library --preset fast    faster, larger enhancements
  lamina encode film.mp4 -o library --from 1:30 --to 2:00 --title scene
  ffmpeg -i film.avi -f matroska - | lamina encode - -o library --title film
  lamina encode film.mp4 -o library --resume         go on where a killed run stopped
  lamina encode film.mp4 -o parts --shard 2/8        every eighth block, for `lamina merge`
Times are seconds, M:SS or H:MM:SS. The same film and settings give the same bytes
on any number of cores.")]
pub(crate) struct Args {
    /// The film: anything GStreamer can read; `-` is standard input
    pub(crate) film: PathBuf,
    /// The library's folder; made if it is not there
    #[arg(short, long, value_name = "LIBRARY")]
    output: PathBuf,
    /// The title's name [default: the film's file name without extension]
    #[arg(long)]
    title: Option<TitleName>,
    /// By what nodes tell it from others when viewers are many: archived,
    /// first-time or ad-hoc
    #[arg(long, default_value_t, value_name = "CLASS")]
    class: TitleClass,
    /// Speed against size of the enhancements: fast, default or best
    #[arg(long, default_value = "default")]
    preset: Preset,
    /// One knob for all layers, 10 to 45; lower is better and larger
    #[arg(long, default_value_t = codec::Settings::DEFAULT_QUALITY, value_parser = quality)]
    quality: f32,
    /// Base's rate factor instead of the knob's, which is 7 and two thirds of the quality (x264 CRF)
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=50))]
    crf: Option<u32>,
    /// Quantizer of each enhancement instead of the knob's (VP9, 0 to 63)
    #[arg(long, value_delimiter = ',', value_name = "Q,Q", value_parser = clap::value_parser!(u8).range(0..=63))]
    quantizers: Option<Vec<u8>>,
    #[command(flatten)]
    aims: AimArgs,
    /// Down-scale factor of each layer, Base first
    #[arg(long, value_delimiter = ',', default_value = "2,1,1", value_name = "F,F,F")]
    factors: Vec<u8>,
    /// Target length of a block
    #[arg(long, value_parser = span, default_value = "1", value_name = "TIME")]
    block: Span,
    /// Start here
    #[arg(long, value_parser = span, value_name = "TIME")]
    from: Option<Span>,
    /// End here
    #[arg(long, value_parser = span, value_name = "TIME")]
    to: Option<Span>,
    /// Repeat the blocks until the title is at least this long
    #[arg(long, value_parser = span, value_name = "TIME")]
    repeat_to: Option<Span>,
    /// Threads that encode, two to a block [default: one for each core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Write each enhancement in two halves, of which the second can be left out
    /// where its layer is the topmost one: finer steps of rate, and larger files
    #[arg(long)]
    halves: bool,
    /// Compare with the film: off, sampled (every tenth block) or full
    #[arg(long, default_value = "sampled", value_parser = metrics)]
    metrics: Metrics,
    /// Take a damaged film up to its damage instead of refusing it
    #[arg(long)]
    keep_going: bool,
    /// Go on with what an interrupted run began, and keep what this one begins
    #[arg(long, conflicts_with = "repeat_to")]
    resume: bool,
    /// Encode only every N-th block, from block I on, into a part for `lamina merge`
    #[arg(long, value_name = "I/N", conflicts_with = "repeat_to")]
    shard: Option<Share>,
    /// Replace an existing title of this name
    #[arg(long)]
    replace: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn quality(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    if (10.0..=45.0).contains(&value) { Ok(value) } else { Err("10 (best) to 45 (smallest)".to_owned()) }
}

fn metrics(text: &str) -> Result<Metrics, String> {
    match text {
        "off" => Ok(Metrics::Off),
        "sampled" => Ok(Metrics::Sampled),
        "full" => Ok(Metrics::Full),
        _ => Err("off, sampled or full".to_owned()),
    }
}

/// Reads seconds, `M:SS` or `H:MM:SS`, with decimals.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let shape = || format!("{text:?} is no time: give seconds, M:SS or H:MM:SS");
    let mut seconds = 0.0;
    for part in text.strip_suffix('s').unwrap_or(text).split(':') {
        let part: f64 = part.parse().map_err(|_| shape())?;
        if !part.is_finite() || part < 0.0 {
            return Err(shape());
        }
        seconds = seconds * 60.0 + part;
    }
    Duration::try_from_secs_f64(seconds).map(Span::from).map_err(|_| shape())
}

pub(crate) fn run(args: Args) -> Outcome {
    let piped = ["-", "/dev/stdin"].iter().any(|name| args.film.as_os_str() == *name);
    let input = if piped { Input::Pipe } else { args.film.clone().into() };
    run_from(args, input)
}

/// The same for a film that comes from elsewhere.
pub(crate) fn run_from(args: Args, input: Input) -> Outcome {
    let json = args.json;
    let options = options(args, input);
    let cancel = cancelled_by_ctrl_c()?;
    let mut shown = Shown::default();
    let outcome = encoder::encode(&options, &mut |progress| shown.update(&progress), &cancel);
    shown.bar.take().inspect(ProgressBar::finish_and_clear);
    let report = outcome.or_else(|error| explain(error, &options))?;
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    tell(&report, json)?;
    Ok(DONE)
}

fn options(args: Args, input: Input) -> EncodeOptions {
    EncodeOptions {
        title: args.title,
        class: args.class,
        preset: args.preset,
        quality: args.quality,
        crf: args.crf,
        quantizers: args.quantizers,
        aims: args.aims.aims(),
        block: args.block,
        factors: args.factors,
        from: args.from,
        to: args.to,
        jobs: args.jobs.map(usize::from),
        halves: args.halves,
        metrics: args.metrics,
        replace: args.replace,
        repeat_to: args.repeat_to,
        keep_going: args.keep_going,
        resume: args.resume,
        share: args.shard,
        ..EncodeOptions::new(input, args.output)
    }
}

/// The first Ctrl-C ends the work tidily, so that nothing half-written stays.
pub(crate) fn cancelled_by_ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let cancel = Arc::clone(&cancelled);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("signals cannot be watched")?;
    std::thread::spawn(move || {
        runtime.block_on(crate::running::asked_to_stop());
        cancel.store(true, Ordering::Relaxed);
    });
    Ok(cancelled)
}

fn explain(error: EncodeError, options: &EncodeOptions) -> anyhow::Result<EncodeReport> {
    let hint = error.hint();
    let what = match &error {
        EncodeError::Library(LibraryError::Exists { .. }) => "the title exists already".to_owned(),
        _ => format!("cannot encode {}", options.input),
    };
    let error = anyhow::Error::new(error).context(what);
    match hint {
        Some(hint) => Err(error).hint(hint),
        None => Err(error),
    }
}

/// What the person sees while it works.
#[derive(Default)]
struct Shown {
    bar: Option<ProgressBar>,
    length: Option<Span>,
    estimated: bool,
}

impl Shown {
    fn update(&mut self, progress: &Progress) {
        match progress {
            Progress::Opened { width, height, length, jobs } => {
                self.length = *length;
                let length = length.map_or_else(|| "unknown length".to_owned(), |span| span.to_string());
                let threads = if *jobs == 1 { "1 thread".to_owned() } else { format!("{jobs} threads") };
                eprintln!("encoding {width}x{height}, {length}, on {threads}");
                self.bar = Some(match self.length {
                    Some(span) => progress::bar(span.as_millis(), "encoding"),
                    None => progress::spinner("encoding"),
                });
            }
            Progress::Block { index, done, pictures, elapsed, left } => {
                if let (false, Some(left)) = (self.estimated, *left) {
                    self.estimated = true;
                    self.estimate(left);
                }
                if let Some(bar) = &self.bar {
                    bar.set_position(done.as_millis());
                }
                if !stderr().is_terminal() && index % 60 == 59 {
                    eprintln!("{done} done, {pictures} pictures in {:.0} s", elapsed.as_secs_f64());
                }
            }
            Progress::Tuned { crf, quantizers } => {
                eprintln!("on a sample of the film: CRF {crf}, quantizers {quantizers:?}");
            }
            Progress::Resumed { blocks, done } => {
                eprintln!("going on after {blocks} blocks, {done}");
                if let Some(bar) = &self.bar {
                    bar.set_position(done.as_millis());
                    bar.reset_eta();
                }
            }
            Progress::Repeating => eprintln!("repeating the blocks"),
        }
    }

    fn estimate(&self, left: Duration) {
        let line = |text: String| match &self.bar {
            Some(bar) if !bar.is_hidden() => bar.println(text),
            _ => eprintln!("{text}"),
        };
        line(format!("about {} left", minutes(left)));
        if left > LONG {
            line("hint: --preset fast".to_owned());
        }
    }
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

pub(crate) fn tell(report: &EncodeReport, json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string_pretty(report)?);
        return Ok(());
    }
    outln!("{} ({} blocks, {:.2} s)", report.folder, report.blocks, report.seconds);
    outln!("\n  layer    size         kbit/s   share");
    for layer in &report.layers {
        let size = format!("{}x{}", layer.width, layer.height);
        outln!("  {:<8} {:<10} {:>8.0}  {:>5.1}%", layer.layer, size, layer.kbit_s, layer.share * 100.0);
    }
    if report.audio_kbit_s > 0.0 {
        outln!("  (sound, in base)    {:>8.0}", report.audio_kbit_s);
    }
    if !report.qualities.is_empty() {
        outln!("\n  quality    PSNR-Y  worst picture     SSIM    kbit/s");
    }
    for quality in &report.qualities {
        outln!(
            "  {:<8} {:>6.2} dB      {:>6.2} dB   {:.4}  {:>8.0}",
            quality.quality,
            quality.psnr_y,
            quality.worst_psnr_y,
            quality.ssim_y,
            quality.kbit_s
        );
    }
    tell_steps(report);
    outln!(
        "\n{} pictures in {:.1} s, {:.1} a second (preset {}, CRF {}, quantizers {:?})",
        report.pictures,
        report.elapsed_seconds,
        report.pictures_per_second,
        report.preset,
        report.crf,
        report.quantizers
    );
    Ok(())
}

/// In how many blocks of a title in halves each step is better than the one below.
fn tell_steps(report: &EncodeReport) {
    let Some(first) = report.by_block.first() else { return };
    let count = report.by_block.len();
    let (rising, not): (Vec<_>, Vec<_>) = report.by_block.iter().partition(|block| block.rises());
    let steps = first.steps.len();
    outln!(
        "\n  {steps} steps in each block; the mean rises with each of them in {} of {count} blocks",
        rising.len()
    );
    for block in not {
        let decibels: Vec<String> = block.steps.iter().map(|step| format!("{:.2}", step.psnr_y)).collect();
        outln!("  not in block {}: {} dB", block.block, decibels.join(", "));
    }
}

/// Encodes for another command, with progress on stderr.
pub(crate) fn quietly(options: &EncodeOptions, cancel: &AtomicBool) -> anyhow::Result<EncodeReport> {
    let mut shown = Shown::default();
    let outcome = encoder::encode(options, &mut |progress| shown.update(&progress), cancel);
    shown.bar.take().inspect(ProgressBar::finish_and_clear);
    match outcome {
        Err(EncodeError::Cancelled) => refuse("cancelled", "nothing was kept; run it again"),
        outcome => outcome.or_else(|error| explain(error, options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(span("90"), Ok(Span::from_secs(90)));
        assert_eq!(span("1:30"), Ok(Span::from_secs(90)));
        assert_eq!(span("1:00:00.5"), Ok(Span::from_millis(3_600_500)));
        assert_eq!(span("45s"), Ok(Span::from_secs(45)));
        for bad in ["", "-1", "1:", "x", "inf", "NaN"] {
            assert!(span(bad).is_err(), "{bad:?}");
        }
    }
}
