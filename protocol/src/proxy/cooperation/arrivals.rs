//! Blocks that come, or do not, and whether they are kept (Wakamiya et al., 3.2
//! and 3.4).

use super::super::clients::Waiting;
use super::super::remote_table::{ORIGIN, Request};
use super::super::replacement::{self, Shelf};
use super::{ClientId, Cooperation, Event, FetchFailure, FetchId, Output, Server, Title};
use media::{ByteCount, Quality, Span, Time, TitleName};

impl Cooperation {
    pub(super) fn fetched(
        &mut self,
        now: Time,
        fetch: FetchId,
        quality: Quality,
        bytes: ByteCount,
        took: Span,
    ) {
        let Some((server, request)) = self.remote.take(fetch) else { return };
        let from = if server == ORIGIN { &mut self.counts.from_origin } else { &mut self.counts.from_peers };
        *from = from.saturating_add(bytes.0);
        if took > Span::ZERO
            && let Some(row) = self.remote.row_mut(server)
        {
            row.measure(None, Some(bytes.over(took)), self.config.smoothing);
        }
        let Some(title) = self.titles.get_mut(request.title).and_then(Option::as_mut) else { return };
        let quality = quality.min(title.table.top());
        if quality < request.want {
            title.set_offer(server, request.block, quality);
        }
        let held = title.cache.quality(request.block);
        // What lies above a gap is of no use: what was held is gone meanwhile.
        if quality > request.have && request.have <= held {
            self.keep(&request, quality);
            self.serve(now, &request, quality.max(held));
        } else {
            self.again(now, &[request]);
        }
    }

    /// What is here of a block is kept while the rest is still coming.
    pub(super) fn partly(&mut self, fetch: FetchId, quality: Quality) {
        let Some(request) = self.remote.request_mut(fetch) else { return };
        let before = request.clone();
        let title = self.titles.get(before.title).and_then(Option::as_ref);
        let held = title.map_or(Quality::NONE, |title| title.cache.quality(before.block));
        if quality <= before.have || before.have > held || quality >= before.want {
            return;
        }
        self.keep(&before, quality);
        let title = self.titles.get(before.title).and_then(Option::as_ref);
        let held = title.map_or(Quality::NONE, |title| title.cache.quality(before.block));
        if held >= quality
            && let Some(request) = self.remote.request_mut(fetch)
        {
            request.have = quality;
        }
    }

    pub(super) fn fetch_failed(&mut self, now: Time, fetch: FetchId, why: FetchFailure) {
        let Some((server, request)) = self.remote.take(fetch) else { return };
        if why != FetchFailure::Overwritten
            && let Some(title) = self.titles.get_mut(request.title).and_then(Option::as_mut)
        {
            title.set_offer(server, request.block, Quality::NONE);
        }
        self.again(now, &[request]);
    }

    pub(super) fn lost(&mut self, now: Time, server: Server) {
        let Some(lost) = self.remote.place(server) else { return };
        if let Some(row) = self.remote.row_mut(lost) {
            row.lost = true;
        }
        for title in self.titles.iter_mut().flatten() {
            title.forget_peer(lost);
        }
        let over = self.remote.take_all(|place, _| place == lost);
        self.again(now, &over);
    }

    /// Serves everybody for whom what is here of a block is enough, and looks
    /// again for those who waited for this fetch and need more.
    fn serve(&mut self, now: Time, request: &Request, here: Quality) {
        let Some(title) = self.titles.get_mut(request.title).and_then(Option::as_mut) else { return };
        let block = request.block;
        for row in title.clients.iter_mut() {
            if row.waits_for(block).is_some_and(|waiting| waiting.acceptable <= here)
                && let Some(waiting) = row.answered(block)
            {
                let (client, quality) = (row.id, waiting.wanted.min(here));
                self.outputs.push_back(Output::Serve { client, block, quality, fetch: Some(request.id) });
            }
        }
        self.again(now, std::slice::from_ref(request));
    }

    /// These fetches are over: whoever still waits for one is answered anew.
    fn again(&mut self, now: Time, over: &[Request]) {
        let mut waiting: Vec<(usize, ClientId, Waiting)> = Vec::new();
        for request in over {
            let title = self.titles.get_mut(request.title).and_then(Option::as_mut);
            for row in title.into_iter().flat_map(|title| title.clients.iter_mut()) {
                if row.waits_for(request.block).is_some_and(|waiting| waiting.fetch == request.id)
                    && let Some(one) = row.answered(request.block)
                {
                    waiting.push((request.title, row.id, one));
                }
            }
        }
        for (place, client, one) in waiting {
            let tries = one.tries.saturating_add(1);
            self.answer(now, place, client, Waiting { tries, ..one });
        }
    }

    /// Keeps what came, if there is room or room can be made.
    fn keep(&mut self, request: &Request, quality: Quality) {
        let (place, block) = (request.title, request.block);
        let Some(title) = self.titles.get(place).and_then(Option::as_ref) else { return };
        let held = title.cache.quality(block);
        if quality <= held {
            return;
        }
        let name = title.name.clone();
        let more = title.table.between(block, held, quality).0;
        if !self.make_room(more, place, block) {
            self.event(Event::NotKept { title: name, block, quality });
            return;
        }
        if let Some(title) = self.titles.get_mut(place).and_then(Option::as_mut) {
            title.cache.set(&title.table, block, quality);
            self.outputs.push_back(Output::Keep { title: name.clone(), block, quality });
        }
        if self.config.cooperate && self.config.news {
            self.tell_news(place, &name, block, quality);
        }
    }

    /// Whether there is room for `more` bytes, after what had to go is gone.
    fn make_room(&mut self, more: u64, place: usize, block: u32) -> bool {
        let short = self.used().0.saturating_add(more).saturating_sub(self.config.capacity.0);
        if short == 0 {
            return true;
        }
        let titles = self.titles.iter().enumerate();
        let shelves: Vec<Shelf<'_>> = titles
            .filter_map(|(title, one)| Some((title, one.as_ref()?)))
            .map(|(title, Title { table, cache, clients, .. })| Shelf { title, table, cache, clients })
            .collect();
        // The lower layers of what is being completed must not go meanwhile.
        let is_spared = |title: usize, other: u32| {
            (title == place && other == block)
                || self.remote.pending(title, other).any(|(_, request)| request.have > Quality::NONE)
        };
        let Some(victims) = replacement::plan(short, &shelves, &self.config, is_spared) else { return false };
        for victim in victims {
            if let Some(title) = self.titles.get_mut(victim.title).and_then(Option::as_mut) {
                title.cache.set(&title.table, victim.block, victim.quality);
                let (title, block, quality) = (title.name.clone(), victim.block, victim.quality);
                self.outputs.push_back(Output::Drop { title, block, quality });
            }
        }
        true
    }

    /// A block was found on disk. Nothing else goes for it.
    pub(super) fn restored(&mut self, name: &TitleName, block: u32, quality: Quality) {
        let (used, capacity) = (self.used().0, self.config.capacity.0);
        let more = self.title(name).map(|title| {
            let held = title.cache.quality(block);
            (title.table.between(block, held, quality).0, held)
        });
        match (more, self.title_mut(name)) {
            (Some((more, held)), Some(title)) if quality > held && used.saturating_add(more) <= capacity => {
                title.cache.set(&title.table, block, quality.min(title.table.top()));
            }
            (more, _) => {
                let quality = more.map_or(Quality::NONE, |(_, held)| held);
                self.outputs.push_back(Output::Drop { title: name.clone(), block, quality });
            }
        }
    }

    /// What all that is kept weighs.
    pub fn used(&self) -> ByteCount {
        ByteCount(self.titles.iter().flatten().map(|title| title.cache.bytes()).sum())
    }
}
