//! The task that owns the machine: inputs in, outputs out, one at a time.

use crate::fetcher::Fetcher;
use crate::librarian::{self, Found};
use crate::news::News;
use crate::store::Store;
use bytes::Bytes;
use media::library::remove_layer;
use media::{Hash, Layer, Span, Time, TitleName};
use protocol::node::autonomy::AgentMessage;
use protocol::node::{Door, Event, Input, Node, Outcome, Output};
use protocol::status::Traffic;
use protocol::{Claims, LinkId, Message, Open, Refusal, Role, StreamId, StreamRequest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use tracing::{debug, error};
use transport::{
    Authority, Connection, DialError, Endpoint, Happening, Host, Inbox, Responder, SendError, ServeError,
};

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

/// How the answer on a stream ended.
type End = (StreamId, Outcome);
/// How a dial ended.
type Dialled = (SocketAddr, Result<(Connection, Inbox), DialError>);

/// Everything that is driven together.
pub(crate) struct Driver {
    machine: Node,
    host: Host,
    store: Arc<Store>,
    disk: Arc<Semaphore>,
    links: BTreeMap<LinkId, Connection>,
    /// Requests that the machine is deciding about right now.
    asked: BTreeMap<StreamId, Responder>,
    endpoint: Endpoint,
    authority: Authority,
    dial: mpsc::Sender<Dialled>,
    dialled: mpsc::Receiver<Dialled>,
    fetcher: Fetcher,
    copied: mpsc::Receiver<(TitleName, Layer)>,
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
        (endpoint, authority): (Endpoint, Authority),
        host: Host,
        store: Arc<Store>,
        drain: watch::Receiver<bool>,
        on_event: OnEvent,
    ) -> Self {
        let (questions, found) = librarian::start(Arc::clone(&store));
        let (ended, ends) = mpsc::channel(ENDS);
        let (dial, dialled) = mpsc::channel(ENDS);
        let (done, copied) = mpsc::channel(ENDS);
        let fetcher = Fetcher::new(endpoint.clone(), store.library().clone(), done);
        Self {
            machine,
            endpoint,
            authority,
            dial,
            dialled,
            fetcher,
            copied,
            traffic: Traffic::default(),
            news: News::default(),
            host,
            store,
            disk: Arc::new(Semaphore::new(DISK_READS)),
            links: BTreeMap::new(),
            asked: BTreeMap::new(),
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
        while !self.drained {
            let timeout = self.machine.poll_timeout();
            tokio::select! {
                happening = self.host.next() => match happening {
                    Some(happening) => self.happen(happening),
                    None => return,
                },
                Some((stream, outcome)) = self.ends.recv() => {
                    self.input(Input::Answered { stream, outcome });
                }
                Some(found) = self.found.recv() => {
                    self.input(Input::Shelf(found.held));
                    for (link, message) in found.questions {
                        self.hear(link, message);
                    }
                }
                Some((address, outcome)) = self.dialled.recv() => self.end_of_dial(address, outcome),
                Some(_) = self.copied.recv() => self.look_through(),
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
            Happening::Heard { link, message: message @ (Message::ListTitles | Message::Open(_)) } => {
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

    /// What a viewer's token says, if it is one of this cluster and still holds.
    fn claims(&self, open: &Open) -> Result<Claims, Refusal> {
        let Some(token) = &open.token else { return Ok(Claims::NONE) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.authority.claims(token, now).map_err(|error| {
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
                Message::Agent(AgentMessage::Signal) => &mut self.traffic.signals,
                _ => &mut self.traffic.agents,
            };
            *kind = kind.saturating_add(length);
        }
    }

    fn remove(&mut self, title: TitleName, layer: Layer) {
        self.fetcher.cancel(&title, layer);
        let (library, questions) = (self.store.library().clone(), self.questions.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = remove_layer(&library, &title, layer) {
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
            Output::Fetch { title, layer, from } => self.fetcher.fetch(title, layer, from),
            Output::Remove { title, layer } => self.remove(title, layer),
            Output::TellStatus { link, mut status } => {
                status.traffic = self.traffic;
                status.events = self.news.lines(self.now());
                self.send(link, Message::Status(status));
            }
            Output::Part { link } => {
                if let Some(connection) = self.links.remove(&link) {
                    self.partings.spawn(async move { connection.part().await });
                }
            }
            Output::Grant { stream, request } => {
                if let Some(responder) = self.asked.remove(&stream) {
                    self.answer(stream, request, responder);
                }
            }
            Output::Refuse { stream, why } => {
                if let Some(responder) = self.asked.remove(&stream) {
                    // It has a deadline of its own, and nobody waits for it.
                    tokio::spawn(responder.refuse(why));
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

    /// Answers a granted request in a task of its own.
    fn answer(&self, stream: StreamId, request: StreamRequest, responder: Responder) {
        let (store, disk, ends) = (Arc::clone(&self.store), Arc::clone(&self.disk), self.ended.clone());
        tokio::spawn(async move {
            let answering = answer(store, disk, request, responder);
            let outcome = timeout(PAYLOAD, answering).await.unwrap_or(Outcome::GivenUp);
            // If nobody hears it, the node has stopped.
            let _ = ends.send((stream, outcome)).await;
        });
    }
}

async fn wait_until(born: Instant, when: Option<Time>) {
    match when {
        Some(when) => sleep_until((born + Duration::from_nanos(when.as_nanos())).into()).await,
        None => std::future::pending().await,
    }
}

async fn answer(
    store: Arc<Store>,
    disk: Arc<Semaphore>,
    request: StreamRequest,
    responder: Responder,
) -> Outcome {
    match fetch(store, &disk, request).await {
        Ok((bytes, hash)) => match send(responder, bytes, hash).await {
            Ok(bytes) => Outcome::Sent { bytes },
            Err(error) => {
                debug!(%error, "a payload was given up");
                Outcome::GivenUp
            }
        },
        Err(why) => {
            // A peer that is gone need not hear it.
            let _ = responder.refuse(why).await;
            if why == Refusal::Damaged { Outcome::Damaged } else { Outcome::GivenUp }
        }
    }
}

/// From memory at once, otherwise from disk on a thread that may block.
async fn fetch(
    store: Arc<Store>,
    disk: &Semaphore,
    request: StreamRequest,
) -> Result<(Bytes, Hash), Refusal> {
    if let Some(found) = store.recent(&request) {
        return Ok(found);
    }
    let _turn = disk.acquire().await.map_err(|_| Refusal::Draining)?;
    let read = tokio::task::spawn_blocking(move || store.read(&request)).await;
    read.unwrap_or(Err(Refusal::Damaged))
}

async fn send(mut responder: Responder, bytes: Bytes, hash: Hash) -> Result<u64, ServeError> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    responder.grant(length, hash)?;
    responder.send(bytes).await?;
    responder.finish().await?;
    Ok(length)
}
