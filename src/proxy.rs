//! `lamina proxy`: a chunk cache between nodes and clients.

use crate::door::{DONE, HintExt, Outcome};
use crate::running;
use crate::serve::{config_file, endpoint_hint, keys_hint, say_ready, set, tell_event};
use anyhow::Context as _;
use protocol::{NodeAddress, PeerId};
use proxy::{ProxyConfig, StartError, StoreError, UpstreamFlag};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Arguments of `lamina proxy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina proxy --upstream 127.0.0.1:4461 --upstream 127.0.0.1:4462
  lamina proxy --upstream 127.0.0.1:4461 --cache /var/cache/lamina --cache-size 20GB
  lamina proxy --config proxy-1.toml --cache-size 512MB --peers proxy-2@127.0.0.1:4471
The second keeps its chunks on disk, where they survive a restart, and 256 MiB of them in
memory too; the others keep them in memory. Sizes are bytes, or a number with kB, MB, GB,
KiB, MiB or GiB. To a player a proxy looks like a node. Each chunk is fetched once, whoever asks, and a
client gets no layer above the quality it asked for.")]
pub(crate) struct Args {
    /// A TOML file with the same settings; flags go first
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The proxy's name, which its certificate carries [default: proxy]
    #[arg(long)]
    peer: Option<PeerId>,
    /// Where to listen [default: 127.0.0.1:4470]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// What clients are told, if it is not the address they came by
    #[arg(long, value_name = "ADDRESS:PORT")]
    advertise: Option<SocketAddr>,
    /// A node to fetch from, in the order to be tried (repeat)
    #[arg(long, value_name = "[NAME@]ADDRESS:PORT")]
    upstream: Vec<UpstreamFlag>,
    /// Other proxies: asked for what they hold, and where clients turn to if this one dies
    #[arg(long, value_name = "NAME@ADDRESS:PORT", value_delimiter = ',')]
    peers: Vec<NodeAddress>,
    /// Which of this machine's addresses to dial nodes from [default: the system's choice]
    #[arg(long, value_name = "ADDRESS")]
    dial_from: Option<IpAddr>,
    /// Whether the peers are asked for what they hold [default: on]
    #[arg(long, value_parser = switch, value_name = "on|off")]
    cooperate: Option<bool>,
    /// Whether blocks are fetched before anybody asks for them [default: on]
    #[arg(long, value_parser = switch, value_name = "on|off")]
    prefetch: Option<bool>,
    /// The most layers given to anybody
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=8))]
    max_layers: Option<u8>,
    /// A folder to keep chunks in, for this proxy alone [default: memory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The most that is kept [default: 2GB in a folder, 256MiB in memory]
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    cache_size: Option<u64>,
    /// Of what is kept in a folder, how much is in memory too [default: 256MiB]
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    memory: Option<u64>,
    /// How many sessions there may be [default: 200]
    #[arg(long, value_name = "SESSIONS")]
    capacity: Option<usize>,
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

/// Reads what a switch is to be.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is on or off".to_owned()),
    }
}

/// Reads a number of bytes with an optional unit.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(digits).unwrap_or_default() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("the units are kB, MB, GB, KiB, MiB and GiB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "a whole number is needed".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "that is too much".to_owned())
}

fn settings(args: Args) -> anyhow::Result<ProxyConfig> {
    let mut config: ProxyConfig = match args.config.as_deref() {
        Some(file) => config_file(Some(file))?,
        None => ProxyConfig { listen: SocketAddr::from(([127, 0, 0, 1], 4470)), ..ProxyConfig::default() },
    };
    set(&mut config.peer, args.peer.map(Some));
    set(&mut config.listen, args.listen);
    set(&mut config.advertise, args.advertise.map(Some));
    set(&mut config.dial_from, args.dial_from.map(Some));
    set(&mut config.max_layers, args.max_layers.map(Some));
    set(&mut config.cache, args.cache.map(Some));
    set(&mut config.cache_bytes, args.cache_size.map(Some));
    set(&mut config.memory_bytes, args.memory);
    set(&mut config.cooperate, args.cooperate);
    set(&mut config.prefetch, args.prefetch);
    set(&mut config.capacity, args.capacity);
    set(&mut config.keys, args.keys.map(Some));
    if !args.upstream.is_empty() {
        config.upstream = args.upstream;
    }
    if !args.peers.is_empty() {
        config.peers = args.peers;
    }
    Ok(config)
}

pub(crate) fn run(args: Args) -> Outcome {
    let (exit_with_parent, events) = (args.exit_with_parent, args.events);
    let config = settings(args)?;
    running::block_on(async move {
        let proxy = match proxy::start(config, move |event| tell_event(event, events)).await {
            Err(error) => return explain(error),
            Ok(proxy) => proxy,
        };
        say_ready(&proxy.ready())?;
        proxy.until(running::told_to_end(exit_with_parent)).await;
        Ok(DONE)
    })
}

fn explain(error: StartError) -> Outcome {
    let hint = match &error {
        StartError::Keys(error) => keys_hint(error),
        StartError::Endpoint(error) => endpoint_hint(error),
        StartError::Store(StoreError::InUse { .. }) => "each proxy needs a folder of its own for --cache",
        StartError::Store(_) => "--cache names a folder that can be written",
        StartError::NoUpstream => "--upstream 127.0.0.1:4460 names a node to fetch from",
        _ => return Err(error.into()),
    };
    Err(error).context("the proxy cannot start").hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(bytes("512MiB"), Ok(536_870_912));
        assert_eq!(bytes("42"), Ok(42));
        for bad in ["", "GB", "1.5GB", "9XB", "99999999999GB"] {
            assert!(bytes(bad).is_err(), "{bad:?}");
        }
    }
}
