//! The task that owns the machine: it drains what the machine wants, then waits
//! for the network, the pipeline, the viewer or the time.

mod network;
mod news;
mod outputs;

use crate::link::{FIRST_WINDOW, LOOK, Link, News, Stopper, attend, farewell};
use crate::opening::{Granted, entering, grant, manifest};
use crate::options::{Command, PlayError, PlayOptions, PlayerEvent};
use crate::pipeline::{Pipeline, PipelineError, PipelineEvent, PipelineOptions, SinkKind};
use crate::report::{PlayReport, Recorder};
use crate::shelf::Shelf;
use crate::sources::{SourceTable, soon};
use media::{Hash, Manifest, Quality, Span, Time};
use protocol::player::{
    GiveUp, Input, Opening, Player, PlayerConfig, RequestId, Service, SourceId, TitleShape,
};
use protocol::{Open, Role, Sla, Visit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use transport::{Endpoint, EndpointConfig};

/// How often the driver looks who was heard and where the picture stands.
const TICK: Duration = LOOK;
/// News that wait to be taken; who has more waits himself.
const NEWS: usize = 256;
/// How many ticks make a sample of the report.
const SAMPLE_TICKS: u64 = 5;
/// How many ticks make a status event; a whole number of samples.
const STATUS_TICKS: u64 = 10;

type StartedPipeline = Result<(Pipeline, mpsc::Receiver<PipelineEvent>), PipelineError>;

/// Plays a title to its end, to the limit, or until told to stop.
///
/// Commands are taken while the film runs; closing the channel changes nothing.
/// Events are dropped when nobody takes them. Must run inside a tokio runtime
/// with several threads; nothing is left running when it returns, nor when its
/// future is dropped.
///
/// # Errors
/// Nothing could be opened or played, or the film could not go on. With a
/// report folder, what was seen until then is written there all the same.
pub async fn play(
    options: PlayOptions,
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<PlayerEvent>,
) -> Result<PlayReport, PlayError> {
    let pressed = Instant::now();
    let mut config = EndpointConfig::viewer(options.name, options.authority.clone());
    config.payload_window = FIRST_WINDOW;
    if let Some(from) = options.dial_from {
        config.bind = (from, 0).into();
    }
    let endpoint = Endpoint::open(&config)?;
    let open = entering(&options)?;
    let (granted, early) = grant(&endpoint, &options, &open).await?;
    let (sender, news) = mpsc::channel(NEWS);
    let mut network = Network::new(endpoint, &granted, &options, open, sender);
    // The granting node is connected already; a second connection would take the
    // first one's place there.
    let here = network.table.number(Some(granted.node.peer), granted.node.address);
    for source in soon(&network.order, granted.opened.quality) {
        if Some(source) != here {
            network.dial(source);
        }
    }
    let manifest = manifest(&granted, early, &options).await?;
    let folder = options.report_dir.clone();
    let mut driver = Driver::new(pressed, options, manifest, network, granted, events);
    let end = driver.run(news, commands).await;
    let report = driver.finish(&end).await;
    if let Some(path) = folder {
        let (copy, to) = (report.clone(), path.clone());
        let written = tokio::task::spawn_blocking(move || copy.write(&to)).await;
        let written = written.map_err(|error| PlayError::Task(error.to_string()))?;
        written.map_err(|source| PlayError::Report { path, source })?;
    }
    match end {
        End::Ended | End::Stopped => Ok(report),
        End::GaveUp(why) => Err(PlayError::GaveUp { why, report: Box::new(report) }),
        End::Failed(error) => Err(error),
    }
}

/// How playing ended.
#[derive(Debug)]
enum End {
    Ended,
    Stopped,
    GaveUp(GiveUp),
    Failed(PlayError),
}

/// Everything on the network's side.
#[derive(Debug)]
struct Network {
    endpoint: Endpoint,
    table: SourceTable,
    order: Vec<Vec<SourceId>>,
    service: Service,
    /// How the title is opened at every source but the first.
    open: Open,
    links: BTreeMap<SourceId, Link>,
    /// Dials under way, with the generation of the connection they would make.
    dials: BTreeMap<SourceId, (u64, Stopper)>,
    /// The generation of the connection that stands.
    standing: BTreeMap<SourceId, u64>,
    /// Sources that were dialled before.
    dialled: BTreeSet<SourceId>,
    generation: u64,
    fetches: BTreeMap<RequestId, Stopper>,
    /// The search for service that is under way.
    seeking: Option<Stopper>,
    sender: mpsc::Sender<News>,
}

impl Network {
    fn new(
        endpoint: Endpoint,
        granted: &Granted,
        options: &PlayOptions,
        open: Open,
        sender: mpsc::Sender<News>,
    ) -> Self {
        let mut table = SourceTable::default();
        let order = table.order(&granted.opened, granted.node);
        // The way by which we came stays dialled even if it serves no layer.
        table.number(Some(granted.node.peer), granted.node.address);
        let mut service = table.service(&granted.opened, granted.node);
        // The addresses that the viewer began with are the last it falls back on.
        let began = options.addresses.iter().filter_map(|(peer, address)| table.number(*peer, *address));
        service.doors.extend(began);
        Self {
            endpoint,
            table,
            order,
            service,
            open: Open { visit: Visit::Attach, ..open },
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            standing: BTreeMap::new(),
            dialled: BTreeSet::new(),
            generation: 0,
            fetches: BTreeMap::new(),
            seeking: None,
            sender,
        }
    }
}

impl Network {
    /// A session was granted on a connection that stands: listens to it.
    fn settle(&mut self, source: SourceId, granted: Granted) {
        self.generation += 1;
        let listener = attend(granted.inbox, source, self.generation, self.sender.clone());
        self.dials.remove(&source);
        self.dialled.insert(source);
        self.standing.insert(source, self.generation);
        let link = Link::new(granted.connection, granted.opened.session, listener);
        self.links.insert(source, link);
    }

    /// Closes every session, and then every connection.
    async fn close(&mut self) {
        self.seeking = None;
        self.dials.clear();
        let mut partings = JoinSet::new();
        for link in std::mem::take(&mut self.links).into_values() {
            partings.spawn(farewell(link.connection, link.session));
        }
        partings.join_all().await;
        self.endpoint.close().await;
    }
}

/// See the module's description.
#[derive(Debug)]
struct Driver {
    options: PlayOptions,
    manifest: Arc<Manifest>,
    manifest_hash: Hash,
    machine: Player,
    origin: Instant,
    network: Network,
    shelf: Shelf,
    pipeline: Option<Pipeline>,
    /// What the pipeline is to do once it stands.
    early_seek: Option<(u64, Span, i8)>,
    recorder: Recorder,
    events: mpsc::Sender<PlayerEvent>,
    paused: bool,
    rate: i8,
    ticks: u64,
    end: Option<End>,
}

impl Driver {
    fn new(
        pressed: Instant,
        options: PlayOptions,
        manifest: Arc<Manifest>,
        mut network: Network,
        granted: Granted,
        events: mpsc::Sender<PlayerEvent>,
    ) -> Self {
        let hot_standby = options.token.as_ref().is_some_and(|token| token.promise.sla == Sla::Vip);
        let (buffer, own) = (options.buffer, options.own);
        let config = PlayerConfig { buffer, own, hot_standby, ..PlayerConfig::default() };
        let quality = granted.opened.quality.min(manifest.top_quality());
        let mut recorder = Recorder::new(pressed, manifest.title.to_string(), quality, options.buffer);
        if options.sink == SinkKind::Light {
            recorder.light();
        }
        let mut machine = Player::new(Time::ZERO, config, options.seed);
        let mut connected = Vec::new();
        let is_proxy = granted.connection.peer().role == Role::Proxy;
        let (node, manifest_hash) = (granted.node, granted.opened.manifest_hash);
        if let Some(source) = network.table.number(Some(node.peer), node.address) {
            network.settle(source, granted);
            connected.push(source);
        }
        machine.handle_input(
            Time::ZERO,
            Input::Opened(Opening {
                shape: Arc::new(TitleShape::from(manifest.as_ref())),
                quality,
                sources: network.order.clone(),
                connected: connected.clone(),
                service: network.service.clone(),
                from: options.start,
                until: options.limit.map(|limit| options.start + limit),
            }),
        );
        if is_proxy {
            for source in &connected {
                machine.handle_input(Time::ZERO, Input::Filters { source: *source });
            }
        }
        let driver = Self {
            options,
            manifest,
            manifest_hash,
            machine,
            origin: Instant::now(),
            network,
            shelf: Shelf::default(),
            pipeline: None,
            early_seek: None,
            recorder,
            events,
            paused: false,
            rate: 1,
            ticks: 0,
            end: None,
        };
        driver.tell(PlayerEvent::Opened { node: node.peer.to_string() });
        driver
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.origin.elapsed())
    }

    fn put(&mut self, input: Input) {
        let now = self.now();
        self.machine.handle_input(now, input);
    }

    /// Tells whoever listens; who does not keep up misses something.
    fn tell(&self, event: PlayerEvent) {
        if self.events.try_send(event).is_err() {
            tracing::trace!("nobody takes the player's events");
        }
    }

    fn start_pipeline(&self) -> JoinHandle<StartedPipeline> {
        let options = PipelineOptions {
            manifest: self.manifest.clone(),
            sink: self.options.sink,
            audio: self.options.audio,
            check_hashes: self.options.check_hashes,
            snapshots: self.options.snapshots.clone(),
            preview: self.options.preview.clone(),
        };
        tokio::task::spawn_blocking(move || Pipeline::start(options))
    }

    /// Drains, waits for one thing, puts it in; again and again.
    async fn run(&mut self, mut news: mpsc::Receiver<News>, mut commands: mpsc::Receiver<Command>) -> End {
        let mut starting = Some(self.start_pipeline());
        let mut shown: Option<mpsc::Receiver<PipelineEvent>> = None;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut commanded = true;
        loop {
            self.drain();
            if let Some(end) = self.end.take() {
                return end;
            }
            let due = self.machine.poll_timeout().map(|when| self.origin + Duration::from(when - Time::ZERO));
            tokio::select! {
                Some(news) = news.recv() => self.take_news(news),
                Some(event) = next(&mut shown) => self.take_event(event),
                started = started(&mut starting) => {
                    starting = None;
                    shown = self.take_pipeline(started);
                }
                command = commands.recv(), if commanded => match command {
                    Some(command) => self.obey(command),
                    None => commanded = false,
                },
                _ = tick.tick() => self.look_around(),
                () = sleep_until(due.unwrap_or_else(far_off).into()) => {
                    self.listen_to_all();
                    self.put(Input::Timeout);
                }
            }
        }
    }

    fn take_pipeline(&mut self, started: StartedPipeline) -> Option<mpsc::Receiver<PipelineEvent>> {
        match started {
            Ok((pipeline, shown)) => {
                if let Some((serial, to, rate)) = self.early_seek.take() {
                    pipeline.flush(serial, to, f64::from(rate));
                }
                self.pipeline = Some(pipeline);
                Some(shown)
            }
            Err(error) => {
                self.end = Some(End::Failed(error.into()));
                None
            }
        }
    }

    /// Ends everything and puts the report together.
    async fn finish(mut self, end: &End) -> PlayReport {
        self.network.fetches.clear();
        let pipeline = self.pipeline.take();
        let stopping = tokio::task::spawn_blocking(move || pipeline.map(Pipeline::stop));
        // The nodes hear of the end now, and not when they miss us.
        let (stopped, ()) = tokio::join!(stopping, self.network.close());
        let measured = stopped.unwrap_or_else(|error| {
            tracing::error!(%error, "the pipeline's end was not seen");
            None
        });
        let outcome = match end {
            End::Ended => "ended".to_owned(),
            End::Stopped => "stopped".to_owned(),
            End::GaveUp(why) => why.to_string(),
            End::Failed(error) => error.to_string(),
        };
        if matches!(end, End::Ended) {
            self.tell(PlayerEvent::Ended);
        }
        let sources = self.network.table.report();
        self.recorder.finish(Instant::now(), outcome, measured, sources)
    }
}

/// The next event of a pipeline; waits for ever while there is none.
async fn next(shown: &mut Option<mpsc::Receiver<PipelineEvent>>) -> Option<PipelineEvent> {
    match shown {
        Some(shown) => shown.recv().await,
        None => std::future::pending().await,
    }
}

/// The pipeline once it stands; waits for ever while none is started.
async fn started(starting: &mut Option<JoinHandle<StartedPipeline>>) -> StartedPipeline {
    match starting {
        Some(handle) => match handle.await {
            Ok(started) => started,
            Err(error) => Err(PipelineError::Build(error.to_string())),
        },
        None => std::future::pending().await,
    }
}

/// When nothing is due; the tick comes first anyway.
fn far_off() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// The quality that a viewer may ask for at most.
fn at_most(quality: Quality, granted: Quality) -> Quality {
    quality.min(granted).max(Quality::BRONZE)
}
