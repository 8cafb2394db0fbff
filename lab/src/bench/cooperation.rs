//! What cooperation between proxies is worth over real connections: three proxies,
//! links as in the paper's figure, ten players behind the first, the same arrivals
//! with cooperation and without.
//!
//! Each proxy dials from an address of its own, and a door stands in front of
//! everybody who listens, so that all between two places shares one link, whoever
//! dials. What went where is what the links counted, not what anybody says.

mod audience;
mod film;
mod links;
mod report;
mod town;
mod twin;

pub use report::{Report, RunReport};
pub use town::Estimated;

use super::{BenchError, Say};
use crate::stage::StageError;
use media::Span;
use std::path::PathBuf;
use town::Town;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `lamina` program, started once for each node, proxy and player.
    pub program: PathBuf,
    /// A film to be made small; the sample's path if nothing else is said.
    pub film: PathBuf,
    /// How often, each time with other arrivals.
    pub repeats: u32,
    /// Decides the arrivals.
    pub seed: u64,
    /// Players behind the first proxy.
    pub clients: u8,
    /// Players behind each of the other two.
    pub others: u8,
    /// How long the film is.
    pub length: Span,
    /// The mean time from one arrival at a proxy to the next, and to the first;
    /// none: two thirds of the film, as in the paper (60 min of 90, reconstructed).
    pub gap: Option<Span>,
    /// The schemes to be run.
    pub schemes: Vec<Scheme>,
}

impl Options {
    /// What the documentation shows.
    pub fn new(program: PathBuf, film: PathBuf) -> Self {
        Self {
            program,
            film,
            repeats: 1,
            seed: 1,
            clients: 10,
            others: 4,
            length: Span::from_secs(30),
            gap: None,
            schemes: vec![Scheme::Off, Scheme::On],
        }
    }

    /// The mean time between two arrivals.
    fn between(&self) -> Span {
        self.gap.unwrap_or_else(|| Span::from_nanos(self.length.as_nanos() / 3 * 2))
    }
}

/// Whether proxies ask one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Each asks the nodes for what it does not hold.
    Off,
    /// They share what they hold, and fetch ahead.
    On,
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
        })
    }
}

/// Why it could not be tried. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum CooperationError {
    /// Something that every bench needs.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The network could not be set up.
    #[error("the network cannot be set up")]
    Stage(#[from] StageError),
    /// The links could not be set up.
    #[error("the links cannot be set up")]
    Links(#[from] std::io::Error),
    /// The relay was later than the links are long.
    #[error("this machine cannot keep up: one datagram in a hundred left a link {late_ms:.1} ms late")]
    CannotKeepUp {
        /// Milliseconds.
        late_ms: f64,
    },
    /// The program's proxies do not know how.
    #[error("the proxies of this program cannot be told to cooperate")]
    CannotCooperate,
}

/// Tries it; dropping the future ends every process.
///
/// # Errors
/// See [`CooperationError`].
pub async fn run(options: &Options, say: Say<'_>) -> Result<Report, CooperationError> {
    let told = town::can_cooperate(&options.program).await?;
    if options.schemes.contains(&Scheme::On) && !told {
        return Err(CooperationError::CannotCooperate);
    }
    let folder = tempfile::Builder::new().prefix("lamina-cooperation-").tempdir()?;
    say("making the film: 320x180, three layers");
    let film = film::make(&options.film, folder.path(), options.length).await?;
    let rates = links::Rates::of(film.manifest());
    say(&rates.to_string());
    let mut runs = Vec::new();
    for repeat in 0..options.repeats.max(1) {
        let seed = options.seed.wrapping_add(repeat.into());
        for scheme in &options.schemes {
            let name = format!("{repeat}-{scheme}");
            say(&format!("run {} of {}, cooperation {scheme}", repeat + 1, options.repeats.max(1)));
            let scene = folder.path().join(name);
            let town = Town::raise(options, &film, rates, (*scheme, told), seed, &scene, say).await?;
            let seen = audience::watch(options, &film, &town, seed, say).await?;
            let run = town.told(*scheme, seed, &seen).await?;
            let imagined = twin::run(options, film.manifest(), rates, *scheme, seed);
            let run = RunReport { imagined, ..run };
            say(&run.to_string());
            runs.push(run);
        }
    }
    Ok(Report::of(options, &film, rates, runs))
}
