//! `lamina up`: a small network on this machine, until Ctrl-C.

use crate::door::{DONE, HintExt, Outcome, refuse};
use crate::{address, cache, encode, running};
use anyhow::Context as _;
use codec::Preset;
use encoder::{EncodeOptions, Metrics};
use lab::stage::{Size, Stage, StagePlan};
use media::TitleName;
use media::library::{Library, TitleFolder};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Arguments of `lamina up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina up                     the sample film
  lamina up film.mp4            a film of your own; encoded once, then kept in the cache
  lamina up library             every title of a library
Prints the line to play each title with, and runs until Ctrl-C.")]
pub(crate) struct Args {
    /// A film, a library or a title's folder [default: the sample film]
    source: Option<PathBuf>,
    /// Speed against size of the enhancements, if a film must be encoded
    #[arg(long, default_value = "fast")]
    preset: Preset,
    /// End when standard input closes
    #[arg(long)]
    exit_with_parent: bool,
}

pub(crate) fn run(args: Args) -> Outcome {
    let (library, titles) = source(args.source, args.preset)?;
    let layers = most_layers(&library, &titles)?;
    let program = std::env::current_exe().context("the program does not know where it lies")?;
    running::block_on(async move {
        tokio::select! {
            outcome = network(program, library, titles, layers) => outcome,
            () = running::told_to_end(args.exit_with_parent) => Ok(DONE),
        }
    })
}

/// What is to be served: a library, and which of its titles.
fn source(named: Option<PathBuf>, preset: Preset) -> anyhow::Result<(PathBuf, Vec<TitleName>)> {
    let cache = cache::folder()?;
    let film = match named {
        None => lab::sample::film(&cache).context("the sample film cannot be laid out")?,
        Some(path) if path.join(media::manifest::MANIFEST_FILE).is_file() => return title(&path),
        Some(path) if path.is_dir() => return titles(path),
        Some(path) => path,
    };
    let library = cache.join(format!("up-{}-{preset}", lab::demo::fingerprint(&film)));
    let kept = Library::open(&library).and_then(|library| library.titles());
    if let Some(title) = kept.ok().and_then(|kept| kept.titles.into_iter().next()) {
        return Ok((library, vec![title.title]));
    }
    let mut options = EncodeOptions::new(&film, &library);
    options.preset = preset;
    options.metrics = Metrics::Off;
    let report = encode::quietly(&options, &AtomicBool::new(false))?;
    Ok((library, vec![report.title.parse()?]))
}

fn title(path: &Path) -> anyhow::Result<(PathBuf, Vec<TitleName>)> {
    let folder = crate::inspect::open(path)?;
    let path = std::fs::canonicalize(path)?;
    let library = path.parent().context("the title lies in no library")?;
    Ok((library.to_owned(), vec![folder.manifest().title.clone()]))
}

fn titles(library: PathBuf) -> anyhow::Result<(PathBuf, Vec<TitleName>)> {
    let listing = Library::open(&library)?.titles()?;
    for (path, why) in &listing.unreadable {
        eprintln!("warning: {} is left out: {why}", path.display());
    }
    let titles: Vec<TitleName> = listing.titles.into_iter().map(|title| title.title).collect();
    if titles.is_empty() {
        return refuse(
            format!("no title in {}", library.display()),
            "`lamina encode` puts films into a library",
        );
    }
    Ok((library, titles))
}

fn most_layers(library: &Path, titles: &[TitleName]) -> anyhow::Result<u8> {
    let library = Library::open(library)?;
    let folders: Vec<TitleFolder> =
        titles.iter().map(|title| library.title(title)).collect::<Result<_, _>>()?;
    Ok(folders.iter().map(|folder| folder.manifest().top_quality().layers()).max().unwrap_or(1))
}

async fn network(program: PathBuf, library: PathBuf, titles: Vec<TitleName>, layers: u8) -> Outcome {
    let folder = tempfile::Builder::new().prefix("lamina-up-").tempdir().context("no temporary folder")?;
    let plan = StagePlan {
        program,
        folder: folder.path().to_owned(),
        library,
        titles: titles.clone(),
        layers,
        size: Size::SMALL,
        origin_has_top: true,
        arguments: Vec::new(),
    };
    let stage =
        Stage::start(&plan).await.context("the network cannot be set up").hint("see `lamina doctor`")?;
    for (peer, address, _) in stage.everybody() {
        eprintln!("{peer:<10} listens on {address}");
    }
    let base = stage.address("base-1".parse()?)?;
    let proxy = stage.address("proxy-1".parse()?)?;
    eprintln!("\nplay with (Ctrl-C ends the network):");
    for title in &titles {
        tell(base, title, stage.keys());
    }
    eprintln!("through the proxy:");
    for title in &titles {
        tell(proxy, title, stage.keys());
    }
    std::future::pending().await
}

/// The line to play a title with is data: it can be piped into a shell.
fn tell(address: std::net::SocketAddr, title: &TitleName, keys: &Path) {
    outln!("lamina play {} --keys {}", address::title_url(address, title), keys.display());
}
