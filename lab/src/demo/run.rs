//! The demonstration itself: two viewers, one network, four scenes.

use super::plot::{Deed, SCENES, Scene};
use super::told::{clock, told};
use super::{DemoError, DemoFilm, DemoOptions, sheets};
use crate::stage::{Stage, StagePlan};
use media::Quality;
use media::library::TitleFolder;
use player::report::Kill;
use player::{Command, PlayOptions, PlayReport, PlayerEvent, SinkKind};
use protocol::PeerId;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use transport::Keys;

/// How long a viewer may take to show its first picture.
const CURTAIN: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Debug)]
pub struct DemoOutcome {
    /// What the gold viewer saw, with the kills.
    pub gold: PlayReport,
    /// What the bronze viewer saw, through the proxy.
    pub bronze: PlayReport,
}

/// How the gold viewer stands now.
#[derive(Debug, Clone, Copy, Default)]
struct Now {
    started: Option<Instant>,
    buffer_ms: u64,
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
        origin_has_top: false,
    };
    let mut stage = Stage::start(&plan).await?;
    for (peer, address, _) in stage.everybody() {
        say(&format!("        {peer} listens on {address}"));
    }
    let (now, watched) = watch::channel(Now::default());
    let gold = view(&stage, film, "gold", "base-1", options.sink, {
        let say = say.clone();
        move |event| {
            note(&now, event);
            if let Some(line) = told(event) {
                say(&line);
            }
        }
    })?;
    let bronze = view(&stage, film, "bronze", "proxy-1", SinkKind::Headless, |_| ())?;
    let kills = act(&mut stage, watched, &say).await;
    let (kills, gold, bronze) = match kills {
        Ok(kills) => (kills, gold.report().await, bronze.report().await),
        Err(error) => {
            gold.commands.send(Command::Stop).await.ok();
            bronze.commands.send(Command::Stop).await.ok();
            return Err(error);
        }
    };
    let outcome = DemoOutcome { gold: PlayReport { kills, ..gold? }, bronze: bronze? };
    drop(stage);
    write(options, film, &outcome).await?;
    Ok(outcome)
}

/// Starts a viewer that opens the film at `at`.
fn view(
    stage: &Stage,
    film: &DemoFilm,
    name: &'static str,
    at: &str,
    sink: SinkKind,
    hear: impl Fn(&PlayerEvent) + Send + 'static,
) -> Result<Viewer, DemoError> {
    let broken = |error: &dyn std::fmt::Display| DemoError::Broken(error.to_string());
    let at: PeerId = at.parse().map_err(|error| broken(&error))?;
    let quality: Quality = name.parse().map_err(|error| broken(&error))?;
    let viewer: PeerId = format!("viewer-{name}").parse().map_err(|error| broken(&error))?;
    let authority = Keys::open(stage.keys())?.authority()?;
    let title = film.folder.manifest().title.clone();
    let mut options = PlayOptions::new(stage.address(at)?, title, authority, viewer);
    options.addresses = vec![(Some(at), stage.address(at)?)];
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
    let mut kills = Vec::new();
    for scene in SCENES {
        let due = started + Duration::from_secs(scene.at_secs);
        tokio::time::sleep_until(due.into()).await;
        let buffer_ms = now.borrow().buffer_ms;
        say(&format!("{} {}", clock(scene.at_secs * 1_000), scene.says));
        if let Some(kill) = play(stage, scene, started, buffer_ms).await? {
            kills.push(kill);
        }
    }
    Ok(kills)
}

async fn play(
    stage: &mut Stage,
    scene: Scene,
    started: Instant,
    buffer_ms: u64,
) -> Result<Option<Kill>, DemoError> {
    let node: PeerId = scene.node.parse().map_err(|_| DemoError::Broken(scene.node.into()))?;
    // A title of fewer layers has fewer nodes.
    let Ok(process) = stage.process(node) else { return Ok(None) };
    match scene.deed {
        Deed::Kill => {
            let at_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            process.kill().await?;
            let buffer_s = Duration::from_millis(buffer_ms).as_secs_f64();
            Ok(Some(Kill { at_ms, node: node.to_string(), buffer_s }))
        }
        Deed::Restart => {
            process.start().await?;
            Ok(None)
        }
    }
}

/// Writes the gold viewer's report, the bronze viewer's beside it, and the sheet.
async fn write(options: &DemoOptions, film: &DemoFilm, outcome: &DemoOutcome) -> Result<(), DemoError> {
    let failed = |source| DemoError::Write { path: options.report.clone(), source };
    outcome.gold.write(&options.report).map_err(failed)?;
    outcome.bronze.write(&options.report.join("bronze")).map_err(failed)?;
    let (folder, gold) = (TitleFolder::open(film.folder.path())?, outcome.gold.clone());
    let path = options.report.join("sheet.png");
    let drawn = tokio::task::spawn_blocking(move || sheets::draw(&folder, &gold, &path)).await;
    drawn.map_err(|error| DemoError::Broken(error.to_string()))?
}
