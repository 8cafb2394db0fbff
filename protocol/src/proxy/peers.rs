//! Other proxies: each dials those it was told of, asks them what they hold, and
//! fetches from them what they do; without them it goes on by itself.

use super::Proxy;
use super::Upstream;
use super::cooperation::{Input as MindInput, Server};
use super::fills::Next;
use super::io::{Event, FillFailure, Output};
use super::lines::NodeId;
use super::talk::{Query, Reply};
use crate::guests::LinkId;
use crate::message::{Message, Part, Refusal, Role};
use crate::peer::PeerId;
use media::{ChunkId, Span, Time};
use std::net::SocketAddr;

impl Proxy {
    /// Numbers the peers, who are dialled from now on.
    pub(super) fn meet_peers(&mut self, now: Time) {
        if !self.config.cooperation.cooperate {
            return;
        }
        for peer in self.config.peers.clone().into_iter().take(self.config.cooperation.max_peers) {
            if let Some(node) = self.lines.number(now, peer.into()) {
                self.advisor.peers.push((peer.peer, node));
            }
        }
        (self.changed, self.due) = (!self.advisor.peers.is_empty(), Some(now));
    }

    fn peer_of(&self, node: NodeId) -> Option<PeerId> {
        self.advisor.peers.iter().find(|(_, other)| *other == node).map(|(peer, _)| *peer)
    }

    /// Who is found at an address, as the mind knows it.
    pub(super) fn server_at(&self, address: SocketAddr) -> Server {
        let peer = self.lines.find(address).and_then(|node| self.peer_of(node));
        peer.map_or(Server::Origin, Server::Peer)
    }

    /// A connection to a peer stands, or it was heard again.
    pub(super) fn peer_found(&mut self, now: Time, node: NodeId) {
        let Some(peer) = self.peer_of(node) else { return };
        let half = Span::from_nanos(self.lines.least_round_trip(node).as_nanos() / 2);
        self.think(now, MindInput::PeerFound { peer });
        let delay = (half > Span::ZERO).then_some(half);
        self.think(now, MindInput::Measured { server: Server::Peer(peer), delay, rate: None });
    }

    /// A peer is gone or silent: nothing is expected of it any more.
    pub(super) fn peer_lost(&mut self, now: Time, node: NodeId) {
        let Some(peer) = self.peer_of(node) else { return };
        self.advisor.plans.lose(Server::Peer(peer));
        self.think(now, MindInput::Lost { server: Server::Peer(peer) });
    }

    pub(super) fn say_query(&mut self, to: PeerId, query: Query) {
        let node = self.advisor.peers.iter().find(|(peer, _)| *peer == to).map(|(_, node)| *node);
        if let Some(node) = node {
            self.say(node, Message::Query(query));
        }
    }

    pub(super) fn say_reply(&mut self, to: PeerId, reply: Reply) {
        let is_it = |link: &LinkId| {
            self.guests
                .link(*link)
                .is_some_and(|guest| guest.hello.role == Role::Proxy && guest.hello.peer == to)
        };
        // By its last connection.
        let link = self.guests.links().filter(is_it).last();
        if let Some(link) = link {
            self.send(link, Message::Reply(reply));
        }
    }

    /// Another proxy asks what is held here.
    pub(super) fn queried(&mut self, now: Time, link: LinkId, query: Query) {
        let guest = self.guests.link(link).map(|guest| guest.hello);
        let Some(guest) =
            guest.filter(|guest| guest.role == Role::Proxy && self.config.cooperation.cooperate)
        else {
            return self.event(Event::Rejected { link, why: Refusal::NotAllowed });
        };
        let from = guest.peer;
        let lines = self.advisor.mind.server_lines();
        if !lines.iter().any(|line| line.server == Server::Peer(from)) {
            // It may ask before it was reached, or without ever being asked itself.
            self.think(now, MindInput::PeerFound { peer: from });
            self.think(now, MindInput::Lost { server: Server::Peer(from) });
        }
        self.think(now, MindInput::Queried { from, query });
    }

    /// A peer says what it holds.
    pub(super) fn replied(&mut self, now: Time, node: NodeId, reply: Reply) {
        if let Some(from) = self.peer_of(node) {
            self.think(now, MindInput::Replied { from, reply });
        }
    }

    /// A peer did not deliver. Its row is corrected, and what somebody waits for is
    /// fetched from whom the mind chooses, or else from the nodes.
    pub(super) fn peer_failed(&mut self, now: Time, chunk: &ChunkId, from: Upstream, why: FillFailure) {
        let server = self.server_at(from.address);
        self.fills.park(chunk);
        self.event(Event::FillFailed { chunk: chunk.clone(), from, why });
        self.lacking(now, chunk, Some(server));
        if !self.fills.is_under_way(chunk) || self.fills.source(chunk).is_some() {
            return;
        }
        let next = if self.fills.is_wanted(chunk) || self.advisor.plans.wants(chunk) {
            let choice = self.choice(now, chunk, None);
            self.fills.retry(now, chunk, &choice, &self.config)
        } else {
            self.fills.done(chunk);
            Next::GiveUp
        };
        self.go_on(chunk, next);
        if next == Next::GiveUp {
            self.lacking(now, chunk, None);
        }
        self.changed = true;
    }

    /// Another proxy asks for a chunk: it gets what is kept here, and nothing is
    /// fetched for it.
    pub(super) fn give_peer(
        &mut self,
        link: LinkId,
        stream: crate::guests::StreamId,
        (part, length): (Part, u64),
        held: bool,
    ) -> Result<(), Refusal> {
        if !held {
            return Err(Refusal::NotHeld);
        }
        self.guests.ask_without_session(link, stream)?;
        self.advisor.counts.given_to_peers = self.advisor.counts.given_to_peers.saturating_add(length);
        self.outputs.push_back(match part {
            Part::First => Output::ServeHalf { stream },
            Part::Whole => Output::Serve { stream },
        });
        Ok(())
    }
}
