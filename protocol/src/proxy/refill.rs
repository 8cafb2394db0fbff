//! From whom a chunk is fetched: the nodes that serve any client of its title,
//! then those that stand behind them; and what is asked again when one fails.

use super::cooperation::Server;
use super::fills::{Choice, Next, in_order};
use super::io::{Event, FillFailure, Output};
use super::lines::NodeId;
use super::users::{Seat, User};
use super::{Proxy, Upstream};
use crate::message::Refusal;
use crate::node::autonomy::UserId;
use media::{ChunkId, Layer, Span, Time};

impl Proxy {
    pub(super) fn start_fill(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        length: u64,
        asker: Option<UserId>,
    ) -> Result<(), Refusal> {
        let choice = self.choice(now, chunk, asker);
        if self.fills.start(now, chunk, length, &choice, &self.config)? == Next::Parked {
            self.changed = true;
        }
        Ok(())
    }

    /// Who can be asked for a chunk now: whoever serves the asker, then whoever
    /// serves others of the same title, then their backups.
    pub(super) fn choice(&self, now: Time, chunk: &ChunkId, asker: Option<UserId>) -> Choice {
        let mut users: Vec<(&UserId, &User)> = self
            .users
            .iter()
            .filter(|(_, user)| user.title == chunk.title && user.quality.includes(chunk.layer))
            .collect();
        users.sort_by_key(|(id, _)| Some(**id) != asker);
        let mut sources: Vec<Upstream> = Vec::new();
        let mut add = |user: &User, node: NodeId| {
            let fit = user.may_ask(now, node) && self.lines.is_usable(node);
            sources.extend(self.lines.at(node).filter(|at| fit && !sources.contains(at)));
        };
        for (_, user) in &users {
            for node in user.layers.get(chunk.layer.index()).into_iter().flatten() {
                add(user, *node);
            }
        }
        for (_, user) in &users {
            for node in user.sources(chunk.layer) {
                add(user, node);
            }
        }
        let known = |user: &User| {
            chunk.layer == Layer::BASE || user.layers.get(chunk.layer.index()).is_some_and(|n| !n.is_empty())
        };
        let hope = users.iter().any(|(_, user)| user.link.is_some() && known(user));
        Choice { sources, hope }
    }

    pub(super) fn filled(&mut self, now: Time, chunk: &ChunkId) {
        let (from, left) = (self.fills.source(chunk), self.fills.left(chunk));
        if !self.fills.done(chunk) {
            return self.outputs.push_back(Output::Discard { chunk: chunk.clone() });
        }
        if let Some(node) = from.and_then(|from| self.lines.find(from.address)) {
            self.note_serving(now, chunk, node, true);
            self.lines.delivered(now, node);
        }
        for user in self.users.values_mut() {
            user.filter.ready(now, chunk);
        }
        self.event(Event::Filled { chunk: chunk.clone() });
        let address = from.map(|from| from.address);
        let server = address.map_or(Server::Origin, |address| self.server_at(address));
        let node = address.and_then(|address| self.lines.find(address));
        let round_trip = node.map_or(Span::ZERO, |node| self.lines.least_round_trip(node));
        self.advisor.flows.came(now, chunk, server, left);
        self.advisor.flows.over(now, chunk);
        self.landed(now, chunk, server, round_trip);
    }

    /// A source did not deliver. What an older try says does not count.
    pub(super) fn fill_failed(&mut self, now: Time, chunk: &ChunkId, from: Upstream, why: FillFailure) {
        if self.fills.source(chunk) != Some(from) {
            return;
        }
        self.advisor.flows.over(now, chunk);
        if matches!(self.server_at(from.address), Server::Peer(_)) {
            return self.peer_failed(now, chunk, from, why);
        }
        if why == FillFailure::Refused(Refusal::NotServing)
            && let Some(node) = self.lines.find(from.address)
        {
            self.note_serving(now, chunk, node, false);
        }
        let choice = self.choice(now, chunk, None);
        let Some(next) = self.fills.failed(now, chunk, why, &choice, &self.config) else { return };
        self.event(Event::FillFailed { chunk: chunk.clone(), from, why });
        if why == FillFailure::Refused(Refusal::Coming) {
            self.outputs.push_back(Output::GiveUp { chunk: chunk.clone(), why: Refusal::Coming });
        } else {
            self.go_on(chunk, next);
        }
        if next == Next::GiveUp {
            self.lacking(now, chunk, None);
        }
        self.changed = true;
    }

    pub(super) fn go_on(&mut self, chunk: &ChunkId, next: Next) {
        match next {
            // It is asked for in its turn.
            Next::From(_) | Next::Parked => {}
            Next::GiveUp => {
                self.outputs.push_back(Output::GiveUp { chunk: chunk.clone(), why: Refusal::Upstream });
            }
        }
    }

    /// A node delivered a chunk, or said that it serves nobody here who watches
    /// its title.
    fn note_serving(&mut self, now: Time, chunk: &ChunkId, node: NodeId, serves: bool) {
        let until = (!serves).then(|| now + self.config.ask_again);
        for (id, user) in self.users.iter_mut().filter(|(_, user)| user.title == chunk.title) {
            if let Some(Seat::Held { stands_by, .. }) = user.seats.get_mut(&node)
                && *stands_by != until
            {
                *stands_by = until;
                self.agenda.mark(*id);
            }
        }
    }

    /// What is open at a node that is silent or gone is asked elsewhere, Base
    /// first, in the order of blocks.
    pub(super) fn refetch(&mut self, now: Time, node: NodeId) {
        let Some(from) = self.lines.at(node) else { return };
        for chunk in in_order(self.fills.at(from)) {
            let asked = self.fills.source(&chunk).unwrap_or(from);
            self.fill_failed(now, &chunk, asked, FillFailure::Silent);
        }
    }

    /// What waits for somebody to serve again is asked for, in the same order.
    pub(super) fn retry_parked(&mut self, now: Time) {
        for chunk in in_order(self.fills.parked()) {
            let choice = self.choice(now, &chunk, None);
            let next = self.fills.retry(now, &chunk, &choice, &self.config);
            self.go_on(&chunk, next);
            if next == Next::GiveUp {
                self.lacking(now, &chunk, None);
            }
        }
    }
}
