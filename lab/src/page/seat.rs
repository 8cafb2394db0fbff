//! A viewer of the page: a player in this process, whose events go into the
//! snapshot and whose pictures go to whoever looks.

use super::hear;
use super::state::{NodeState, Snapshot, Tone, ViewerState, Viewing};
use super::{Film, words};
use media::{Quality, Span};
use player::{Command, PlayError, PlayOptions, PlayReport, PlayerEvent, Preview};
use protocol::{PeerId, Promise, Sla};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use transport::{Keys, KeysError};

/// How long a viewer's promise holds.
const PROMISED: Duration = Duration::from_hours(24);
/// The film begins again when so much of it is left.
const LAST_BIT_MS: u64 = 900;
/// How long a player may take to end.
const ENDING: Duration = Duration::from_secs(6);
/// Events that wait to be put into the snapshot.
const EVENTS: usize = 512;
/// Pictures on the page: as wide as they are shown, and so many a second.
const PREVIEW: (u32, u32) = (480, 12);

/// A change of the snapshot.
pub(crate) type Note = Box<dyn FnOnce(&mut Snapshot) + Send>;
/// Where changes go.
pub(crate) type Notes = mpsc::Sender<Note>;

/// What one viewing is made from.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) name: PeerId,
    pub(crate) quality: Quality,
    pub(crate) vip: bool,
    /// Where it knocks, the best place first.
    pub(crate) doors: Vec<(PeerId, SocketAddr)>,
    pub(crate) proxy: Option<PeerId>,
    pub(crate) from: IpAddr,
}

/// A viewer, who may watch several times, one after the other.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) ticket: Ticket,
    pub(crate) preview: Arc<Preview>,
    /// What it opened the title with.
    opened: Quality,
    commands: Option<mpsc::Sender<Command>>,
    watching: Option<JoinHandle<()>>,
}

impl Seat {
    pub(crate) fn new(ticket: Ticket) -> Self {
        let preview = Preview::new(PREVIEW.0, PREVIEW.1);
        Self { opened: ticket.quality, ticket, preview, commands: None, watching: None }
    }

    /// Begins to watch at this place of the film.
    pub(crate) fn open(
        &mut self,
        film: &Film,
        keys: &Keys,
        start: Span,
        notes: &Notes,
    ) -> Result<(), KeysError> {
        let ticket = &self.ticket;
        let sla = if ticket.vip { Sla::Vip } else { Sla::Normal };
        let until = SystemTime::now() + PROMISED;
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let promise = Promise { viewer: ticket.name, sla, top: Quality::GOLD, until };
        let Some((_, door)) = ticket.doors.first() else { return Ok(()) };
        let mut options = PlayOptions::new(*door, film.title.clone(), keys.authority()?, ticket.name);
        options.addresses = ticket.doors.iter().map(|(peer, address)| (Some(*peer), *address)).collect();
        options.token = ticket.vip.then(|| keys.sign(promise)).transpose()?;
        options.quality = ticket.quality;
        options.start = start;
        options.dial_from = Some(ticket.from);
        // What a page shows is looked at, not compared.
        options.check_hashes = false;
        options.preview = Some(Arc::clone(&self.preview));
        let (commands, asked) = mpsc::channel(8);
        self.opened = ticket.quality;
        self.commands = Some(commands.clone());
        let (name, notes, length) = (ticket.name.to_string(), notes.clone(), film.length);
        self.watching = Some(tokio::spawn(watch(name, options, (commands, asked), notes, length)));
        Ok(())
    }

    /// Asks for another quality; false if the title must be opened anew for it.
    pub(crate) fn wants(&mut self, quality: Quality) -> bool {
        self.ticket.quality = quality;
        let sent = self.commands.as_ref().map(|commands| commands.try_send(Command::Quality(quality)));
        quality <= self.opened && sent.is_some_and(|sent| sent.is_ok())
    }

    /// Stops watching.
    pub(crate) async fn close(&mut self) {
        if let Some(commands) = self.commands.take() {
            // A player that has ended hears nothing.
            let _ = commands.try_send(Command::Stop);
        }
        if let Some(mut watching) = self.watching.take()
            && timeout(ENDING, &mut watching).await.is_err()
        {
            watching.abort();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
    }
}

/// The viewer as the page first sees it; what was counted before stays counted.
pub(crate) fn seated(page: &mut Snapshot, ticket: &Ticket) {
    let viewer: &mut ViewerState = page.viewers.entry(ticket.name.to_string()).or_default();
    viewer.wants = ticket.quality.to_string();
    viewer.vip = ticket.vip;
    viewer.proxy = ticket.proxy.map(|proxy| proxy.to_string());
    viewer.viewing = Viewing::Opening;
    viewer.backup = None;
    viewer.buffer_ms = 0;
    viewer.sources.clear();
}

/// A node or proxy as the page first sees it.
pub(crate) fn placed(level: &str) -> NodeState {
    NodeState { level: level.to_owned(), ..NodeState::default() }
}

type Orders = (mpsc::Sender<Command>, mpsc::Receiver<Command>);

/// One viewing: the film again and again, until it is stopped or cannot go on.
async fn watch(name: String, options: PlayOptions, (commands, asked): Orders, notes: Notes, length: Span) {
    let (events, mut heard) = mpsc::channel(EVENTS);
    let playing = player::play(options, asked, events);
    let (of, into) = (name.clone(), notes.clone());
    let mut again = Again {
        last: length.as_millis().saturating_sub(LAST_BIT_MS),
        half: length.as_millis() / 2,
        asked: false,
    };
    let listening = async move {
        while let Some(event) = heard.recv().await {
            if again.is_due(&event) {
                // If it is not taken the next status asks again.
                again.asked = commands.try_send(Command::SeekTo(Span::ZERO)).is_ok();
            }
            let of = of.clone();
            let note: Note = Box::new(move |page| hear::player_event(page, &of, &event));
            if into.send(note).await.is_err() {
                break;
            }
        }
    };
    let (played, ()) = tokio::join!(playing, listening);
    let note: Note = Box::new(move |page| ended(page, &name, played));
    // Without a page nobody needs to know.
    let _ = notes.send(note).await;
}

/// When the film has to begin again.
#[derive(Debug)]
struct Again {
    last: u64,
    half: u64,
    asked: bool,
}

impl Again {
    fn is_due(&mut self, event: &PlayerEvent) -> bool {
        let PlayerEvent::Status { position_ms, .. } = event else { return false };
        if *position_ms < self.half {
            self.asked = false;
        }
        *position_ms >= self.last && !self.asked
    }
}

fn ended(page: &mut Snapshot, name: &str, played: Result<PlayReport, PlayError>) {
    let Some(viewer) = page.viewers.get_mut(name) else { return };
    viewer.sources.clear();
    match played {
        Ok(report) if report.outcome == "stopped" => {}
        Ok(report) => {
            viewer.viewing = Viewing::Over;
            page.say(Tone::Plain, words::over(name, &report.outcome));
        }
        Err(error) => {
            viewer.viewing = Viewing::Over;
            page.say(Tone::Bad, words::over(name, &error.to_string()));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn the_film_begins_again_once_for_each_end() {
        let mut again = Again { last: 44_000, half: 22_000, asked: false };
        let at =
            |position_ms| PlayerEvent::Status { at_ms: 0, position_ms, buffer_ms: 0, quality: "gold".into() };
        assert!(!again.is_due(&at(43_999)));
        assert!(again.is_due(&at(44_100)));
        again.asked = true;
        assert!(!again.is_due(&at(44_300)) && !again.is_due(&at(200)));
        assert!(again.is_due(&at(44_000)));
    }
}
