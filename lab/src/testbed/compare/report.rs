//! The comparison in figures: every repeat, means, and who is better, ties and losses
//! included.

use super::films::HLS_JS_VERSION;
use super::{CompareOptions, Death, LINE, Player, Row, Viewing};
use crate::bench::machine::Machine;
use crate::bench::table::Table;
use crate::testbed::Title;
use crate::testbed::report::millis;
use serde::Serialize;
use sim::eval::statistics::{Estimate, float};
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

/// One viewing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeat {
    /// Decided when the server died.
    pub seed: u64,
    /// How deep buffers were.
    pub row: Row,
    /// Who played.
    pub player: Player,
    /// When the server died, after the first picture or thereabouts.
    pub died_ms: u64,
    /// What was seen.
    pub viewing: Viewing,
}

/// Something that was claimed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
    /// In how many repeats we were better, equal, worse.
    pub better_equal_worse: [usize; 3],
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// How servers died.
    pub death: Death,
    /// The film and the line.
    pub what: String,
    /// Browser, server and script.
    pub versions: Vec<String>,
    /// Where and with what.
    pub machine: Machine,
    /// Every viewing.
    pub repeats: Vec<Repeat>,
    /// What of it is claimed.
    pub verdicts: Vec<Verdict>,
    /// Whether all claims hold.
    pub holds: bool,
}

impl Comparison {
    pub(super) fn of(options: &CompareOptions, title: &Title, rate: u64, repeats: Vec<Repeat>) -> Self {
        let manifest = title.folder.manifest();
        let ours: u64 = title.folder.layers().map(|layer| manifest.nominal_rate(layer).0).sum();
        let what = format!(
            "{} at {}x{}: ours {} kbit/s in {} layers, H.264 {} kbit/s; line {} kbit/s with {} ms each way",
            manifest.title,
            manifest.width,
            manifest.height,
            ours / 1_000,
            manifest.layers.len(),
            rate / 1_000,
            LINE.rate.unwrap_or_default().0 / 1_000,
            LINE.delay.as_millis()
        );
        let verdicts = verdicts(&repeats);
        Self {
            death: options.death,
            what,
            versions: versions(),
            machine: Machine::look(),
            holds: verdicts.iter().all(|verdict| verdict.holds),
            repeats,
            verdicts,
        }
    }

    /// Writes `report.json` and `viewings.csv` into a folder, which is made if need be.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut table = String::from(
            "seed,row,player,died_ms,startup_ms,watched_ms,freezes,frozen_ms,longest_ms,before_ms,best,bytes,buffer_ms\n",
        );
        for Repeat { seed, row, player, died_ms, viewing } in &self.repeats {
            use fmt::Write as _;
            let startup = viewing.startup_ms.map_or_else(String::new, |ms| ms.to_string());
            // Writing into a string cannot fail.
            let _ = writeln!(
                table,
                "{seed},{row:?},{player:?},{died_ms},{startup},{},{},{},{},{},{:.4},{},{}",
                viewing.watched_ms,
                viewing.freezes,
                viewing.frozen_ms,
                viewing.longest_ms,
                viewing.before_ms,
                viewing.best,
                viewing.bytes,
                viewing.buffer_ms
            );
        }
        let json = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        for (name, text) in [("viewings.csv", &table), ("report.json", &json)] {
            let mut half = tempfile::NamedTempFile::new_in(folder)?;
            half.write_all(text.as_bytes())?;
            half.as_file().sync_all()?;
            half.persist(folder.join(name))?;
        }
        Ok(())
    }
}

/// What is claimed is claimed of matched buffers.
fn verdicts(repeats: &[Repeat]) -> Vec<Verdict> {
    let of = |player: Player, value: fn(&Viewing) -> f64| -> Vec<f64> {
        let mine = repeats.iter().filter(|repeat| repeat.row == Row::Matched && repeat.player == player);
        mine.map(|repeat| value(&repeat.viewing)).collect()
    };
    let frozen = |viewing: &Viewing| millis(viewing.frozen_ms);
    let startup = |viewing: &Viewing| viewing.startup_ms.map_or(f64::INFINITY, millis);
    let mut verdicts = Vec::new();
    if !repeats.iter().any(|repeat| repeat.row == Row::Matched) {
        return verdicts;
    }
    for other in [Player::Hls, Player::Video] {
        let (ours, theirs) = (of(Player::Lamina, frozen), of(other, frozen));
        let counts = counts(&ours, &theirs);
        verdicts.push(Verdict {
            claim: format!("frozen never longer than {} in a repeat", other.name()),
            holds: counts[2] == 0,
            better_equal_worse: counts,
        });
        verdicts.push(Verdict {
            claim: format!("frozen less than {} in the mean", other.name()),
            holds: mean(&ours) < mean(&theirs),
            better_equal_worse: counts,
        });
    }
    let (ours, theirs) = (of(Player::Lamina, startup), of(Player::Hls, startup));
    verdicts.push(Verdict {
        claim: format!("start-up no longer than {} in the mean", Player::Hls.name()),
        holds: mean(&ours) <= mean(&theirs),
        better_equal_worse: counts(&ours, &theirs),
    });
    verdicts
}

fn counts(ours: &[f64], theirs: &[f64]) -> [usize; 3] {
    let mut counts = [0, 0, 0];
    for (ours, theirs) in ours.iter().zip(theirs) {
        let place = match ours.total_cmp(theirs) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Greater => 2,
        };
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    }
    counts
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / float(values.len()) }
}

fn versions() -> Vec<String> {
    let said = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        Some(
            String::from_utf8_lossy(&text)
                .lines()
                .find(|line| line.contains(char::is_numeric))?
                .trim()
                .to_owned(),
        )
    };
    let found = [said("chromium", "--version"), said("/usr/sbin/nginx", "-v")];
    found.into_iter().flatten().chain([format!("hls.js {HLS_JS_VERSION}")]).collect()
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, row, player, died_ms, viewing } = self;
        let startup =
            viewing.startup_ms.map_or_else(|| "no picture".to_owned(), |ms| format!("start-up {ms} ms"));
        write!(
            f,
            "seed {seed}, {row:?}, {}: server died at {:.1} s with {:.1} s in the buffer; {startup}, {} freezes, \
             {} ms in all",
            player.name(),
            millis(*died_ms) / 1_000.0,
            millis(viewing.buffer_ms) / 1_000.0,
            viewing.freezes,
            viewing.frozen_ms
        )
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        writeln!(f, "beside     {}", self.versions.join("; "))?;
        writeln!(f, "{}\nthe server's {:?} dies", self.what, self.death)?;
        let mut table = Table::new(&[
            "buffers, player",
            "freezes",
            "frozen ms",
            "most ms",
            "longest ms",
            "before the death, ms",
            "start-up ms",
            "best quality",
            "MB",
            "buffer at death",
        ]);
        for row in [Row::Matched, Row::Defaults] {
            for player in Player::ALL {
                let mine = self.repeats.iter().filter(|repeat| repeat.row == row && repeat.player == player);
                let mine: Vec<&Viewing> = mine.map(|repeat| &repeat.viewing).collect();
                if mine.is_empty() {
                    continue;
                }
                let cell = |of: &dyn Fn(&Viewing) -> f64, digits: usize| {
                    let values: Vec<f64> = mine.iter().map(|viewing| of(viewing)).collect();
                    let Estimate { mean, half_width, runs } = Estimate::of(&values);
                    if runs > 1 {
                        format!("{mean:.digits$} ± {half_width:.digits$}")
                    } else {
                        format!("{mean:.digits$}")
                    }
                };
                let most =
                    |of: fn(&Viewing) -> u64| mine.iter().map(|viewing| of(viewing)).max().unwrap_or(0);
                table.row(vec![
                    format!("{row:?}, {}", player.name()),
                    cell(&|viewing| millis(viewing.freezes), 1),
                    cell(&|viewing| millis(viewing.frozen_ms), 0),
                    most(|viewing| viewing.frozen_ms).to_string(),
                    most(|viewing| viewing.longest_ms).to_string(),
                    cell(&|viewing| millis(viewing.before_ms), 0),
                    cell(&|viewing| viewing.startup_ms.map_or(f64::NAN, millis), 0),
                    cell(&|viewing| viewing.best * 100.0, 0) + " %",
                    cell(&|viewing| millis(viewing.bytes) / 1e6, 1),
                    cell(&|viewing| millis(viewing.buffer_ms) / 1_000.0, 1) + " s",
                ]);
            }
            table.rule();
        }
        write!(f, "{table}")?;
        for Verdict { claim, holds, better_equal_worse: [better, equal, worse] } in &self.verdicts {
            let says = if *holds { "yes" } else { "NO" };
            writeln!(f, "{claim}: {says} (better {better}, equal {equal}, worse {worse})")?;
        }
        Ok(())
    }
}
