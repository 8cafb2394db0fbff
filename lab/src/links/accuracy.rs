//! How true the links are: many at once, each with a rate and a delay of its own,
//! measured from outside with datagrams.

use super::{DoorId, LinkId, LinkShape, Links, Way};
use crate::bench::table::Table;
use media::{BitRate, Span};
use serde::Serialize;
use sim::PipeShape;
use sim::eval::statistics::float;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

mod probe;

/// The rate may be wrong by so much.
const RATE_BOUND: f64 = 0.03;
/// The 99th percentile of the delay may be wrong by so many milliseconds.
const DELAY_BOUND_MS: f64 = 2.0;
/// The share that is lost may be wrong by so much of itself.
const LOSS_BOUND: f64 = 0.1;
/// What is lost on each link while delay and loss are measured.
const LOSS: f64 = 0.05;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Links at once, 1 to 200.
    pub links: u8,
    /// Seconds for the rates, and as many for delays and loss.
    pub seconds: u32,
    /// What is lost, by lot.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { links: 50, seconds: 5, seed: 1 }
    }
}

/// One link: what was set and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// Bits a second that were set.
    pub rate_set: u64,
    /// Bits a second that were measured, headers included.
    pub rate: f64,
    /// The delay that was set, in milliseconds.
    pub delay_set_ms: u64,
    /// The median of what the delay was beyond it, in milliseconds.
    pub delay_error_median_ms: f64,
    /// The 99th percentile of that.
    pub delay_error_p99_ms: f64,
    /// Probes sent for it.
    pub probes: usize,
    /// The share of them that did not arrive.
    pub loss: f64,
}

impl LinkReport {
    fn rate_error(&self) -> f64 {
        let set = float(usize::try_from(self.rate_set).unwrap_or(0));
        (self.rate / set - 1.0).abs()
    }
}

/// All links.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// One by one.
    pub links: Vec<LinkReport>,
    /// The largest error of a rate, as a share.
    pub worst_rate_error: f64,
    /// The 99th percentile of what delays were beyond what was set, over all
    /// links, in milliseconds.
    pub delay_error_p99_ms: f64,
    /// The share that was set.
    pub loss_set: f64,
    /// The share that was lost, over all links.
    pub loss: f64,
    /// The 99th percentile of the relay's own lateness, in milliseconds.
    pub lateness_p99_ms: f64,
    /// Whether rates, delays and loss are within their bounds.
    pub holds: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum AccuracyError {
    /// The system does not give what is needed.
    #[error("the links cannot be set up")]
    Io(#[from] io::Error),
    /// The number of links makes no sense.
    #[error("1 to 200 links can be measured")]
    Links,
    /// The machine is too slow or too busy: what one would measure is the machine.
    #[error("this machine cannot keep up with {links} links: {why}")]
    CannotKeepUp {
        /// How many there were.
        links: u8,
        /// What showed it.
        why: String,
    },
}

/// A link with who dials it from where.
struct Line {
    door: DoorId,
    address: SocketAddr,
    link: LinkId,
    shape: PipeShape,
}

/// Measures; takes twice as many seconds as the options say, and one more.
///
/// # Errors
/// See [`AccuracyError`].
pub fn run(options: Options, say: &mut dyn FnMut(&str)) -> Result<Report, AccuracyError> {
    if options.links == 0 || options.links > 200 {
        return Err(AccuracyError::Links);
    }
    let links = Links::start(options.seed)?;
    // Without the right to it the relay is as late as the machine lets it be.
    let _ = links.hurry();
    let sink = probe::Sink::open()?;
    let mut lines = Vec::new();
    for number in 0..u64::from(options.links) {
        let shape = PipeShape {
            rate: Some(BitRate(1_000_000 * (1 + number % 5))),
            delay: Span::from_millis(10 + 10 * (number % 20)),
            jitter: Span::ZERO,
            loss: 0.0,
            queue: Span::from_millis(200),
        };
        let (door, address) = links.door(sink.address())?;
        let link = links.link(LinkShape::both(shape));
        links.route(door, IpAddr::V4(Ipv4Addr::LOCALHOST), link, Way::Along);
        lines.push(Line { door, address, link, shape });
    }
    say(&format!("{} links, each offered more than its rate", lines.len()));
    let rates = probe::rates(&sink, &lines, options.seconds)?;
    say("the same links, one probe every five milliseconds on each");
    for line in &lines {
        links.reshape(line.link, LinkShape::both(PipeShape { loss: LOSS, ..line.shape }));
    }
    let probed = probe::delays(&sink, &lines, options.seconds)?;
    let turned_away = links.turned_away();
    let lateness = links.lateness();
    let cannot = |why: String| AccuracyError::CannotKeepUp { links: options.links, why };
    let late = millis(lateness.permille(990));
    if late > DELAY_BOUND_MS {
        return Err(cannot(format!("one datagram in a hundred leaves more than {late:.2} ms late")));
    }
    if turned_away > 0 {
        return Err(cannot(format!("it had no room for {turned_away} datagrams")));
    }
    if let Some((line, rate)) = lines.iter().zip(&rates).find(|(_, rate)| rate.offered < rate.needed) {
        return Err(cannot(format!("door {:?} was offered {:.0} bit/s", line.door, rate.offered)));
    }
    Ok(report(&lines, &rates, &probed, late))
}

fn report(lines: &[Line], rates: &[probe::Rate], probed: &[probe::Probed], late: f64) -> Report {
    let mut links = Vec::new();
    for ((line, rate), probed) in lines.iter().zip(rates).zip(probed) {
        links.push(LinkReport {
            rate_set: line.shape.rate.unwrap_or_default().0,
            rate: rate.measured,
            delay_set_ms: line.shape.delay.as_millis(),
            delay_error_median_ms: percentile(&probed.errors_ms, 500),
            delay_error_p99_ms: percentile(&probed.errors_ms, 990),
            probes: probed.sent,
            loss: lost(probed.sent, probed.errors_ms.len()),
        });
    }
    let all: Vec<f64> = probed.iter().flat_map(|probed| probed.errors_ms.iter().copied()).collect();
    let sent = probed.iter().map(|probed| probed.sent).sum();
    let worst_rate_error = links.iter().map(LinkReport::rate_error).fold(0.0, f64::max);
    let (delay_error_p99_ms, loss) = (percentile(&all, 990), lost(sent, all.len()));
    let holds = worst_rate_error <= RATE_BOUND
        && delay_error_p99_ms <= DELAY_BOUND_MS
        && (loss / LOSS - 1.0).abs() <= LOSS_BOUND;
    Report { links, worst_rate_error, delay_error_p99_ms, loss_set: LOSS, loss, lateness_p99_ms: late, holds }
}

fn lost(sent: usize, arrived: usize) -> f64 {
    float(sent.saturating_sub(arrived)) / float(sent.max(1))
}

fn millis(span: Span) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// The value that so many of a thousand do not exceed; 0 of none.
fn percentile(values: &[f64], permille: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * permille).div_ceil(1_000).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or(0.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table =
            Table::new(&["link", "kbit/s set", "measured", "delay set", "+ median", "+ p99", "lost"]);
        for (number, link) in self.links.iter().enumerate() {
            table.row(vec![
                (number + 1).to_string(),
                (link.rate_set / 1_000).to_string(),
                format!("{:.1}", link.rate / 1_000.0),
                format!("{} ms", link.delay_set_ms),
                format!("{:.2} ms", link.delay_error_median_ms),
                format!("{:.2} ms", link.delay_error_p99_ms),
                format!("{:.1} %", link.loss * 100.0),
            ]);
        }
        write!(f, "{table}")?;
        let verdict = |holds: bool| if holds { "yes" } else { "NO" };
        let loss_error = (self.loss / self.loss_set - 1.0).abs();
        writeln!(
            f,
            "rates within 3 %: {} ({:.2} %)",
            verdict(self.worst_rate_error <= RATE_BOUND),
            self.worst_rate_error * 100.0
        )?;
        writeln!(
            f,
            "delays within 2 ms at p99: {} ({:.2} ms)",
            verdict(self.delay_error_p99_ms <= DELAY_BOUND_MS),
            self.delay_error_p99_ms
        )?;
        writeln!(
            f,
            "loss within 10 % of {:.0} %, over all links: {} ({:.2} %)",
            self.loss_set * 100.0,
            verdict(loss_error <= LOSS_BOUND),
            self.loss * 100.0
        )?;
        writeln!(f, "the relay's own lateness at p99: {:.2} ms", self.lateness_p99_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!((percentile(&values, 990), percentile(&values, 500)), (198.0, 100.0));
        assert_eq!((percentile(&[], 990), lost(200, 190)), (0.0, 0.05));
    }

    #[test]
    fn a_number_of_links_that_makes_no_sense_is_refused() {
        let none = run(Options { links: 0, ..Options::default() }, &mut |_| ());
        assert!(matches!(none, Err(AccuracyError::Links)));
    }
}
