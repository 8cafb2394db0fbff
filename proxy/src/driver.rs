//! The task that owns the machine: inputs in, outputs out, one at a time.

use crate::block::Block;
use crate::fill::fill;
use crate::following::{self, Source};
use crate::shelf::Shelf;
use crate::upstream::{Learnt, Pool};
use media::{ChunkId, Time, TitleName, TitleSummary};
use protocol::proxy::{Event, FillFailure, Input, Outcome, Output, Proxy, Upstream};
use protocol::{LinkId, Refusal, StreamId, StreamRequest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tracing::{debug, info};
use transport::{Connection, Happening, Host, Responder, SendError};

/// Ends of tasks that wait to be heard.
const ENDS: usize = 1024;

/// Listens to everything the machine says for people and figures.
pub(crate) type OnEvent = Box<dyn Fn(&Event) + Send>;

/// What a task of the driver brought home.
#[derive(Debug)]
enum End {
    Served(StreamId, Outcome),
    Filled(ChunkId, Result<Block, FillFailure>),
    Learnt(TitleName, Result<Box<Learnt>, Refusal>),
    Listed(Result<Vec<TitleSummary>, Refusal>),
}

/// A request that the machine is deciding about right now.
struct Asked {
    responder: Responder,
    request: StreamRequest,
    held: Option<Source>,
}

/// Everything that is driven together.
pub(crate) struct Driver {
    machine: Proxy,
    host: Host,
    pool: Arc<Pool>,
    shelf: Shelf,
    links: BTreeMap<LinkId, Connection>,
    asked: BTreeMap<StreamId, Asked>,
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
        machine: Proxy,
        host: Host,
        pool: Pool,
        shelf: Shelf,
        drain: watch::Receiver<bool>,
        on_event: OnEvent,
    ) -> Self {
        let (ended, ends) = mpsc::channel(ENDS);
        Self {
            machine,
            host,
            pool: Arc::new(pool),
            shelf,
            links: BTreeMap::new(),
            asked: BTreeMap::new(),
            ended,
            ends,
            partings: JoinSet::new(),
            drain,
            on_event,
            born: Instant::now(),
            drained: false,
        }
    }

    /// Runs until the proxy has stopped.
    pub(crate) async fn run(mut self) {
        while !self.drained {
            let timeout = self.machine.poll_timeout();
            tokio::select! {
                happening = self.host.next() => match happening {
                    Some(happening) => self.happen(happening),
                    None => return,
                },
                Some(end) = self.ends.recv() => self.end(end),
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
            Happening::Heard { link, message } => self.input(Input::Heard { link, message }),
            Happening::Asked { link, stream, request, responder } => {
                let held = self.shelf.held(&request);
                let length = match &request {
                    StreamRequest::Manifest(_) => 0,
                    StreamRequest::Chunk(chunk) => self.shelf.info(&chunk.id).map_or(0, |info| info.length),
                };
                let input =
                    Input::Asked { link, stream, request: request.clone(), held: held.is_some(), length };
                self.asked.insert(stream, Asked { responder, request, held });
                self.input(input);
                self.asked.remove(&stream);
            }
            Happening::Gone { link, .. } => {
                self.links.remove(&link);
                self.input(Input::Gone { link });
            }
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Served(stream, outcome) => self.input(Input::Answered { stream, outcome }),
            End::Filled(chunk, Ok(block)) => {
                self.shelf.keep(&chunk, block);
                self.input(Input::Filled { chunk });
            }
            End::Filled(chunk, Err(why)) => self.input(Input::FillFailed { chunk, why }),
            End::Learnt(title, learnt) => {
                let shape = learnt.map(|learnt| {
                    let shape = learnt.shape.clone();
                    self.shelf.learn(title.clone(), *learnt);
                    shape
                });
                self.input(Input::Learnt { title, shape });
            }
            End::Listed(titles) => self.input(Input::Listed(titles)),
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
                if let Some(Err(SendError::Full)) = sent
                    && let Some(connection) = self.links.remove(&link)
                {
                    connection.close("messages are not taken");
                }
            }
            Output::Part { link } => {
                if let Some(connection) = self.links.remove(&link) {
                    self.partings.spawn(async move { connection.part().await });
                }
            }
            Output::List { upstream } => {
                let pool = Arc::clone(&self.pool);
                self.spawn(async move { End::Listed(pool.titles(&upstream).await) });
            }
            Output::Learn { title, upstream } => self.learn(title, upstream),
            Output::Forget { title } => self.shelf.forget(&title),
            Output::Fill { chunk, from } => self.fill(chunk, from),
            Output::GiveUp { chunk } => {
                if let Some(growing) = self.shelf.give_up(&chunk) {
                    growing.fail(Refusal::Upstream);
                }
            }
            Output::Serve { stream } => self.serve(stream),
            Output::Refuse { stream, why } => {
                if let Some(asked) = self.asked.remove(&stream) {
                    // It has a deadline of its own, and nobody waits for it.
                    tokio::spawn(asked.responder.refuse(why));
                }
            }
            Output::Drained => self.drained = true,
            Output::Event(event) => {
                tell(&event);
                (self.on_event)(&event);
            }
        }
    }

    fn spawn(&self, task: impl Future<Output = End> + Send + 'static) {
        let ended = self.ended.clone();
        tokio::spawn(async move {
            let end = task.await;
            // If nobody hears it, the proxy has stopped.
            let _ = ended.send(end).await;
        });
    }

    fn learn(&self, title: TitleName, upstream: Vec<Upstream>) {
        let pool = Arc::clone(&self.pool);
        self.spawn(async move {
            let learnt = pool.learn(&title, &upstream).await;
            End::Learnt(title, learnt.map(Box::new))
        });
    }

    fn fill(&mut self, chunk: ChunkId, from: Upstream) {
        let (pool, growing) = (Arc::clone(&self.pool), self.shelf.grow(&chunk));
        self.spawn(async move {
            let filled = match growing {
                Some(growing) => fill(&pool, from, &chunk, &growing).await,
                None => Err(FillFailure::Refused(Refusal::NoSuchChunk)),
            };
            End::Filled(chunk, filled)
        });
    }

    fn serve(&mut self, stream: StreamId) {
        let Some(Asked { responder, request, held }) = self.asked.remove(&stream) else { return };
        let source = held.or_else(|| self.shelf.follow(&request));
        self.spawn(async move {
            let outcome = if let Some(source) = source {
                following::send(source, responder).await
            } else {
                // A client that is gone need not hear it.
                let _ = responder.refuse(Refusal::Upstream).await;
                Outcome::Unavailable
            };
            End::Served(stream, outcome)
        });
    }
}

async fn wait_until(born: Instant, when: Option<Time>) {
    match when {
        Some(when) => sleep_until((born + Duration::from_nanos(when.as_nanos())).into()).await,
        None => std::future::pending().await,
    }
}

/// Each event is one line; what happens for every chunk is for the curious.
fn tell(event: &Event) {
    match event {
        Event::Answered { .. } | Event::Filling { .. } | Event::Filled { .. } => debug!(?event),
        Event::Joined { .. }
        | Event::TurnedAway { .. }
        | Event::Left { .. }
        | Event::Opened { .. }
        | Event::SessionRefused { .. }
        | Event::Closed { .. }
        | Event::RequestRefused { .. }
        | Event::FillFailed { .. }
        | Event::Rejected { .. }
        | Event::Draining { .. }
        | Event::Drained { .. } => info!(?event),
    }
}
