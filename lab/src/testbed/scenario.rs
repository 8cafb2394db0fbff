//! A scenario: who is there, what lies between them, who watches, what goes wrong,
//! and what is expected. Pure data, read from TOML.

use super::whom::Whom;
use super::words::{Lasting, Rate, Share};
use crate::stage::Size;
use media::{Quality, Span};
use protocol::{PeerId, Sla};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use sim::PipeShape;
use sim::topology::Shape;
use toml::Spanned;

/// A scenario, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// From the moment the network stands to the end of the last viewing.
    pub lasts: Lasting,
    /// The most programme ahead of the picture. Default 4 s.
    #[serde(default = "four_seconds")]
    pub buffer: Lasting,
    /// What is shown.
    #[serde(default)]
    pub film: Film,
    /// How many nodes and proxies there are.
    #[serde(default)]
    pub nodes: Nodes,
    /// What lies between them.
    #[serde(default)]
    pub links: Lines,
    /// Who watches, group by group.
    pub viewers: Vec<Spanned<Group>>,
    /// What goes wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Spanned<Fault>>,
    /// What is expected; a run that does not meet it has failed.
    #[serde(default)]
    pub expect: Expect,
}

const fn four_seconds() -> Lasting {
    Lasting(Span::from_secs(4))
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Film {
    /// `sample`, or the path of a film.
    pub is: String,
    /// Made so large first, as `"320x180"`; left out: as it is.
    pub size: Option<FilmSize>,
}

impl Default for Film {
    fn default() -> Self {
        Self { is: "sample".into(), size: None }
    }
}

/// Width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmSize(pub u32, pub u32);

impl<'de> Deserialize<'de> for FilmSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let fits = |side: u32| (32..=4_096).contains(&side) && side.is_multiple_of(4);
        match sides {
            Some((width, height)) if fits(width) && fits(height) => Ok(Self(width, height)),
            _ => Err(D::Error::custom(format!(
                "{text:?} is no size; write it as \"320x180\", sides from 32 to 4096 that four divides"
            ))),
        }
    }
}

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// At the edge.
    pub base: u8,
    /// At the level of Enh1.
    pub enh1: u8,
    /// At the level of Enh2.
    pub enh2: u8,
    /// Proxies, which know one another.
    pub proxies: u8,
    /// Whether the proxies ask one another.
    pub cooperate: bool,
    /// Whether the origin gives the topmost layer to viewers too.
    pub origin_has_top: bool,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { base: 3, enh1: 2, enh2: 2, proxies: 0, cooperate: true, origin_has_top: false }
    }
}

impl Nodes {
    /// The same for a stage.
    pub const fn size(self) -> Size {
        Size { base: self.base, middle: self.enh1, top: self.enh2 }
    }

    /// The same for the simulator, with as many links as nodes choose by themselves.
    pub fn shape(self) -> Shape {
        let (base, enh1, enh2) = (self.base.into(), self.enh1.into(), self.enh2.into());
        Shape { base, enh1, enh2, base_links: 3.min(enh1), enh1_links: 2.min(enh2) }
    }
}

/// What lies between whom. What is left out is open: no delay, no loss, any rate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lines {
    /// Between any two nodes.
    pub nodes: Line,
    /// Between each proxy and all nodes together.
    pub proxies: Line,
    /// Between any two proxies.
    pub peers: Line,
    /// Between each viewer and everybody: the last mile.
    pub viewers: Line,
}

/// One link, the same in both directions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Line {
    /// Bits a second.
    pub rate: Option<Rate>,
    /// One way.
    pub delay: Option<Lasting>,
    /// Up to so much more.
    pub jitter: Option<Lasting>,
    /// The share of datagrams that are lost.
    pub loss: Option<Share>,
    /// What waits at most, as time. Default 300 ms where there is a rate or trace.
    pub queue: Option<Lasting>,
    /// Towards the viewers the rate of this trace: the name of a shipped one, or
    /// the path of a file.
    pub trace: Option<String>,
}

impl Line {
    /// What a home router holds.
    const QUEUE: Span = Span::from_millis(300);

    /// One direction of it.
    pub fn shape(&self) -> PipeShape {
        let span = |of: Option<Lasting>| of.map_or(Span::ZERO, |of| of.0);
        let bounded = self.rate.is_some() || self.trace.is_some();
        let queue = self.queue.map(|queue| queue.0);
        PipeShape {
            rate: self.rate.map(|rate| rate.0),
            delay: span(self.delay),
            jitter: span(self.jitter),
            loss: self.loss.map_or(0.0, |loss| loss.0),
            queue: queue.unwrap_or(if bounded { Self::QUEUE } else { Span::MAX }),
        }
    }
}

/// Viewers that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many.
    pub count: u16,
    /// `vip` or `normal`.
    #[serde(default = "normal")]
    pub class: Sla,
    /// The best quality wanted.
    #[serde(default = "gold", deserialize_with = "quality")]
    pub quality: Quality,
    /// Where they knock: `nodes` or `proxies`, one after the other, or a name.
    #[serde(default)]
    pub at: Knock,
    /// When the first of them may come. Default: at once.
    #[serde(default)]
    pub from: Option<Lasting>,
    /// They come by lot within so long: a flash crowd if that is short.
    pub within: Option<Lasting>,
    /// They come one after the other, on average so long apart (exponential gaps).
    pub every: Option<Lasting>,
    /// Whether nothing is decoded: for crowds.
    #[serde(default)]
    pub light: bool,
}

const fn normal() -> Sla {
    Sla::Normal
}

const fn gold() -> Quality {
    Quality::GOLD
}

fn quality<'de, D: Deserializer<'de>>(from: D) -> Result<Quality, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not bronze, silver or gold")))
}

/// Where a viewer knocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Knock {
    /// At Base nodes, in turn.
    #[default]
    Nodes,
    /// At proxies, in turn.
    Proxies,
    /// At this one.
    Named(PeerId),
}

impl<'de> Deserialize<'de> for Knock {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match text.as_str() {
            "nodes" => Ok(Self::Nodes),
            "proxies" => Ok(Self::Proxies),
            name => name.parse().map(Self::Named).map_err(|_| {
                D::Error::custom(format!("{text:?} is nowhere; write \"nodes\", \"proxies\" or a name"))
            }),
        }
    }
}

/// Something that goes wrong, or is put right. Exactly one of the verbs is given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// When, counted from the moment the network stands.
    pub at: Option<Lasting>,
    /// Or some time between these two, by lot.
    pub between: Option<(Lasting, Lasting)>,
    /// If it is about several: spread evenly over so long.
    pub over: Option<Lasting>,
    /// After so long it is undone: what was killed or stopped runs again, lines are
    /// as they were.
    #[serde(rename = "for")]
    pub lasting: Option<Lasting>,
    /// Killed, as by a power cut.
    pub kill: Option<Whom>,
    /// Started again.
    pub start: Option<Whom>,
    /// Made to hang (SIGSTOP).
    pub stop: Option<Whom>,
    /// Let go on (SIGCONT).
    #[serde(rename = "continue")]
    pub go_on: Option<Whom>,
    /// These can speak with one another and with nobody else.
    pub part: Option<Vec<Whom>>,
    /// Their lines become like `rate`, `delay` and `loss`.
    pub slow: Option<Whom>,
    /// The rate of a slow line.
    pub rate: Option<Rate>,
    /// The delay of a slow line, one way.
    pub delay: Option<Lasting>,
    /// The loss of a slow line.
    pub loss: Option<Share>,
}

/// What is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Freezes of VIPs at most, in each run.
    pub freezes_of_vips: Option<u64>,
    /// Freezes of all viewers together at most, in each run.
    pub freezes: Option<u64>,
    /// Freezes of all viewers together as a share of what was watched, at most.
    pub frozen: Option<Share>,
    /// Viewers that saw nothing or not to the end, at most. Default 0.
    pub lost: u64,
    /// The layers shown over the layers wanted, on average, at least.
    pub quality: Option<Share>,
}
