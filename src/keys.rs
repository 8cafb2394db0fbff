//! `lamina keys`: the certificates by which a cluster knows its own.

use crate::door::{DONE, HintExt, Outcome};
use anyhow::Context as _;
use protocol::PeerId;
use std::path::PathBuf;
use transport::keys::{CA_FILE, Keys, KeysError};

/// Arguments of `lamina keys`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina keys init                        a new cluster, in the default folder
  lamina keys init --keys /etc/lamina     the same, elsewhere
  lamina keys issue base-1 base-2         certificates for two nodes
Viewers need only the file ca.pem of this folder."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Folder of the keys [default: `$XDG_DATA_HOME/lamina/keys`]
    #[arg(long, value_name = "DIR", global = true)]
    keys: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a cluster's certificate authority, and certificates for the peers named
    Init {
        /// Names of nodes and proxies
        peers: Vec<PeerId>,
    },
    /// Make a certificate for each peer named, replacing an older one
    Issue {
        /// Names of nodes and proxies
        #[arg(required = true)]
        peers: Vec<PeerId>,
    },
}

/// The folder of keys: the one that was named, or the default one.
pub(crate) fn folder(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match named {
        Some(folder) => Ok(folder),
        None => Keys::default_folder().context("no folder for keys").hint("name one with --keys DIR"),
    }
}

pub(crate) fn run(args: Args) -> Outcome {
    let folder = folder(args.keys)?;
    let (keys, peers) = match args.action {
        Action::Init { peers } => {
            let keys = match Keys::init(&folder) {
                Err(error @ KeysError::Exists { .. }) => Err(error)
                    .hint("`lamina keys issue NAME` adds a peer; a new cluster needs another folder")?,
                made => made?,
            };
            (keys, peers)
        }
        Action::Issue { peers } => {
            let keys = Keys::open(&folder)
                .with_context(|| format!("no cluster in {}", folder.display()))
                .hint("`lamina keys init` makes one")?;
            (keys, peers)
        }
    };
    for peer in peers {
        keys.issue(peer)?;
        eprintln!("made the certificate of {peer}");
    }
    tell(&folder.join(CA_FILE));
    Ok(DONE)
}

fn tell(authority: &std::path::Path) {
    outln!("{}", authority.display());
}
