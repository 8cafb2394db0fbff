//! The audience: real players without a window, each a process, who come when the
//! seed says.

use super::links::PROXIES;
use super::town::Town;
use super::{CooperationError, Options, Say};
use media::library::TitleFolder;
use media::{Quality, Span};
use player::PlayReport;
use sim::Rng;
use sim::eval::statistics::float;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// What a player may take beyond the length of the film.
const PATIENCE: Duration = Duration::from_mins(1);

/// One client, and what it saw.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Behind which proxy, from 0.
    pub(super) proxy: usize,
    /// Which of its clients in order of arrival, from 0.
    pub(super) number: usize,
    /// Where its proxy is.
    pub(super) at: SocketAddr,
    /// Its report, or why there is none.
    pub(super) report: Result<PlayReport, String>,
}

/// What the whole audience saw, in order of proxies and arrivals.
#[derive(Clone, Debug)]
pub(super) struct Seen(pub(super) Vec<Client>);

/// When each client of each proxy comes: exponential gaps by the seed, the first
/// one before the first, the same whatever the scheme is.
pub(super) fn arrivals(options: &Options, seed: u64) -> Vec<(usize, usize, Span)> {
    let mut all = Vec::new();
    for proxy in 0..PROXIES {
        let mut rng = Rng::stream(seed, u64::try_from(proxy).unwrap_or(0));
        let clients = if proxy == 0 { options.clients } else { options.others };
        let mut at = 0.0;
        for number in 0..usize::from(clients) {
            at -= (1.0 - rng.unit()).ln() * options.between().as_secs_f64();
            all.push((proxy, number, at));
        }
    }
    // Nobody waits for the first of all.
    let first = all.iter().map(|(.., at)| *at).fold(f64::INFINITY, f64::min);
    let after = |at: f64| Span::from(Duration::from_secs_f64((at - first).max(0.0)));
    all.into_iter().map(|(proxy, number, at)| (proxy, number, after(at))).collect()
}

/// Lets the audience come, and waits until the last has gone.
pub(super) async fn watch(
    options: &Options,
    film: &TitleFolder,
    town: &Town,
    seed: u64,
    say: Say<'_>,
) -> Result<Seen, CooperationError> {
    let mut players = JoinSet::new();
    let all = arrivals(options, seed);
    let many = all.len();
    for (proxy, number, after) in all {
        let Some(at) = town.door(proxy) else { continue };
        let folder = town.folder().join(format!("viewer-{}-{number}", proxy + 1));
        std::fs::create_dir_all(&folder)?;
        let url = format!("lamina://{at}/{}", film.manifest().title);
        let command = player(&options.program, &url, town.keys(), &folder)?;
        let whole = Duration::from(options.length) + PATIENCE;
        players.spawn(async move {
            sleep(after.into()).await;
            let report = played(command, &folder, whole).await;
            Client { proxy, number, at, report }
        });
    }
    let mut seen = Vec::new();
    while let Some(client) = players.join_next().await {
        let client = client.map_err(|_| std::io::Error::other("a player's task broke off"))?;
        seen.push(client);
        say(&format!("  {} of {many} have seen the film", seen.len()));
    }
    seen.sort_by_key(|client| (client.proxy, client.number));
    Ok(Seen(seen))
}

/// The player's command; killed when nobody waits for it.
fn player(program: &Path, url: &str, keys: &Path, folder: &Path) -> Result<Command, CooperationError> {
    let log = File::create(folder.join("log"))?;
    let mut command = Command::new(program);
    command.args(["play", url, "--headless", "--mute", "--quality", "gold", "--keys"]).arg(keys);
    command.arg("--report").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    Ok(command)
}

/// Plays, and reads what was seen.
async fn played(mut command: Command, folder: &Path, whole: Duration) -> Result<PlayReport, String> {
    let ended = timeout(whole, command.status()).await;
    let status = ended.map_err(|_| "it did not come to an end".to_owned())?;
    let status = status.map_err(|error| error.to_string())?;
    let report: PathBuf = folder.join("report.json");
    let bytes = std::fs::read(report).map_err(|_| format!("{status}: {}", last(&folder.join("log"))))?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// The last thing that a player said.
fn last(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rfind(|line| line.starts_with("caused by")).or(text.lines().last()).unwrap_or("").to_owned()
}

/// Layers shown over layers asked for, by programme: the paper's quality ratio.
pub(super) fn quality_ratio(report: &PlayReport) -> Option<f64> {
    let layers = |name: &str| name.parse::<Quality>().ok().map(|quality| float(quality.layers().into()));
    let wanted = layers(&report.wanted)?;
    let (mut shown, mut all) = (0.0, 0.0);
    for (quality, seconds) in &report.seconds_at_quality {
        shown += layers(quality)? * seconds;
        all += seconds;
    }
    (all > 0.0).then_some(shown / all / wanted)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_who_comes_when() {
        let options = Options::new("lamina".into(), "film".into());
        let of = |seed| arrivals(&options, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let first: Vec<_> = of(1).into_iter().filter(|(proxy, ..)| *proxy == 0).map(|(.., at)| at).collect();
        assert_eq!(first.len(), 10);
        assert!(first.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((of(1).len(), of(1).iter().map(|(.., at)| *at).min()), (18, Some(Span::ZERO)));
        let gap = |seed| {
            let at = |number| of(seed).into_iter().find(|one| (one.0, one.1) == (0, number)).unwrap().2;
            at(9).saturating_sub(at(0)).as_secs_f64() / 9.0
        };
        let mean = (0..200).map(gap).sum::<f64>() / 200.0;
        assert!((19.0..21.0).contains(&mean), "{mean}: two thirds of 30 s");
    }

    #[test]
    fn half_of_gold_and_half_of_bronze_are_two_thirds() {
        let mut report = PlayReport { wanted: "gold".into(), ..PlayReport::default() };
        assert_eq!(quality_ratio(&report), None);
        report.seconds_at_quality = [("bronze".into(), 10.0), ("gold".into(), 10.0)].into();
        assert!((quality_ratio(&report).unwrap() - 2.0 / 3.0).abs() < 1e-9);
    }
}
