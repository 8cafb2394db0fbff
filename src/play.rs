//! `lamina play`: a title on screen, or just measured.

use crate::door::{DONE, HintExt, Outcome, refuse};
use crate::{address, encode, keys, running, titles};
use anyhow::Context as _;
use media::{Quality, Span, TitleName};
use player::{Command, PlayError, PlayOptions, PlayReport, PlayerEvent, SinkKind};
use protocol::Refusal;
use protocol::player::Own;
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Arguments of `lamina play`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina play lamina://127.0.0.1:4460/film --keys keys
  lamina play lamina://127.0.0.1:4460/film --keys keys --headless --report out
  lamina play lamina://127.0.0.1:4460/film --key anna.lamina-key
In the window: space pauses, left and right seek, up and down (or b, s, g) change the
quality, + and - wind at 2x to 16x, q ends.")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Where and what: lamina://HOST:PORT/TITLE
    url: String,
    /// Best quality wanted: bronze, silver, gold or a number of layers
    #[arg(long, default_value = "gold")]
    quality: Quality,
    /// Play in a window (the default where there is a display)
    #[arg(long, conflicts_with = "headless")]
    window: bool,
    /// Play without a window, at the pace of the film
    #[arg(long)]
    headless: bool,
    /// Decode nothing and measure all the same: for crowds
    #[arg(long, conflicts_with = "window")]
    light: bool,
    /// Which of this machine's addresses to dial from [default: the system's choice]
    #[arg(long, value_name = "ADDRESS")]
    dial_from: Option<IpAddr>,
    /// Write report.json, tables and a chart into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// The most programme held ahead of the picture, wherever it lies
    #[arg(long, value_parser = encode::span, default_value = "4", value_name = "TIME")]
    buffer: Span,
    /// Begin here
    #[arg(long, value_parser = encode::span, default_value = "0", value_name = "TIME")]
    start: Span,
    /// Play this much
    #[arg(long, value_parser = encode::span, value_name = "TIME")]
    limit: Option<Span>,
    /// Without sound
    #[arg(long)]
    mute: bool,
    /// Other nodes or proxies to open the title at, if the first does not answer
    #[arg(long, value_name = "HOST:PORT")]
    also: Vec<String>,
    /// The folder with ca.pem [default: `$XDG_DATA_HOME/lamina/keys`]
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// What this viewer was promised: a file made by `lamina keys viewer`
    #[arg(long, value_name = "FILE", conflicts_with = "keys")]
    key: Option<PathBuf>,
    /// Leave it to the network to find other nodes when one dies
    #[arg(long)]
    wait_for_network: bool,
    /// Ask no second node for what is late
    #[arg(long)]
    no_hedge: bool,
    /// Do not look for service again when nobody serves any more
    #[arg(long)]
    no_repull: bool,
    /// Print events and the report as lines of JSON
    #[arg(long)]
    json: bool,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

pub(crate) fn run(args: Args) -> Outcome {
    let json = args.json;
    let (promised_nothing, with_parent) = (args.key.is_none(), args.exit_with_parent);
    let options = options(args)?;
    player::init().context("GStreamer cannot be started").hint("lamina doctor says what to install")?;
    if promised_nothing && !json {
        eprintln!("hint: without --key this viewer is a normal one; `lamina keys viewer` makes a key");
    }
    let title = options.title.clone();
    let report = running::block_on(async move {
        let (commands, asked) = mpsc::channel(16);
        let (events, mut heard) = mpsc::channel(256);
        let stop = tokio::spawn(async move {
            running::told_to_end(with_parent).await;
            commands.send(Command::Stop).await.ok();
            // The sender stays open, so that the player keeps listening.
            std::future::pending::<()>().await;
        });
        let listener = tokio::spawn(async move {
            while let Some(event) = heard.recv().await {
                tell_event(&event, json);
            }
        });
        let played = player::play(options, asked, events).await;
        listener.await.ok();
        stop.abort();
        played.or_else(|error| explain(error, &title))
    })?;
    tell(&report, json)?;
    Ok(DONE)
}

fn options(args: Args) -> anyhow::Result<PlayOptions> {
    let (host, title) = address::parse_title_url(&args.url)?;
    let (authority, token) = match &args.key {
        Some(path) => keys::viewer_key(path).map(|(authority, token)| (authority, Some(token)))?,
        None => (titles::authority(args.keys)?, None),
    };
    let window = args.window || (!args.headless && !args.light && std::env::var_os("DISPLAY").is_some());
    if args.window && std::env::var_os("DISPLAY").is_none() {
        return refuse("there is no display for a window", "--headless plays without one");
    }
    let mut options = PlayOptions::new(host, title, authority, titles::viewer()?);
    for also in &args.also {
        options.addresses.push((None, address::resolve(also)?));
    }
    options.token = token;
    options.quality = args.quality;
    options.buffer = args.buffer;
    options.sink = match (window, args.light) {
        (_, true) => SinkKind::Light,
        (true, false) => SinkKind::Window,
        (false, false) => SinkKind::Headless,
    };
    options.dial_from = args.dial_from;
    options.audio = !args.mute;
    options.start = args.start;
    options.limit = args.limit;
    options.report_dir = args.report;
    let own = !args.wait_for_network;
    options.own = Own { failover: own, hedge: own && !args.no_hedge, repull: own && !args.no_repull };
    options.seed = u64::from(std::process::id());
    Ok(options)
}

fn explain(error: PlayError, title: &TitleName) -> anyhow::Result<PlayReport> {
    let hint = match &error {
        PlayError::Dial(error) => titles::dial_hint(error),
        PlayError::Refused { why: Refusal::Threshold, .. } => {
            "titles of other classes may still be let in; try again when somebody has finished"
        }
        PlayError::Refused { why: Refusal::ViewerLink, .. } => {
            "a lower --quality takes less; try again later, or at another node: --also HOST:PORT names one"
        }
        PlayError::Refused { why: Refusal::BottomLine | Refusal::NothingToDisplace, .. } => {
            "a VIP's --key ranks higher; try again later, or at another node"
        }
        PlayError::Refused { why: Refusal::Full | Refusal::OriginLink | Refusal::Storage, .. } => {
            "try again later, or at another node"
        }
        PlayError::Refused { .. } => "`lamina titles HOST` lists what can be watched there",
        PlayError::Pipeline(_) | PlayError::Playback(_) => "lamina doctor says what is missing",
        PlayError::GaveUp { .. } => "is any node of the network still running?",
        _ => return Err(error).with_context(|| format!("cannot play {title}")),
    };
    Err(error).with_context(|| format!("cannot play {title}")).hint(hint)
}

/// What happens while it plays, for people on stderr and for programs on stdout.
fn tell_event(event: &PlayerEvent, json: bool) {
    if json {
        if let Ok(line) = serde_json::to_string(event) {
            outln!("{line}");
        }
    } else if let Some(line) = lab::demo::told(event) {
        eprintln!("{line}");
    }
}

fn tell(report: &PlayReport, json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string(report)?);
    } else {
        out!("{}", lab::demo::table(&[("watched", report)]));
    }
    Ok(())
}
