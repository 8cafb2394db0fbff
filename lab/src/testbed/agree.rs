//! Simulator against testbed: what real processes did is done again in virtual time,
//! run by run with the same seeds, and both are put side by side.
//!
//! The three figures that are bound are those that a claim about failures rests on:
//! how long pictures stood, how soon Base came again, how many layers were shown.

use super::audience::seats;
use super::deeds::plan;
use super::report::{RunReport, millis, share_frozen};
use super::scenario::Scenario;
use super::whom::Whom;
use super::{Read, TestbedError, Title};
use crate::bench::table::Table;
use media::{Layer, PackedManifest};
use protocol::PeerId;
use protocol::player::TitleShape;
use serde::Serialize;
use sim::eval::statistics::{Estimate, float};
use sim::viewing;
use std::fmt;

/// How far the simulator may be from the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// By so much.
    Within(f64),
    /// By this share of what the testbed measured.
    Share(f64),
    /// It is told, and nothing is asked of it.
    Told,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, with its unit.
    pub what: &'static str,
    /// In the testbed: mean, half the width of its 95 % interval, runs.
    pub testbed: [f64; 3],
    /// In the simulator, likewise.
    pub simulator: [f64; 3],
    /// The simulator's less the testbed's.
    pub gap: f64,
    /// How far it may be.
    pub bound: Bound,
    /// Whether it is no farther.
    pub holds: bool,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The scenario.
    pub name: String,
    /// Runs in each.
    pub runs: usize,
    /// Nodes that died while they served somebody, in the testbed.
    pub kills: usize,
    /// Processes that wanted to run, at most, while the testbed was measured.
    pub load: f64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Whether all are within their bounds.
    pub holds: bool,
}

/// What one run gave; nothing where there was nothing to measure.
struct Run {
    stalled: f64,
    recovery: Option<f64>,
    quality: f64,
    startup: Option<f64>,
    buffer: Option<f64>,
}

impl Agreement {
    /// What the testbed saw of a scenario, beside the same runs in the simulator.
    ///
    /// # Errors
    /// The scenario has something that the simulator does not know.
    pub fn of(read: &Read, title: &Title, runs: &[RunReport]) -> Result<Self, TestbedError> {
        let seen: Vec<Run> = runs.iter().map(of_testbed).collect();
        let simulated: Result<Vec<Run>, TestbedError> =
            runs.iter().map(|run| Ok(of_simulator(&viewing::run(&again(read, title, run.seed)?)))).collect();
        let simulated = simulated?;
        let figures = vec![
            figure("stall ratio", Bound::Within(0.02), &seen, &simulated, |run| Some(run.stalled)),
            figure("Base recovered after, ms", Bound::Share(0.2), &seen, &simulated, |run| run.recovery),
            figure("layers shown of those wanted", Bound::Share(0.05), &seen, &simulated, |run| {
                Some(run.quality)
            }),
            figure("buffer when its node died, ms", Bound::Told, &seen, &simulated, |run| run.buffer),
            figure("start-up, ms", Bound::Told, &seen, &simulated, |run| run.startup),
        ];
        let struck = |run: &RunReport| run.faults.iter().filter(|fault| !fault.struck.is_empty()).count();
        Ok(Self {
            name: read.name.clone(),
            runs: runs.len(),
            kills: runs.iter().map(struck).sum(),
            load: runs.iter().map(|run| run.load).fold(0.0, f64::max),
            holds: figures.iter().all(|figure| figure.holds),
            figures,
        })
    }
}

fn figure(
    what: &'static str,
    bound: Bound,
    testbed: &[Run],
    simulator: &[Run],
    of: impl Fn(&Run) -> Option<f64>,
) -> Figure {
    let estimate = |runs: &[Run]| Estimate::of(&runs.iter().filter_map(&of).collect::<Vec<_>>());
    let (real, dreamt) = (estimate(testbed), estimate(simulator));
    let gap = dreamt.mean - real.mean;
    let measured = real.runs > 0 && dreamt.runs > 0;
    let holds = match bound {
        Bound::Within(most) => measured && gap.abs() <= most,
        Bound::Share(most) => measured && gap.abs() <= most * real.mean,
        Bound::Told => true,
    };
    let cells = |of: Estimate| [of.mean, of.half_width, float(of.runs)];
    Figure { what, testbed: cells(real), simulator: cells(dreamt), gap, bound, holds }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / float(values.len()))
}

fn of_testbed(run: &RunReport) -> Run {
    let moves = run.viewers.iter().flat_map(|seen| &seen.failovers);
    let base = moves.filter(|failover| failover.layer == Layer::BASE.to_string());
    Run {
        stalled: share_frozen(&run.viewers),
        recovery: mean(base.map(|failover| millis(failover.recovered_ms))),
        quality: run.quality(),
        startup: mean(run.viewers.iter().filter_map(|seen| seen.startup_ms).map(millis)),
        buffer: mean(run.faults.iter().flat_map(|fault| &fault.struck).map(|one| millis(one.buffer_ms))),
    }
}

fn of_simulator(seen: &[viewing::Seen]) -> Run {
    let sum = |of: fn(&viewing::Seen) -> f64| seen.iter().map(of).sum::<f64>();
    let watched = sum(|one| one.watched.as_secs_f64());
    let ms = |span: media::Span| span.as_secs_f64() * 1_000.0;
    Run {
        stalled: if watched > 0.0 { sum(|one| one.frozen.as_secs_f64()) / watched } else { 0.0 },
        recovery: mean(seen.iter().flat_map(|one| &one.recoveries).map(|span| ms(*span))),
        quality: mean(seen.iter().map(|one| one.quality)).unwrap_or(0.0),
        startup: mean(seen.iter().filter_map(|one| one.startup).map(ms)),
        buffer: mean(seen.iter().filter_map(|one| one.struck_with).map(ms)),
    }
}

/// The same run for the simulator: who comes when and who dies when is decided as for
/// the testbed.
fn again(read: &Read, title: &Title, seed: u64) -> Result<viewing::Plan, TestbedError> {
    let scenario = &read.scenario;
    let unknown = |what: &str| Err(TestbedError::NotSimulated(what.to_owned()));
    if scenario.nodes.proxies > 0 {
        return unknown("proxies");
    }
    if scenario.links.viewers.trace.is_some() || scenario.links.nodes.trace.is_some() {
        return unknown("lines that follow a trace");
    }
    let Some(deaths) = deaths(scenario, seed) else { return unknown("faults other than deaths of nodes") };
    let manifest = title.folder.manifest();
    let text = manifest.to_bytes().map_err(|error| TestbedError::Broken(error.to_string()))?;
    let nodes = scenario.nodes;
    let guest = |seat: super::audience::Seat| viewing::Guest {
        sla: seat.class,
        quality: seat.quality,
        at: seat.at,
        comes: seat.comes,
    };
    Ok(viewing::Plan {
        title: viewing::Title::new(
            manifest.title.clone(),
            TitleShape::from(manifest.as_ref()),
            u64::try_from(PackedManifest::new(&text).bytes.len()).unwrap_or(0),
        ),
        nodes: vec![nodes.base, nodes.enh1, nodes.enh2],
        origin_has_top: nodes.origin_has_top,
        buffer: scenario.buffer.0,
        lasts: scenario.lasts.0,
        between: scenario.links.nodes.shape(),
        last_mile: scenario.links.viewers.shape(),
        guests: seats(scenario, seed)?.into_iter().map(guest).collect(),
        deaths,
        seed,
    })
}

/// Who dies when; nothing if anything else happens.
fn deaths(scenario: &Scenario, seed: u64) -> Option<Vec<(media::Span, viewing::Whom)>> {
    let many = [scenario.nodes.base, scenario.nodes.enh1, scenario.nodes.enh2];
    let level = |layer: Layer| -> Vec<PeerId> {
        let of = many.get(layer.index()).copied().unwrap_or(0);
        (1..=of).filter_map(|number| format!("{layer}-{number}").parse().ok()).collect()
    };
    let deeds = plan(scenario, &level, seed);
    let death = |deed: &super::deeds::Deed| {
        let whom = match deed.kills()? {
            Whom::Named(peer) => viewing::Whom::Named(*peer),
            Whom::Serving(Layer::BASE) => viewing::Whom::Serving,
            _ => return None,
        };
        Some((deed.at, whom))
    };
    deeds.iter().map(death).collect()
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, runs, kills, load, .. } = self;
        writeln!(
            f,
            "{name}: {runs} runs in each, {kills} deaths of nodes that served somebody, load at most {load:.1}"
        )?;
        let mut table = Table::new(&["", "testbed", "simulator", "gap", "bound", "holds"]);
        for Figure { what, testbed, simulator, gap, bound, holds } in &self.figures {
            let cell = |[mean, half, runs]: &[f64; 3]| match (*runs > 0.0, mean.abs() >= 10.0) {
                (false, _) => "-".to_owned(),
                (true, true) => format!("{mean:.0} ± {half:.0}"),
                (true, false) => format!("{mean:.4} ± {half:.4}"),
            };
            let part = if testbed[0] > 0.0 { gap / testbed[0] * 100.0 } else { 0.0 };
            let (gap, bound) = match bound {
                Bound::Within(most) => (format!("{gap:+.4}"), format!("{most}")),
                Bound::Share(most) => (format!("{part:+.1} %"), format!("{:.0} %", most * 100.0)),
                Bound::Told => (format!("{part:+.1} %"), "-".to_owned()),
            };
            let says = match (bound.as_str(), holds) {
                ("-", _) => "",
                (_, true) => "yes",
                (_, false) => "NO",
            };
            table.row(vec![(*what).into(), cell(testbed), cell(simulator), gap, bound, says.into()]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::super::read::parse;
    use super::*;
    use std::path::Path;

    fn run(recovery: f64) -> Run {
        Run { stalled: 0.0, recovery: Some(recovery), quality: 1.0, startup: None, buffer: None }
    }

    #[test]
    fn a_gap_is_a_share_of_what_was_measured() {
        let (real, near, far) = ([run(600.0), run(700.0)], [run(520.0), run(560.0)], [run(500.0)]);
        let of = |dreamt: &[Run]| figure("x", Bound::Share(0.2), &real, dreamt, |run| run.recovery);
        assert!(of(&near).holds && (of(&near).gap + 110.0).abs() < 1e-9);
        assert!(!of(&far).holds);
        assert!(!figure("x", Bound::Within(1.0), &real, &near, |run| run.startup).holds, "nothing measured");
    }

    #[test]
    fn only_deaths_are_played_again() {
        let of = |fault: &str| {
            let text =
                format!("about = \"x\"\nlasts = \"20 s\"\n[[viewers]]\ncount = 1\n[[fault]]\n{fault}\n");
            deaths(&parse("x", &text, Path::new(".")).unwrap().scenario, 3)
        };
        let twice = of("between = [\"5 s\", \"9 s\"]\nkill = \"serving base\"").unwrap();
        assert!(matches!(twice.as_slice(), [(at, viewing::Whom::Serving)] if at.as_millis() / 1_000 >= 5));
        assert_eq!(of("at = \"5 s\"\nstop = \"serving base\""), None);
    }
}
