//! The task that owns the machine: inputs in, outputs out, one at a time.

use crate::block::Block;
use crate::fill::fill;
use crate::following::{self, Source};
use crate::line::{Said, Word};
use crate::news::News;
use crate::nodes::{Dialled, Nodes};
use crate::reading::{Read, read};
use crate::shelf::{Find, Shelf};
use crate::store::{Reading, Writes};
use crate::upstream::{Learnt, Pool};
use media::{ChunkId, Time, TitleName, TitleSummary};
use protocol::proxy::{Event, FillFailure, Input, NotKept, Outcome, Output, Proxy, Upstream};
use protocol::{LinkId, Message, Part, Refusal, StreamId, StreamRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep_until, timeout};
use tracing::warn;
use transport::{Connection, Form, Happening, Host, Responder, SendError};

/// Ends of tasks that wait to be heard.
const ENDS: usize = 1024;
/// Chunks that are read from the disk at once.
const READS: usize = 16;
/// How long what waits to be written may hold up the end.
const CLOSING: Duration = Duration::from_secs(10);

/// Listens to everything the machine says for people and figures.
pub(crate) type OnEvent = Box<dyn Fn(&Event) + Send>;

/// What a task of the driver brought home.
#[derive(Debug)]
enum End {
    Served(StreamId, Outcome),
    Filled(ChunkId, Upstream, Result<Block, FillFailure>),
    Came(ChunkId, u64),
    Read(ChunkId, Read),
    Dialled(Dialled),
    Learnt(TitleName, Result<Box<Learnt>, Refusal>),
    Listed(Result<Vec<TitleSummary>, Refusal>),
}

/// A request that the machine is deciding about right now.
struct Asked {
    responder: Responder,
    request: StreamRequest,
    held: Option<Source>,
}

/// A request that waits for the disk.
struct Waiting {
    link: LinkId,
    stream: StreamId,
    request: StreamRequest,
    responder: Responder,
}

/// Everything that is driven together.
pub(crate) struct Driver {
    machine: Proxy,
    host: Host,
    pool: Arc<Pool>,
    shelf: Shelf,
    writes: Writes,
    links: BTreeMap<LinkId, Connection>,
    asked: BTreeMap<StreamId, Asked>,
    /// Who waits for which chunk to be read: it is read once for all of them, who
    /// are as many as connections may have streams.
    waiting: BTreeMap<ChunkId, Vec<Waiting>>,
    /// Titles of which somebody upstream told.
    learnt: BTreeSet<TitleName>,
    reads: Arc<Semaphore>,
    /// By whom each stream is taken that is being served.
    serving: BTreeMap<StreamId, LinkId>,
    /// What the store did not take, to be told.
    refused: Vec<(ChunkId, NotKept)>,
    nodes: Nodes,
    words: mpsc::Receiver<Word>,
    ended: mpsc::Sender<End>,
    ends: mpsc::Receiver<End>,
    partings: JoinSet<()>,
    drain: watch::Receiver<bool>,
    on_event: OnEvent,
    news: News,
    born: Instant,
    drained: bool,
}

impl Driver {
    pub(crate) fn new(
        machine: Proxy,
        host: Host,
        (pool, words): (Pool, mpsc::Receiver<Word>),
        (shelf, writes): (Shelf, Writes),
        drain: watch::Receiver<bool>,
        on_event: OnEvent,
    ) -> Self {
        let (ended, ends) = mpsc::channel(ENDS);
        Self {
            machine,
            host,
            pool: Arc::new(pool),
            shelf,
            writes,
            links: BTreeMap::new(),
            asked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            learnt: BTreeSet::new(),
            reads: Arc::new(Semaphore::new(READS)),
            serving: BTreeMap::new(),
            refused: Vec::new(),
            nodes: Nodes::default(),
            words,
            ended,
            ends,
            partings: JoinSet::new(),
            drain,
            on_event,
            news: News::default(),
            born: Instant::now(),
            drained: false,
        }
    }

    /// Runs until the proxy has stopped.
    pub(crate) async fn run(mut self) {
        self.restore();
        while !self.drained {
            let timeout = self.machine.poll_timeout();
            tokio::select! {
                happening = self.host.next() => match happening {
                    Some(happening) => self.happen(happening),
                    None => break,
                },
                Some(end) = self.ends.recv() => self.end(end),
                Some(written) = self.writes.next() => {
                    if let Some(chunk) = self.shelf.written(written) {
                        self.not_kept(chunk, NotKept::Disk);
                    }
                }
                Ok(()) = self.drain.changed() => self.input(Input::Drain),
                Some(word) = self.words.recv() => self.hear(word),
                () = wait_until(self.born, timeout) => self.look_around(),
                Some(_) = self.partings.join_next() => {}
            }
        }
        // Each takes a second at most.
        while self.partings.join_next().await.is_some() {}
        let closing = tokio::task::spawn_blocking(move || self.shelf.close());
        if timeout(CLOSING, closing).await.is_err() {
            warn!("the disk did not take all of the cache in time");
        }
    }

    /// The machine hears what an earlier life left.
    fn restore(&mut self) {
        for (title, what, kept) in self.shelf.found() {
            let shape = Learnt::kept(what, &[]).shape;
            self.input(Input::Restored { title, shape, kept });
        }
    }

    /// A time has come: who was heard meanwhile, and what was taken, counts first.
    fn look_around(&mut self) {
        for address in self.nodes.heard() {
            self.input(Input::HeardFrom { address });
        }
        let links: BTreeSet<LinkId> = self.serving.values().copied().collect();
        for link in links {
            self.measure(link);
        }
        self.input(Input::Timeout);
    }

    fn measure(&mut self, link: LinkId) {
        if let Some(bytes) = self.links.get(&link).map(Connection::taken_bytes) {
            self.input(Input::Taken { link, bytes });
        }
    }

    fn hear(&mut self, (number, address, said): Word) {
        if !self.nodes.stands(address, number) {
            return;
        }
        match said {
            Said::Message(message) => self.input(Input::Told { address, message }),
            Said::Ended => {
                self.nodes.ended(address);
                self.input(Input::Unreached { address });
            }
        }
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
                let waiting = Waiting { link, stream, request, responder };
                match self.shelf.find(&waiting.request) {
                    Find::Here(source) => self.ask(waiting, Some(source)),
                    Find::Nowhere => self.ask(waiting, None),
                    Find::OnDisk(reading) => self.read(reading, waiting),
                }
            }
            Happening::Gone { link, parted } => {
                self.links.remove(&link);
                self.input(Input::Gone { link, parted });
            }
        }
    }

    /// The machine decides; what is kept is in memory by now.
    fn ask(&mut self, waiting: Waiting, held: Option<Source>) {
        let Waiting { link, stream, request, responder } = waiting;
        let length = match &request {
            StreamRequest::Manifest(_) => 0,
            StreamRequest::Chunk(chunk) => self.shelf.info(&chunk.id).map_or(0, |info| info.length),
        };
        let input = Input::Asked { link, stream, request: request.clone(), held: held.is_some(), length };
        self.asked.insert(stream, Asked { responder, request, held });
        self.serving.insert(stream, link);
        self.input(input);
        if self.asked.remove(&stream).is_some() {
            self.serving.remove(&stream);
        }
    }

    fn read(&mut self, reading: Reading, waiting: Waiting) {
        let StreamRequest::Chunk(chunk) = &waiting.request else { return };
        // Nobody unknown makes the disk work.
        if !self.links.contains_key(&waiting.link) {
            return self.ask(waiting, None);
        }
        let id = chunk.id.clone();
        let all = self.waiting.entry(id.clone()).or_default();
        all.push(waiting);
        if all.len() == 1 {
            let reads = Arc::clone(&self.reads);
            self.spawn(async move { End::Read(id, read(reading, reads).await) });
        }
    }

    fn was_read(&mut self, id: &ChunkId, read: Read) {
        let block = match read {
            Read::Right(serial, block) => {
                self.shelf.was_read(id, serial, &block);
                Some(block)
            }
            Read::Bad(serial) => {
                if self.shelf.was_bad(id, serial) {
                    self.not_kept(id.clone(), NotKept::Damaged);
                }
                None
            }
            Read::Late => None,
        };
        for waiting in self.waiting.remove(id).unwrap_or_default() {
            self.ask(waiting, block.clone().map(Source::Whole));
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Served(stream, outcome) => {
                if let Some(link) = self.serving.remove(&stream) {
                    self.measure(link);
                }
                self.input(Input::Answered { stream, outcome });
            }
            End::Dialled(dialled) => {
                if let Some(input) = self.nodes.dialled(dialled) {
                    self.input(input);
                }
            }
            End::Filled(chunk, _, Ok(block)) => {
                self.nodes.fetched(&chunk);
                self.shelf.land(&chunk, block);
                self.input(Input::Filled { chunk });
            }
            End::Came(chunk, bytes) => self.input(Input::Came { chunk, bytes }),
            End::Filled(chunk, from, Err(why)) => self.input(Input::FillFailed { chunk, from, why }),
            End::Read(chunk, read) => self.was_read(&chunk, read),
            End::Learnt(title, learnt) => {
                let shape = learnt.map(|learnt| {
                    let Learnt { shape, title: what } = *learnt;
                    self.shelf.learn(&title, what);
                    self.learnt.insert(title.clone());
                    shape
                });
                self.input(Input::Learnt { title, shape, kept: Vec::new() });
            }
            End::Listed(titles) => self.input(Input::Listed(titles)),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.born.elapsed().into()
    }

    fn input(&mut self, input: Input) {
        let now = self.now();
        self.machine.handle_input(now, input);
        loop {
            while let Some(output) = self.machine.poll_output() {
                self.output(output);
            }
            // What could not be kept is told once everything is done that was wanted.
            let Some((chunk, why)) = self.refused.pop() else { break };
            self.tell(&Event::NotKept { chunk: chunk.clone(), why });
            self.machine.handle_input(now, Input::NotKept { chunk });
        }
    }

    fn not_kept(&mut self, chunk: ChunkId, why: NotKept) {
        self.tell(&Event::NotKept { chunk: chunk.clone(), why });
        self.input(Input::NotKept { chunk });
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
            Output::Forget { title } => {
                self.learnt.remove(&title);
                self.shelf.forget(&title);
            }
            Output::Fill { chunk, from } => self.fill(chunk, from),
            Output::Dial { to } => {
                let dialling = self.nodes.dial(Arc::clone(&self.pool), to);
                self.spawn(async move { End::Dialled(dialling.await) });
            }
            Output::Tell { to, message } => self.nodes.tell(to, message),
            Output::Keep { chunk } => {
                if let Err(why) = self.shelf.keep(&chunk) {
                    self.refused.push((chunk, why));
                }
            }
            Output::Discard { chunk } => self.shelf.discard(&chunk),
            Output::Remove { chunk } => self.shelf.remove(&chunk),
            Output::TellStatus { link, mut status } => {
                status.events = self.news.lines(self.now());
                self.output(Output::Send { link, message: Message::ProxyStatus(status) });
            }
            Output::GiveUp { chunk, why } => {
                self.nodes.fetched(&chunk);
                if let Some(growing) = self.shelf.give_up(&chunk) {
                    growing.fail(why);
                }
            }
            Output::Serve { stream } => self.serve(stream, Part::Whole, Form::Whole),
            Output::ServeHalf { stream } => self.serve(stream, Part::First, Form::Half),
            Output::Try { stream } => self.serve(stream, Part::Whole, Form::Trial),
            Output::TryHalf { stream } => self.serve(stream, Part::First, Form::Trial),
            Output::TryRest { stream } => self.serve(stream, Part::Whole, Form::HalfTrial),
            Output::Refuse { stream, why } => {
                self.serving.remove(&stream);
                if let Some(asked) = self.asked.remove(&stream) {
                    // It has a deadline of its own, and nobody waits for it.
                    tokio::spawn(asked.responder.refuse(why));
                }
            }
            Output::Drained => self.drained = true,
            Output::Event(event) => self.tell(&event),
        }
    }

    fn tell(&mut self, event: &Event) {
        self.news.note(self.now(), event);
        (self.on_event)(event);
    }

    fn spawn(&self, task: impl Future<Output = End> + Send + 'static) -> AbortHandle {
        let ended = self.ended.clone();
        let task = tokio::spawn(async move {
            let end = task.await;
            // If nobody hears it, the proxy has stopped.
            let _ = ended.send(end).await;
        });
        task.abort_handle()
    }

    fn learn(&self, title: TitleName, upstream: Vec<Upstream>) {
        let pool = Arc::clone(&self.pool);
        // What an earlier life left counts until somebody upstream says something.
        let kept = if self.learnt.contains(&title) { None } else { self.shelf.title(&title) };
        self.spawn(async move {
            let learnt = match (pool.learn(&title, &upstream).await, kept) {
                (Err(Refusal::Upstream), Some(kept)) => Ok(Learnt::kept(kept, &upstream)),
                (learnt, _) => learnt,
            };
            End::Learnt(title, learnt.map(Box::new))
        });
    }

    fn fill(&mut self, chunk: ChunkId, from: Upstream) {
        let (pool, growing) = (Arc::clone(&self.pool), self.shelf.grow(&chunk));
        let line = self.nodes.line(from);
        let (name, ended) = (chunk.clone(), self.ended.clone());
        let task = self.spawn(async move {
            // A driver too busy to hear it hears of more the next time.
            let came = |bytes| ended.try_send(End::Came(chunk.clone(), bytes)).is_ok();
            let filled = match growing {
                Some(growing) => fill(&pool, (from, line), &chunk, &growing, came).await,
                None => Err(FillFailure::Refused(Refusal::NoSuchChunk)),
            };
            End::Filled(chunk, from, filled)
        });
        self.nodes.fetches(name, task);
    }

    fn serve(&mut self, stream: StreamId, part: Part, form: Form) {
        let Some(Asked { mut responder, request, held }) = self.asked.remove(&stream) else { return };
        responder.set_form(form);
        // What waits for its turn will come, or is given up by name.
        let source = held.or_else(|| self.shelf.follow(&request));
        let half = self.shelf.half(&request);
        let source = match part {
            Part::Whole => source,
            Part::First => source.zip(half).and_then(|(source, half)| source.first(half)),
        };
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
