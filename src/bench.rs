//! `lamina bench`: claims beside their yardsticks.

use crate::door::{CHECK_FAILED, DONE, HintExt, Outcome, refuse};
use crate::{cache, running};
use anyhow::Context as _;
use codec::Preset;
use lab::bench::cooperation::{self, CooperationError, Scheme};
use lab::bench::{combine, encode, proxy, rate, serve};
use media::Span;
use serde::Serialize;
use std::fmt::Display;
use std::path::PathBuf;

/// Arguments of `lamina bench`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina bench rate film.mp4 other.mkv
  lamina bench serve --json
  lamina bench cooperation --repeat 3
Without clips the sample film is used. Yardsticks run in the same minutes on the same
machine, so that the ratios can be compared where absolute figures cannot."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Rate and quality of our layers against single-layer x264 and simulcast
    Rate {
        /// Films [default: the sample]
        clips: Vec<PathBuf>,
        /// Speed against size of the enhancements
        #[arg(long, default_value = "default")]
        preset: Preset,
        /// Steps of the quality knob
        #[arg(long, value_delimiter = ',', value_name = "Q,Q,..")]
        steps: Option<Vec<f32>>,
        /// How much of each clip
        #[arg(long, value_name = "SECONDS")]
        seconds: Option<f64>,
    },
    /// Decoding and recombining gold, in times real time
    Combine {
        /// Films or titles' folders [default: the sample]
        clips: Vec<PathBuf>,
        /// How often each is played
        #[arg(long)]
        repeats: Option<u32>,
        /// Leave out the 1920x1080 version of the first clip
        #[arg(long)]
        no_full_hd: bool,
    },
    /// Pictures a second of our encoder against x264 medium, on one core and all, and memory
    Encode {
        /// A film [default: the sample]
        clip: Option<PathBuf>,
        /// Presets
        #[arg(long, value_delimiter = ',', value_name = "PRESETS")]
        presets: Option<Vec<Preset>>,
        /// How often
        #[arg(long)]
        repeats: Option<u32>,
    },
    /// Serving chunks of 200 KB to 50 connections against bare QUIC
    Serve,
    /// Cached chunks against bare QUIC and nginx, memory, and slow clients
    Proxy,
    /// Three proxies that share what they hold against three that do not
    Cooperation(Cooperation),
    /// The simulator: events a second, a network of 1600 users, memory
    Sim,
    /// Exact blocking probabilities: milliseconds for 100 to 10,000 servers
    Theory,
    /// Viewers let in and out a second, beside the bare decision
    Admission,
}

/// Arguments of `lamina bench cooperation`.
#[derive(Debug, clap::Args)]
struct Cooperation {
    /// A film [default: the sample]
    clip: Option<PathBuf>,
    /// How often, each time with other arrivals; two or more give 95 % intervals
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Decides who comes when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Players behind the first proxy
    #[arg(long)]
    clients: Option<u8>,
    /// Players behind each of the others
    #[arg(long)]
    others: Option<u8>,
    /// How much of the film
    #[arg(long, value_parser = crate::encode::span, value_name = "TIME")]
    length: Option<Span>,
    /// Mean time between two arrivals at a proxy [default: two thirds of the film]
    #[arg(long, value_parser = crate::encode::span, value_name = "TIME")]
    gap: Option<Span>,
    /// One of the two alone
    #[arg(long, value_name = "on|off", value_parser = scheme)]
    only: Option<Scheme>,
}

fn scheme(text: &str) -> Result<Scheme, String> {
    match text {
        "on" => Ok(Scheme::On),
        "off" => Ok(Scheme::Off),
        _ => Err("on or off".to_owned()),
    }
}

pub(crate) fn run(args: Args) -> Outcome {
    let json = args.json;
    match args.what {
        What::Rate { clips, preset, steps, seconds } => {
            let mut options = rate::Options { preset, ..rate::Options::default() };
            crate::serve::set(&mut options.steps, steps);
            crate::serve::set(&mut options.seconds, seconds);
            tell(&rate::run(&films(clips)?, &options, &mut say)?, json)
        }
        What::Combine { clips, repeats, no_full_hd } => {
            let mut options = combine::Options { full_hd: !no_full_hd, ..combine::Options::default() };
            crate::serve::set(&mut options.repeats, repeats);
            tell(&combine::run(&films(clips)?, &options, &mut say)?, json)
        }
        What::Encode { clip, presets, repeats } => {
            let program = std::env::current_exe().context("this program does not know where it lies")?;
            let mut options = encode::Options { program: Some(program), ..encode::Options::default() };
            crate::serve::set(&mut options.presets, presets);
            crate::serve::set(&mut options.repeats, repeats);
            let clips = films(clip.into_iter().collect())?;
            let clip = clips.first().context("no clip")?;
            tell(&encode::run(clip, &options, &mut say)?, json)
        }
        What::Serve => {
            let report =
                running::block_on(async { Ok(serve::run(&serve::Options::default(), &mut say).await?) })?;
            tell(&report, json)
        }
        What::Proxy => {
            let program = std::env::current_exe().context("this program does not know where it lies")?;
            let options = proxy::Options { program: Some(program), ..proxy::Options::default() };
            let report = running::block_on(async { Ok(proxy::run(&options, &mut say).await?) })?;
            tell(&report, json)
        }
        What::Cooperation(args) => cooperate(args, json),
        What::Sim => tell(&lab::bench::sim::run(&lab::bench::sim::Options::default(), &mut say)?, json),
        What::Admission => tell(&lab::bench::admission::run(&mut say)?, json),
        What::Theory => tell(&lab::bench::theory::run(&mut say)?, json),
    }
}

fn cooperate(args: Cooperation, json: bool) -> Outcome {
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let films = films(args.clip.into_iter().collect())?;
    let mut options = cooperation::Options::new(program, films.into_iter().next().context("no clip")?);
    (options.repeats, options.seed) = (args.repeat, args.seed);
    crate::serve::set(&mut options.clients, args.clients);
    crate::serve::set(&mut options.others, args.others);
    crate::serve::set(&mut options.length, args.length);
    crate::serve::set(&mut options.gap, args.gap.map(Some));
    crate::serve::set(&mut options.schemes, args.only.map(|scheme| vec![scheme]));
    let mut progress = say;
    let report = running::block_on(async {
        // Whoever is dropped ends the processes that it started.
        tokio::select! {
            report = cooperation::run(&options, &mut progress) => Ok(report?),
            () = running::asked_to_stop() => refuse("stopped before there was a result", "nothing is left running"),
        }
    });
    let report = match report {
        Err(error) if matches!(error.downcast_ref(), Some(CooperationError::CannotCooperate)) => {
            return Err(error).hint("--only off runs what it can");
        }
        Err(error) if matches!(error.downcast_ref(), Some(CooperationError::CannotKeepUp { .. })) => {
            return Err(error).hint("end what else runs here, or let fewer --clients come");
        }
        other => other?,
    };
    tell(&report, json)?;
    Ok(if report.holds == Some(false) { CHECK_FAILED } else { DONE })
}

/// The films that were named, or the sample.
fn films(named: Vec<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named);
    }
    let film = lab::sample::film(&cache::folder()?)
        .context("the sample film cannot be laid out")
        .hint("set XDG_CACHE_HOME to a folder that can be written")?;
    Ok(vec![film])
}

fn say(line: &str) {
    eprintln!("{line}");
}

fn tell(report: &(impl Serialize + Display), json: bool) -> Outcome {
    if json {
        outln!("{}", serde_json::to_string_pretty(report)?);
    } else {
        out!("{report}");
    }
    Ok(DONE)
}
