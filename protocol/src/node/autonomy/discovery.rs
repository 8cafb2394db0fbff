//! The search for a backup (ADVODS 3.1: DISC-MA) as each node on its way sees it:
//! agents fork along the links of Base and Enh1 nodes, stop by one of three
//! rules, and come back as one with the best candidate.
//!
//! A timeout is the time left for going on *and* coming back, so each link costs
//! twice its travel time (eq. 2): replies forwarded at the timer of a node reach
//! the node before it exactly at that one's timer.

use super::Autonomy;
use super::agent::{
    AgentState, DiscoveryAgent, EntryKind, Level, MAX_PATH, MAX_ROUTE, Note, Offer, SearchId, Speaks,
};
use super::io::{AutonomyEvent, Bound, RejectedWhy};
use super::route::{Wanted, without};
use super::talk::AgentMessage;
use crate::peer::PeerId;
use media::{Layer, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One search on one node.
#[derive(Clone, Debug)]
struct Walk {
    /// What came here last, or was sent from here; on the start node with an
    /// empty path.
    agent: Box<DiscoveryAgent>,
    /// The neighbours from which a reply is awaited.
    outstanding: Vec<PeerId>,
    /// The best so far.
    best: Option<Offer>,
    /// The best so far and what could stand in for it, the best first.
    route: Vec<Note>,
    /// Whether no reply but whole ones came.
    whole: bool,
    /// When the answer is sent with or without the replies.
    deadline: Time,
}

/// The searches that have passed here.
#[derive(Clone, Debug, Default)]
pub(super) struct Walks {
    open: BTreeMap<SearchId, Walk>,
    timers: BTreeSet<(Time, SearchId)>,
    /// Answered, but remembered until no agent of the search can come any more.
    seen: BTreeSet<SearchId>,
    forget: BTreeSet<(Time, SearchId)>,
}

impl Walks {
    pub(super) fn next(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    fn len(&self) -> usize {
        self.open.len().saturating_add(self.seen.len())
    }

    fn was_here(&self, id: SearchId) -> bool {
        self.open.contains_key(&id) || self.seen.contains(&id)
    }

    fn open_walk(&mut self, walk: Walk) {
        let id = walk.agent.id;
        self.timers.insert((walk.deadline, id));
        self.open.insert(id, walk);
    }

    /// Answered: from here on only its name is remembered.
    fn close(&mut self, id: SearchId) -> Option<Walk> {
        let walk = self.open.remove(&id)?;
        self.timers.remove(&(walk.deadline, id));
        self.remember(id, walk.deadline);
        Some(walk)
    }

    fn remember(&mut self, id: SearchId, until: Time) {
        self.seen.insert(id);
        self.forget.insert((until, id));
    }

    fn purge(&mut self, now: Time) {
        while let Some((until, id)) = self.forget.first().copied() {
            if until > now {
                break;
            }
            self.forget.remove(&(until, id));
            self.seen.remove(&id);
        }
    }
}

impl Autonomy {
    pub(super) fn wanted(&self, agent: &DiscoveryAgent) -> Wanted {
        let (strict, policy) = (self.config.strict, self.config.policy);
        Wanted { kind: agent.wanted, search: agent.id, why: agent.kind, strict, policy }
    }

    /// The neighbours on the graph of Base and Enh1 nodes, by name: those of
    /// the other one of the two levels.
    fn edge_neighbours(&self) -> Vec<PeerId> {
        let next = match self.level {
            Level::BASE => Level::ENH1,
            Level::ENH1 => Level::BASE,
            Level::Layer(_) | Level::Origin => return Vec::new(),
        };
        // Base nodes are linked with each other only where no Enh1 node joins them.
        let leads = |level: Level| level == next || (level == Level::BASE && self.level == Level::BASE);
        self.survival.alive().filter(|(_, n)| leads(n.level)).map(|(peer, _)| peer).collect()
    }

    /// The start node sends its agents. Whether there was anybody to send them to.
    pub(super) fn send_agents(&mut self, now: Time, agent: DiscoveryAgent) -> bool {
        let outstanding = self.edge_neighbours();
        if outstanding.is_empty() || self.level != Level::BASE {
            return false;
        }
        let deadline = now + agent.timeout;
        let path: Arc<[PeerId]> = [self.id].into();
        for to in &outstanding {
            let copy = DiscoveryAgent { path: Arc::clone(&path), ..DiscoveryAgent::clone(&agent) };
            self.send(*to, AgentMessage::Discovery(Box::new(copy)));
        }
        let (agent, best, route, whole) = (Box::new(agent), None, Vec::new(), true);
        self.walks.open_walk(Walk { agent, outstanding, best, route, whole, deadline });
        true
    }

    /// Whether an agent could have come here that way.
    fn check_agent(&self, from: PeerId, agent: &DiscoveryAgent) -> Result<(), RejectedWhy> {
        let place = match agent.state {
            AgentState::Search => agent.path.last() == Some(&from),
            AgentState::Reply { .. } => agent.path.get(usize::from(agent.at)) == Some(&self.id),
        };
        let bounds = agent.path.len() <= self.config.max_hops.min(MAX_PATH) && agent.route.len() <= MAX_ROUTE;
        let span = self.config.buffer.saturating_mul(2);
        if !self.level.is_edge() {
            Err(RejectedWhy::WrongLevel)
        } else if self.survival.neighbour(from).is_none() {
            Err(RejectedWhy::NotANeighbour)
        } else if !place || agent.path.first() != Some(&agent.id.start) {
            Err(RejectedWhy::BadPath)
        } else if !bounds || agent.timeout > span || agent.radius > self.config.buffer {
            Err(RejectedWhy::TooLong)
        } else if !agent.wanted.is_backup() {
            Err(RejectedWhy::NotABackup)
        } else {
            Ok(())
        }
    }

    pub(super) fn hear_agent(&mut self, now: Time, from: PeerId, agent: Box<DiscoveryAgent>, travel: Span) {
        if let Err(why) = self.check_agent(from, &agent) {
            return self.event(AutonomyEvent::Rejected { from, why });
        }
        self.walks.purge(now);
        match agent.state {
            AgentState::Search => self.agent_arrives(now, from, agent, travel),
            AgentState::Reply { late, speaks } => self.reply_arrives(now, from, agent, late, speaks),
        }
    }

    fn agent_arrives(&mut self, now: Time, from: PeerId, mut agent: Box<DiscoveryAgent>, travel: Span) {
        // Stop rule c. What is known of this node's own state went with the first.
        if self.walks.was_here(agent.id) {
            return self.turn_back(now, agent, Speaks::Nobody);
        }
        if self.walks.len() >= self.config.max_searches {
            self.event(AutonomyEvent::BoundReached { what: Bound::Searches });
            return self.turn_back(now, agent, Speaks::Some);
        }
        agent.travelled += travel;
        agent.timeout = agent.timeout.saturating_sub(travel.saturating_mul(2));
        let deadline = now + agent.timeout;
        let fit = self.level == Level::BASE && self.stores(&agent.title, Layer::BASE);
        let own = fit.then(|| self.own_note(agent.path.len()));
        // Stop rules a and b.
        let on = agent.travelled < agent.radius
            && agent.timeout > Span::ZERO
            && agent.path.len() < self.config.max_hops.min(MAX_PATH);
        let mut out = if on { self.edge_neighbours() } else { Vec::new() };
        out.retain(|to| *to != from);
        let skipped = self.skip_known(now, &agent, &mut out);
        let hops = agent.path.len();
        let room = self.config.max_route.min(MAX_ROUTE);
        let dead = |node| self.survival.is_dead(node);
        let wanted = self.wanted(&agent);
        let mut read = self.board.read(now, &wanted, &skipped, room, dead);
        for note in &mut read {
            note.hops = add_hops(note.hops, hops);
        }
        if own.is_some() || !read.is_empty() {
            agent.route = extend_route(&agent.route, own, &read);
        }
        if out.is_empty() {
            self.walks.remember(agent.id, deadline);
            return self.turn_back(now, agent, Speaks::All);
        }
        self.board.leave(&wanted, add_hops(0, hops), &agent.route, deadline);
        let path: Arc<[PeerId]> = agent.path.iter().copied().chain([self.id]).collect();
        for to in &out {
            let copy = DiscoveryAgent { path: Arc::clone(&path), ..DiscoveryAgent::clone(&agent) };
            self.send(*to, AgentMessage::Discovery(Box::new(copy)));
        }
        let route = wanted.best(agent.route.iter().copied(), self.config.max_route);
        let best = route.first().map(|note| Offer { note: *note, held: false });
        self.walks.open_walk(Walk { agent, outstanding: out, best, route, whole: true, deadline });
    }

    /// This node as others see it, so many hops from the start.
    fn own_note(&self, hops: usize) -> Note {
        Note {
            node: self.id,
            hops: add_hops(0, hops),
            free: self.free(),
            headroom: self.headroom(),
            lowest: self.lowest(),
            passed: true,
        }
    }

    /// Takes those neighbours out of `out` through which the board has a result.
    fn skip_known(&self, now: Time, agent: &DiscoveryAgent, out: &mut Vec<PeerId>) -> Vec<PeerId> {
        let mut skipped = Vec::new();
        if self.config.board_stop && agent.boards {
            let age = agent.radius.saturating_mul(2);
            out.retain(|to| {
                let known = self.board.knows(now, *to, agent.wanted, age);
                if known {
                    skipped.push(*to);
                }
                !known
            });
        }
        skipped
    }

    /// An agent stops here and goes back the way it came.
    fn turn_back(&mut self, now: Time, agent: Box<DiscoveryAgent>, speaks: Speaks) {
        let route = self.wanted(&agent).best(agent.route.iter().copied(), self.config.max_route);
        let best = route.first().map(|note| Offer { note: *note, held: false });
        self.send_reply(now, agent, best, route, speaks);
    }

    /// Sends the one agent that goes back from here.
    fn send_reply(
        &mut self,
        now: Time,
        mut agent: Box<DiscoveryAgent>,
        best: Option<Offer>,
        route: Vec<Note>,
        speaks: Speaks,
    ) {
        let (candidate, route) = self.settle(now, &agent, best, route);
        let Some(at) = agent.path.len().checked_sub(1) else { return };
        let Some(to) = agent.path.get(at).copied() else { return };
        agent.state = AgentState::Reply { late: false, speaks };
        agent.at = u8::try_from(at).unwrap_or(u8::MAX);
        (agent.candidate, agent.route) = (candidate, route.into());
        self.send(to, AgentMessage::Discovery(agent));
    }

    /// Where the best candidate is this node, reserves it tentatively; where
    /// that is refused meanwhile, the next best takes its place.
    fn settle(
        &mut self,
        now: Time,
        agent: &DiscoveryAgent,
        mut best: Option<Offer>,
        mut route: Vec<Note>,
    ) -> (Option<Offer>, Vec<Note>) {
        while let Some(offer) = best.filter(|offer| offer.note.node == self.id && !offer.held) {
            if self.reservations.get(agent.id.user).is_some_and(|row| row.kind == agent.wanted) {
                break; // It has the place already.
            }
            let own = self.reservations.tentative(agent.id).map(|row| row.kind);
            if self.backup_test(agent.wanted, own).is_ok() {
                let expires = now + agent.radius.saturating_mul(2);
                self.reservations.hold(agent.id, agent.wanted, expires);
                best = Some(Offer { held: true, ..offer });
                break;
            }
            route = without(&route, self.id);
            best = route.first().map(|note| Offer { note: *note, held: false });
        }
        (best, route)
    }

    fn reply_arrives(
        &mut self,
        now: Time,
        from: PeerId,
        agent: Box<DiscoveryAgent>,
        late: bool,
        speaks: Speaks,
    ) {
        let id = agent.id;
        let Some(walk) = self.walks.open.get_mut(&id) else {
            return self.pass_on(now, agent);
        };
        if !late {
            let Some(place) = walk.outstanding.iter().position(|peer| *peer == from) else {
                return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
            };
            walk.outstanding.swap_remove(place);
            walk.whole &= speaks != Speaks::Some;
        }
        let hops = walk.agent.path.len();
        if speaks == Speaks::All && !late && self.config.board_stop {
            let wanted = self.wanted(&agent);
            self.board.result(now, from, &wanted, add_hops(0, hops), &agent.route);
        }
        self.merge(id, &agent);
        if self.walks.open.get(&id).is_some_and(|walk| walk.outstanding.is_empty()) {
            self.finish(now, id, false);
        }
    }

    /// Keeps the better one of two candidates and cancels the other's reservation.
    fn merge(&mut self, id: SearchId, agent: &DiscoveryAgent) {
        let wanted = self.wanted(agent);
        let max = self.config.max_route;
        let Some(walk) = self.walks.open.get_mut(&id) else { return };
        let notes = walk.route.iter().chain(agent.route.iter()).copied();
        let dead = |note: &Note| self.survival.is_dead(note.node);
        walk.route = wanted.best(notes.filter(|note| !dead(note)), max);
        let (best, loser) = match (walk.best, agent.candidate.filter(|offer| !dead(&offer.note))) {
            (Some(a), Some(b)) if a.note.node == b.note.node => {
                // Two agents hold one row: one of them lets go, the row stays.
                (Some(Offer { held: a.held || b.held, ..a }), Some(b).filter(|_| a.held && b.held))
            }
            (Some(a), Some(b)) if wanted.compare(&b.note, &a.note).is_lt() => (Some(b), Some(a)),
            (Some(a), b) => (Some(a), b),
            (None, b) => (b, None),
        };
        walk.best = best;
        if let Some(offer) = loser.filter(|offer| offer.held) {
            self.cancel(id, offer);
        }
    }

    /// One agent less holds a tentative reservation.
    pub(super) fn cancel(&mut self, id: SearchId, offer: Offer) {
        self.send_or_hear(offer.note.node, AgentMessage::Cancel(id));
    }

    /// Everybody has answered, or the timer fired: the answer goes back.
    fn finish(&mut self, now: Time, id: SearchId, timed_out: bool) {
        self.board.wipe(id);
        let Some(walk) = self.walks.close(id) else { return };
        let Walk { agent, best, route, whole, .. } = walk;
        if agent.path.is_empty() {
            self.search_answered(now, id, best, route, timed_out);
        } else {
            let speaks = if whole && !timed_out { Speaks::All } else { Speaks::Some };
            self.send_reply(now, agent, best, route, speaks);
        }
    }

    /// A reply to somebody who has answered already goes on along its path; the
    /// start node may still want it.
    fn pass_on(&mut self, now: Time, mut agent: Box<DiscoveryAgent>) {
        let route: Vec<Note> = agent.route.to_vec();
        let (candidate, route) = self.settle(now, &agent, agent.candidate, route);
        let Some(at) = agent.at.checked_sub(1) else {
            return self.late_reply(now, agent.id, candidate, route);
        };
        let Some(to) = agent.path.get(usize::from(at)).copied() else { return };
        agent.state = AgentState::Reply { late: true, speaks: Speaks::Some };
        (agent.at, agent.candidate, agent.route) = (at, candidate, route.into());
        self.send(to, AgentMessage::Discovery(agent));
    }

    /// Timers that fired.
    pub(super) fn walks_due(&mut self, now: Time) {
        while let Some((at, id)) = self.walks.timers.first().copied() {
            if at > now {
                break;
            }
            self.finish(now, id, true);
        }
    }

    /// Nobody waits for a dead node, and its own searches are over.
    pub(super) fn walks_without(&mut self, now: Time, dead: PeerId) {
        let over = self.walks.open.keys().filter(|id| id.start == dead).copied().collect::<Vec<_>>();
        for id in over {
            self.board.wipe(id);
            if let Some(offer) = self.walks.close(id).and_then(|walk| walk.best).filter(|offer| offer.held) {
                self.cancel(id, offer);
            }
        }
        let mut done = Vec::new();
        for (id, walk) in &mut self.walks.open {
            let before = walk.outstanding.len();
            walk.outstanding.retain(|peer| *peer != dead);
            walk.whole &= walk.outstanding.len() == before;
            if walk.outstanding.is_empty() {
                done.push(*id);
            }
        }
        for id in done {
            self.finish(now, id, false);
        }
    }

    /// An entry that stands for a search, to be compared with a row of its user.
    pub(super) fn own_entry(&self, id: SearchId) -> Option<EntryKind> {
        let tentative = self.reservations.tentative(id).map(|row| row.kind);
        tentative.or_else(|| self.reservations.get(id.user).map(|row| row.kind))
    }
}

/// The route with more notes; what was passed is kept before what was read.
fn extend_route(route: &[Note], own: Option<Note>, read: &[Note]) -> Arc<[Note]> {
    let mut route: Vec<Note> = route.iter().copied().chain(own).collect();
    for note in read {
        if !route.iter().any(|have| have.node == note.node) {
            route.push(*note);
        }
    }
    route.truncate(MAX_ROUTE);
    route.into()
}

fn add_hops(hops: u8, more: usize) -> u8 {
    hops.saturating_add(u8::try_from(more).unwrap_or(u8::MAX))
}
