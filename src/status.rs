//! `lamina status`: how a node or a proxy stands, once or every second.

mod proxy;
mod screen;
mod table;

pub(crate) use table::{printable, share, short};

use crate::door::{DONE, Outcome};
use crate::operator::{Keyring, Operator, Status};
use crate::running;
use screen::Screen;
use serde_json::Value;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `lamina status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina status
  lamina status 127.0.0.1:4461 --watch
  lamina status 127.0.0.1:4461 --json | jq .slots
  lamina status 127.0.0.1:4470 --json | jq .proxy")]
pub(crate) struct Args {
    /// The node or proxy: HOST or HOST:PORT
    #[arg(default_value = "127.0.0.1:4460")]
    host: String,
    #[command(flatten)]
    keyring: Keyring,
    /// Show it every second until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print one object of JSON on one line, each second with --watch
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    running::block_on(async {
        tokio::select! {
            shown = show(args) => shown,
            () = running::asked_to_stop() => Ok(DONE),
        }
    })
}

async fn show(args: &Args) -> Outcome {
    let mut operator = Operator::dial(&args.host, &args.keyring).await?;
    let mut clock = interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let in_place = args.watch && !args.json && stdout().is_terminal();
    let screen = in_place.then(Screen::take);
    loop {
        clock.tick().await;
        let status = operator.status().await?;
        if args.json {
            outln!("{}", json(&status)?);
        } else if let Some(screen) = &screen {
            screen.show(&shown(&status));
        } else {
            out!("{}", shown(&status));
        }
        if !args.watch {
            break;
        }
        if !args.json && !in_place {
            outln!();
        }
    }
    operator.close().await;
    Ok(DONE)
}

fn shown(status: &Status) -> String {
    match status {
        Status::Node(status) => table::of(status),
        Status::Proxy(status) => proxy::of(status),
    }
}

/// The status as it is, its events as objects instead of text.
fn json(status: &Status) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(status)?;
    let events = value.get_mut("events").and_then(Value::as_array_mut);
    for event in events.into_iter().flatten().filter_map(|line| line.get_mut("event")) {
        let object = event.as_str().and_then(|text| serde_json::from_str(text).ok());
        if let Some(object) = object {
            *event = object;
        }
    }
    Ok(value)
}
