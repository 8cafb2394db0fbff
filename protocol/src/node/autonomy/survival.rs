//! Who is alive: survival signals to the neighbours, a verdict about those that
//! fall silent, and what is known of nodes further away.
//!
//! Every message of a neighbour is a sign of life. The standing of a node is a
//! number that counts its deaths and returns, odd for a death; of two messages
//! about one node the higher number is right, and only news is passed on, so
//! that a flood ends.

use super::agent::Level;
use super::talk::Standing;
use crate::peer::PeerId;
use media::{Span, Time};
use std::collections::BTreeMap;

/// The part that watches.
#[derive(Clone, Debug)]
pub struct Survival {
    every: Span,
    after: Span,
    phase: Span,
    on: bool,
    max_neighbours: usize,
    max_nodes: usize,
    neighbours: BTreeMap<PeerId, Neighbour>,
    standing: BTreeMap<PeerId, (u32, bool)>,
    next_signal: Time,
    awake: Time,
    /// Signals since the last digest.
    beats: u32,
    /// The node spoken of last in an answer to a digest.
    spoken: Option<PeerId>,
}

/// The most standings in one message; the others follow at the next digests.
pub const MAX_STANDINGS: usize = 64;

/// A node at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its level.
    pub level: Level,
    /// What a message takes one way.
    pub travel: Span,
    /// When it was last heard.
    pub heard: Time,
    /// Whether this node has judged it dead and not heard it since. If others
    /// say it lives, it is the link that does not work: no second verdict is
    /// given, and nobody is sent that way.
    pub mute: bool,
}

impl Survival {
    /// Watches nobody yet. The first signal is sent `seed mod every` from now, so
    /// that a network does not signal in step.
    pub fn new(now: Time, every: Span, after: Span, bounds: (usize, usize), seed: u64) -> Self {
        let phase = Span::from_nanos(seed.checked_rem(every.as_nanos()).unwrap_or(0));
        Self {
            every,
            after,
            phase,
            on: true,
            max_neighbours: bounds.0,
            max_nodes: bounds.1,
            neighbours: BTreeMap::new(),
            standing: BTreeMap::new(),
            next_signal: now + phase,
            awake: now,
            beats: 0,
            spoken: None,
        }
    }

    /// Begins or ceases to send and await signals. Nobody is judged by the time
    /// before.
    pub fn switch(&mut self, now: Time, on: bool) {
        if on && !self.on {
            self.next_signal = now + self.phase;
            self.forgive(now);
        }
        self.on = on;
    }

    /// To be called at every input: whether, and how long, this node itself was
    /// still for longer than two signals (a hang, a suspended machine). What it
    /// did not hear in that time says nothing about the others.
    pub fn wake(&mut self, now: Time) -> Option<Span> {
        let still = now - self.awake;
        self.awake = now;
        let slept = self.on && !self.neighbours.is_empty() && still > self.every.saturating_mul(2);
        slept.then(|| {
            self.forgive(now);
            still
        })
    }

    fn forgive(&mut self, now: Time) {
        for neighbour in self.neighbours.values_mut() {
            neighbour.heard = now;
        }
        self.awake = now;
    }

    /// A link. Whether there was room for it.
    pub fn link(&mut self, now: Time, peer: PeerId, level: Level, travel: Span) -> bool {
        if self.neighbours.len() >= self.max_neighbours && !self.neighbours.contains_key(&peer) {
            return false;
        }
        self.neighbours.insert(peer, Neighbour { level, travel, heard: now, mute: false });
        true
    }

    /// A link is no more.
    pub fn unlink(&mut self, peer: PeerId) -> bool {
        self.neighbours.remove(&peer).is_some()
    }

    /// A sign of life.
    pub fn heard(&mut self, now: Time, peer: PeerId) {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            (neighbour.heard, neighbour.mute) = (now, false);
        }
    }

    /// Others say that a neighbour lives: it gets the time to be heard here too.
    pub fn grace(&mut self, now: Time, peer: PeerId) {
        if let Some(neighbour) = self.neighbours.get_mut(&peer).filter(|neighbour| !neighbour.mute) {
            neighbour.heard = now;
        }
    }

    /// A verdict was given by its silence.
    pub fn mute(&mut self, peer: PeerId) {
        if let Some(neighbour) = self.neighbours.get_mut(&peer) {
            neighbour.mute = true;
        }
    }

    /// A neighbour, dead or alive.
    pub fn neighbour(&self, peer: PeerId) -> Option<&Neighbour> {
        self.neighbours.get(&peer)
    }

    /// All neighbours by name, the dead ones too: they may not be dead.
    pub fn everybody(&self) -> impl Iterator<Item = PeerId> {
        self.neighbours.keys().copied()
    }

    /// The neighbours that are not thought dead and can be heard, by name.
    pub fn alive(&self) -> impl Iterator<Item = (PeerId, &Neighbour)> {
        let alive = |(peer, n): &(&PeerId, &Neighbour)| !n.mute && !self.is_dead(**peer);
        self.neighbours.iter().filter(alive).map(|(peer, n)| (*peer, n))
    }

    /// Whether it is time to send signals; if so, the next time is set.
    pub fn signal_due(&mut self, now: Time) -> bool {
        if !self.on || now < self.next_signal || self.every == Span::ZERO {
            return false;
        }
        while self.next_signal <= now {
            let behind = (now - self.next_signal).as_nanos() / self.every.as_nanos().max(1);
            self.next_signal += self.every.saturating_mul(behind.saturating_add(1));
        }
        true
    }

    /// The neighbours that said nothing for Td and are not thought dead, with
    /// how long they were silent.
    pub fn overdue(&self, now: Time) -> Vec<(PeerId, Span)> {
        if !self.on {
            return Vec::new();
        }
        let late = |n: &Neighbour| n.heard + self.after <= now;
        self.alive().filter(|(_, n)| late(n)).map(|(peer, n)| (peer, now - n.heard)).collect()
    }

    /// When the next signal is due or the next neighbour overdue.
    pub fn next(&self) -> Option<Time> {
        if !self.on || self.neighbours.is_empty() {
            return None;
        }
        let verdict = self.alive().map(|(_, n)| n.heard + self.after).min();
        Some(verdict.map_or(self.next_signal, |verdict| verdict.min(self.next_signal)))
    }

    /// This node's own verdict about another one, to be told to all.
    pub fn judge(&mut self, node: PeerId, detector: PeerId, dead: bool) -> Option<Standing> {
        let seq = self.standing.get(&node).map_or(0, |(seq, _)| *seq).saturating_add(1);
        let standing = Standing { node, detector, seq };
        self.learn(standing, dead).then_some(standing)
    }

    /// What another node says. Whether it is news; only news is passed on.
    pub fn learn(&mut self, said: Standing, dead: bool) -> bool {
        let known = self.standing.get(&said.node).map_or(0, |(seq, _)| *seq);
        let room = self.standing.contains_key(&said.node) || self.standing.len() < self.max_nodes;
        // A death has an odd number: two verdicts of the same number say the same.
        let news = said.seq > known && said.is_death() == dead && room;
        if news {
            self.standing.insert(said.node, (said.seq, dead));
        }
        news
    }

    /// Whether a digest is to be sent in place of this beat's signal: at each
    /// `every`-th beat; never if that is 0.
    pub fn digest_due(&mut self, every: u32) -> bool {
        self.beats = self.beats.saturating_add(1);
        let due = every > 0 && self.beats >= every;
        if due {
            self.beats = 0;
        }
        due
    }

    /// A number that differs where standings do, whatever their order; 0 for none.
    pub fn digest(&self) -> u64 {
        let of = |(node, (seq, _)): (&PeerId, &(u32, bool))| {
            // FNV-1a over name and number.
            let bytes = node.as_str().bytes().chain([0]).chain(seq.to_le_bytes());
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        self.standing.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Some of the standings, each time those behind the ones before.
    pub fn some_standings(&mut self) -> Vec<(PeerId, u32)> {
        let behind = |node: &PeerId| self.spoken.is_none_or(|spoken| *node > spoken);
        let (next, first): (Vec<_>, Vec<_>) =
            self.standing.iter().map(|(node, (seq, _))| (*node, *seq)).partition(|(node, _)| behind(node));
        let some: Vec<(PeerId, u32)> = next.into_iter().chain(first).take(MAX_STANDINGS).collect();
        self.spoken = some.last().map(|(node, _)| *node);
        some
    }

    /// Whether a node is thought dead.
    pub fn is_dead(&self, node: PeerId) -> bool {
        self.standing.get(&node).is_some_and(|(_, dead)| *dead)
    }

    /// The nodes thought dead, by name.
    pub fn dead(&self) -> impl Iterator<Item = PeerId> {
        self.standing.iter().filter(|(_, (_, dead))| *dead).map(|(node, _)| *node)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    const TS: Span = Span::from_millis(100);
    const TD: Span = Span::from_millis(400);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn peer(name: &str) -> PeerId {
        name.parse().unwrap()
    }

    fn watching(seed: u64) -> Survival {
        let mut survival = Survival::new(at(0), TS, TD, (2, 2), seed);
        assert!(survival.link(at(0), peer("a"), Level::ENH1, Span::ZERO));
        survival
    }

    #[test]
    fn silence_of_td_is_a_verdict_and_one_sign_of_life_is_none() {
        let mut survival = watching(0);
        survival.heard(at(100), peer("a"));
        assert_eq!(survival.overdue(at(499)), []);
        assert_eq!(survival.overdue(at(500)), [(peer("a"), TD)]);
        survival.heard(at(499), peer("a"));
        assert_eq!(survival.overdue(at(500)), []);
    }

    #[test]
    fn signals_keep_their_beat_from_their_own_phase() {
        let mut survival = watching(30_000_000);
        assert_eq!(survival.next(), Some(at(30)));
        assert!(!survival.signal_due(at(29)) && survival.signal_due(at(31)));
        assert_eq!(survival.next(), Some(at(130)));
        assert!(
            survival.signal_due(at(350)) && !survival.signal_due(at(429)) && survival.signal_due(at(430))
        );
    }

    #[test]
    fn a_node_that_was_still_itself_judges_nobody() {
        let mut survival = watching(0);
        assert_eq!(survival.wake(at(200)), None);
        assert_eq!(survival.wake(at(900)), Some(Span::from_millis(700)));
        assert_eq!(survival.overdue(at(900)), []);
        assert_eq!(survival.overdue(at(1_300)), [(peer("a"), TD)]);
    }

    #[test]
    fn switched_off_it_asks_for_nothing() {
        let mut survival = watching(0);
        survival.switch(at(0), false);
        assert_eq!(survival.next(), None);
        assert!(survival.overdue(at(9_000)).is_empty() && !survival.signal_due(at(9_000)));
        survival.switch(at(9_000), true);
        assert!(survival.overdue(at(9_100)).is_empty());
    }

    #[test]
    fn news_is_news_once_and_the_higher_number_is_right() {
        let (mut survival, b) = (watching(0), peer("b"));
        let said = survival.judge(b, peer("me"), true).unwrap();
        assert_eq!(said.seq, 1);
        assert!(survival.is_dead(b) && !survival.learn(said, true));
        let back = Standing { seq: 2, ..said };
        assert!(survival.learn(back, false) && !survival.is_dead(b));
        assert!(!survival.learn(said, true), "an old death is no news");
        // Bounded: a third node is not remembered.
        assert!(survival.judge(peer("c"), peer("me"), true).is_some());
        assert_eq!(survival.judge(peer("d"), peer("me"), true), None);
    }

    #[test]
    fn a_neighbour_that_only_this_node_cannot_hear_is_judged_once() {
        let (mut survival, a) = (watching(0), peer("a"));
        assert_eq!(survival.overdue(at(400)), [(a, TD)]);
        let said = survival.judge(a, peer("me"), true).unwrap();
        survival.mute(a);
        // Others hear it.
        assert!(survival.learn(Standing { seq: said.seq + 1, ..said }, false));
        survival.grace(at(500), a);
        assert!(survival.overdue(at(9_000)).is_empty() && survival.alive().next().is_none());
        survival.heard(at(9_000), a);
        assert_eq!((survival.alive().count(), survival.overdue(at(9_400)).len()), (1, 1));
    }

    #[test]
    fn digests_come_every_few_beats_and_differ_where_standings_do() {
        let (mut one, mut other) = (watching(0), watching(0));
        assert_eq!([0; 6].map(|_| one.digest_due(3)), [false, false, true, false, false, true]);
        assert!(!one.digest_due(0) && one.digest() == 0);
        let said = one.judge(peer("b"), peer("me"), true).unwrap();
        assert_ne!(one.digest(), other.digest());
        assert!(!other.learn(Standing { seq: 2, ..said }, true), "an even number is no death");
        assert!(other.learn(said, true));
        assert_eq!(one.digest(), other.digest());
    }

    #[test]
    fn standings_are_told_in_turn() {
        let mut survival = Survival::new(at(0), TS, TD, (2, 200), 0);
        for node in 0..100 {
            survival.judge(peer(&format!("n{node:02}")), peer("me"), true).unwrap();
        }
        let (one, other) = (survival.some_standings(), survival.some_standings());
        assert_eq!((one.len(), one[0].0, one[63].0), (64, peer("n00"), peer("n63")));
        assert_eq!((other[0], other[35].0, other[36].0), ((peer("n64"), 1), peer("n99"), peer("n00")));
    }

    #[test]
    fn neighbours_are_bounded() {
        let mut survival = watching(0);
        assert!(survival.link(at(0), peer("b"), Level::BASE, Span::ZERO));
        assert!(!survival.link(at(0), peer("c"), Level::BASE, Span::ZERO));
        assert!(survival.link(at(0), peer("a"), Level::ENH2, Span::ZERO), "known ones may change");
        assert!(survival.unlink(peer("a")) && !survival.unlink(peer("a")));
    }
}
