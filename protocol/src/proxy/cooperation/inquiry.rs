//! QUERY, REPLY and markers (Wakamiya et al., 3.1).

use super::super::talk::{BlockRange, Query, Reply, runs};
use super::super::window;
use super::{ClientId, Cooperation, Event, Output, Server, Title};
use crate::peer::PeerId;
use media::{Quality, Span, Time, TitleName};

impl Cooperation {
    /// A client is at `position`: the others are asked anew if its window has
    /// moved far enough.
    pub(super) fn move_window(&mut self, place: usize, client: ClientId, position: u32) {
        let (inquiry, ahead) = (self.config.inquiry, self.config.ahead);
        let title = self.titles.get(place).and_then(Option::as_ref);
        let row = title.and_then(|title| title.clients.get(client));
        if row.is_some_and(|row| window::is_due(row.asked_at, position, inquiry, ahead)) {
            self.inquire(place);
        }
    }

    /// Asks every peer about the windows of all clients of a title; with no
    /// client left this clears the markers there.
    pub(super) fn inquire(&mut self, place: usize) {
        if !self.config.cooperate {
            return;
        }
        let Some(query) = self.query(place) else { return };
        if let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut) {
            for row in title.clients.iter_mut() {
                row.asked_at = row.position;
            }
        }
        for (_, row) in self.remote.rows() {
            if let Server::Peer(to) = row.id
                && !row.lost
            {
                self.counts.queries = self.counts.queries.saturating_add(1);
                self.outputs.push_back(Output::Query { to, query: query.clone() });
            }
        }
    }

    /// Asks one peer.
    pub(super) fn inquire_of(&mut self, place: usize, to: PeerId) {
        if self.config.cooperate
            && let Some(query) = self.query(place)
        {
            self.counts.queries = self.counts.queries.saturating_add(1);
            self.outputs.push_back(Output::Query { to, query });
        }
    }

    fn query(&self, place: usize) -> Option<Query> {
        let title = self.titles.get(place)?.as_ref()?;
        let positions = title.clients.iter().map(|row| row.position.unwrap_or(0));
        let ranges = if title.clients.is_empty() {
            Vec::new()
        } else {
            window::asked(positions, self.config.inquiry, title.table.blocks())
        };
        Some(Query { title: title.name.clone(), ranges })
    }

    /// A peer asks: what it asks about is marked for it, and nothing else is.
    pub(super) fn queried(&mut self, now: Time, from: PeerId, query: Query) {
        let peer = self.peer_place(from);
        let Some(peer) = peer.filter(|_| query.is_bounded() && is_ascending(&query.ranges)) else {
            self.event(Event::Rejected { peer: from });
            return;
        };
        let mut told = Vec::new();
        if let Some(title) = self.title_mut(&query.title) {
            let blocks = title.table.blocks();
            let ranges = query.ranges.into_iter().map(|range| range.cut(blocks));
            let ranges: Vec<BlockRange> = ranges.filter(|range| range.count > 0).collect();
            let asked = ranges.iter().flat_map(|range| range.first..range.end());
            told = runs(asked.map(|block| (block, title.cache.quality(block))));
            title.heard.retain(|(other, _)| *other != peer);
            if !ranges.is_empty() {
                title.heard.push((peer, now));
            }
            title.cache.mark(peer, ranges);
        }
        let reply = Reply { title: query.title, runs: told };
        self.outputs.push_back(Output::Reply { to: from, reply });
    }

    /// A block is kept: whoever marked it is told, without being asked again.
    pub(super) fn tell_news(&mut self, place: usize, title: &TitleName, block: u32, quality: Quality) {
        let Some(cache) = self.titles.get(place).and_then(Option::as_ref).map(|title| &title.cache) else {
            return;
        };
        let runs = runs(std::iter::once((block, quality)));
        for peer in cache.marked_by(block) {
            if let Some(Server::Peer(to)) = self.remote.row(peer).map(|row| row.id) {
                let reply = Reply { title: title.clone(), runs: runs.clone() };
                self.outputs.push_back(Output::Reply { to, reply });
            }
        }
    }

    /// A peer says what it holds of the blocks that it was asked about.
    pub(super) fn replied(&mut self, from: PeerId, reply: &Reply) {
        let Some(peer) = self.peer_place(from).filter(|_| reply.is_bounded()) else {
            self.event(Event::Rejected { peer: from });
            return;
        };
        let Some(title) = self.title_mut(&reply.title) else { return };
        let blocks = title.table.blocks();
        for run in &reply.runs {
            let range = run.blocks.cut(blocks);
            for block in range.first..range.end() {
                title.set_offer(peer, block, run.quality);
            }
        }
    }

    /// How long markers last without a query: 2 (I - P) tau.
    fn patience(&self, title: &Title) -> Span {
        let blocks = u64::from(title.table.blocks().max(1));
        let step = u64::from(self.config.inquiry.saturating_sub(self.config.ahead).max(1));
        Span::from_nanos(title.table.duration().as_nanos() / blocks).saturating_mul(step.saturating_mul(2))
    }

    pub(super) fn next_lapse(&self, title: &Title) -> Option<Time> {
        let patience = self.patience(title);
        title.heard.iter().map(|(_, heard)| *heard + patience).min()
    }

    /// Peers that have not asked for long want nothing any more.
    pub(super) fn lapse(&mut self, now: Time) {
        for place in 0..self.titles.len() {
            let Some(title) = self.titles.get(place).and_then(Option::as_ref) else { continue };
            let patience = self.patience(title);
            let silent = title.heard.iter().filter(|(_, heard)| *heard + patience <= now);
            for peer in silent.map(|(peer, _)| *peer).collect::<Vec<_>>() {
                self.unmark(place, peer);
            }
        }
    }

    fn unmark(&mut self, place: usize, peer: usize) {
        let id = self.remote.row(peer).map(|row| row.id);
        let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut) else { return };
        title.cache.unmark(peer);
        title.heard.retain(|(other, _)| *other != peer);
        if let Some(Server::Peer(peer)) = id {
            let title = title.name.clone();
            self.event(Event::MarkersLapsed { peer, title });
        }
    }

    /// What is held of a block, for a peer that wants to fetch it.
    pub fn held(&self, title: &media::TitleName, block: u32) -> Quality {
        self.title(title).map_or(Quality::NONE, |title| title.cache.quality(block))
    }
}

/// Whether ranges are what a search in them needs.
fn is_ascending(ranges: &[BlockRange]) -> bool {
    ranges.iter().zip(ranges.iter().skip(1)).all(|(one, next)| one.end() <= next.first)
}
