//! `lamina publish` and `lamina unpublish`: which titles the network carries.

use crate::door::{CHECK_FAILED, DONE, Outcome};
use crate::operator::{Keyring, Operator, Status};
use crate::{encode, running};
use media::library::{Library, set_class};
use media::{Layer, Span, TitleClass, TitleName};
use protocol::Message;
use protocol::status::PlacementLine;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How often the origin is asked how far it is.
const POLL: Duration = Duration::from_millis(250);
/// Where the number of copies is free: so many equal answers, the last word.
const SETTLED: u32 = 4;

/// Arguments of `lamina publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina publish film
  lamina publish film --to 127.0.0.1:4460 --copies 2 --wait 60s
  lamina publish briefing --class first-time --library library   (where the origin's library lies)
Waits until every layer has its copies. Exit code 1 means that some were missing when the
time was over; the origin goes on trying.")]
pub(crate) struct Args {
    /// The title, as the origin's library calls it
    title: TitleName,
    /// The origin
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4460")]
    to: String,
    /// How many nodes of each level must hold their layer [default: whoever is willing]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    copies: u16,
    /// How much it is wanted, in thousandths of the most wanted title
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(..=1000), value_name = "0..1000")]
    popularity: u16,
    /// Class it anew first, in the origin's library on this machine: archived,
    /// first-time or ad-hoc
    #[arg(long, value_name = "CLASS")]
    class: Option<TitleClass>,
    /// The origin's library, for --class
    #[arg(long, default_value = "library", value_name = "DIR", requires = "class")]
    library: PathBuf,
    /// How long to wait for the copies; 0 does not wait
    #[arg(long, value_parser = encode::span, default_value = "30s", value_name = "TIME")]
    wait: Span,
    #[command(flatten)]
    keyring: Keyring,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `lamina unpublish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  lamina unpublish film --to 127.0.0.1:4460\nThe origin keeps its copy.")]
pub(crate) struct TakeBack {
    /// The title
    title: TitleName,
    /// The origin
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4460")]
    to: String,
    #[command(flatten)]
    keyring: Keyring,
}

/// How far a title has spread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Spread {
    title: TitleName,
    wanted: u16,
    layers: Vec<Placed>,
    complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Placed {
    layer: String,
    copies: u16,
    coming: u16,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let spread = running::block_on(async {
        tokio::select! {
            spread = publish(args) => spread.map(Some),
            () = running::asked_to_stop() => Ok(None),
        }
    })?;
    let Some(spread) = spread else { return Ok(CHECK_FAILED) };
    if args.json {
        outln!("{}", serde_json::to_string(&spread)?);
    } else if spread.complete {
        outln!("{} is published: {}", spread.title, spread.told());
    } else if args.wait == Span::ZERO {
        outln!("{} is being published", spread.title);
    } else {
        outln!("{}: {} after {}", spread.title, spread.missing(), args.wait);
        eprintln!("hint: `lamina status {}` shows who refused; the origin goes on trying", args.to);
    }
    Ok(if spread.complete || args.wait == Span::ZERO { DONE } else { CHECK_FAILED })
}

pub(crate) fn take_back(args: &TakeBack) -> Outcome {
    running::block_on(async {
        let mut operator = Operator::dial(&args.to, &args.keyring).await?;
        operator.order(|request| Message::Unpublish { request, title: args.title.clone() }).await?;
        outln!("{} is being deleted everywhere but at {}", args.title, operator.address());
        operator.close().await;
        Ok(DONE)
    })
}

async fn publish(args: &Args) -> anyhow::Result<Spread> {
    let mut operator = Operator::dial(&args.to, &args.keyring).await?;
    if let Some(class) = args.class {
        let library = Library::open(&args.library)?;
        // An origin that is asked to publish looks through its library first.
        if set_class(&library, &args.title, class)? {
            eprintln!("{} is {class} from now on", args.title);
        }
    }
    let (title, copies, popularity) = (&args.title, args.copies, args.popularity);
    operator.order(|request| Message::Publish { request, title: title.clone(), copies, popularity }).await?;
    let until = Instant::now() + Duration::from_nanos(args.wait.as_nanos());
    let mut spread = Spread { title: title.clone(), wanted: copies, layers: Vec::new(), complete: false };
    let mut unchanged = 0;
    while !spread.complete && Instant::now() < until {
        // Nobody answering in time is the same as nothing new.
        let Ok(status) = timeout_at(until, operator.status()).await else { break };
        let Status::Node(status) = status? else { break };
        let lines = status.placements;
        if let Some(line) = lines.iter().find(|line| line.title == *title) {
            let next = Spread::of(line);
            unchanged = if next.layers == spread.layers { unchanged + 1 } else { 0 };
            next.changes(&spread).for_each(|line| eprintln!("{line}"));
            spread = next;
            spread.complete = spread.has_copies() && (spread.wanted > 0 || unchanged >= SETTLED);
        }
        if !spread.complete {
            sleep(POLL).await;
        }
    }
    operator.close().await;
    Ok(spread)
}

impl Spread {
    fn of(line: &PlacementLine) -> Self {
        let copies = |(layer, copies, coming): &(Layer, u16, u16)| Placed {
            layer: layer.to_string(),
            copies: *copies,
            coming: *coming,
        };
        let layers = line.layers.iter().map(copies).collect();
        Self { title: line.title.clone(), wanted: line.wanted, layers, complete: false }
    }

    /// A line for each layer that stands otherwise than `before`.
    fn changes(&self, before: &Self) -> impl Iterator<Item = String> {
        self.layers.iter().filter(|layer| !before.layers.contains(layer)).map(|layer| {
            let coming =
                if layer.coming > 0 { format!(", {} on the way", layer.coming) } else { String::new() };
            format!("{:<5} {}{coming}", layer.layer, layer.counted(self.wanted))
        })
    }

    fn has_copies(&self) -> bool {
        !self.layers.is_empty() && self.layers.iter().all(|layer| layer.suffices(self.wanted))
    }

    fn told(&self) -> String {
        let layers: Vec<String> =
            self.layers.iter().map(|layer| format!("{} {}", layer.layer, layer.counted(0))).collect();
        layers.join(", ")
    }

    fn missing(&self) -> String {
        let short = self.layers.iter().filter(|layer| !layer.suffices(self.wanted));
        let short: Vec<String> =
            short.map(|layer| format!("{} has {}", layer.layer, layer.counted(self.wanted))).collect();
        match (short.is_empty(), self.layers.is_empty()) {
            (false, _) => short.join(", "),
            (true, true) => "no layer is placed".to_owned(),
            (true, false) => "copies still change".to_owned(),
        }
    }
}

impl Placed {
    fn suffices(&self, wanted: u16) -> bool {
        if wanted > 0 { self.copies >= wanted } else { self.copies > 0 && self.coming == 0 }
    }

    fn counted(&self, wanted: u16) -> String {
        match (wanted, self.copies) {
            (0, 1) => "1 copy".to_owned(),
            (0, copies) => format!("{copies} copies"),
            (wanted, copies) => format!("{copies} of {wanted} copies"),
        }
    }
}
