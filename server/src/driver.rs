//! The task that owns the machine: inputs in, outputs out, one at a time.

use crate::librarian::{self, Found};
use crate::store::Store;
use bytes::Bytes;
use media::{Hash, Time};
use protocol::node::{Event, Input, Node, Outcome, Output};
use protocol::{LinkId, Message, Refusal, StreamId, StreamRequest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use tracing::{debug, info};
use transport::{Connection, Happening, Host, Responder, SendError, ServeError};

/// A payload that is not through after this long is given up.
const PAYLOAD: Duration = Duration::from_mins(2);
/// Chunks read from disk at once; more wait.
const DISK_READS: usize = 32;
/// Ends of payloads that wait to be heard.
const ENDS: usize = 1024;

/// Listens to everything the machine says for people and figures.
pub(crate) type OnEvent = Box<dyn Fn(&Event) + Send>;

/// How the answer on a stream ended.
type End = (StreamId, Outcome);

/// Everything that is driven together.
pub(crate) struct Driver {
    machine: Node,
    host: Host,
    store: Arc<Store>,
    disk: Arc<Semaphore>,
    links: BTreeMap<LinkId, Connection>,
    /// Requests that the machine is deciding about right now.
    asked: BTreeMap<StreamId, Responder>,
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
        host: Host,
        store: Arc<Store>,
        drain: watch::Receiver<bool>,
        on_event: OnEvent,
    ) -> Self {
        let (questions, found) = librarian::start(Arc::clone(&store));
        let (ended, ends) = mpsc::channel(ENDS);
        Self {
            machine,
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
                        self.input(Input::Heard { link, message });
                    }
                }
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
            Happening::Heard { link, message } => self.input(Input::Heard { link, message }),
            Happening::Asked { link, stream, request, responder } => {
                self.asked.insert(stream, responder);
                self.input(Input::Asked { link, stream, request });
                self.asked.remove(&stream);
            }
            Happening::Gone { link } => {
                self.links.remove(&link);
                self.input(Input::Gone { link });
            }
        }
    }

    fn drop_link(&mut self, link: LinkId, word: &str) {
        if let Some(connection) = self.links.remove(&link) {
            connection.close(word);
        }
    }

    fn input(&mut self, input: Input) {
        let now = Time::ZERO + self.born.elapsed().into();
        self.machine.handle_input(now, input);
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Send { link, message } => {
                let sent = self.links.get(&link).map(|connection| connection.send(message));
                if let Some(Err(SendError::Full)) = sent {
                    self.drop_link(link, "messages are not taken");
                }
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
                tell(&event);
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

/// Each event is one line; what happens for every chunk is for the curious.
fn tell(event: &Event) {
    match event {
        Event::Sent { .. } | Event::GivenUp { .. } => debug!(?event),
        Event::Joined { .. }
        | Event::TurnedAway { .. }
        | Event::Left { .. }
        | Event::Opened { .. }
        | Event::SessionRefused { .. }
        | Event::Closed { .. }
        | Event::RequestRefused { .. }
        | Event::Damaged { .. }
        | Event::Rejected { .. }
        | Event::Draining { .. }
        | Event::Drained { .. } => info!(?event),
    }
}
