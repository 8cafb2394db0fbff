//! Who can be asked: silence, redialling, and the order of each layer's sources.
//!
//! A source is like a colleague on the telephone: while it says anything at
//! all, it is there. When it has said nothing for a moment we ask "are you
//! there?" every tenth of a second; when it leaves that unanswered for long
//! enough, we turn to the next colleague and call it again every second.

use crate::player::config::PlayerConfig;
use crate::player::io::SourceId;
use crate::quality::RateMeter;
use crate::service::Vigil;
use media::{BitRate, ByteCount, Layer, Span, Time};
use std::collections::BTreeMap;

/// How many times longer silence is borne on a crowded line.
const CROWDED: u64 = 3;

/// Fewer bytes at once than this are answers to probes, and not film.
const PIECE: ByteCount = ByteCount(600);

/// What the owner has to do about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceAction {
    Dial(SourceId),
    Probe(SourceId, u32),
    /// It was just found silent; it was last heard at this time.
    Silent(SourceId, Time),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Idle,
    Dialling,
    Up,
    Down,
    /// It has another version of the title and is not dialled again.
    Useless,
}

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is known of a source by itself")]
pub(super) struct Source {
    pub(super) link: Link,
    pub(super) silent: bool,
    pub(super) draining: bool,
    /// Whether it leaves out what the line does not carry.
    pub(super) filters: bool,
    /// Whether it ever let us down; before that it is hoped for.
    pub(super) failed: bool,
    redial_at: Time,
    vigil: Vigil,
    /// When a piece of film last came from it.
    pub(super) delivered: Time,
    rate: RateMeter,
    open: u32,
    refuses: Vec<Layer>,
    /// It last said that it does not serve this viewer, or not yet: until when
    /// it is not asked again.
    pub(super) stands_by: Option<Time>,
}

impl Source {
    fn new(now: Time, phase: u32) -> Self {
        Self {
            link: Link::Idle,
            silent: false,
            draining: false,
            filters: false,
            failed: false,
            redial_at: now,
            vigil: Vigil::new(now, phase),
            delivered: now,
            rate: RateMeter::new(now),
            open: 0,
            refuses: Vec::new(),
            stands_by: None,
        }
    }

    pub(super) fn usable(&self) -> bool {
        self.link == Link::Up && !self.silent && !self.draining
    }

    pub(super) fn hopeful(&self) -> bool {
        self.usable() || (!self.failed && matches!(self.link, Link::Idle | Link::Dialling))
    }

    /// Sends a probe now and tells its number.
    pub(super) fn probe(&mut self, now: Time) -> u32 {
        self.vigil.probe(now)
    }

    fn next_probe(&self, config: &PlayerConfig) -> Time {
        self.vigil.next_probe(config.probe_every)
    }

    fn silence_at(&self, config: &PlayerConfig) -> Option<Time> {
        self.vigil.silence_at(config.silent_after, config.probe_every)
    }
}

/// All sources of the title. Bounded by what the opening reply may name.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(super) known: BTreeMap<SourceId, Source>,
    /// For each layer, whom to try, in order.
    pub(super) order: Vec<Vec<SourceId>>,
    /// Who is kept connected whether or not it serves a layer.
    pub(super) keep: Vec<SourceId>,
    /// A backup that is asked by itself only when nobody else of Base can be hoped
    /// for.
    pub(super) last_resort: Option<SourceId>,
    /// The last time looked at, and the number of a source's first probe.
    pub(super) now: Time,
    phase: u32,
    /// For each layer, who served it last.
    pub(super) serving: Vec<Option<SourceId>>,
    total: RateMeter,
}

impl Sources {
    /// `phase` is the number of each source's first probe.
    pub(crate) fn new(now: Time, order: Vec<Vec<SourceId>>, phase: u32) -> Self {
        let known = order.iter().flatten().map(|id| (*id, Source::new(now, phase))).collect();
        let serving = vec![None; order.len()];
        Self {
            known,
            order,
            keep: Vec::new(),
            last_resort: None,
            now,
            phase,
            serving,
            total: RateMeter::new(now),
        }
    }

    /// Makes a source known; one that is known already stays as it is.
    pub(super) fn add(&mut self, now: Time, id: SourceId) {
        self.known.entry(id).or_insert_with(|| Source::new(now, self.phase));
    }

    pub(crate) fn connected(&mut self, now: Time, id: SourceId, round_trip: Span) -> bool {
        let Some(source) = self.known.get_mut(&id).filter(|source| source.link != Link::Useless) else {
            return false;
        };
        source.link = Link::Up;
        source.silent = false;
        source.draining = false;
        source.vigil.connected(now, round_trip);
        source.refuses.clear();
        true
    }

    /// A connection is gone, or a dial failed; tells whether the source was
    /// usable until now. It is dialled again a second after the last dial.
    pub(crate) fn lost(&mut self, now: Time, id: SourceId) -> bool {
        let Some(source) = self.known.get_mut(&id) else { return false };
        let was_up = source.usable();
        if source.link != Link::Useless {
            source.link = Link::Down;
        }
        source.failed = true;
        source.silent = false;
        source.vigil.lost();
        // Of whom nothing was asked, nothing was waited for either.
        let waited = was_up && source.open > 0;
        if waited {
            self.forget_rate(now);
        }
        was_up
    }

    pub(crate) fn heard(&mut self, now: Time, id: SourceId, bytes: ByteCount) -> bool {
        let Some(source) = self.known.get_mut(&id) else { return false };
        if source.link != Link::Up {
            return false;
        }
        source.vigil.heard(now);
        if bytes >= PIECE {
            source.delivered = now;
        }
        source.rate.add(now, bytes);
        self.total.add(now, bytes);
        let back = std::mem::take(&mut source.silent);
        if back {
            self.note_busy(now);
        }
        back
    }

    /// An answer to a probe; tells whether a silent source is back.
    pub(crate) fn alive(&mut self, now: Time, id: SourceId, number: u32) -> bool {
        if let Some(source) = self.known.get_mut(&id) {
            source.vigil.answered(now, number);
        }
        self.heard(now, id, ByteCount(0))
    }

    pub(crate) fn draining(&mut self, id: SourceId) {
        if let Some(source) = self.known.get_mut(&id) {
            source.draining = true;
            source.failed = true;
        }
    }

    /// Another source was faster with what this one was asked for first.
    pub(crate) fn outrun(&mut self, id: SourceId) {
        if let Some(source) = self.known.get_mut(&id) {
            source.failed = true;
        }
    }

    /// The source delivered nonsense: it is tried last from now on.
    pub(crate) fn demote(&mut self, id: SourceId) {
        for order in &mut self.order {
            if let Some(place) = order.iter().position(|other| *other == id) {
                order.remove(place);
                order.push(id);
            }
        }
        for serving in self.serving.iter_mut().filter(|serving| **serving == Some(id)) {
            *serving = None;
        }
    }

    /// The source does not offer the layer, until it is dialled anew.
    pub(crate) fn refuses(&mut self, id: SourceId, layer: Layer) {
        if let Some(source) = self.known.get_mut(&id)
            && !source.refuses.contains(&layer)
        {
            source.refuses.push(layer);
        }
    }

    /// Whom to ask for a chunk of `layer`: the first in order that never failed,
    /// unless who serves it now stands before; else the first in order. Never
    /// one of `without`.
    pub(crate) fn choose(&self, layer: Layer, without: &[SourceId]) -> Option<SourceId> {
        let order = self.order.get(layer.index())?;
        let fit = |id: &SourceId| {
            let source = self.known.get(id);
            let willing = |s: &Source| {
                s.usable() && s.stands_by.is_none_or(|until| until <= self.now) && !s.refuses.contains(&layer)
            };
            let hoped = |other: &SourceId| self.known.get(other).is_some_and(Source::hopeful);
            let too_early = self.last_resort == Some(*id) && order.iter().any(|o| o != id && hoped(o));
            !without.contains(id) && !too_early && source.is_some_and(willing)
        };
        let fresh = |id: &SourceId| self.known.get(id).is_some_and(|source| !source.failed);
        let serving = self.serving(layer).filter(|id| order.contains(id) && fit(id));
        // Who was late to the start takes its place in the order; who once
        // failed does not take it back.
        let before = order.iter().copied().take_while(|id| Some(*id) != serving);
        let better = before.clone().find(|id| fit(id) && fresh(id));
        better.or(serving).or_else(|| order.iter().copied().find(fit))
    }

    pub(crate) fn serving(&self, layer: Layer) -> Option<SourceId> {
        self.serving.get(layer.index()).copied().flatten()
    }

    pub(crate) fn set_serving(&mut self, layer: Layer, id: SourceId) {
        if let Some(serving) = self.serving.get_mut(layer.index()) {
            *serving = Some(id);
        }
    }

    /// How many layers from Base upwards have a source that can be asked, or
    /// one that was never tried in vain. Base counts always: while it has none
    /// nothing is gained by wanting less.
    pub(crate) fn reachable_layers(&self) -> u8 {
        let reachable = |(index, order): &(usize, &Vec<SourceId>)| {
            let layer = Layer(u8::try_from(*index).unwrap_or(u8::MAX));
            layer == Layer::BASE
                || order
                    .iter()
                    .any(|id| self.known.get(id).is_some_and(|s| s.hopeful() && !s.refuses.contains(&layer)))
        };
        let count = self.order.iter().enumerate().take_while(reachable).count();
        u8::try_from(count).unwrap_or(u8::MAX)
    }

    pub(crate) fn is_silent(&self, id: SourceId) -> bool {
        self.known.get(&id).is_some_and(|source| source.silent)
    }

    /// The busy time behind `total_rate`.
    pub(crate) fn busy_time(&self) -> Span {
        self.total.busy_time()
    }

    pub(crate) fn heard_at(&self, id: SourceId) -> Time {
        self.known.get(&id).map_or(Time::ZERO, |source| source.vigil.heard_at())
    }

    pub(crate) fn round_trip(&self, id: SourceId) -> Span {
        self.known.get(&id).map_or(Span::ZERO, |source| source.vigil.round_trip())
    }

    /// Since when an open request at `id` may be doubled elsewhere.
    pub(crate) fn quiet_at(&self, id: SourceId, config: &PlayerConfig) -> Option<Time> {
        let source = self.known.get(&id)?;
        source.vigil.probed_since()?;
        Some(config.hedging().quiet_at(source.vigil.heard_at(), source.vigil.round_trip()))
    }

    /// A request was opened at `id`, or one ended.
    pub(crate) fn count_request(&mut self, now: Time, id: SourceId, opened: bool) {
        if let Some(source) = self.known.get_mut(&id) {
            source.open = if opened { source.open.saturating_add(1) } else { source.open.saturating_sub(1) };
            source.rate.set_busy(now, source.open > 0);
        }
        self.note_busy(now);
    }

    /// The line is busy while something is asked of somebody who is there.
    fn note_busy(&mut self, now: Time) {
        let busy = self.known.values().any(|source| source.open > 0 && source.usable());
        self.total.set_busy(now, busy);
    }

    /// A source is gone: the time for which it was waited says nothing about
    /// the line.
    fn forget_rate(&mut self, now: Time) {
        self.total = RateMeter::new(now);
        self.note_busy(now);
    }

    /// Sources that leave a probe unanswered, and since when.
    pub(crate) fn probed(&self) -> Vec<(SourceId, Time)> {
        let probed = |(id, source): (&SourceId, &Source)| Some((*id, source.vigil.probed_since()?));
        self.known.iter().filter_map(probed).collect()
    }

    /// Whether a source's answer may stand in a queue behind what others send;
    /// tells whether that is news.
    pub(crate) fn set_crowded(&mut self, id: SourceId, crowded: bool) -> bool {
        let lenience = if crowded { CROWDED } else { 1 };
        self.known.get_mut(&id).is_some_and(|source| source.vigil.set_lenience(lenience))
    }

    /// The rate of everything that comes, while something is asked for.
    pub(crate) fn total_rate(&self) -> Option<BitRate> {
        self.total.rate()
    }

    /// The rate of one connection.
    pub(crate) fn rate(&self, id: SourceId) -> Option<BitRate> {
        self.known.get(&id)?.rate.rate()
    }

    /// Sources that should be connected to serve `layers` layers: of each layer
    /// the first few that never failed, and every failed one before them.
    fn wanted(&self, layers: u8, config: &PlayerConfig) -> Vec<SourceId> {
        let mut wanted = self.keep.clone();
        for order in self.order.iter().take(usize::from(layers)) {
            let mut good = 0;
            for id in order {
                if good == config.connected_per_layer {
                    break;
                }
                good += usize::from(self.known.get(id).is_some_and(Source::hopeful));
                if !wanted.contains(id) {
                    wanted.push(*id);
                }
            }
        }
        wanted
    }

    /// Dials, probes and verdicts that are due.
    pub(crate) fn poll(&mut self, now: Time, layers: u8, config: &PlayerConfig) -> Vec<SourceAction> {
        self.now = now;
        let mut actions = Vec::new();
        let mut waited = false;
        let wanted = self.wanted(layers, config);
        for (id, source) in &mut self.known {
            if source.link == Link::Up {
                if !source.silent && source.silence_at(config).is_some_and(|when| when <= now) {
                    waited |= source.open > 0;
                    source.silent = true;
                    source.failed = true;
                    source.redial_at = now;
                    actions.push(SourceAction::Silent(*id, source.vigil.heard_at()));
                }
                if source.next_probe(config) <= now {
                    actions.push(SourceAction::Probe(*id, source.probe(now)));
                }
            }
            let dialable = match source.link {
                Link::Idle | Link::Down => true,
                Link::Dialling | Link::Useless => false,
                Link::Up => source.silent,
            };
            if dialable && source.redial_at <= now && wanted.contains(id) {
                source.redial_at = now + config.redial_every;
                if source.link != Link::Up {
                    source.link = Link::Dialling;
                }
                actions.push(SourceAction::Dial(*id));
            }
        }
        if waited {
            self.forget_rate(now);
        }
        actions
    }

    /// When `poll` has something to do.
    pub(crate) fn poll_timeout(&self, layers: u8, config: &PlayerConfig) -> Option<Time> {
        let wanted = self.wanted(layers, config);
        let due = |(id, source): (&SourceId, &Source)| {
            let dial = Some(source.redial_at).filter(|_| wanted.contains(id));
            match source.link {
                Link::Idle | Link::Down => dial,
                Link::Dialling | Link::Useless => None,
                Link::Up if source.silent => earliest(dial, Some(source.next_probe(config))),
                Link::Up => earliest(Some(source.next_probe(config)), source.silence_at(config)),
            }
        };
        self.known.iter().filter_map(due).min()
    }
}

/// The earlier of two times, if there is one.
pub(crate) fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
