//! `lamina demo`: the whole system in a minute.

mod page;

use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome, refuse};
use crate::{cache, progress, running};
use anyhow::Context as _;
use encoder::Progress;
use indicatif::ProgressBar;
use lab::demo::{DemoError, DemoFilm, DemoOptions, DemoOutcome};
use player::SinkKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `lamina demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina demo                         the sample film, without a window
  lamina demo --window                the same, to be watched
  lamina demo --video film.mp4        your own film (its first minute)
  lamina demo --web                   a page to look at it and to break it, until Ctrl-C
Starts an origin, 8 Base, 4 Enh1 and 2 Enh2 nodes and a proxy on loopback, each a process
that knows one other address. Plays gold to a VIP, silver to a normal viewer and bronze to
another one through the proxy, kills nodes at 8, 14 and 30 s, and ends with what was
measured.")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A film of your own; encoded once, then kept in the cache
    #[arg(long, value_name = "FILM")]
    video: Option<PathBuf>,
    /// Show the gold viewer's pictures
    #[arg(long, conflicts_with = "headless")]
    window: bool,
    /// Play without a window (the default)
    #[arg(long)]
    headless: bool,
    /// Serve a page that shows the network, on this machine only, until Ctrl-C
    #[arg(long, conflicts_with_all = ["window", "headless", "report", "json"])]
    web: bool,
    /// Where the page is served: an address of this machine's own
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4480", requires = "web")]
    listen: SocketAddr,
    /// Where the report, the chart and the contact sheet go [default: in the cache]
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print the gold viewer's report as JSON at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Outcome {
    let (json, web) = (args.json, args.web.then_some(args.listen));
    let options = options(args)?;
    player::init().context("GStreamer cannot be started").hint("lamina doctor says what to install")?;
    if let Some(listen) = web {
        return page::run(&options, listen);
    }
    let outcome = running::block_on(async {
        tokio::select! {
            outcome = show(&options) => outcome,
            () = running::asked_to_stop() => refuse("stopped", "every process it started is gone"),
        }
    })?;
    tell(&options, &outcome, json)
}

fn options(args: Args) -> anyhow::Result<DemoOptions> {
    if args.window && std::env::var_os("DISPLAY").is_none() {
        return refuse("there is no display for a window", "--headless plays without one");
    }
    let cache = cache::folder()?;
    Ok(DemoOptions {
        program: std::env::current_exe().context("the program does not know where it lies")?,
        video: args.video,
        report: args.report.unwrap_or_else(|| cache.join("demo-report")),
        sink: if args.window { SinkKind::Window } else { SinkKind::Headless },
        cache,
    })
}

async fn show(options: &DemoOptions) -> anyhow::Result<DemoOutcome> {
    let film = prepared(options).await?;
    if let Some(attribution) = film.attribution {
        eprintln!("        {attribution}");
    }
    let outcome = lab::demo::run(options, &film, |line| eprintln!("{line}")).await;
    outcome.or_else(explain)
}

/// Encodes on a thread of its own, which stops when this future is dropped.
async fn prepared(options: &DemoOptions) -> anyhow::Result<DemoFilm> {
    struct Cancel(Arc<AtomicBool>);
    impl Drop for Cancel {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let cancel = Cancel(Arc::new(AtomicBool::new(false)));
    let (flag, options) = (Arc::clone(&cancel.0), options.clone());
    let work = move || {
        let mut bar: Option<ProgressBar> = None;
        let film = lab::demo::prepare(&options, &mut |progress| draw(&mut bar, &progress), &flag);
        bar.inspect(ProgressBar::finish_and_clear);
        film
    };
    let film = tokio::task::spawn_blocking(work).await.context("the encoder broke off")?;
    film.or_else(explain)
}

fn draw(bar: &mut Option<ProgressBar>, progress: &Progress) {
    match progress {
        Progress::Opened { length, .. } => {
            eprintln!("        encoding the film, once");
            *bar = length.map(|span| progress::bar(span.as_millis(), "encoding"));
        }
        Progress::Block { done, .. } => {
            if let Some(bar) = bar {
                bar.set_position(done.as_millis());
            }
        }
        Progress::Repeating | Progress::Resumed { .. } | Progress::Tuned { .. } => (),
    }
}

fn explain<T>(error: DemoError) -> anyhow::Result<T> {
    let hint = match &error {
        DemoError::Encode(error) => error.hint(),
        DemoError::Write { .. } => Some("--report DIR and XDG_CACHE_HOME choose other folders"),
        _ => None,
    };
    match hint {
        Some(hint) => Err(error).hint(hint),
        None => Err(error.into()),
    }
}

/// The end of the story. A freeze or a wrong picture is a failed check.
fn tell(options: &DemoOptions, outcome: &DemoOutcome, json: bool) -> Outcome {
    if json {
        outln!("{}", serde_json::to_string(&outcome.gold)?);
    } else {
        out!(
            "\n{}",
            lab::demo::table(&[
                ("gold, a VIP", &outcome.gold),
                ("silver", &outcome.silver),
                ("bronze, by proxy", &outcome.bronze)
            ])
        );
        for kill in &outcome.gold.kills {
            outln!(
                "  killed {:<8} at {:>6} ms with {:.1} s in the buffer",
                kill.node,
                kill.at_ms,
                kill.buffer_s
            );
        }
    }
    eprintln!("\nreport.json, chart.svg and sheet.png are in {}", options.report.display());
    let held = [&outcome.gold, &outcome.silver, &outcome.bronze]
        .iter()
        .all(|seen| seen.freezes.count == 0 && seen.hash_mismatches.is_empty());
    Ok(if held { DONE } else { CHECK_FAILED })
}
