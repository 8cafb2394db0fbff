//! `lamina keys`: the certificates by which a cluster knows its own, and what
//! viewers are promised.

use crate::door::{DONE, HintExt, Outcome, refuse};
use anyhow::Context as _;
use media::Quality;
use protocol::PeerId;
use protocol::node::autonomy::Sla;
use protocol::token::{Promise, SignedToken};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use transport::keys::revoked::{REVOKED_FILE, Revoked};
use transport::keys::token::{token_from_text, token_to_text};
use transport::keys::{CA_FILE, Keys, KeysError, ViewerKey};
use transport::{Authority, TokenError};

/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;
/// What a viewer is called who was given no name.
const SOMEBODY: &str = "viewer";

/// Arguments of `lamina keys`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  lamina keys init                        a new cluster, in the default folder
  lamina keys init --keys /etc/lamina     the same, elsewhere
  lamina keys issue base-1 base-2         certificates for two nodes
  lamina keys viewer anna --sla vip       one file with which a VIP plays: anna.lamina-key
  lamina keys token --sla vip             the promise alone, on one line
  lamina keys revoke anna.lamina-key      a promise taken back; for nodes: DIR/revoked
Viewers who were promised nothing need only the file ca.pem of this folder."
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
    /// Sign what a viewer is promised, and print it as one line
    Token {
        /// The viewer's name
        #[arg(long, default_value = SOMEBODY)]
        name: PeerId,
        #[command(flatten)]
        promised: Promised,
    },
    /// Take a promise back before it expires, in a list that nodes read
    Revoke {
        /// A viewer's key (a file), a token (a line), or a viewer's name: all it was promised
        #[arg(value_name = "FILE|TOKEN|NAME")]
        what: String,
    },
    /// Make the one file that a viewer plays with
    Viewer {
        /// The viewer's name [default: the one in the token]
        #[arg(required_unless_present = "token")]
        name: Option<PeerId>,
        #[command(flatten)]
        promised: Promised,
        /// A token made elsewhere; the cluster's private key is not needed then
        #[arg(long, conflicts_with_all = ["sla", "top", "days"])]
        token: Option<String>,
        /// The file [default: NAME.lamina-key in this folder]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// What a viewer is promised.
#[derive(Debug, clap::Args)]
struct Promised {
    /// vip: a standby of its own; normal: one shared with others
    #[arg(long, value_parser = sla, default_value = "normal")]
    sla: Sla,
    /// Best quality: bronze, silver, gold or a number of layers
    #[arg(long, default_value = "gold", value_name = "QUALITY")]
    top: Quality,
    /// For how many days it holds
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

fn sla(text: &str) -> Result<Sla, String> {
    match text {
        "vip" => Ok(Sla::Vip),
        "normal" => Ok(Sla::Normal),
        _ => Err("a viewer is `vip` or `normal`".to_owned()),
    }
}

impl Promised {
    fn to(&self, viewer: PeerId) -> Promise {
        let until = now().saturating_add(u64::from(self.days).saturating_mul(DAY));
        Promise { viewer, sla: self.sla, top: self.top, until }
    }
}

/// Seconds of the Unix epoch; 0 on a machine that lives before it.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What stands in the file of `lamina play --key`: whom to believe, and what to
/// show.
pub(crate) fn viewer_key(path: &Path) -> anyhow::Result<(Authority, SignedToken)> {
    let hint = "`lamina keys viewer NAME` makes a viewer's key";
    let key = ViewerKey::load(path)
        .with_context(|| format!("{} cannot be used as a viewer's key", path.display()))
        .hint(hint)?;
    key.claims(now()).with_context(|| format!("{} is not valid any more", path.display())).hint(hint)?;
    Ok((key.authority, key.token))
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
    match args.action {
        Action::Init { peers } => {
            let keys = match Keys::init(&folder) {
                Err(error @ KeysError::Exists { .. }) => Err(error)
                    .hint("`lamina keys issue NAME` adds a peer; a new cluster needs another folder")?,
                made => made?,
            };
            issue(&keys, &peers)
        }
        Action::Issue { peers } => issue(&open(&folder)?, &peers),
        Action::Token { name, promised } => {
            outln!("{}", token_to_text(&open(&folder)?.sign(promised.to(name))?)?);
            Ok(DONE)
        }
        Action::Revoke { what } => revoke(&open(&folder)?, &what),
        Action::Viewer { name, promised, token, output } => {
            let token = match (token, name) {
                (Some(text), _) => token_from_text(&text)
                    .context("the token cannot be read")
                    .hint("give the whole line that `lamina keys token` printed")?,
                (None, Some(name)) => open(&folder)?.sign(promised.to(name))?,
                (None, None) => return refuse("a viewer's key needs a name", "lamina keys viewer NAME"),
            };
            let authority = crate::titles::authority(Some(folder))?;
            let holder = name.unwrap_or(token.promise.viewer);
            let path = output.unwrap_or_else(|| PathBuf::from(format!("{holder}.lamina-key")));
            write(&ViewerKey { authority, token }, &path)
        }
    }
}

fn open(folder: &Path) -> anyhow::Result<Keys> {
    Keys::open(folder)
        .with_context(|| format!("no cluster in {}", folder.display()))
        .hint("`lamina keys init` makes one, --keys DIR names its folder")
}

fn issue(keys: &Keys, peers: &[PeerId]) -> Outcome {
    for peer in peers {
        keys.issue(*peer)?;
        eprintln!("made the certificate of {peer}");
    }
    outln!("{}", keys.folder().join(CA_FILE).display());
    Ok(DONE)
}

fn revoke(keys: &Keys, what: &str) -> Outcome {
    let (revoked, holder) = if Path::new(what).is_file() {
        let key = ViewerKey::load(Path::new(what)).with_context(|| format!("{what} is no viewer's key"))?;
        (Revoked::token(&key.token)?, key.token.promise.viewer)
    } else if let Ok(token) = token_from_text(what) {
        (Revoked::token(&token)?, token.promise.viewer)
    } else if let Ok(name) = what.parse::<PeerId>() {
        (Revoked::Viewer(name), name)
    } else {
        let says = format!("{what} is neither a viewer's key nor a token nor a name");
        return refuse(says, "give the file that `lamina keys viewer` made, or the viewer's name");
    };
    let many = keys.revoke(revoked, now()).hint("remove the list only to begin it anew")?;
    let scope = if matches!(revoked, Revoked::Viewer(_)) { "every promise" } else { "the promise" };
    eprintln!("took {scope} to {holder} back; the list names {many}");
    eprintln!("hint: nodes read the list in their own folder of keys: copy it there");
    outln!("{}", keys.folder().join(REVOKED_FILE).display());
    Ok(DONE)
}

fn write(key: &ViewerKey, path: &Path) -> Outcome {
    match key.claims(now()) {
        Err(error @ TokenError::NotSigned) => {
            return Err(error).hint("--keys DIR must name the folder of the cluster that made the token");
        }
        checked => checked?,
    };
    match key.write(path) {
        Err(error @ KeysError::Exists { .. }) => {
            return Err(error).hint("-o FILE names another file, or remove this one first");
        }
        written => written?,
    }
    outln!("{}", path.display());
    Ok(DONE)
}
