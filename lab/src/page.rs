//! The page: a network on this machine, shown to people in a browser, who may kill
//! its nodes and see what comes of it.
//!
//! ```text
//! nodes, proxies (processes) --events--+
//! players (in this process) ---events--+--> director --snapshot--> sockets --> browsers
//! hands (kill, start, seat) ---notes---+       ^                                  |
//!        ^------------------------ deeds ------+------------- POST /deed ---------+
//! ```
//!
//! The snapshot ([`state`]) and what changes it (`hear`, `words`) are pure. The
//! director owns it; who looks gets the latest and what changed since the last
//! look, and holds nobody up.

mod deeds;
mod guard;
mod hands;
mod hear;
mod seat;
mod server;
pub mod state;
mod tour;
mod wires;
mod words;

use crate::demo::{DemoError, DemoFilm};
use crate::stage::{NodeEvent, Size, Stage, StageError, StagePlan};
use deeds::{Deed, Orders};
use hands::{Hands, Screens};
use media::{BitRate, Layer, Manifest, Quality, Span, TitleName};
use protocol::PeerId;
use seat::{Note, placed};
use server::Shared;
use state::{NodeLife, Snapshot, Tone};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

/// How often the page is told what changed.
const TICK: Duration = Duration::from_millis(200);
/// Changes that wait to be put into the snapshot.
const NOTES: usize = 1_024;
/// A narrow link takes Base, at most so many times its mean rate, and not the next
/// layer too; in hundredths.
const NARROW_SHARE: u64 = 160;

/// What the page is given.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The `lamina` program, started once for each node.
    pub program: PathBuf,
    /// How many nodes there are.
    pub size: Size,
}

/// What is shown, as those need it who let viewers in.
#[derive(Clone, Debug)]
pub(crate) struct Film {
    pub(crate) title: TitleName,
    pub(crate) top: Quality,
    pub(crate) length: Span,
}

/// Why the page ended. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A folder for the nodes could not be made.
    #[error("there is no folder for the nodes")]
    Folder(#[source] std::io::Error),
    /// The network could not be set up.
    #[error("the network cannot be set up")]
    Stage(#[from] StageError),
    /// The page could not be served.
    #[error("the page cannot be served")]
    Serve(#[source] std::io::Error),
}

impl From<PageError> for DemoError {
    fn from(error: PageError) -> Self {
        Self::Page(Box::new(error))
    }
}

/// Serves the page on a listener of this machine until the future is dropped,
/// which ends every process that was started.
///
/// # Errors
/// See [`PageError`].
pub async fn serve(options: &PageOptions, film: &DemoFilm, listener: TcpListener) -> Result<(), PageError> {
    let folder = tempfile::Builder::new().prefix("lamina-page-").tempdir().map_err(PageError::Folder)?;
    let manifest = film.folder.manifest();
    let plan = StagePlan {
        program: options.program.clone(),
        folder: folder.path().to_owned(),
        library: film.library.clone(),
        titles: vec![manifest.title.clone()],
        layers: manifest.top_quality().layers(),
        size: options.size,
        origin_has_top: false,
        arguments: Vec::new(),
    };
    let mut stage = Stage::set_up(&plan)?;
    let wires = wires::Wires::new(&mut stage, narrow(manifest))?;
    let first = first_page(&stage, manifest, film.attribution);
    let (publish, pages) = watch::channel(Arc::new(first.clone()));
    let (notes, noted) = mpsc::channel::<Note>(NOTES);
    let (orders, asked) = Orders::new();
    let screens = Screens::default();
    let shared = Shared {
        pages: pages.clone(),
        screens: screens.clone(),
        orders: orders.clone(),
        notes: notes.clone(),
    };
    let serving = server::run(listener, shared);
    let directing = direct(first, publish, noted, stage.events());
    let about = Film { title: manifest.title.clone(), top: manifest.top_quality(), length: manifest.span() };
    let acting = async move {
        let hands = Hands::raise(stage, wires, about, (notes.clone(), pages, screens)).await?;
        let opening: Note = Box::new(opened);
        // The director lives as long as this does.
        let _ = notes.send(opening).await;
        tokio::spawn(invite(orders));
        hands.run(asked).await;
        Ok(())
    };
    // In one task: whoever drops this has ended the processes when the folder goes.
    tokio::select! {
        served = serving => served,
        directed = directing => directed,
        acted = Box::pin(acting) => acted,
    }
}

/// The first viewers: a VIP who wants everything, and one behind the proxy.
async fn invite(orders: Orders) {
    let condition = state::Condition::Open;
    let first = [("anna", Quality::GOLD, true, false), ("carla", Quality::BRONZE, false, true)];
    for (name, quality, vip, proxy) in first {
        let Ok(name) = name.parse() else { continue };
        if let Err(error) = orders.ask(Deed::Invite { name, quality, vip, proxy, condition }).await {
            tracing::warn!(%error, "a first viewer did not come");
        }
    }
}

/// The rate of a narrow link for this film.
fn narrow(manifest: &Manifest) -> BitRate {
    let base = Layer::BASE;
    let bytes: u64 =
        (0..manifest.block_count()).filter_map(|block| Some(manifest.chunk(block, base)?.length)).sum();
    let millis = manifest.span().as_millis().max(1);
    BitRate(bytes.saturating_mul(8_000) / millis * NARROW_SHARE / 100)
}

/// Everybody is there and nobody runs yet.
fn first_page(stage: &Stage, manifest: &Manifest, attribution: Option<&str>) -> Snapshot {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let node = |peer: PeerId| {
        let level = peer.as_str().split('-').next().unwrap_or_default().to_owned();
        (peer.to_string(), placed(&level))
    };
    let mut page = Snapshot {
        run: format!("{}-{}", std::process::id(), since.as_millis()),
        nodes: stage.addresses().map(|(peer, _)| node(peer)).collect(),
        ..Snapshot::default()
    };
    page.film = state::Film {
        title: manifest.title.to_string(),
        attribution: attribution.map(str::to_owned),
        layers: Layer::first(manifest.top_quality().layers()).map(|layer| layer.to_string()).collect(),
        length_ms: manifest.span().as_millis(),
    };
    page.say(
        Tone::Plain,
        "the nodes are being started; they find each other and spread the film by themselves",
    );
    page
}

/// The network stands.
fn opened(page: &mut Snapshot) {
    page.ready = true;
    let count = page.nodes.len();
    for node in page.nodes.values_mut() {
        node.life = NodeLife::Up;
        node.holds = true;
    }
    page.say(Tone::Good, format!("{count} processes run, and every node has the layer of its level"));
}

/// Owns the snapshot: takes in what is noted and what nodes tell, and publishes.
async fn direct(
    mut page: Snapshot,
    publish: watch::Sender<Arc<Snapshot>>,
    mut noted: mpsc::Receiver<Note>,
    mut events: broadcast::Receiver<NodeEvent>,
) -> Result<(), PageError> {
    let began = Instant::now();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = |page: &mut Snapshot| {
            page.at_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        };
        tokio::select! {
            note = noted.recv() => {
                let Some(note) = note else { return Ok(()) };
                now(&mut page);
                note(&mut page);
            }
            event = events.recv() => match event {
                Ok(event) => {
                    now(&mut page);
                    came_up(&mut page, event.peer);
                    hear::node_event(&mut page, event.peer.as_str(), &event.event);
                }
                Err(broadcast::error::RecvError::Lagged(lost)) => tracing::debug!(lost, "events were missed"),
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
            _ = tick.tick() => {
                now(&mut page);
                hear::forget_stale(&mut page);
                publish.send_replace(Arc::new(page.clone()));
            }
        }
    }
}

/// A node that says something for the first time runs.
fn came_up(page: &mut Snapshot, peer: PeerId) {
    if let Some(node) = page.nodes.get_mut(peer.as_str())
        && node.life == NodeLife::Starting
        && !page.ready
    {
        node.life = NodeLife::Up;
    }
}
