//! Those who watch: real players without a window, each a process, who come when the
//! scenario and the seed say.

use super::city::{City, home};
use super::scenario::{Group, Knock, Scenario};
use super::{TestbedError, Title};
use media::{Quality, Span};
use player::PlayReport;
use protocol::{PeerId, Promise, Sla};
use rustix::process::{Pid, Signal, kill_process};
use sim::Rng;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use transport::{Keys, ViewerKey};

/// How long a viewer may take to end when it is asked to.
const PARTING: Duration = Duration::from_secs(10);
/// How long a viewer's promise holds.
const PROMISED: Duration = Duration::from_hours(2);
/// The longest line a player may say.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// One viewer to be.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) class: Sla,
    pub(super) quality: Quality,
    pub(super) light: bool,
    pub(super) at: PeerId,
    /// When it comes.
    pub(super) comes: Span,
}

/// How a viewer stands now.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// When its first picture was heard of.
    pub(super) first: Option<Instant>,
    pub(super) buffer_ms: u64,
    pub(super) at_ms: u64,
    pub(super) ended: bool,
    /// Who serves Base.
    pub(super) base: Option<String>,
}

/// How all viewers stand, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<Mutex<Vec<Live>>>);

impl Board {
    fn new(many: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Live::default(); many])))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Live>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How they stand now.
    pub(super) fn now(&self) -> Vec<Live> {
        self.all().clone()
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Live)) {
        if let Some(live) = self.all().get_mut(number) {
            change(live);
        }
    }
}

/// What became of one viewer.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) number: usize,
    /// Its report, or why there is none.
    pub(super) report: Result<PlayReport, String>,
}

/// The seats of a scenario, in order.
pub(super) fn seats(scenario: &Scenario, seed: u64) -> Result<Vec<Seat>, TestbedError> {
    let mut seats = Vec::new();
    let (mut at_nodes, mut at_proxies) = (0_u8, 0_u8);
    for (number, group) in scenario.viewers.iter().enumerate() {
        let group = group.get_ref();
        let mut rng = Rng::stream(seed, 1_000 + u64::try_from(number).unwrap_or(0));
        for comes in arrivals(group, &mut rng) {
            let turn = |next: &mut u8, of: u8, name: &str| {
                *next = *next % of.max(1) + 1;
                format!("{name}-{next}").parse::<PeerId>()
            };
            let at = match group.at {
                Knock::Nodes => turn(&mut at_nodes, scenario.nodes.base, "base"),
                Knock::Proxies => turn(&mut at_proxies, scenario.nodes.proxies, "proxy"),
                Knock::Named(peer) => Ok(peer),
            };
            let at = at.map_err(|error| TestbedError::Broken(error.to_string()))?;
            let name = format!("viewer-{}", seats.len() + 1);
            let Group { class, quality, light, .. } = *group;
            seats.push(Seat { name, class, quality, light, at, comes });
        }
    }
    Ok(seats)
}

/// When each of a group comes, earliest first.
fn arrivals(group: &Group, rng: &mut Rng) -> Vec<Span> {
    let begin = group.from.map_or(Span::ZERO, |from| from.0);
    let seconds = |secs: f64| Span::from(Duration::try_from_secs_f64(secs).unwrap_or_default());
    let mut last = 0.0;
    let mut all: Vec<Span> = (0..group.count)
        .map(|number| {
            if let Some(within) = group.within {
                return begin + seconds(rng.unit() * within.0.as_secs_f64());
            }
            if let Some(every) = group.every.filter(|_| number > 0) {
                last -= (1.0 - rng.unit()).ln() * every.0.as_secs_f64();
            }
            begin + seconds(last)
        })
        .collect();
    all.sort_unstable();
    all
}

/// The audience of a run.
pub(super) struct Audience {
    pub(super) board: Board,
    players: JoinSet<Watched>,
    over: watch::Sender<bool>,
}

impl Audience {
    /// Lets everybody come at their times after `zero`. Dropping it ends them all.
    pub(super) fn invite(
        program: &Path,
        (scenario, title): (&Scenario, &Title),
        city: &City,
        seats: &[Seat],
        zero: Instant,
        folder: &Path,
    ) -> Result<Self, TestbedError> {
        let (over, ending) = watch::channel(false);
        let board = Board::new(seats.len());
        let mut players = JoinSet::new();
        let keys = Keys::open(city.stage.keys())?;
        for (number, seat) in seats.iter().enumerate() {
            let mine = folder.join(&seat.name);
            std::fs::create_dir_all(&mine).map_err(|error| TestbedError::file(&mine, error))?;
            let key = key(&keys, seat, &mine)?;
            let from = (!city.real_lines).then(|| home(true, number));
            let url = format!("lamina://{}/{}", city.member(seat.at)?.address, title.name());
            let command = command(program, (scenario, seat), &url, (&key, city.stage.keys()), from, &mine)
                .map_err(|source| TestbedError::Viewer { viewer: seat.name.clone(), source })?;
            let due = zero + Duration::from(seat.comes);
            let (board, ending) = (board.clone(), ending.clone());
            players.spawn(async move {
                sleep_until(due.into()).await;
                let report = watched(command, number, &board, ending, &mine).await;
                board.note(number, |live| live.ended = true);
                Watched { number, report }
            });
        }
        Ok(Self { board, players, over })
    }

    /// Asks everybody to end, and gives what they saw, in order.
    pub(super) async fn leave(mut self) -> Result<Vec<Watched>, TestbedError> {
        self.over.send_replace(true);
        let mut all = Vec::new();
        while let Some(one) = self.players.join_next().await {
            all.push(one.map_err(|error| TestbedError::Broken(error.to_string()))?);
        }
        all.sort_by_key(|watched| watched.number);
        Ok(all)
    }
}

/// The file that says what a viewer was promised; none for a normal one.
fn key(keys: &Keys, seat: &Seat, folder: &Path) -> Result<Option<PathBuf>, TestbedError> {
    if seat.class == Sla::Normal {
        return Ok(None);
    }
    let broken = |error: &dyn std::fmt::Display| TestbedError::Broken(error.to_string());
    let viewer: PeerId = seat.name.parse().map_err(|error| broken(&error))?;
    let until = (SystemTime::now() + PROMISED).duration_since(UNIX_EPOCH).map_err(|error| broken(&error))?;
    let promise = Promise { viewer, sla: seat.class, top: Quality::GOLD, until: until.as_secs() };
    let key = ViewerKey { authority: keys.authority()?, token: keys.sign(promise)? };
    let path = folder.join("viewer.lamina-key");
    key.write(&path)?;
    Ok(Some(path))
}

/// The player's command; killed when nobody waits for it.
fn command(
    program: &Path,
    (scenario, seat): (&Scenario, &Seat),
    url: &str,
    (key, keys): (&Option<PathBuf>, &Path),
    from: Option<IpAddr>,
    folder: &Path,
) -> std::io::Result<Command> {
    let log = File::create(folder.join("log"))?;
    let mut command = Command::new(program);
    command.args(["play", url, "--mute", "--json", "--exit-with-parent", "--quality"]);
    command.arg(seat.quality.to_string());
    command.arg("--buffer").arg(scenario.buffer.0.as_secs_f64().to_string());
    command.arg(if seat.light { "--light" } else { "--headless" });
    if let Some(from) = from {
        command.arg("--dial-from").arg(from.to_string());
    }
    match key {
        Some(path) => command.arg("--key").arg(path),
        None => command.arg("--keys").arg(keys),
    };
    command.arg("--report").arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
    Ok(command)
}

/// Plays until the end or the order to end, and reads what was seen.
async fn watched(
    mut command: Command,
    number: usize,
    board: &Board,
    mut ending: watch::Receiver<bool>,
    folder: &Path,
) -> Result<PlayReport, String> {
    if *ending.borrow() {
        return Err("it came when all was over".into());
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let stdout = child.stdout.take();
    let mut listening = std::pin::pin!(listen(stdout, number, board));
    let asked = async {
        // Gone without a word is an order, too.
        let _ = ending.wait_for(|over| *over).await;
    };
    tokio::select! {
        () = &mut listening => {}
        () = asked => {
            interrupt(&child);
            // Who speaks to nobody ends at once, without a report.
            let _ = timeout(PARTING, listening).await;
        }
    }
    let status = match timeout(PARTING, child.wait()).await {
        Ok(status) => status.map_err(|error| error.to_string())?,
        Err(_) => return Err("it did not end when it was asked to".into()),
    };
    PlayReport::read(&folder.join("report.json"))
        .map_err(|_| format!("{status}: {}", last(&folder.join("log"))))
}

fn interrupt(child: &Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        // If it is gone it has ended.
        let _ = kill_process(id, Signal::INT);
    }
}

/// Notes what a player says until it says no more.
async fn listen(stdout: Option<ChildStdout>, number: usize, board: &Board) {
    let Some(stdout) = stdout else { return };
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    loop {
        line.clear();
        match (&mut lines).take(MAX_LINE_BYTES).read_line(&mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let Ok(said) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let text = |field: &str| said.get(field).and_then(serde_json::Value::as_str).map(str::to_owned);
        let whole = |field: &str| said.get(field).and_then(serde_json::Value::as_u64).unwrap_or(0);
        board.note(number, |live| match text("event").as_deref() {
            Some("opened") => live.base = text("node"),
            Some("first_picture") => live.first = Some(Instant::now()),
            Some("failed_over") if text("layer").as_deref() == Some("base") => live.base = text("to"),
            Some("status") => (live.buffer_ms, live.at_ms) = (whole("buffer_ms"), whole("at_ms")),
            _ => {}
        });
    }
}

/// The last thing that a player said.
fn last(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rfind(|line| line.starts_with("caused by")).or(text.lines().last()).unwrap_or("").to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::super::read::parse;
    use super::*;

    #[test]
    fn the_seed_decides_who_comes_when() {
        let text = "about = \"x\"\nlasts = \"60 s\"\n[nodes]\nbase = 2\nproxies = 1\n\
                    [[viewers]]\ncount = 3\n[[viewers]]\ncount = 30\nfrom = \"8 s\"\nwithin = \"3 s\"\nat = \"proxies\"\n\
                    [[viewers]]\ncount = 2\nevery = \"1 s\"\nat = \"enh1-1\"\n";
        let scenario = parse("x", text, Path::new(".")).unwrap().scenario;
        let of = |seed| seats(&scenario, seed).unwrap().iter().map(|seat| seat.comes).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert!(of(1)[3..33].iter().all(|at| *at >= Span::from_secs(8) && *at < Span::from_secs(11)));
        let seats = seats(&scenario, 1).unwrap();
        let at: Vec<&str> = [0, 1, 2, 3, 33].iter().map(|n: &usize| seats[*n].at.as_str()).collect();
        assert_eq!(at, ["base-1", "base-2", "base-1", "proxy-1", "enh1-1"]);
        assert_eq!(
            (seats[0].comes, seats[33].comes, seats[34].comes > Span::ZERO),
            (Span::ZERO, Span::ZERO, true)
        );
    }
}
