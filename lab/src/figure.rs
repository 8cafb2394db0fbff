//! Figures: the published evaluations drawn anew from the machines that run in
//! production, as CSV and SVG, with one verdict for each claim.

mod ablation;
mod admission;
pub(crate) mod chart;
mod continuity;
mod proxies;
mod reliability;
mod searches;
mod timing;
mod work;

use serde::Serialize;
use sim::TopologyError;
use sim::eval::{Estimate, Verdict};
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Reliability against the number of layers, and where three are best.
    Reliability,
    /// Who plays on when a Base node fails, over users and VIPs.
    Continuity,
    /// How long data stay away.
    Recovery,
    /// What a search for a backup costs.
    SearchCost,
    /// How soon a death is noticed, and what that costs.
    Detection,
    /// Who is refused, by class, threshold and demand.
    Admission,
    /// Cooperating proxies: how long clients wait.
    Freeze,
    /// Cooperating proxies: what clients get of what they ask for.
    Quality,
    /// Cooperating proxies: how much cache is enough.
    Buffer,
    /// The whole system, and without one part after the other.
    Ablation,
}

/// How much is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each one is an option of the command")]
pub struct Options {
    /// Every published point instead of a few.
    pub full: bool,
    /// Runs of each point; nothing: as many as the figure has by default.
    pub seeds: Option<u64>,
    /// Users of the runs of recovery and detection, and the only number of
    /// users of continuity; nothing: the figure's own.
    pub users: Option<u32>,
    /// Also with the emptiest candidate first.
    pub most_headroom: bool,
    /// Also with reservations that need a free slot.
    pub strict: bool,
    /// Also with normal users who search after the failure.
    pub reactive: bool,
}

impl Options {
    fn seeds(&self, default: u64) -> Vec<u64> {
        (1..=self.seeds.unwrap_or(default).max(1)).collect()
    }
}

/// A claim, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The claim, in a few words.
    pub claim: String,
    /// Our value, with its 95 % interval where there is more than one run.
    pub ours: String,
    /// The published value, or the band that follows from it.
    pub published: String,
    /// Whether they agree.
    pub holds: bool,
}

impl From<Verdict> for Claim {
    fn from(verdict: Verdict) -> Self {
        let Verdict { claim, ours, published, holds } = verdict;
        Self { claim, ours, published, holds }
    }
}

/// A file of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its name in the folder.
    pub name: String,
    /// What is in it.
    #[serde(skip)]
    pub text: String,
}

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The claims.
    pub claims: Vec<Claim>,
    /// What was spent, in words.
    pub notes: Vec<String>,
    /// The files.
    pub files: Vec<File>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "claim | ours (95 % interval) | published | yes/no")?;
        for Claim { claim, ours, published, holds } in &self.claims {
            writeln!(f, "{claim} | {ours} | {published} | {}", if *holds { "yes" } else { "no" })?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

/// What stops a figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// There is no such network.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// This cannot be calculated.
    #[error(transparent)]
    Theory(#[from] sim::theory::TheoryError),
    /// A file could not be written; the older one, if any, is as it was.
    #[error("{path} cannot be written")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Told how many of how many pieces are done; called from several threads.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Computes a figure on all cores.
pub fn run(figure: Figure, options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    match figure {
        Figure::Reliability => Ok(reliability::draw()),
        Figure::Continuity => continuity::draw(options, progress),
        Figure::Recovery => timing::recovery(options, progress),
        Figure::SearchCost => searches::draw(options, progress),
        Figure::Detection => timing::detection(options, progress),
        Figure::Admission => admission::draw(options, progress),
        Figure::Freeze => Ok(proxies::freeze(options, progress)),
        Figure::Quality => Ok(proxies::quality(options, progress)),
        Figure::Buffer => Ok(proxies::buffer(options, progress)),
        Figure::Ablation => ablation::draw(options, progress),
    }
}

impl Report {
    /// Adds what another figure gave.
    pub fn append(&mut self, other: Self) {
        self.claims.extend(other.claims);
        // Two figures of the same runs say the same of what was spent.
        let news = other.notes.into_iter().filter(|note| !self.notes.contains(note));
        let news: Vec<String> = news.collect();
        self.notes.extend(news);
        self.files.extend(other.files);
    }

    /// Writes the files into a folder, each one whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), FigureError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| FigureError::Write { path: folder.to_owned(), source })?;
        for File { name, text } in &self.files {
            let path = folder.join(name);
            write_whole(folder, &path, text).map_err(|source| FigureError::Write { path, source })?;
        }
        Ok(())
    }
}

fn write_whole(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".figure").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn file(name: impl Into<String>, text: String) -> File {
    File { name: name.into(), text }
}

/// An estimate as two cells of a CSV: the mean and half its 95 % interval.
fn cells(estimate: Estimate) -> String {
    format!("{:.5},{:.5}", estimate.mean, estimate.half_width)
}

#[cfg(test)]
mod tests;
