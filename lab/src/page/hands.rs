//! The hands: whoever kills, hangs, starts, connects and lets in. One deed at a
//! time, on a task of its own, so that a node that starts slowly holds up no
//! picture.

use super::deeds::{Deed, DeedError, Order};
use super::seat::{Note, Notes, Seat, Ticket, placed, seated};
use super::state::{Condition, LinkState, MAX_VIEWERS, NodeLife, Snapshot, Tone, link_name};
use super::wires::Wires;
use super::{Film, words};
use crate::stage::{Stage, StageError};
use media::library::Library;
use media::{Layer, Quality, Span, TitleName};
use player::Preview;
use protocol::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use transport::Keys;

/// Whoever comes without a name gets one of these.
const NAMES: [&str; 12] =
    ["anna", "bert", "carla", "dario", "emma", "finn", "gita", "hugo", "ines", "jonas", "kira", "luis"];

/// How long an empty node may take to be filled.
const REFILLING: Duration = Duration::from_mins(1);
/// How often one looks whether it is.
const LOOK: Duration = Duration::from_millis(100);

/// Where the pictures of each viewer can be looked at.
pub(crate) type Screens = Arc<Mutex<BTreeMap<String, Arc<Preview>>>>;

/// The network with everything in it.
#[derive(Debug)]
pub(crate) struct Hands {
    stage: Stage,
    wires: Wires,
    keys: Keys,
    film: Film,
    seats: BTreeMap<PeerId, Seat>,
    /// Where each who ever watched dials from.
    places: BTreeMap<PeerId, IpAddr>,
    bent: BTreeSet<(PeerId, PeerId)>,
    notes: Notes,
    pages: watch::Receiver<Arc<Snapshot>>,
    screens: Screens,
}

fn failed(why: &dyn std::fmt::Display) -> DeedError {
    DeedError::Failed(why.to_string())
}

impl From<StageError> for DeedError {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Nobody(peer) => Self::Nobody(peer),
            other => failed(&other),
        }
    }
}

impl Hands {
    /// Takes a stage that is set up, and raises it.
    pub(crate) async fn raise(
        mut stage: Stage,
        wires: Wires,
        film: Film,
        (notes, pages, screens): (Notes, watch::Receiver<Arc<Snapshot>>, Screens),
    ) -> Result<Self, StageError> {
        let setup = |why: &dyn std::fmt::Display| StageError::Setup {
            folder: stage.keys().to_owned(),
            why: why.to_string(),
        };
        let keys = Keys::open(stage.keys()).map_err(|why| setup(&why))?;
        stage.raise().await?;
        let (seats, places, bent) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Ok(Self { stage, wires, keys, film, seats, places, bent, notes, pages, screens })
    }

    /// Does what is asked for until nobody can ask any more.
    pub(crate) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(Order { deed, done }) = orders.recv().await {
            let outcome = self.act(deed).await;
            // Who asked may have gone.
            let _ = done.send(outcome);
        }
    }

    async fn note(&self, note: impl FnOnce(&mut Snapshot) + Send + 'static) {
        let note: Note = Box::new(note);
        // Without a page nobody needs to know.
        let _ = self.notes.send(note).await;
    }

    async fn act(&mut self, deed: Deed) -> Result<(), DeedError> {
        match deed {
            Deed::Kill { node } => self.kill(node, words::killed).await,
            Deed::Hang { node } => self.hang(node).await,
            Deed::Revive { node } => self.revive(node).await,
            Deed::Empty { node } => self.empty(node).await,
            Deed::Link { one, other, condition } => self.link(one, other, condition).await,
            Deed::AddViewer { quality, vip, proxy } => {
                let free = |name: &PeerId| !self.seats.contains_key(name);
                let name = NAMES.iter().filter_map(|name| name.parse().ok()).find(free);
                let name = name.ok_or(DeedError::Full(MAX_VIEWERS))?;
                self.seat(name, quality.into(), vip, proxy).await
            }
            Deed::Invite { name, quality, vip, proxy, condition } => {
                if self.seats.contains_key(&name) {
                    self.leave(name).await?;
                }
                self.place(name)?;
                let through = if proxy { "proxy-1" } else { "base-1" };
                let through = through.parse().map_err(|why| failed(&why))?;
                self.link(name, through, condition).await?;
                self.seat(name, quality, vip, proxy).await
            }
            Deed::ChangeViewer { viewer, quality, vip } => {
                self.change(viewer, quality.map(Quality::from), vip).await
            }
            Deed::RemoveViewer { viewer } => self.leave(viewer).await,
            Deed::Mend => self.mend().await,
            Deed::Tour { step } => Err(DeedError::NoStep(step)),
        }
    }

    async fn kill(&mut self, node: PeerId, told: fn(&str) -> String) -> Result<(), DeedError> {
        let process = self.stage.process(node)?;
        if !process.is_running() {
            return Err(DeedError::NotRunning(node));
        }
        process.kill().await?;
        self.lives(node, NodeLife::Dead, Tone::Deed, told).await;
        Ok(())
    }

    async fn hang(&mut self, node: PeerId) -> Result<(), DeedError> {
        let process = self.stage.process(node)?;
        if !process.is_running() || process.hangs() {
            return Err(DeedError::NotRunning(node));
        }
        process.hang().await?;
        self.lives(node, NodeLife::Hung, Tone::Deed, words::hung).await;
        Ok(())
    }

    async fn revive(&mut self, node: PeerId) -> Result<(), DeedError> {
        let process = self.stage.process(node)?;
        if process.hangs() {
            process.go_on().await?;
        } else if !process.is_running() {
            self.note(move |page| set_life(page, node, NodeLife::Starting)).await;
            let started = self.stage.process(node)?.start().await;
            if let Err(why) = started {
                self.note(move |page| set_life(page, node, NodeLife::Dead)).await;
                return Err(why.into());
            }
        } else {
            return Ok(());
        }
        self.lives(node, NodeLife::Up, Tone::Deed, words::revived).await;
        Ok(())
    }

    /// Kills the node, takes its titles away, and starts it.
    async fn empty(&mut self, node: PeerId) -> Result<(), DeedError> {
        self.stage.process(node)?.kill().await?;
        let folder = self.stage.library(node);
        let emptied = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        emptied.map_err(|why| failed(&why))?.map_err(|why| failed(&why))?;
        self.note(move |page| {
            if let Some(node) = page.nodes.get_mut(node.as_str()) {
                node.holds = false;
            }
        })
        .await;
        self.stage.process(node)?.start().await?;
        self.lives(node, NodeLife::Up, Tone::Deed, words::emptied).await;
        tokio::spawn(refill(self.stage.library(node), self.film.title.clone(), node, self.notes.clone()));
        Ok(())
    }

    async fn lives(&self, node: PeerId, life: NodeLife, tone: Tone, told: fn(&str) -> String) {
        self.note(move |page| {
            set_life(page, node, life);
            page.say(tone, told(node.as_str()));
        })
        .await;
    }

    async fn link(&mut self, one: PeerId, other: PeerId, condition: Condition) -> Result<(), DeedError> {
        if !self.wires.shape(one, other, condition) {
            return Err(DeedError::NoLink(one, other));
        }
        let ends = if one <= other { (one, other) } else { (other, one) };
        let bent = condition != Condition::Open;
        let was = if bent { !self.bent.insert(ends) } else { self.bent.remove(&ends) };
        if !bent && !was {
            return Ok(());
        }
        self.note(move |page| {
            let name = link_name(one.as_str(), other.as_str());
            if bent {
                let ends = [ends.0.to_string(), ends.1.to_string()];
                page.links.insert(name, LinkState { ends, condition });
            } else {
                page.links.remove(&name);
            }
            page.say(Tone::Deed, words::link(one.as_str(), other.as_str(), condition));
        })
        .await;
        Ok(())
    }

    /// An address of the viewer's own, always the same for one name.
    fn place(&mut self, name: PeerId) -> Result<IpAddr, DeedError> {
        if let Some(place) = self.places.get(&name) {
            return Ok(*place);
        }
        let number = u8::try_from(self.places.len() + 1).map_err(|_| DeedError::Full(MAX_VIEWERS))?;
        let place = IpAddr::from(Ipv4Addr::new(127, 2, 0, number));
        self.wires.connect(name, place);
        self.places.insert(name, place);
        Ok(place)
    }

    async fn seat(
        &mut self,
        name: PeerId,
        quality: Quality,
        vip: bool,
        proxy: bool,
    ) -> Result<(), DeedError> {
        if self.seats.len() >= MAX_VIEWERS {
            return Err(DeedError::Full(MAX_VIEWERS));
        }
        let from = self.place(name)?;
        let quality = quality.min(self.film.top);
        let doors = self.doors(proxy);
        let proxy = doors.first().map(|(peer, _)| *peer).filter(|_| proxy);
        let ticket = Ticket { name, quality, vip, doors, proxy, from };
        self.seats.insert(name, Seat::new(ticket));
        self.open(name, Span::ZERO).await
    }

    /// Where a viewer may knock: at the proxy, or at any Base node that runs, each
    /// time at another one first.
    fn doors(&self, proxy: bool) -> Vec<(PeerId, SocketAddr)> {
        let kind = if proxy { "proxy-".to_owned() } else { format!("{}-", Layer::BASE) };
        let running =
            self.stage.everybody().filter(|(peer, _, runs)| *runs && peer.as_str().starts_with(&kind));
        let mut doors: Vec<_> = running.map(|(peer, address, _)| (peer, address)).collect();
        if !doors.is_empty() {
            let first = self.seats.len() % doors.len();
            doors.rotate_left(first);
        }
        doors.truncate(3);
        doors
    }

    async fn open(&mut self, name: PeerId, start: Span) -> Result<(), DeedError> {
        let Some(seat) = self.seats.get_mut(&name) else { return Err(DeedError::Nobody(name)) };
        let ticket = seat.ticket.clone();
        let note: Note = Box::new(move |page| seated(page, &ticket));
        // Without a page nobody needs to know.
        let _ = self.notes.send(note).await;
        hang_up(&self.screens, name, Some(&seat.preview));
        seat.open(&self.film, &self.keys, start, &self.notes).map_err(|why| failed(&why))
    }

    async fn change(
        &mut self,
        name: PeerId,
        quality: Option<Quality>,
        vip: Option<bool>,
    ) -> Result<(), DeedError> {
        let top = self.film.top;
        let Some(seat) = self.seats.get_mut(&name) else { return Err(DeedError::Nobody(name)) };
        let promised = vip.filter(|vip| *vip != seat.ticket.vip);
        let granted = quality.is_none_or(|quality| seat.wants(quality.min(top)));
        if let Some(quality) = quality.filter(|_| granted && promised.is_none()) {
            let quality = quality.min(top).to_string();
            self.note(move |page| {
                if let Some(viewer) = page.viewers.get_mut(name.as_str()) {
                    viewer.wants = quality;
                }
            })
            .await;
            return Ok(());
        }
        if let Some(vip) = promised {
            seat.ticket.vip = vip;
            self.note(move |page| page.say(Tone::Deed, words::promised(name.as_str(), vip))).await;
        }
        let doors = self.doors(self.seats.get(&name).is_some_and(|seat| seat.ticket.proxy.is_some()));
        let Some(seat) = self.seats.get_mut(&name) else { return Err(DeedError::Nobody(name)) };
        seat.ticket.doors = doors;
        seat.close().await;
        let position = self.pages.borrow().viewers.get(name.as_str()).map_or(0, |viewer| viewer.position_ms);
        let last = self.film.length.as_millis().saturating_sub(2_000);
        self.open(name, Span::from_millis(if position < last { position } else { 0 })).await
    }

    async fn leave(&mut self, name: PeerId) -> Result<(), DeedError> {
        let mut seat = self.seats.remove(&name).ok_or(DeedError::Nobody(name))?;
        seat.close().await;
        hang_up(&self.screens, name, None);
        self.note(move |page| {
            page.viewers.remove(name.as_str());
            page.say(Tone::Deed, words::left(name.as_str()));
        })
        .await;
        let bent: Vec<_> = self.bent.iter().filter(|(a, b)| *a == name || *b == name).copied().collect();
        for (one, other) in bent {
            self.link(one, other, Condition::Open).await?;
        }
        Ok(())
    }

    async fn mend(&mut self) -> Result<(), DeedError> {
        for (one, other) in self.bent.clone() {
            self.link(one, other, Condition::Open).await?;
        }
        let everybody: Vec<PeerId> = self.stage.everybody().map(|(peer, ..)| peer).collect();
        for peer in everybody {
            self.revive(peer).await?;
        }
        Ok(())
    }
}

/// Hangs up a viewer's screen, or takes it down.
fn hang_up(screens: &Screens, name: PeerId, preview: Option<&Arc<Preview>>) {
    let mut screens = screens.lock().unwrap_or_else(PoisonError::into_inner);
    match preview {
        Some(preview) => screens.insert(name.to_string(), Arc::clone(preview)),
        None => screens.remove(name.as_str()),
    };
}

fn set_life(page: &mut Snapshot, node: PeerId, life: NodeLife) {
    let level = node.as_str().split('-').next().unwrap_or_default();
    let node = page.nodes.entry(node.to_string()).or_insert_with(|| placed(level));
    node.life = life;
}

/// Notes when a node has a layer again: it lies on its disk under its own name only
/// once it is whole.
async fn refill(folder: PathBuf, title: TitleName, node: PeerId, notes: Notes) {
    let late = Instant::now() + REFILLING;
    while Instant::now() < late && !notes.is_closed() {
        let (folder, title) = (folder.clone(), title.clone());
        let held = move || Library::open(folder).and_then(|library| library.title(&title)).is_ok();
        if tokio::task::spawn_blocking(held).await.unwrap_or(false) {
            let note: Note = Box::new(move |page| {
                if let Some(node) = page.nodes.get_mut(node.as_str()) {
                    node.holds = true;
                }
            });
            // Without a page nobody needs to know.
            let _ = notes.send(note).await;
            return;
        }
        sleep(LOOK).await;
    }
}
