//! How everything stands, as the page is told it: one snapshot, and what has
//! changed since an earlier one. Pure: no clock, no process, no socket.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Lines of the log that are kept.
pub const MAX_LINES: usize = 120;
/// Travellers that are kept; who looks rarely misses older ones.
pub const MAX_FLIGHTS: usize = 96;
/// Changes of quality that are kept for each viewer.
pub const MAX_STEPS: usize = 40;
/// For how long the same line is not said again.
const SAME_MS: u64 = 2_000;
/// Viewers at once.
pub const MAX_VIEWERS: usize = 8;

/// Everything that the page shows. Times are milliseconds since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Tells runs of the demonstration apart.
    pub run: String,
    /// When it was so.
    pub at_ms: u64,
    /// Whether the network stands.
    pub ready: bool,
    /// What is shown.
    pub film: Film,
    /// Nodes and proxies by name.
    pub nodes: BTreeMap<String, NodeState>,
    /// Viewers by name.
    pub viewers: BTreeMap<String, ViewerState>,
    /// Links that are not as they were made, by [`link_name`].
    pub links: BTreeMap<String, LinkState>,
    /// The last lines of the log.
    pub log: VecDeque<Line>,
    /// The last that travelled from node to node.
    pub flights: VecDeque<Flight>,
    /// How far the guided tour is.
    pub tour: Tour,
}

/// The film.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Film {
    /// Its title.
    pub title: String,
    /// Whose it is, if that must be said.
    pub attribution: Option<String>,
    /// Its layers, Base first.
    pub layers: Vec<String>,
    /// How long it is.
    pub length_ms: u64,
}

/// Whether a node can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeLife {
    /// It is being started.
    #[default]
    Starting,
    /// It runs.
    Up,
    /// It was stopped where it stood.
    Hung,
    /// It was killed.
    Dead,
}

/// A node or proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// `origin`, `base`, `enh1` and so on, or `proxy`.
    pub level: String,
    /// Whether it can be asked.
    pub life: NodeLife,
    /// Whether the others think it dead.
    pub thought_dead: bool,
    /// Whether that was to be expected, and was told.
    pub mourned: bool,
    /// Whether it has what its level stores.
    pub holds: bool,
    /// A proxy: who sends it which layer.
    pub sources: BTreeMap<String, Source>,
    /// A proxy: who stands behind its Base node.
    pub backup: Option<String>,
}

/// Who sends a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub node: String,
    /// When the last chunk came from it.
    pub at_ms: u64,
}

/// How far a viewer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Viewing {
    /// It seeks service, or waits for the first picture.
    #[default]
    Opening,
    /// Pictures are shown.
    Playing,
    /// It is over, for a reason that the log tells.
    Over,
}

/// A viewer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewerState {
    /// The best quality it wants.
    pub wants: String,
    /// Whether it was promised a standby of its own.
    pub vip: bool,
    /// The proxy it is behind.
    pub proxy: Option<String>,
    /// How far it is.
    pub viewing: Viewing,
    /// The quality on screen; empty before the first picture.
    pub shows: String,
    /// Ready beyond the picture on screen.
    pub buffer_ms: u64,
    /// The place in the film.
    pub position_ms: u64,
    /// From the order to play to the first picture, the last time.
    pub startup_ms: u64,
    /// From the last word of a Base node to the first chunk of the next one, the
    /// last time.
    pub recovered_ms: u64,
    /// How often the picture stood still.
    pub freezes: u32,
    /// For how long in all.
    pub frozen_ms: u64,
    /// Who sends which layer.
    pub sources: BTreeMap<String, Source>,
    /// Who takes over if the Base node dies.
    pub backup: Option<String>,
    /// Changes of quality: when, and the layers shown from then on.
    pub steps: VecDeque<(u64, u8)>,
    /// When the picture stood still, and for how long.
    pub stops: VecDeque<(u64, u64)>,
}

/// What was done to a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing.
    #[default]
    Open,
    /// Far away: what is said comes later.
    Slow,
    /// Too narrow for every layer.
    Narrow,
    /// Nothing passes.
    Cut,
}

/// A link that is not as it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    /// Its ends, in the order of their names.
    pub ends: [String; 2],
    /// What was done to it.
    pub condition: Condition,
}

/// How serious a line of the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// The network goes about its work.
    #[default]
    Plain,
    /// Somebody did something to it.
    Deed,
    /// It mended itself.
    Good,
    /// A viewer notices.
    Bad,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Counts lines.
    pub number: u64,
    /// When it was said.
    pub at_ms: u64,
    /// How serious it is.
    pub tone: Tone,
    /// In plain words.
    pub text: String,
}

/// Something that went from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Counts them.
    pub number: u64,
    /// From whom.
    pub from: String,
    /// To whom.
    pub to: String,
    /// `placement`, `search`, `discovery`, `failure`, `return`, or a layer's name.
    pub what: String,
}

/// How far the tour is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tour {
    /// The step that was begun last, from 1; 0 before the first.
    pub step: u8,
    /// Whether it is under way.
    pub busy: bool,
    /// Steps that went as they should.
    pub done: Vec<u8>,
    /// What is awaited, or what came of it.
    pub says: String,
    /// The nodes and viewers to look at.
    pub look_at: Vec<String>,
}

/// What has changed. Where a thing of this name is gone stands nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// When it was so.
    pub at_ms: u64,
    /// The whole, for who knows nothing or knows another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Box<Snapshot>>,
    /// Whether the network stands.
    pub ready: bool,
    /// Nodes that are another way now.
    pub nodes: BTreeMap<String, Option<NodeState>>,
    /// Viewers that are another way now.
    pub viewers: BTreeMap<String, Option<ViewerState>>,
    /// Links that are another way now.
    pub links: BTreeMap<String, Option<LinkState>>,
    /// New lines.
    pub log: Vec<Line>,
    /// New travellers.
    pub flights: Vec<Flight>,
    /// The tour, if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tour: Option<Tour>,
}

/// The name of the link between two, whichever is named first.
pub fn link_name(one: &str, other: &str) -> String {
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    format!("{first}|{second}")
}

impl Snapshot {
    /// Says something in the log; the same again only after a while.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        let since = self.at_ms.saturating_sub(SAME_MS);
        if self.log.back().is_some_and(|line| line.text == text && line.at_ms >= since) {
            return;
        }
        let number = self.log.back().map_or(1, |line| line.number + 1);
        if self.log.len() >= MAX_LINES {
            self.log.pop_front();
        }
        self.log.push_back(Line { number, at_ms: self.at_ms, tone, text });
    }

    /// Something goes from one to another.
    pub fn fly(&mut self, from: &str, to: &str, what: &str) {
        let number = self.flights.back().map_or(1, |flight| flight.number + 1);
        if self.flights.len() >= MAX_FLIGHTS {
            self.flights.pop_front();
        }
        self.flights.push_back(Flight { number, from: from.into(), to: to.into(), what: what.into() });
    }

    /// What has changed since `earlier`; the whole if that was another run.
    pub fn since(&self, earlier: &Self) -> Delta {
        if self.run != earlier.run || self.film != earlier.film {
            return Delta { at_ms: self.at_ms, whole: Some(Box::new(self.clone())), ..Delta::default() };
        }
        let line = earlier.log.back().map_or(0, |line| line.number);
        let flight = earlier.flights.back().map_or(0, |flight| flight.number);
        Delta {
            at_ms: self.at_ms,
            whole: None,
            ready: self.ready,
            nodes: changed(&earlier.nodes, &self.nodes),
            viewers: changed(&earlier.viewers, &self.viewers),
            links: changed(&earlier.links, &self.links),
            log: self.log.iter().filter(|new| new.number > line).cloned().collect(),
            flights: self.flights.iter().filter(|new| new.number > flight).cloned().collect(),
            tour: (self.tour != earlier.tour).then(|| self.tour.clone()),
        }
    }

    /// Makes of an earlier snapshot the one that the change was made from.
    pub fn apply(&mut self, delta: Delta) {
        if let Some(whole) = delta.whole {
            *self = *whole;
            return;
        }
        self.at_ms = delta.at_ms;
        self.ready = delta.ready;
        put(&mut self.nodes, delta.nodes);
        put(&mut self.viewers, delta.viewers);
        put(&mut self.links, delta.links);
        self.log.extend(delta.log);
        self.log.drain(..self.log.len().saturating_sub(MAX_LINES));
        self.flights.extend(delta.flights);
        self.flights.drain(..self.flights.len().saturating_sub(MAX_FLIGHTS));
        if let Some(tour) = delta.tour {
            self.tour = tour;
        }
    }
}

impl ViewerState {
    /// Another quality, of so many layers, is on screen from now on.
    pub fn step(&mut self, at_ms: u64, shows: &str, layers: u8) {
        shows.clone_into(&mut self.shows);
        if self.steps.back().is_none_or(|(_, before)| *before != layers) {
            if self.steps.len() >= MAX_STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back((at_ms, layers));
        }
    }

    /// The picture stood still.
    pub fn stood(&mut self, at_ms: u64, length_ms: u64) {
        self.freezes = self.freezes.saturating_add(1);
        self.frozen_ms = self.frozen_ms.saturating_add(length_ms);
        if self.stops.len() >= MAX_STEPS {
            self.stops.pop_front();
        }
        self.stops.push_back((at_ms, length_ms));
    }
}

/// The entries that differ; nothing where one is gone.
fn changed<T: Clone + PartialEq>(
    before: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
) -> BTreeMap<String, Option<T>> {
    let gone = before.keys().filter(|name| !now.contains_key(*name)).map(|name| (name.clone(), None));
    let new = now.iter().filter(|(name, value)| before.get(*name) != Some(value));
    gone.chain(new.map(|(name, value)| (name.clone(), Some(value.clone())))).collect()
}

fn put<T>(into: &mut BTreeMap<String, T>, changes: BTreeMap<String, Option<T>>) {
    for (name, value) in changes {
        match value {
            Some(value) => into.insert(name, value),
            None => into.remove(&name),
        };
    }
}

#[cfg(test)]
mod tests;
