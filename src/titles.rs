//! `lamina titles`: what can be watched at a node or proxy.

use crate::door::{DONE, HintExt, Outcome};
use crate::{address, keys, running};
use anyhow::Context as _;
use media::TitleSummary;
use protocol::{Message, PeerId};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;
use transport::{Authority, DialError, DialWhy, Endpoint, EndpointConfig};

/// How long a node may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// Arguments of `lamina titles`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  lamina titles 127.0.0.1:4460 --keys keys")]
pub(crate) struct Args {
    /// The node or proxy: HOST or HOST:PORT
    host: String,
    /// The folder with ca.pem [default: `$XDG_DATA_HOME/lamina/keys`]
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The authority that a viewer believes.
pub(crate) fn authority(folder: Option<PathBuf>) -> anyhow::Result<Authority> {
    let folder = keys::folder(folder)?;
    Authority::load(&folder)
        .context("no certificate authority to believe")
        .hint("--keys DIR names the folder with the cluster's ca.pem")
}

/// What helps when a node cannot be reached.
pub(crate) fn dial_hint(error: &DialError) -> &'static str {
    match error.why {
        DialWhy::Certificate(_) | DialWhy::Claim(_) => {
            "--keys DIR must name the ca.pem of the node's own cluster"
        }
        DialWhy::OtherProtocol(_) => "something else than Lamina listens there",
        _ => "check the address; is the node running?",
    }
}

/// The name under which a viewer appears in the logs of nodes.
pub(crate) fn viewer() -> anyhow::Result<PeerId> {
    Ok(format!("viewer-{}", std::process::id() % 1_000_000).parse()?)
}

pub(crate) fn run(args: &Args) -> Outcome {
    let host = address::resolve(&args.host)?;
    let authority = authority(args.keys.clone())?;
    let titles = running::block_on(ask(host, authority))?;
    tell(host, &titles, args.json)?;
    Ok(DONE)
}

async fn ask(host: SocketAddr, authority: Authority) -> anyhow::Result<Vec<TitleSummary>> {
    let endpoint = Endpoint::open(&EndpointConfig::viewer(viewer()?, authority))?;
    let dialled = endpoint.dial(host, None, DEADLINE).await;
    let (connection, mut inbox) = match dialled {
        Ok(dialled) => dialled,
        Err(error) => {
            let hint = dial_hint(&error);
            return Err(error).hint(hint);
        }
    };
    connection.send(Message::ListTitles)?;
    let answer = async {
        loop {
            if let Message::Titles(titles) = inbox.recv().await? {
                return anyhow::Ok(titles);
            }
        }
    };
    let titles = timeout(DEADLINE, answer).await.context("the node does not answer")??;
    endpoint.close().await;
    Ok(titles)
}

fn tell(host: SocketAddr, titles: &[TitleSummary], json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string_pretty(titles)?);
        return Ok(());
    }
    for title in titles {
        let size = format!("{}x{}", title.width, title.height);
        let sound = if title.audio { "sound" } else { "silent" };
        let url = address::title_url(host, &title.title);
        outln!(
            "{:<24} {:>9} {:>10}  {} layers  {:<6}  {:<10}  {url}",
            title.title.as_str(),
            size,
            title.duration.to_string(),
            title.layers,
            sound,
            title.class
        );
    }
    if titles.is_empty() {
        eprintln!("nothing can be watched at {host}");
    }
    Ok(())
}
