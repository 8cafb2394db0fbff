//! The mind of a cooperating proxy as a pure machine (Wakamiya et al., section
//! 3): what it holds at which quality, what others hold, from whom a block is
//! fetched and how good, what is fetched ahead, and what has to go.
//!
//! It sees no payload, no connection and no address. The proxy's driver and the
//! simulator feed it alike: one input, drain the outputs, wait. It lives inside
//! [`super::Proxy`]'s driver beside sessions and fills, which it does not know.

mod arrivals;
mod config;
mod inquiry;
mod io;
mod report;
mod requests;

pub use config::{CooperationConfig, Floor, Rank, Relay, Transfer};
pub use io::{
    Answer, Beta, ClientId, Counts, Event, Fetch, FetchFailure, FetchId, FetchKind, Input, Output, Reason,
    Server,
};

use super::block_table::BlockTable;
use super::cache_table::{CacheTable, PeerIndex};
use super::clients::{ClientRow, Clients};
use super::remote_table::{ORIGIN, RemoteTable, Request, ServerRow};
use crate::peer::PeerId;
use media::{Quality, Time, TitleName};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most peers a remote table holds.
const MAX_PEERS: usize = 31;

/// The mind of one proxy.
#[derive(Clone, Debug)]
pub struct Cooperation {
    config: CooperationConfig,
    remote: RemoteTable,
    /// Titles by their place, which is their name inside; a place is used again.
    titles: Vec<Option<Title>>,
    names: BTreeMap<TitleName, usize>,
    /// Which title each client watches.
    homes: BTreeMap<ClientId, usize>,
    fetches: u64,
    counts: Counts,
    outputs: VecDeque<Output>,
}

/// What is known of one title.
#[derive(Clone, Debug)]
struct Title {
    name: TitleName,
    table: Arc<BlockTable>,
    cache: CacheTable,
    /// `q_k(i)` of each peer, by its place; empty if it said nothing.
    offers: Vec<Vec<Quality>>,
    clients: Clients,
    /// When each peer asked last.
    heard: Vec<(PeerIndex, Time)>,
}

impl Title {
    fn new(name: TitleName, table: Arc<BlockTable>) -> Self {
        let cache = CacheTable::new(table.blocks());
        Self { name, table, cache, offers: Vec::new(), clients: Clients::default(), heard: Vec::new() }
    }

    /// `q_k(i)`: the origin has everything.
    fn offered(&self, place: usize, block: u32) -> Quality {
        if place == ORIGIN {
            return self.table.top();
        }
        let told = self.offers.get(place).zip(usize::try_from(block).ok());
        told.and_then(|(offers, block)| offers.get(block)).copied().unwrap_or_default()
    }

    fn set_offer(&mut self, place: usize, block: u32, quality: Quality) {
        if place == ORIGIN {
            return;
        }
        if self.offers.len() <= place {
            self.offers.resize(place.saturating_add(1), Vec::new());
        }
        let blocks = usize::try_from(self.table.blocks()).unwrap_or(0);
        let Some(offers) = self.offers.get_mut(place) else { return };
        if offers.is_empty() {
            offers.resize(blocks, Quality::NONE);
        }
        if let Some(offer) = usize::try_from(block).ok().and_then(|block| offers.get_mut(block)) {
            *offer = quality.min(self.table.top());
        }
    }

    /// A peer is gone: what it offered and what it marked.
    fn forget_peer(&mut self, place: usize) {
        if let Some(offers) = self.offers.get_mut(place) {
            offers.clear();
        }
        self.cache.unmark(place);
        self.heard.retain(|(peer, _)| *peer != place);
    }
}

impl Cooperation {
    /// A proxy that knows no title, no client and no peer; the origin can be
    /// asked.
    pub fn new(config: CooperationConfig) -> Self {
        let config = CooperationConfig { max_peers: config.max_peers.min(MAX_PEERS), ..config };
        let origin = ServerRow::new(Server::Origin, config.first_delay, config.first_rate);
        Self {
            remote: RemoteTable::new(origin),
            titles: Vec::new(),
            names: BTreeMap::new(),
            homes: BTreeMap::new(),
            fetches: 0,
            counts: Counts::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Title { title, blocks } => self.learn(title, blocks),
            Input::Forgotten { title } => self.forget(&title),
            Input::Restored { title, block, quality } => self.restored(&title, block, quality),
            Input::Damaged { title, block, quality } => {
                if let Some(title) = self.title_mut(&title) {
                    let left = quality.min(title.cache.quality(block));
                    title.cache.set(&title.table, block, left);
                }
            }
            Input::Arrived { client, title, beta, delay, rate } => {
                let row = ClientRow::new(client, beta, delay, rate);
                self.arrived(&title, row);
            }
            Input::ClientMeasured { client, delay, rate } => {
                let smoothing = self.config.smoothing;
                if let Some(row) = self.home_mut(client).and_then(|title| title.clients.get_mut(client)) {
                    row.measure(delay, rate, smoothing);
                }
            }
            Input::Insists { client, beta } => {
                if let Some(row) = self.home_mut(client).and_then(|title| title.clients.get_mut(client)) {
                    row.beta = beta;
                }
            }
            Input::Left { client } => self.left(client),
            Input::Asked { client, block, quality, buffered, starting } => {
                let buffered = if starting { self.config.start_buffer } else { buffered };
                self.asked(now, client, block, quality, buffered);
            }
            Input::PeerFound { peer } => self.peer_found(peer),
            Input::Lost { server } => self.lost(now, server),
            Input::OriginFound => {
                if let Some(origin) = self.remote.row_mut(ORIGIN) {
                    origin.lost = false;
                }
            }
            Input::Measured { server, delay, rate } => {
                let place = self.remote.place(server);
                if let Some(row) = place.and_then(|place| self.remote.row_mut(place)) {
                    row.measure(delay, rate, self.config.smoothing);
                }
            }
            Input::Queried { from, query } => self.queried(now, from, query),
            Input::Replied { from, reply } => self.replied(from, &reply),
            Input::Begun { fetch } => self.remote.begun(now, fetch),
            Input::Partly { fetch, quality } => self.partly(fetch, quality),
            Input::Fetched { fetch, quality, bytes, took } => self.fetched(now, fetch, quality, bytes, took),
            Input::FetchFailed { fetch, why } => self.fetch_failed(now, fetch, why),
            Input::Timeout => self.lapse(now),
        }
    }

    /// Drain this to nothing after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.titles.iter().flatten().filter_map(|title| self.next_lapse(title)).min()
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn title(&self, title: &TitleName) -> Option<&Title> {
        self.titles.get(*self.names.get(title)?)?.as_ref()
    }

    fn title_mut(&mut self, title: &TitleName) -> Option<&mut Title> {
        self.titles.get_mut(*self.names.get(title)?)?.as_mut()
    }

    fn home_mut(&mut self, client: ClientId) -> Option<&mut Title> {
        self.titles.get_mut(*self.homes.get(&client)?)?.as_mut()
    }

    fn learn(&mut self, name: TitleName, table: Arc<BlockTable>) {
        if self.names.contains_key(&name) {
            return;
        }
        if self.names.len() >= self.config.max_titles {
            self.event(Event::Full { title: name });
            return;
        }
        let title = Some(Title::new(name.clone(), table));
        let vacant = self.titles.iter().position(Option::is_none);
        let place = vacant.unwrap_or(self.titles.len());
        match self.titles.get_mut(place) {
            Some(vacant) => *vacant = title,
            None => self.titles.push(title),
        }
        self.names.insert(name, place);
    }

    fn forget(&mut self, title: &TitleName) {
        let Some(place) = self.names.remove(title) else { return };
        if let Some(title) = self.titles.get_mut(place) {
            *title = None;
        }
        self.homes.retain(|_, home| *home != place);
        let _: Vec<Request> = self.remote.take_all(|_, request| request.title == place);
    }

    fn arrived(&mut self, title: &TitleName, row: ClientRow) {
        let client = row.id;
        self.left(client);
        let place = self.names.get(title).copied();
        let Some(place) = place.filter(|_| self.homes.len() < self.config.max_clients) else {
            self.event(Event::Full { title: title.clone() });
            return;
        };
        if let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut) {
            title.clients.add(row);
            self.homes.insert(client, place);
            // By its first request, which comes when it knows the title, peers have
            // answered.
            if self.config.news {
                self.inquire(place);
            }
        }
    }

    fn left(&mut self, client: ClientId) {
        let Some(place) = self.homes.remove(&client) else { return };
        if let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut)
            && title.clients.remove(client)
        {
            // Its window is of no use any more, nor are its markers.
            self.inquire(place);
        }
    }

    /// The peer's place in the remote table, lost or not.
    fn peer_place(&self, peer: PeerId) -> Option<usize> {
        self.remote.place(Server::Peer(peer))
    }

    fn peer_found(&mut self, peer: PeerId) {
        match self.peer_place(peer) {
            Some(place) => {
                if let Some(row) = self.remote.row_mut(place) {
                    row.lost = false;
                }
            }
            None if self.remote.rows().count() > self.config.max_peers => {
                self.event(Event::Rejected { peer });
                return;
            }
            None => {
                let (delay, rate) = (self.config.first_delay, self.config.first_rate);
                self.remote.add(ServerRow::new(Server::Peer(peer), delay, rate));
            }
        }
        for place in 0..self.titles.len() {
            let watched = self.titles.get(place).and_then(Option::as_ref);
            if watched.is_some_and(|title| !title.clients.is_empty()) {
                self.inquire_of(place, peer);
            }
        }
    }
}

#[cfg(test)]
mod tests;
