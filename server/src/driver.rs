//! The task that owns the machine: inputs in, outputs out, one at a time.

use crate::answer::{Granted, Held, answer, released};
use crate::archive::{self, Archive, Looked};
use crate::fetcher::Fetcher;
use crate::librarian::{self, Found};
use crate::memory::keep_withdrawn;
use crate::news::News;
use crate::store::Store;
use media::{Layer, Span, Time, TitleName};
use protocol::node::autonomy::AgentMessage;
use protocol::node::{Door, Event, Input, Node, Outcome, Output};
use protocol::status::Traffic;
use protocol::{Claims, LinkId, Message, Open, Refusal, Role, StreamId, StreamRequest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};
use tracing::{debug, error, info};
use transport::keys::revoked::Revocations;
use transport::{Authority, Connection, DialError, Endpoint, Happening, Host, Inbox, Responder, SendError};

/// A payload that is not through after this long is given up.
const PAYLOAD: Duration = Duration::from_mins(2);
/// Chunks read from disk at once; more wait.
const DISK_READS: usize = 32;
/// Ends of payloads, of copies and of dials that wait to be heard.
const ENDS: usize = 1024;
/// How long another node may take to be reached.
const DIAL: Duration = Duration::from_secs(1);

/// Listens to everything the machine says for people and figures.
pub(crate) type OnEvent = Box<dyn Fn(&Event) + Send>;

/// Between two looks through the library that nobody asked for: titles may be
/// replaced or deleted by hand.
const LOOK: Duration = Duration::from_secs(2);

/// How the answer on a stream ended, and what was granted if anything was.
type End = (StreamId, Outcome, Option<Granted>);
/// How a dial ended.
type Dialled = (SocketAddr, Result<(Connection, Inbox), DialError>);

/// Whom to believe what.
#[derive(Debug)]
pub(crate) struct Trust {
    /// By whose signature promises hold.
    pub(crate) authority: Authority,
    /// Those that were taken back.
    pub(crate) revocations: Arc<Revocations>,
}

/// Everything that is driven together.
pub(crate) struct Driver {
    machine: Node,
    host: Host,
    store: Arc<Store>,
    disk: Arc<Semaphore>,
    links: BTreeMap<LinkId, Connection>,
    /// Requests that the machine is deciding about right now.
    asked: BTreeMap<StreamId, Responder>,
    /// Requests that wait for their slot, by what they are told in the end.
    held: BTreeMap<StreamId, oneshot::Sender<Result<Granted, Refusal>>>,
    endpoint: Endpoint,
    trust: Trust,
    dial: mpsc::Sender<Dialled>,
    dialled: mpsc::Receiver<Dialled>,
    fetcher: Fetcher,
    copied: mpsc::Receiver<(TitleName, Layer)>,
    archive: Archive,
    looks: mpsc::Sender<(TitleName, Result<Looked, Refusal>)>,
    looked: mpsc::Receiver<(TitleName, Result<Looked, Refusal>)>,
    /// What the archive has just said of a title, until the machine has decided.
    shown: Option<Looked>,
    downloaded: mpsc::Receiver<(TitleName, bool)>,
    /// Keeps what was withdrawn.
    withdrawn: watch::Sender<Vec<TitleName>>,
    traffic: Traffic,
    news: News,
    questions: mpsc::Sender<(LinkId, Message)>,
    found: mpsc::Receiver<Found>,
    ended: mpsc::Sender<End>,
    ends: mpsc::Receiver<End>,
    partings: JoinSet<()>,
    drain: watch::Receiver<bool>,
    on_event: OnEvent,
    born: Instant,
    drained: bool,
}

impl Driver {
    pub(crate) fn new(
        machine: Node,
        (endpoint, trust): (Endpoint, Trust),
        host: Host,
        (store, from_archive): (Arc<Store>, u64),
        drain: watch::Receiver<bool>,
        on_event: OnEvent,
    ) -> Self {
        let (questions, found) = librarian::start(Arc::clone(&store), Arc::clone(&trust.revocations));
        let (ended, ends) = mpsc::channel(ENDS);
        let (dial, dialled) = mpsc::channel(ENDS);
        let (done, copied) = mpsc::channel(ENDS);
        let (looks, looked) = mpsc::channel(ENDS);
        let (whole, downloaded) = mpsc::channel(ENDS);
        let archive = Archive::new(endpoint.clone(), Arc::clone(&store), from_archive, whole);
        let fetcher = Fetcher::new(endpoint.clone(), store.library().clone(), done);
        Self {
            machine,
            endpoint,
            trust,
            dial,
            dialled,
            fetcher,
            copied,
            archive,
            looks,
            looked,
            shown: None,
            downloaded,
            withdrawn: keep_withdrawn(store.library().path().to_owned()),
            traffic: Traffic::default(),
            news: News::default(),
            host,
            store,
            disk: Arc::new(Semaphore::new(DISK_READS)),
            links: BTreeMap::new(),
            asked: BTreeMap::new(),
            held: BTreeMap::new(),
            questions,
            found,
            ended,
            ends,
            partings: JoinSet::new(),
            drain,
            on_event,
            born: Instant::now(),
            drained: false,
        }
    }

    /// Runs until the node has stopped.
    pub(crate) async fn run(mut self) {
        self.input(Input::Shelf(self.store.held()));
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.drained {
            let timeout = self.machine.poll_timeout();
            tokio::select! {
                happening = self.host.next() => match happening {
                    Some(happening) => self.happen(happening),
                    None => return,
                },
                Some((stream, outcome, granted)) = self.ends.recv() => {
                    self.held.remove(&stream);
                    self.input(Input::Answered { stream, outcome });
                    if let Some(granted) = granted.filter(|_| outcome == Outcome::Damaged) {
                        self.damaged(granted);
                    }
                }
                _ = look.tick() => self.look_through(),
                Some(found) = self.found.recv() => {
                    self.input(Input::Shelf(found.held));
                    self.store.forget_arrived();
                    for (link, message) in found.questions {
                        self.hear(link, message);
                    }
                }
                Some((address, outcome)) = self.dialled.recv() => self.end_of_dial(address, outcome),
                Some(_) = self.copied.recv() => self.look_through(),
                Some((title, looked)) = self.looked.recv() => self.looked(title, looked),
                Some((title, whole)) = self.downloaded.recv() => self.downloaded(title, whole),
                Ok(()) = self.drain.changed() => self.input(Input::Drain),
                () = wait_until(self.born, timeout) => self.input(Input::Timeout),
                Some(_) = self.partings.join_next() => {}
            }
        }
        // Each takes a second at most.
        while self.partings.join_next().await.is_some() {}
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Linked { link, connection, here } => {
                let hello = connection.peer();
                self.links.insert(link, connection);
                self.input(Input::Linked { link, hello, here });
            }
            Happening::Heard { link, message } if names_titles(&message) => {
                if self.questions.try_send((link, message)).is_err() {
                    self.drop_link(link, "too many questions");
                }
            }
            Happening::Heard { link, message } => self.hear(link, message),
            Happening::Asked { link, stream, request, responder } => {
                self.asked.insert(stream, responder);
                self.input(Input::Asked { link, stream, request });
                self.asked.remove(&stream);
            }
            Happening::Gone { link, parted } => {
                self.links.remove(&link);
                self.input(Input::Gone { link, parted });
            }
        }
    }

    fn hear(&mut self, link: LinkId, message: Message) {
        let input = match message {
            Message::Open(open) => {
                let claims = self.claims(&open);
                Input::Opens { link, open, claims }
            }
            message => {
                let travel = self.links.get(&link).map_or(Span::ZERO, |connection| connection.rtt().into());
                Input::Heard { link, message, travel: Span::from_nanos(travel.as_nanos() / 2) }
            }
        };
        self.input(input);
    }

    /// What a viewer's token says, if it is one of this cluster, still holds, and
    /// was not taken back.
    fn claims(&self, open: &Open) -> Result<Claims, Refusal> {
        let Some(token) = &open.token else { return Ok(Claims::NONE) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.trust.revocations.revokes(token) {
            info!(viewer = %token.promise.viewer, "a token was taken back");
            return Err(Refusal::Token);
        }
        self.trust.authority.claims(token, now).map_err(|error| {
            debug!(%error, "a token is not valid");
            Refusal::Token
        })
    }

    /// The library has changed: the machine is told what is there.
    fn look_through(&mut self) {
        // A question that nobody asked; when the queue is full it is asked anyway.
        let _ = self.questions.try_send((LinkId(u64::MAX), Message::ListTitles));
    }

    fn dial(&self, door: Door) {
        let (endpoint, ended) = (self.endpoint.clone(), self.dial.clone());
        tokio::spawn(async move {
            let outcome = endpoint.dial(door.address, door.peer, DIAL).await;
            // If nobody hears it, the node has stopped.
            let _ = ended.send((door.address, outcome)).await;
        });
    }

    fn end_of_dial(&mut self, address: SocketAddr, outcome: Result<(Connection, Inbox), DialError>) {
        let attended = outcome.map_err(|error| debug!(%error, "a node is not reached")).ok();
        let attended = attended.and_then(|(connection, inbox)| {
            let link = self.host.attend(connection.clone(), inbox)?;
            Some((link, connection))
        });
        match attended {
            Some((link, connection)) => {
                let hello = connection.peer();
                self.links.insert(link, connection);
                self.input(Input::Reached { link, address, hello });
            }
            None => self.input(Input::Unreached { address }),
        }
    }

    /// Counts what is said to other nodes.
    fn count(&mut self, connection_role: Role, message: &Message) {
        if connection_role == Role::Node {
            let length = protocol::frame::length(message);
            let kind = match message {
                Message::Agent(
                    AgentMessage::Signal | AgentMessage::Digest(_) | AgentMessage::Standings(_),
                ) => &mut self.traffic.signals,
                _ => &mut self.traffic.agents,
            };
            *kind = kind.saturating_add(length);
        }
    }

    fn damaged(&mut self, (request, version): Granted) {
        if let StreamRequest::Chunk(chunk) = request {
            let (title, layer) = (chunk.id.title, chunk.id.layer);
            self.input(Input::Damaged { title, layer, version });
        }
    }

    fn look(&self, title: TitleName, from: Door) {
        let (endpoint, looks) = (self.endpoint.clone(), self.looks.clone());
        tokio::spawn(async move {
            let looked = archive::look(&endpoint, title.clone(), from).await;
            // If nobody hears it, the node has stopped.
            let _ = looks.send((title, looked)).await;
        });
    }

    /// The archive has answered. Whether its title is copied is decided at once.
    fn looked(&mut self, title: TitleName, looked: Result<Looked, Refusal>) {
        let found = looked.as_ref().map(Looked::held).map_err(|why| *why);
        self.shown = looked.ok();
        self.input(Input::Looked { title, found: Box::new(found) });
        self.shown = None;
    }

    fn download(&mut self, title: &TitleName, from: Door) {
        if let Some(shown) = self.shown.take().filter(|shown| shown.title == *title) {
            return self.archive.download(shown, from);
        }
        // It was not what was looked at; whoever was let in asks again.
        self.questions.try_send((LinkId(u64::MAX), Message::ListTitles)).ok();
        self.input(Input::Downloaded { title: title.clone(), whole: false });
    }

    fn downloaded(&mut self, title: TitleName, whole: bool) {
        if !whole {
            self.store.stays_away(&title);
        }
        self.input(Input::Downloaded { title, whole });
        self.look_through();
    }

    fn evict(&mut self, title: TitleName) {
        let evict = self.archive.evict(title);
        let questions = self.questions.clone();
        tokio::task::spawn_blocking(move || {
            evict();
            // As in `look_through`.
            let _ = questions.try_send((LinkId(u64::MAX), Message::ListTitles));
        });
    }

    fn remove(&mut self, title: TitleName, layer: Layer) {
        let remove = self.fetcher.remove(&title, layer);
        let questions = self.questions.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = remove() {
                error!(%title, %layer, %error, "a layer was not deleted");
            }
            // As in `look_through`.
            let _ = questions.try_send((LinkId(u64::MAX), Message::ListTitles));
        });
    }

    fn drop_link(&mut self, link: LinkId, word: &str) {
        if let Some(connection) = self.links.remove(&link) {
            connection.close(word);
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.now();
        self.machine.handle_input(now, input);
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.born.elapsed().into()
    }

    fn send(&mut self, link: LinkId, message: Message) {
        let Some(connection) = self.links.get(&link).cloned() else { return };
        self.count(connection.peer().role, &message);
        if let Err(SendError::Full) = connection.send(message) {
            self.drop_link(link, "messages are not taken");
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Send { link, message } => self.send(link, message),
            Output::Dial(door) => self.dial(door),
            Output::Fetch { title, layer, from, version } => self.fetcher.fetch(title, layer, from, version),
            Output::Release { title, version } => self.store.release(&title, version),
            Output::Remove { title, layer } => self.remove(title, layer),
            Output::Look { title, from } => self.look(title, from),
            Output::Download { title, from } => self.download(&title, from),
            Output::Evict { title } => self.evict(title),
            Output::Withdrawn { titles } => drop(self.withdrawn.send_replace(titles)),
            Output::TellStatus { link, mut status } => {
                status.traffic = Traffic { archive: self.archive.fetched(), ..self.traffic };
                status.events = self.news.lines(self.now());
                self.send(link, Message::Status(status));
            }
            Output::Part { link } => {
                if let Some(connection) = self.links.remove(&link) {
                    self.partings.spawn(async move { connection.part().await });
                }
            }
            Output::Grant { stream, request, version, slot } => {
                if let Some(responder) = self.asked.remove(&stream) {
                    if !slot {
                        responder.go_last();
                    }
                    self.answer(stream, responder, Ok((request, version)));
                } else {
                    self.release(stream, Ok((request, version)));
                }
            }
            Output::Hold { stream } => {
                if let Some(responder) = self.asked.remove(&stream) {
                    let (release, released) = oneshot::channel();
                    self.held.insert(stream, release);
                    self.answer(stream, responder, Err(released));
                }
            }
            Output::Refuse { stream, why } => {
                if let Some(responder) = self.asked.remove(&stream) {
                    // It has a deadline of its own, and nobody waits for it.
                    tokio::spawn(responder.refuse(why));
                } else {
                    self.release(stream, Err(why));
                }
            }
            Output::Drained => self.drained = true,
            Output::Event(event) => {
                if let Event::Sent { bytes, .. } = event {
                    self.traffic.media = self.traffic.media.saturating_add(bytes);
                }
                self.news.note(self.now(), &event);
                (self.on_event)(&event);
            }
        }
    }

    /// Tells a request that is held what became of it.
    fn release(&mut self, stream: StreamId, word: Result<Granted, Refusal>) {
        if let Some(held) = self.held.remove(&stream) {
            // Who hears it no more has just told how it ended.
            let _ = held.send(word);
        }
    }

    /// Answers a request in a task of its own: one that is granted, or one that is
    /// held until it is.
    fn answer(&self, stream: StreamId, responder: Responder, request: Result<Granted, Held>) {
        let (store, disk, ends) = (Arc::clone(&self.store), Arc::clone(&self.disk), self.ended.clone());
        tokio::spawn(async move {
            let mut granted = request.as_ref().ok().cloned();
            let answering = async {
                let word = match request {
                    Ok(request) => Some(Ok(request)),
                    Err(held) => released(held, &responder).await,
                };
                match word {
                    Some(Ok(request)) => {
                        granted = Some(request.clone());
                        answer(store, disk, request, responder).await
                    }
                    Some(Err(why)) => {
                        // A peer that is gone need not hear it.
                        let _ = responder.refuse(why).await;
                        Outcome::GivenUp
                    }
                    None => Outcome::GivenUp,
                }
            };
            let outcome = timeout(PAYLOAD, answering).await.unwrap_or(Outcome::GivenUp);
            // If nobody hears it, the node has stopped.
            let _ = ends.send((stream, outcome, granted)).await;
        });
    }
}

/// Whether the answer depends on what is in the library now.
fn names_titles(message: &Message) -> bool {
    matches!(message, Message::ListTitles | Message::Open(_) | Message::Publish { .. })
}

async fn wait_until(born: Instant, when: Option<Time>) {
    match when {
        Some(when) => sleep_until((born + Duration::from_nanos(when.as_nanos())).into()).await,
        None => std::future::pending().await,
    }
}
