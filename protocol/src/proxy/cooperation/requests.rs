//! A client asks for a block (Wakamiya et al., 3.2), and what is fetched ahead
//! (3.3).

use super::super::clients::Waiting;
use super::super::prefetch;
use super::super::remote_table::{ORIGIN, Request, ServerRow};
use super::super::retrieval::{Bid, Offer, Wish};
use super::{
    Answer, ClientId, Cooperation, Event, Fetch, FetchId, FetchKind, Output, Reason, Server, Title, Transfer,
};
use crate::peer::PeerId;
use media::{Layer, Quality, Span, Time};
use std::cmp::Reverse;

/// The most requests of one client that wait at once.
const MAX_WAITING: usize = 64;
/// How many fetches may come to nothing before a request takes what there is.
const MAX_TRIES: u8 = 3;

/// What is to be done about a request.
enum Plan {
    Serve(Quality),
    Wait { fetch: FetchId, quality: Quality, time: Span, answer: Answer },
    Fetch(Bid),
    Refuse(Reason),
}

impl Cooperation {
    pub(super) fn asked(&mut self, now: Time, client: ClientId, block: u32, wanted: Quality, buffered: Span) {
        let place = self.homes.get(&client).copied();
        let title = place.and_then(|place| self.titles.get_mut(place)?.as_mut());
        let (Some(place), Some(title)) = (place, title.filter(|title| block < title.table.blocks())) else {
            self.outputs.push_back(Output::Refuse { client, block, why: Reason::Unknown });
            return;
        };
        let wanted = wanted.clamp(Quality(1), title.table.top().max(Quality(1)));
        let Some(row) = title.clients.get_mut(client) else { return };
        row.position = Some(block);
        row.wanted = wanted;
        let acceptable = row.acceptable();
        row.answered(block);
        let full = row.waiting.len() >= MAX_WAITING;
        self.move_window(place, client, block);
        if full {
            self.outputs.push_back(Output::Refuse { client, block, why: Reason::Full });
            return;
        }
        let waiting =
            Waiting { block, wanted, acceptable, asked: now, buffered, fetch: FetchId(u64::MAX), tries: 0 };
        if let Some(answer) = self.answer(now, place, client, waiting) {
            let count = match answer {
                Answer::Hit => &mut self.counts.hits,
                Answer::Pending => &mut self.counts.pending,
                Answer::Miss => &mut self.counts.misses,
                Answer::Late => &mut self.counts.late,
            };
            *count = count.saturating_add(1);
            self.event(Event::Answered { client, block, answer });
        }
        if self.config.prefetch {
            self.look_ahead(now, place, client, block, buffered);
        }
    }

    /// Answers a request, or takes care that it will be.
    pub(super) fn answer(
        &mut self,
        now: Time,
        place: usize,
        client: ClientId,
        waiting: Waiting,
    ) -> Option<Answer> {
        let title = self.titles.get(place)?.as_ref()?;
        let block = waiting.block;
        let buffered = waiting.buffered.saturating_sub(now - waiting.asked);
        let wish = self.wish(title, client, block, waiting.wanted, waiting.acceptable, buffered)?;
        match self.decide(now, place, title, &wish, waiting.tries) {
            Plan::Serve(quality) => {
                let bytes = wish.table.size(block, quality).0;
                self.counts.from_cache = self.counts.from_cache.saturating_add(bytes);
                self.outputs.push_back(Output::Serve { client, block, quality, fetch: None });
                Some(Answer::Hit)
            }
            Plan::Wait { fetch, quality, time, answer } => {
                let freeze = self.freeze(time, buffered);
                self.wait(place, client, Waiting { fetch, ..waiting }, quality, freeze);
                Some(answer)
            }
            Plan::Fetch(bid) => {
                let (have, freeze) = (wish.have, self.freeze(bid.time, buffered));
                let fetch = self.order(now, place, block, have, &bid, FetchKind::Miss)?;
                let quality = waiting.wanted.min(bid.quality);
                self.wait(place, client, Waiting { fetch, ..waiting }, quality, freeze);
                Some(if bid.in_time { Answer::Miss } else { Answer::Late })
            }
            Plan::Refuse(why) => {
                self.outputs.push_back(Output::Refuse { client, block, why });
                None
            }
        }
    }

    /// Steps 1 to 4 of the retrieval.
    fn decide(&self, now: Time, place: usize, title: &Title, wish: &Wish<'_>, tries: u8) -> Plan {
        let held = title.cache.quality(wish.block);
        if held >= wish.acceptable {
            // Nobody is faster than the cache: too tight means the least.
            return Plan::Serve(wish.cached().min(held).max(wish.acceptable));
        }
        let mut enough: Vec<(Quality, Reverse<Span>, FetchId)> = Vec::new();
        for (row, request) in self.remote.pending(place, wish.block) {
            if request.want >= wish.acceptable {
                let time = wish.forwarded(row.due(now, request) - now, request.want);
                enough.push((request.want.min(wish.wanted), Reverse(time), request.id));
            }
        }
        let wait = |(quality, Reverse(time), fetch), answer| Plan::Wait { fetch, quality, time, answer };
        let in_time = enough.iter().filter(|(_, Reverse(time), _)| wish.is_in_time(*time));
        if let Some(best) = in_time.max() {
            return wait(*best, Answer::Pending);
        }
        let offers = self.offers(now, place, title, wish.block, wish.acceptable);
        let bid = if tries < MAX_TRIES { wish.choose(&offers) } else { None };
        let soonest = enough.into_iter().min_by_key(|(_, Reverse(time), _)| *time);
        match (bid, soonest) {
            (Some(bid), Some(pending)) if !bid.in_time && pending.1.0 <= bid.time => {
                wait(pending, Answer::Late)
            }
            (Some(bid), _) => Plan::Fetch(bid),
            (None, Some(pending)) => wait(pending, Answer::Late),
            // Nobody has enough: something is better than nothing.
            (None, None) if held > Quality::NONE => Plan::Serve(held),
            (None, None) if tries < MAX_TRIES && wish.acceptable > Quality(1) => {
                let offers = self.offers(now, place, title, wish.block, Quality(1));
                let best = offers.iter().map(|offer| offer.quality).max().unwrap_or_default();
                let any = Wish { acceptable: best.clamp(Quality(1), wish.acceptable), ..*wish };
                any.choose(&offers).map_or(Plan::Refuse(Reason::Nobody), Plan::Fetch)
            }
            (None, None) => Plan::Refuse(self.why_nobody()),
        }
    }

    fn why_nobody(&self) -> Reason {
        let full = |requests: &[Request]| requests.len() >= self.config.max_fetches;
        let busy = self.remote.rows().any(|(_, row)| !row.lost && full(&row.requests));
        if busy { Reason::Full } else { Reason::Nobody }
    }

    fn wish<'a>(
        &self,
        title: &'a Title,
        client: ClientId,
        block: u32,
        wanted: Quality,
        acceptable: Quality,
        buffered: Span,
    ) -> Option<Wish<'a>> {
        let row = title.clients.get(client)?;
        let have = match self.config.transfer {
            Transfer::Delta => title.cache.quality(block),
            Transfer::Whole => Quality::NONE,
        };
        Some(Wish {
            table: &title.table,
            block,
            have,
            wanted,
            acceptable,
            useful: title.clients.most_wanted(block).max(wanted),
            delay: row.delay(),
            rate: row.rate(),
            budget: buffered.as_nanos().checked_sub(self.config.margin.as_nanos()).map(Span::from_nanos),
            relay: self.config.relay,
            rank: self.config.rank,
        })
    }

    /// What each server could do for a block. Whoever is already bringing enough
    /// of it is not asked a second time: it would come after the first.
    fn offers(&self, now: Time, place: usize, title: &Title, block: u32, enough: Quality) -> Vec<Offer> {
        let rows = self.remote.rows().take(if self.config.cooperate { usize::MAX } else { 1 });
        rows.filter(|(_, row)| !row.lost && row.requests.len() < self.config.max_fetches)
            .filter(|(_, row)| {
                let mut same = row.requests.iter().filter(|request| request.is_of(place, block));
                !same.any(|request| request.want >= enough && !row.waits(now, request))
            })
            .map(|(server, row)| Offer {
                place: server,
                quality: title.offered(server, block),
                delay: row.delay(),
                rate: row.rate(),
                queue: row.queue(now),
            })
            .collect()
    }

    /// Orders a fetch; nothing if the server is gone.
    fn order(
        &mut self,
        now: Time,
        place: usize,
        block: u32,
        have: Quality,
        bid: &Bid,
        kind: FetchKind,
    ) -> Option<FetchId> {
        let title = self.titles.get(place)?.as_ref()?;
        let (name, bytes) = (title.name.clone(), title.table.between(block, have, bid.quality));
        let (id, want) = (FetchId(self.fetches), bid.quality);
        let is_withdrawing = kind == FetchKind::Miss && self.config.withdraw;
        let withdrawn =
            if is_withdrawing { self.remote.withdraw(now, place, block, want) } else { Vec::new() };
        for (server, fetch) in withdrawn.iter().copied() {
            self.outputs.push_back(Output::Cancel { fetch, server });
        }
        let row = self.remote.row_mut(bid.place)?;
        let due = now + bid.here;
        let server = row.id;
        row.requests.push(Request {
            id,
            title: place,
            block,
            have,
            want,
            bytes,
            kind,
            due,
            begun: None,
            withdrawn: false,
        });
        self.fetches = self.fetches.saturating_add(1);
        self.outputs.push_back(Output::Fetch(Fetch {
            id,
            server,
            title: name,
            block,
            have,
            want,
            bytes,
            kind,
        }));
        for (_, fetch) in withdrawn {
            self.follow(place, block, fetch, id, want);
        }
        Some(id)
    }

    /// Those who waited for one fetch wait for another, which brings no less.
    fn follow(&mut self, place: usize, block: u32, old: FetchId, new: FetchId, want: Quality) {
        let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut) else { return };
        for row in title.clients.iter_mut() {
            let client = row.id;
            for waiting in row.waiting.iter_mut().filter(|waiting| waiting.fetch == old) {
                waiting.fetch = new;
                let (quality, freeze) = (waiting.wanted.min(want), Span::ZERO);
                self.outputs.push_back(Output::Wait { client, block, quality, fetch: new, freeze });
            }
        }
    }

    fn wait(&mut self, place: usize, client: ClientId, waiting: Waiting, quality: Quality, freeze: Span) {
        let (block, fetch) = (waiting.block, waiting.fetch);
        let title = self.titles.get_mut(place).and_then(Option::as_mut);
        if let Some(row) = title.and_then(|title| title.clients.get_mut(client)) {
            row.answered(block);
            row.waiting.push(waiting);
            self.outputs.push_back(Output::Wait { client, block, quality, fetch, freeze });
        }
    }

    /// Equation 5: how long playback has to wait for what takes `time`.
    fn freeze(&self, time: Span, buffered: Span) -> Span {
        (time + self.config.margin).saturating_sub(buffered)
    }

    /// Fetches the nearest block ahead that lacks. Of a block that comes later by
    /// so much, the client has so much more buffered when it needs it
    /// (equation 7). What it will ask for is taken to be what it asks for now.
    fn look_ahead(&mut self, now: Time, place: usize, client: ClientId, block: u32, buffered: Span) {
        let Some(title) = self.titles.get(place).and_then(Option::as_ref) else { return };
        let Some(row) = title.clients.get(client) else { return };
        let (wanted, acceptable) = (row.wanted, row.acceptable());
        let is_provided = |next| {
            title.cache.quality(next) >= acceptable || self.remote.pending_quality(place, next) >= acceptable
        };
        let next = prefetch::nearest(block, self.config.ahead, title.table.blocks(), is_provided);
        let Some(next) = next else { return };
        let later = title.table.start(next).saturating_sub(title.table.start(block));
        let wish = self.wish(title, client, next, wanted, acceptable, buffered + later);
        let Some(wish) = wish else { return };
        let offers = self.offers(now, place, title, next, acceptable);
        let Some(bid) = wish.choose(&offers) else { return };
        let have = wish.have;
        if self.order(now, place, next, have, &bid, FetchKind::Prefetch).is_some() {
            self.counts.prefetches = self.counts.prefetches.saturating_add(1);
        }
    }

    /// A peer that holds this layer of a block fetched from the origin, and delivers it
    /// no later than the rest of the block is expected: the soonest. A layer is a chunk
    /// of its own, and what another proxy holds of a block need not burden the origin.
    pub fn spares_origin(&self, now: Time, fetch: &Fetch, layer: Layer) -> Option<PeerId> {
        if !self.config.cooperate || self.config.transfer == Transfer::Whole {
            return None;
        }
        let place = *self.names.get(&fetch.title)?;
        let title = self.titles.get(place)?.as_ref()?;
        let origin = self.remote.row(ORIGIN)?;
        let whole = origin.requests.iter().find(|request| request.id == fetch.id)?;
        let due = origin.due(now, whole);
        let upper = Quality(layer.0.saturating_add(1));
        let bytes = title.table.between(fetch.block, Quality(layer.0), upper);
        let peers = self.remote.rows().filter(|(server, row)| {
            !row.lost && title.offered(*server, fetch.block) >= upper && row.id != Server::Origin
        });
        let here = |row: &ServerRow| {
            now + row.delay().saturating_mul(2) + row.queue(now) + row.rate().time_for(bytes)
        };
        let (_, soonest) = peers.min_by_key(|(_, row)| here(row))?;
        match soonest.id {
            Server::Peer(peer) if here(soonest) <= due => Some(peer),
            Server::Peer(_) | Server::Origin => None,
        }
    }
}
