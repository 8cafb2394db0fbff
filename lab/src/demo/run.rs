//! The demonstration itself: three viewers, one network, four scenes.

use super::plot::{Deed, SCENES, Scene};
use super::told::{clock, told};
use super::{DemoError, DemoFilm, DemoOptions, sheets};
use crate::stage::{Size, Stage, StagePlan};
use media::library::TitleFolder;
use media::{Layer, Quality};
use player::report::Kill;
use player::{Command, PlayOptions, PlayReport, PlayerEvent, SinkKind};
use protocol::{PeerId, Promise, Sla};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use transport::Keys;

/// How long a viewer may take to show its first picture.
const CURTAIN: Duration = Duration::from_secs(20);
/// How long a viewer's promise holds.
const PROMISED: Duration = Duration::from_hours(1);

/// What came of it.
#[derive(Debug)]
pub struct DemoOutcome {
    /// What the gold viewer saw, a VIP, with the kills.
    pub gold: PlayReport,
    /// What the silver viewer saw, a normal one.
    pub silver: PlayReport,
    /// What the bronze viewer saw, a normal one behind the proxy.
    pub bronze: PlayReport,
}

/// How the gold viewer stands now.
#[derive(Debug, Clone, Default)]
struct Now {
    started: Option<Instant>,
    buffer_ms: u64,
    /// Who serves Base.
    base: String,
}

/// A viewer that plays on a task of its own.
struct Viewer {
    name: &'static str,
    commands: mpsc::Sender<Command>,
    playing: JoinHandle<Result<PlayReport, player::PlayError>>,
}

/// Gives the demonstration; `say` gets each line of the story as it happens.
/// Dropping the future ends every process that was started.
///
/// # Errors
/// See [`DemoError`].
pub async fn run(
    options: &DemoOptions,
    film: &DemoFilm,
    say: impl Fn(&str) + Clone + Send + 'static,
) -> Result<DemoOutcome, DemoError> {
    let folder = tempfile::Builder::new()
        .prefix("lamina-demo-")
        .tempdir()
        .map_err(|source| DemoError::Write { path: std::env::temp_dir(), source })?;
    let manifest = film.folder.manifest();
    let plan = StagePlan {
        program: options.program.clone(),
        folder: folder.path().to_owned(),
        library: film.library.clone(),
        titles: vec![manifest.title.clone()],
        layers: manifest.top_quality().layers(),
        size: Size::DEMO,
        origin_has_top: false,
        arguments: Vec::new(),
    };
    say("        starting the nodes; they find each other and spread the title by themselves");
    let mut stage = Stage::start(&plan).await?;
    let names: Vec<String> = stage.everybody().map(|(peer, ..)| peer.to_string()).collect();
    say(&format!("        {} processes: {}", names.len(), names.join(" ")));
    let (now, watched) = watch::channel(Now::default());
    let gold = view(&stage, film, ("gold", Sla::Vip), "base-1", options.sink, {
        let say = say.clone();
        move |event| {
            note(&now, event);
            if let Some(line) = told(event) {
                say(&line);
            }
        }
    })?;
    let silver = view(&stage, film, ("silver", Sla::Normal), "base-2", SinkKind::Headless, |_| ())?;
    let bronze = view(&stage, film, ("bronze", Sla::Normal), "proxy-1", SinkKind::Headless, |_| ())?;
    let acted = act(&mut stage, watched, &say).await;
    let (acted, seen) = match acted {
        Ok(kills) => (kills, (gold.report().await, silver.report().await, bronze.report().await)),
        Err(error) => {
            for viewer in [gold, silver, bronze] {
                viewer.commands.send(Command::Stop).await.ok();
            }
            return Err(error);
        }
    };
    let (gold, silver, bronze) = (seen.0?, seen.1?, seen.2?);
    let outcome = DemoOutcome { gold: PlayReport { kills: acted, ..gold }, silver, bronze };
    drop(stage);
    write(options, film, &outcome).await?;
    Ok(outcome)
}

/// Starts a viewer that opens the film at `at`.
fn view(
    stage: &Stage,
    film: &DemoFilm,
    (name, sla): (&'static str, Sla),
    at: &str,
    sink: SinkKind,
    hear: impl Fn(&PlayerEvent) + Send + 'static,
) -> Result<Viewer, DemoError> {
    let broken = |error: &dyn std::fmt::Display| DemoError::Broken(error.to_string());
    let at: PeerId = at.parse().map_err(|error| broken(&error))?;
    let quality: Quality = name.parse().map_err(|error| broken(&error))?;
    let viewer: PeerId = format!("viewer-{name}").parse().map_err(|error| broken(&error))?;
    let keys = Keys::open(stage.keys())?;
    let until = (SystemTime::now() + PROMISED).duration_since(UNIX_EPOCH).map_err(|error| broken(&error))?;
    let promise = Promise { viewer, sla, top: Quality::GOLD, until: until.as_secs() };
    let title = film.folder.manifest().title.clone();
    let mut options = PlayOptions::new(stage.address(at)?, title, keys.authority()?, viewer);
    options.addresses = vec![(Some(at), stage.address(at)?)];
    options.token = (sla == Sla::Vip).then(|| keys.sign(promise)).transpose()?;
    options.quality = quality.min(film.folder.manifest().top_quality());
    options.sink = sink;
    let (commands, asked) = mpsc::channel(4);
    let (events, mut heard) = mpsc::channel(256);
    tokio::spawn(async move {
        while let Some(event) = heard.recv().await {
            hear(&event);
        }
    });
    let playing = tokio::spawn(player::play(options, asked, events));
    Ok(Viewer { name, commands, playing })
}

impl Viewer {
    /// What it saw, once the film is over.
    async fn report(self) -> Result<PlayReport, DemoError> {
        // Held until here: a player whose commands are gone could take that for a wish.
        let _commands = self.commands;
        let viewer = self.name;
        match self.playing.await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => Err(DemoError::Play { viewer, source: Box::new(error) }),
            Err(error) => Err(DemoError::Broken(error.to_string())),
        }
    }
}

/// Remembers what the scenes need to know of an event.
fn note(now: &watch::Sender<Now>, event: &PlayerEvent) {
    now.send_modify(|now| match event {
        PlayerEvent::FirstPicture { .. } => now.started = Some(Instant::now()),
        PlayerEvent::Status { buffer_ms, .. } => now.buffer_ms = *buffer_ms,
        PlayerEvent::Opened { node } => now.base.clone_from(node),
        PlayerEvent::FailedOver { layer, to, .. } if *layer == Layer::BASE.to_string() => {
            now.base.clone_from(to);
        }
        _ => (),
    });
}

/// Plays the scenes, each at its time after the gold viewer's first picture.
async fn act(
    stage: &mut Stage,
    mut now: watch::Receiver<Now>,
    say: &impl Fn(&str),
) -> Result<Vec<Kill>, DemoError> {
    let curtain = now.wait_for(|now| now.started.is_some());
    let curtain = tokio::time::timeout(CURTAIN, curtain).await.map(|now| now.map(|now| now.started));
    let started = match curtain {
        Ok(Ok(started)) => started.unwrap_or_else(Instant::now),
        // The viewer ended without a picture; its report says why.
        Ok(Err(_)) => return Ok(Vec::new()),
        Err(_) => return Err(DemoError::Broken("no picture came on screen".into())),
    };
    let mut kills: Vec<Kill> = Vec::new();
    for scene in SCENES {
        let due = started + Duration::from_secs(scene.at_secs);
        tokio::time::sleep_until(due.into()).await;
        let seen = now.borrow().clone();
        let nodes = cast(stage, scene, &seen, &kills).await?;
        let names: Vec<&str> = nodes.iter().map(PeerId::as_str).collect();
        if !names.is_empty() {
            say(&format!("{} {} {}", clock(scene.at_secs * 1_000), names.join(", "), scene.says));
        }
        for node in nodes {
            let process = stage.process(node)?;
            if scene.deed == Deed::RestartFirst {
                process.start().await?;
                continue;
            }
            let at_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            process.kill().await?;
            let buffer_s = Duration::from_millis(seen.buffer_ms).as_secs_f64();
            kills.push(Kill { at_ms, node: node.to_string(), buffer_s });
        }
    }
    Ok(kills)
}

/// The nodes that a scene is about; none if the title has no such layer.
async fn cast(stage: &Stage, scene: Scene, now: &Now, kills: &[Kill]) -> Result<Vec<PeerId>, DemoError> {
    let named = |name: &str| name.parse::<PeerId>().map_err(|_| DemoError::Broken(name.to_owned()));
    let running = |layer: Layer| -> Vec<PeerId> {
        let level = format!("{layer}-");
        let of = stage.everybody().filter(|(peer, _, runs)| *runs && peer.as_str().starts_with(&level));
        of.map(|(peer, ..)| peer).collect()
    };
    match scene.deed {
        Deed::KillServing(Layer::BASE) => Ok(vec![named(&now.base)?]),
        Deed::KillServing(layer) => {
            // Only the gold viewer has anything from the topmost level.
            for peer in running(layer) {
                if stage.inquiry(peer).await?.status().await?.slots.enhancements > 0 {
                    return Ok(vec![peer]);
                }
            }
            Ok(Vec::new())
        }
        Deed::KillRest(layer) => Ok(running(layer)),
        Deed::RestartFirst => kills.first().map(|kill| named(&kill.node)).into_iter().collect(),
    }
}

/// Writes the gold viewer's report, the bronze viewer's beside it, and the sheet.
async fn write(options: &DemoOptions, film: &DemoFilm, outcome: &DemoOutcome) -> Result<(), DemoError> {
    let failed = |source| DemoError::Write { path: options.report.clone(), source };
    outcome.gold.write(&options.report).map_err(failed)?;
    outcome.silver.write(&options.report.join("silver")).map_err(failed)?;
    outcome.bronze.write(&options.report.join("bronze")).map_err(failed)?;
    let (folder, gold) = (TitleFolder::open(film.folder.path())?, outcome.gold.clone());
    let path = options.report.join("sheet.png");
    let drawn = tokio::task::spawn_blocking(move || sheets::draw(&folder, &gold, &path)).await;
    drawn.map_err(|error| DemoError::Broken(error.to_string()))?
}
