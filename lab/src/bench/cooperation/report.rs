//! What was seen with cooperation and without, side by side.

use super::audience::{Client, Seen, quality_ratio};
use super::links::Rates;
use super::twin::Imagined;
use super::{Estimated, Options, Scheme};
use crate::bench::table::Table;
use media::library::TitleFolder;
use protocol::proxy::cooperation::Server;
use serde::Serialize;
use sim::eval::statistics::{Estimate, float};
use std::fmt;

/// Origin bytes with cooperation may be so much of those without.
const ORIGIN_BOUND: f64 = 0.7;

/// What came to a proxy, and went to its clients.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Bytes {
    /// Of chunks, from the nodes.
    pub origin: u64,
    /// Of chunks, from the other proxies.
    pub given: u64,
    /// All payload of UDP from the nodes: chunks, headers and what keeps sessions
    /// alive, which grows with time and not with what is fetched.
    pub nodes: u64,
    /// All payload of UDP from the other proxies.
    pub peers: u64,
    /// All payload of UDP to its clients.
    pub clients: u64,
}

/// One client.
#[derive(Clone, Debug, Serialize)]
pub struct ClientReport {
    /// Behind which proxy, from 1.
    pub proxy: usize,
    /// In order of arrival at it, from 1.
    pub client: usize,
    /// Why it has not seen the film, if it has not.
    pub failed: Option<String>,
    /// To the first picture, in seconds.
    pub startup: f64,
    /// How often the picture stood still.
    pub freezes: u64,
    /// How long, in seconds.
    pub frozen: f64,
    /// Layers shown over layers asked for.
    pub quality: f64,
    /// Bytes of chunks that it had from others than its proxy.
    pub elsewhere: u64,
}

impl ClientReport {
    fn of(client: &Client) -> Self {
        let (proxy, number) = (client.proxy + 1, client.number + 1);
        let nothing = Self {
            proxy,
            client: number,
            failed: None,
            startup: 0.0,
            freezes: 0,
            frozen: 0.0,
            quality: 0.0,
            elsewhere: 0,
        };
        let report = match &client.report {
            Ok(report) => report,
            Err(why) => return Self { failed: Some(why.clone()), ..nothing },
        };
        let seconds = |ms: u64| float(usize::try_from(ms).unwrap_or(usize::MAX)) / 1_000.0;
        let Some(startup) = report.startup_ms else {
            return Self { failed: Some(format!("no picture: {}", report.outcome)), ..nothing };
        };
        let here = client.at.to_string();
        let others = report.sources.iter().filter(|source| source.address != here);
        Self {
            startup: seconds(startup),
            freezes: report.freezes.count,
            frozen: seconds(report.freezes.total_ms),
            quality: quality_ratio(report).unwrap_or(0.0),
            elsewhere: others.map(|source| source.bytes).sum(),
            failed: (report.outcome != "ended").then(|| report.outcome.clone()),
            ..nothing
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// With cooperation or without.
    pub scheme: Scheme,
    /// Decided the arrivals.
    pub seed: u64,
    /// How late the links were at the 99th percentile, in milliseconds.
    pub lateness_p99_ms: f64,
    /// By proxy.
    pub bytes: Vec<Bytes>,
    /// All clients.
    pub clients: Vec<ClientReport>,
    /// What the proxies thought of their links in the end.
    pub estimates: Vec<Estimated>,
    /// The same under virtual time.
    pub imagined: Imagined,
}

/// What is compared, of one run.
struct Figures {
    frozen: f64,
    freeze_free: f64,
    quality: f64,
    startup: f64,
    origin: f64,
    origin_first: f64,
    peers: f64,
    lines: f64,
    cache: f64,
    failed: f64,
}

/// One of them.
type Figure = fn(&Figures) -> f64;
/// A row of the table: its name, what was seen, and the same of its twin.
type Row = (&'static str, Figure, Option<fn(&Imagined) -> f64>);

impl RunReport {
    pub(super) fn of(scheme: Scheme, seed: u64, late_ms: f64, bytes: Vec<Bytes>, seen: &Seen) -> Self {
        let clients = seen.0.iter().map(ClientReport::of).collect();
        let (estimates, imagined) = (Vec::new(), Imagined::default());
        Self { scheme, seed, lateness_p99_ms: late_ms, bytes, clients, estimates, imagined }
    }

    fn figures(&self) -> Figures {
        let first: Vec<&ClientReport> =
            self.clients.iter().filter(|client| client.proxy == 1 && client.failed.is_none()).collect();
        let mean = |of: &dyn Fn(&ClientReport) -> f64| {
            first.iter().map(|client| of(client)).sum::<f64>() / float(first.len().max(1))
        };
        let mb = |bytes: u64| float(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1e6;
        let sum = |of: &dyn Fn(&Bytes) -> u64| mb(self.bytes.iter().map(of).sum());
        let one = self.bytes.first().copied().unwrap_or_default();
        Figures {
            frozen: mean(&|client| client.frozen),
            freeze_free: mean(&|client| if client.freezes == 0 { 1.0 } else { 0.0 }),
            quality: mean(&|client| client.quality),
            startup: mean(&|client| client.startup),
            origin: sum(&|bytes| bytes.origin),
            origin_first: mb(one.origin),
            peers: sum(&|bytes| bytes.given),
            lines: sum(&|bytes| bytes.nodes),
            cache: mb(one.clients.saturating_sub(one.nodes + one.peers)),
            failed: float(self.clients.iter().filter(|client| client.failed.is_some()).count()),
        }
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = self.figures();
        write!(
            f,
            "  cooperation {}: frozen {:.2} s a client, quality {:.3}, {:.1} MB from the nodes, {:.1} MB between proxies",
            self.scheme, figures.frozen, figures.quality, figures.origin, figures.peers
        )
    }
}

/// All runs.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The title.
    pub title: String,
    /// Seconds of it.
    pub seconds: f64,
    /// Rates of the links.
    pub rates: Rates,
    /// Clients behind the first proxy, and behind each of the others.
    pub clients: (u8, u8),
    /// The runs, in the order in which they were made.
    pub runs: Vec<RunReport>,
    /// Whether what is said of cooperation is so; nothing if one scheme was left out.
    pub holds: Option<bool>,
}

impl Report {
    pub(super) fn of(options: &Options, film: &TitleFolder, rates: Rates, runs: Vec<RunReport>) -> Self {
        let manifest = film.manifest();
        let mut report = Self {
            title: manifest.title.to_string(),
            seconds: manifest.span().as_secs_f64(),
            rates,
            clients: (options.clients, options.others),
            runs,
            holds: None,
        };
        let verdicts = report.verdicts();
        report.holds = (!verdicts.is_empty()).then(|| verdicts.iter().all(|(_, holds)| *holds));
        report
    }

    fn of_scheme(&self, scheme: Scheme, of: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.runs.iter().filter(|run| run.scheme == scheme).map(|run| of(&run.figures())).collect()
    }

    /// What was seen, and beside it the same under virtual time.
    fn table(&self) -> Table {
        let mut table = Table::new(&["cooperation", "off", "on", "off, simulated", "on, simulated"]);
        let rows: [Row; 10] = [
            ("frozen, s a client", |of| of.frozen, Some(|of| of.frozen)),
            ("clients without a freeze", |of| of.freeze_free, Some(|of| of.freeze_free)),
            ("quality shown / asked", |of| of.quality, Some(|of| of.quality)),
            ("start-up, s", |of| of.startup, None),
            ("MB from nodes to all proxies", |of| of.origin, Some(|of| of.origin)),
            ("MB from nodes to proxy 1", |of| of.origin_first, Some(|of| of.origin_first)),
            ("MB between proxies", |of| of.peers, Some(|of| of.peers)),
            ("MB on the lines from nodes", |of| of.lines, None),
            ("MB to clients from cache 1", |of| of.cache, None),
            ("clients that failed", |of| of.failed, None),
        ];
        let cell = |values: &[f64]| {
            if values.is_empty() { "-".to_owned() } else { Estimate::of(values).to_string() }
        };
        for (name, seen, imagined) in rows {
            let of_twin = |scheme| {
                let runs = self.runs.iter().filter(|run| run.scheme == scheme);
                runs.filter_map(|run| Some(imagined?(&run.imagined))).collect::<Vec<f64>>()
            };
            let real = [Scheme::Off, Scheme::On].map(|scheme| cell(&self.of_scheme(scheme, seen)));
            let twin = [Scheme::Off, Scheme::On].map(|scheme| cell(&of_twin(scheme)));
            table.row(std::iter::once(name.to_owned()).chain(real).chain(twin).collect());
        }
        table
    }

    /// What the proxies thought of their links in the last run with cooperation, beside
    /// what these were set to. Payloads have less than the set rate: headers are part of it.
    fn write_estimates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(last) = self.runs.iter().rfind(|run| run.scheme == Scheme::On) else { return Ok(()) };
        let mut table = Table::new(&["link", "rate, set", "estimated", "delay, set", "estimated"]);
        for one in &last.estimates {
            let server = match one.server {
                Server::Origin => "nodes".to_owned(),
                Server::Peer(peer) => peer.to_string(),
            };
            // Of a link that nothing came over only the delay is known.
            let rate = if one.measured { one.rate.to_string() } else { "-".to_owned() };
            let ms = |delay: media::Span| format!("{:.0} ms", delay.as_secs_f64() * 1_000.0);
            let link = format!("{server} to proxy {}", one.proxy);
            table.row(vec![link, one.set_rate.to_string(), rate, ms(one.set_delay), ms(one.delay)]);
        }
        write!(f, "{table}")
    }

    /// What is claimed, and whether it is so.
    fn verdicts(&self) -> Vec<(String, bool)> {
        let both = |of: fn(&Figures) -> f64| {
            let (off, on) = (self.of_scheme(Scheme::Off, of), self.of_scheme(Scheme::On, of));
            (!off.is_empty() && !on.is_empty()).then(|| (Estimate::of(&off).mean, Estimate::of(&on).mean))
        };
        let (Some(origin), Some(frozen), Some(quality), Some(failed)) =
            (both(|of| of.origin), both(|of| of.frozen), both(|of| of.quality), both(|of| of.failed))
        else {
            return Vec::new();
        };
        let ratio = origin.1 / origin.0.max(1e-9);
        vec![
            (
                format!("bytes from the nodes, on to off: {ratio:.2}, at most {ORIGIN_BOUND}"),
                ratio <= ORIGIN_BOUND,
            ),
            (format!("frozen, on {:.2} s, off {:.2} s: not more", frozen.1, frozen.0), frozen.1 <= frozen.0),
            (format!("quality, on {:.3}, off {:.3}: not less", quality.1, quality.0), quality.1 >= quality.0),
            (
                format!("clients that did not see the film, on {}, off {}: none", failed.1, failed.0),
                failed == (0.0, 0.0),
            ),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {:.0} s; {}", self.title, self.seconds, self.rates)?;
        writeln!(
            f,
            "{} clients behind proxy 1, {} behind each of the others; {} runs; clients' figures are proxy 1's",
            self.clients.0,
            self.clients.1,
            self.runs.len()
        )?;
        write!(f, "{}", self.table())?;
        self.write_estimates(f)?;
        let late = self.runs.iter().map(|run| run.lateness_p99_ms).fold(0.0, f64::max);
        writeln!(f, "links late at p99, at worst: {late:.2} ms")?;
        let elsewhere: u64 =
            self.runs.iter().flat_map(|run| &run.clients).map(|client| client.elsewhere).sum();
        writeln!(f, "bytes that clients had past their proxy: {elsewhere}")?;
        for client in self.runs.iter().flat_map(|run| &run.clients) {
            if let Some(why) = &client.failed {
                writeln!(f, "client {} of proxy {} failed: {why}", client.client, client.proxy)?;
            }
        }
        for (claim, holds) in self.verdicts() {
            writeln!(f, "{} {claim}", if holds { "yes" } else { "NO " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn run(scheme: Scheme, nodes: u64, frozen: f64) -> RunReport {
        let client = |proxy| ClientReport {
            proxy,
            client: 1,
            failed: None,
            startup: 1.0,
            freezes: u64::from(frozen > 0.0),
            frozen,
            quality: 0.5,
            elsewhere: 0,
        };
        let bytes = Bytes { origin: nodes, given: 1_000_000, nodes, peers: 1_000_000, clients: 10_000_000 };
        let (bytes, clients) = (vec![bytes; 3], vec![client(1), client(2)]);
        let (estimates, imagined) = (Vec::new(), Imagined::default());
        RunReport { scheme, seed: 1, lateness_p99_ms: 0.5, bytes, clients, estimates, imagined }
    }

    fn report(runs: Vec<RunReport>) -> Report {
        let rate = media::BitRate(1);
        let rates = Rates { base: rate, gold: rate, nodes: rate, peers: rate, client: rate };
        Report { title: "small".into(), seconds: 40.0, rates, clients: (1, 1), runs, holds: None }
    }

    #[test]
    fn origin_bytes_and_freezes_are_held_to_their_bounds() {
        let holds = |runs| report(runs).verdicts().into_iter().map(|(_, holds)| holds).collect::<Vec<_>>();
        let (off, on) = (run(Scheme::Off, 4_000_000, 1.0), run(Scheme::On, 2_700_000, 1.0));
        assert_eq!(holds(vec![off.clone(), on.clone()]), [true; 4]);
        assert_eq!(holds(vec![off.clone(), run(Scheme::On, 2_900_000, 1.5)]), [false, false, true, true]);
        let mut failed = on;
        failed.clients[1].failed = Some("gone".into());
        assert_eq!(holds(vec![off.clone(), failed]), [true, true, true, false]);
        assert_eq!(holds(vec![off]), Vec::<bool>::new());
    }

    #[test]
    fn what_neither_nodes_nor_peers_sent_came_from_the_cache() {
        let figures = run(Scheme::On, 2_000_000, 0.0).figures();
        assert!((figures.cache - 7.0).abs() < 1e-9);
        assert!((figures.origin - 6.0).abs() < 1e-9 && (figures.peers - 3.0).abs() < 1e-9);
        assert!((figures.freeze_free - 1.0).abs() < 1e-9);
    }
}
