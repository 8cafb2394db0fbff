//! One proxy: its mind, the links that lead to it, and the fetches that wait for a
//! slot or for somebody to serve them.

use super::audience::{LAYERS, Title, block_size};
use super::{Plan, TAU, Wires};
use crate::proxies::Session;
use media::{ByteCount, Layer, Quality, Span, Time, TitleName};
use protocol::PeerId;
use protocol::proxy::BlockTable;
use protocol::proxy::cooperation::{Cooperation, Fetch, FetchId, Input, Server};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cache holds one of so many parts of the catalogue.
const CACHE: u64 = 4;

/// How long a fetch of Base waits for a node that serves it, as in a proxy.
const BASE_PATIENCE: Span = Span::from_secs(10);
/// The same for what lies above.
pub(super) const ENHANCEMENT_PATIENCE: Span = Span::from_secs(1);

/// A fetch from the nodes that has not been sent.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    pub(super) fetch: Fetch,
    /// Up to which quality it comes.
    pub(super) quality: Quality,
    /// Whose slots give it.
    pub(super) from: Vec<(usize, Layer)>,
}

/// A proxy.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) mind: Cooperation,
    /// From the nodes, then from each proxy.
    pub(super) sessions: Vec<Session>,
    /// Those whose slots are about to give what they ask for.
    pub(super) staged: BTreeMap<FetchId, Staged>,
    /// Those whom nobody serves, until when.
    pub(super) parked: BTreeMap<FetchId, (Fetch, Time)>,
    /// By title, who watches it here.
    pub(super) watching: Vec<Vec<usize>>,
    pub(super) timeout: Option<Time>,
    /// The most that its cache held.
    pub(super) peak: ByteCount,
    /// Messages to other proxies.
    pub(super) messages: u64,
}

impl Front {
    /// The proxy at this place: it knows every title, every other proxy, and what its
    /// links carry.
    pub(super) fn of(plan: &Plan, wires: &Wires, titles: &[Title], names: &[PeerId], at: usize) -> Self {
        let whole: u64 = titles.iter().map(|title| title.layer_size().0 * u64::from(LAYERS)).sum();
        let rules = plan.mind(ByteCount(whole / CACHE));
        let mut mind = Cooperation::new(rules);
        for title in titles {
            let sizes = [block_size().0; 3];
            let blocks = Arc::new(BlockTable::uniform(title.blocks, TAU, &sizes));
            mind.handle_input(Time::ZERO, Input::Title { title: title.facts.title.clone(), blocks });
        }
        let others = names.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, peer) in others {
            mind.handle_input(Time::ZERO, Input::PeerFound { peer: *peer });
            let (rate, delay) = wires.peer;
            let server = Server::Peer(*peer);
            mind.handle_input(Time::ZERO, Input::Measured { server, delay: Some(delay), rate: Some(rate) });
        }
        let (rate, delay) = wires.nodes;
        let server = Server::Origin;
        mind.handle_input(Time::ZERO, Input::Measured { server, delay: Some(delay), rate: Some(rate) });
        let queue = rules.prefetch_queue;
        let peers = names.iter().map(|_| Session::new(wires.peer, queue));
        Self {
            mind,
            sessions: std::iter::once(Session::new(wires.nodes, queue)).chain(peers).collect(),
            staged: BTreeMap::new(),
            parked: BTreeMap::new(),
            watching: vec![Vec::new(); titles.len()],
            timeout: None,
            peak: ByteCount(0),
            messages: 0,
        }
    }

    pub(super) fn enter(&mut self, title: usize, user: usize) {
        if let Some(users) = self.watching.get_mut(title) {
            users.push(user);
        }
    }

    pub(super) fn leave(&mut self, title: usize, user: usize) {
        if let Some(users) = self.watching.get_mut(title) {
            users.retain(|other| *other != user);
        }
    }

    /// Nobody serves it now; until when it waits.
    pub(super) fn park(&mut self, now: Time, fetch: Fetch) -> Time {
        let patience = if fetch.have == Quality::NONE { BASE_PATIENCE } else { ENHANCEMENT_PATIENCE };
        let until = now + patience;
        self.parked.insert(fetch.id, (fetch, until));
        until
    }

    /// What waits for somebody to serve this title.
    pub(super) fn waiting_for(&self, title: &TitleName) -> Vec<Fetch> {
        let of = self.parked.values().filter(|(fetch, _)| fetch.title == *title);
        of.map(|(fetch, _)| fetch.clone()).collect()
    }

    /// Whether it waits no longer: it waited until now.
    pub(super) fn lapse(&mut self, now: Time, fetch: FetchId) -> bool {
        let over = self.parked.get(&fetch).is_some_and(|(_, until)| *until <= now);
        over && self.parked.remove(&fetch).is_some()
    }
}
