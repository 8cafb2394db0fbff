//! `lamina serve`: a node.

use crate::door::{DONE, HintExt, Outcome};
use crate::running;
use anyhow::Context as _;
use protocol::PeerId;
use serde::de::DeserializeOwned;
use server::{ConfigError, DoorName, LayerName, LevelName, NodeName, ServeConfig, StartError, Threshold};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use transport::{EndpointError, KeysError};

/// Arguments of `lamina serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina serve --level origin --library library --publish
  lamina serve --level base --peer base-1 --join 127.0.0.1:4460 --listen 127.0.0.1:4461 --library base-1
  lamina serve --config base-1.toml
A node needs its level, one address of the network and a folder; it finds its neighbours,
and what it is to store is given to it.
Prints one line of JSON with its address when it is ready. SIGTERM drains it: no new
sessions, open requests are finished, viewers are told to ask others.")]
pub(crate) struct Args {
    /// A TOML file with the same settings; flags go first
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The node's name, which its certificate carries [default: its level]
    #[arg(long)]
    peer: Option<PeerId>,
    /// Where to listen [default: 127.0.0.1:4460]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// What others are told, if it is not the address they came by
    #[arg(long, value_name = "ADDRESS:PORT")]
    advertise: Option<SocketAddr>,
    /// origin, base, enh1, enh2 and so on [default: origin]
    #[arg(long)]
    level: Option<LevelName>,
    /// The folder with the titles [default: library]
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
    /// The layers given to others [default: those of the level]
    #[arg(long, value_delimiter = ',', value_name = "LAYERS")]
    offer: Option<Vec<LayerName>>,
    /// A node of the network to join; one is enough (repeat for more)
    #[arg(long, value_name = "[NAME@]ADDRESS:PORT")]
    join: Vec<DoorName>,
    /// A neighbour, if the node is not to choose its own (repeat)
    #[arg(long, value_name = "NAME@ADDRESS:PORT")]
    neighbour: Vec<NodeName>,
    /// Origin: publish every title, with so many copies at each level
    /// [0, or no number: one on every node that is willing]
    #[arg(long, value_name = "COPIES", num_args = 0..=1, default_missing_value = "0")]
    publish: Option<u16>,
    /// How many deliveries there may be at once [default: 200; origin 1000]
    #[arg(long, value_name = "DELIVERIES")]
    capacity: Option<u32>,
    /// How many viewings of a class of titles there may be at once (repeat)
    #[arg(long, value_name = "CLASS=VIEWINGS")]
    threshold: Vec<Threshold>,
    /// Bits a second for all viewers together [default: no bound]
    #[arg(long, value_name = "BITS")]
    link_rate: Option<u64>,
    /// To how many further nodes a refused viewer is sent [default: 2]
    #[arg(long, value_name = "NODES")]
    redirects: Option<u8>,
    /// Bytes of titles that are stored at most [default: 100 GB]
    #[arg(long, value_name = "BYTES")]
    storage: Option<u64>,
    /// Base: bytes of titles fetched from the origin while they are watched
    /// [default: 0, none]
    #[arg(long, value_name = "BYTES")]
    store_limit: Option<u64>,
    /// Where they are fetched [default: an origin of the network]
    #[arg(long, value_name = "[NAME@]ADDRESS:PORT")]
    archive: Option<DoorName>,
    /// Bits a second that fetching them may take [default: no bound]
    #[arg(long, value_name = "BITS")]
    origin_rate: Option<u64>,
    /// The folder of keys [default: `$XDG_DATA_HOME/lamina/keys`]
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Print each event as a line of JSON on standard output
    #[arg(long)]
    events: bool,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

/// Reads a TOML file of settings.
pub(crate) fn config_file<T: DeserializeOwned + Default>(path: Option<&Path>) -> anyhow::Result<T> {
    let Some(path) = path else { return Ok(T::default()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
}

/// Puts a flag in the place of a setting, if it was given.
pub(crate) fn set<T>(setting: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *setting = flag;
    }
}

fn settings(args: Args) -> anyhow::Result<ServeConfig> {
    let mut config: ServeConfig = match args.config.as_deref() {
        Some(file) => config_file(Some(file))?,
        None => ServeConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], crate::address::DEFAULT_PORT)),
            ..ServeConfig::default()
        },
    };
    set(&mut config.peer, args.peer.map(Some));
    set(&mut config.listen, args.listen);
    set(&mut config.advertise, args.advertise.map(Some));
    set(&mut config.level, args.level);
    set(&mut config.library, args.library);
    set(&mut config.offer, args.offer.map(Some));
    set(&mut config.capacity, args.capacity.map(Some));
    set(&mut config.link_rate, args.link_rate);
    set(&mut config.redirects, args.redirects);
    for Threshold { class, viewings } in args.threshold {
        config.thresholds[class] = Some(viewings);
    }
    set(&mut config.publish, args.publish.map(Some));
    set(&mut config.storage, args.storage);
    set(&mut config.store_limit, args.store_limit);
    set(&mut config.archive, args.archive.map(Some));
    set(&mut config.origin_rate, args.origin_rate);
    set(&mut config.keys, args.keys.map(Some));
    if !args.join.is_empty() {
        config.join = args.join;
    }
    if !args.neighbour.is_empty() {
        config.neighbours = args.neighbour;
    }
    Ok(config)
}

pub(crate) fn run(args: Args) -> Outcome {
    let (exit_with_parent, events) = (args.exit_with_parent, args.events);
    let config = settings(args)?;
    running::block_on(async move {
        let node = match server::serve(config, move |event| tell_event(event, events)).await {
            Err(error) => return explain(error),
            Ok(node) => node,
        };
        say_ready(&node.ready())?;
        node.until(running::told_to_end(exit_with_parent)).await;
        Ok(DONE)
    })
}

/// Standard output is data: one line for whoever started the process.
pub(crate) fn say_ready(ready: &impl serde::Serialize) -> anyhow::Result<()> {
    outln!("{}", serde_json::to_string(ready)?);
    Ok(())
}

/// One event: a log line for people, and a line of JSON if that was asked for.
pub(crate) fn tell_event(event: &(impl serde::Serialize + std::fmt::Debug), json: bool) {
    tracing::info!(?event);
    if let (true, Ok(line)) = (json, serde_json::to_string(event)) {
        outln!("{line}");
    }
}

fn explain(error: StartError) -> Outcome {
    let hint = match &error {
        StartError::Keys(error) => keys_hint(error),
        StartError::Store(_) => "--library DIR names a folder of titles; `lamina encode` fills one",
        StartError::Endpoint(error) => endpoint_hint(error),
        StartError::Config(ConfigError::Nowhere(_)) => "--advertise ADDRESS:PORT says where others find it",
        StartError::Config(ConfigError::Beta(_)) => "`beta` is a number of hundredths",
        StartError::Config(ConfigError::Signals { .. }) => "`dead_ms` must be longer than `signal_ms`",
        _ => return Err(error.into()),
    };
    Err(error).context("the node cannot start").hint(hint)
}

/// What helps when keys are missing or unusable.
pub(crate) fn keys_hint(_error: &KeysError) -> &'static str {
    "`lamina keys init` makes a cluster's keys, --keys DIR names their folder"
}

/// What helps when a port cannot be had.
pub(crate) fn endpoint_hint(_error: &EndpointError) -> &'static str {
    "--listen 127.0.0.1:0 takes a free port"
}
