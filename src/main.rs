//! `lamina`: layered video on demand that keeps playing when servers die.
//!
//! This file is the table of contents: parse, dispatch, exit code.

#[macro_use]
mod out;
mod address;
mod aims;
mod bench;
mod cache;
mod demo;
mod doctor;
mod door;
mod encode;
mod export;
mod figure;
mod import;
mod inspect;
mod keys;
mod logging;
mod merge;
mod operator;
mod plan;
mod play;
mod progress;
mod proxy;
mod publish;
mod running;
mod serve;
mod simulate;
mod status;
mod testbed;
mod titles;
mod top;
mod up;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Layered video on demand over QUIC that keeps playing when servers die.
#[derive(Debug, Parser)]
#[command(name = "lamina", version, arg_required_else_help = true, after_help = FIRST_STEPS)]
struct Cli {
    /// Say more about what happens (repeat for details); `RUST_LOG` works too.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

const FIRST_STEPS: &str = "\
First steps:
  lamina demo                        a film, split, served, killed, kept playing
  lamina up film.mp4                 a small network on this machine, until Ctrl-C
  lamina encode film.mp4 -o library  split a film into layers
Exit codes: 0 done, 1 a check failed, 2 could not run.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch a small network serve a film, die in parts, and go on playing
    Demo(demo::Args),
    /// Run a small network on this machine until Ctrl-C
    Up(up::Args),
    /// Split a film into layers
    Encode(encode::Args),
    /// Join the parts of a title that several machines encoded
    Merge(merge::Args),
    /// Make a title of an HLS or DASH playlist, or of a film elsewhere
    Import(import::Args),
    /// Make a file for other players of a title
    Export(export::Args),
    /// Check every chunk and every recombined picture of a title
    Verify(verify::Args),
    /// Print what is in a title
    Inspect(inspect::Args),
    /// Play a title
    Play(play::Args),
    /// List what can be watched at a node or proxy
    Titles(titles::Args),
    /// Serve a library as a node
    Serve(serve::Args),
    /// Serve other nodes' titles through a cache, filtered per client
    Proxy(proxy::Args),
    /// Spread a title over the nodes
    Publish(publish::Args),
    /// Delete a title on all nodes but the origin
    Unpublish(publish::TakeBack),
    /// Show how a node stands
    Status(status::Args),
    /// Show a whole network in the terminal
    Top(top::Args),
    /// Make the certificates of a cluster, and what viewers are promised
    Keys(keys::Args),
    /// Check that this machine has what Lamina needs
    Doctor(doctor::Args),
    /// Run the network's machines under virtual time: chaos
    Simulate(simulate::Args),
    /// Draw the published evaluations anew, with a verdict for each claim
    Figure(figure::Args),
    /// Say how many are refused at a site, and which threshold to set
    Plan(plan::Args),
    /// Check what emulated links are worth on this machine
    Testbed(testbed::Args),
    /// Measure against a yardstick: rate, combine, encode, serve
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(cli.verbose);
    door::close(match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Up(args) => up::run(args),
        Command::Encode(args) => encode::run(args),
        Command::Merge(args) => merge::run(&args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Play(args) => play::run(args),
        Command::Titles(args) => titles::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::Publish(args) => publish::run(&args),
        Command::Unpublish(args) => publish::take_back(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Keys(args) => keys::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Simulate(args) => Ok(simulate::run(&args)),
        Command::Figure(args) => figure::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Testbed(args) => testbed::run(&args),
        Command::Bench(args) => bench::run(args),
    })
}
