//! What the mind ordered, and how far it has come. The mind thinks in blocks and
//! qualities; what is fetched, once each, are chunks.

use super::cooperation::{Fetch, FetchId, Server};
use super::prefetch::SessionQueue;
use media::{ByteCount, ChunkId, Layer, Quality, TitleName};
use std::collections::{BTreeMap, BTreeSet};

/// One fetch of the mind that is being carried out.
#[derive(Clone, Debug)]
struct Plan {
    fetch: Fetch,
    /// Up to which quality it can still come.
    until: Quality,
    /// Layers that are not here yet.
    left: BTreeSet<Layer>,
    bytes: ByteCount,
    begun: bool,
}

impl Plan {
    fn brings(&self, chunk: &ChunkId) -> bool {
        let within = chunk.layer.0 >= self.fetch.have.layers() && chunk.layer.0 < self.until.layers();
        within && self.fetch.block == chunk.block && self.fetch.title == chunk.title
    }
}

/// A fetch that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) fetch: Fetch,
    /// The quality of the block with what came; no more than `have` if nothing did.
    pub(super) quality: Quality,
    pub(super) bytes: ByteCount,
}

/// All of them, and what waits until a server is idle.
#[derive(Clone, Debug)]
pub(super) struct Plans {
    open: BTreeMap<FetchId, Plan>,
    queues: BTreeMap<Server, SessionQueue>,
    /// Chunks that are here whole, for plans that are not.
    landed: BTreeSet<ChunkId>,
    prefetch_queue: usize,
    max_misses: usize,
}

/// The chunks that a fetch moves.
pub(super) fn chunks(fetch: &Fetch) -> impl Iterator<Item = ChunkId> + use<> {
    let (title, block) = (fetch.title.clone(), fetch.block);
    let layers = fetch.have.layers()..fetch.want.layers();
    layers.map(move |layer| ChunkId { title: title.clone(), block, layer: Layer(layer) })
}

impl Plans {
    pub(super) fn new(prefetch_queue: usize, max_misses: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            queues: BTreeMap::new(),
            landed: BTreeSet::new(),
            prefetch_queue,
            max_misses,
        }
    }

    /// A fetch is ordered. Those which it drives out, or itself.
    pub(super) fn push(&mut self, fetch: Fetch) -> Vec<Fetch> {
        let (prefetch_queue, max_misses) = (self.prefetch_queue, self.max_misses);
        let queue = self.queues.entry(fetch.server);
        queue.or_insert_with(|| SessionQueue::new(prefetch_queue, max_misses)).push(fetch)
    }

    /// What is to be begun at a server: every miss at once, since connections carry
    /// many at a time; a prefetch only where nothing else is under way.
    pub(super) fn next(&mut self, server: Server) -> Option<Fetch> {
        let busy = self.open.values().any(|plan| plan.fetch.server == server);
        let queue = self.queues.get_mut(&server)?;
        let (misses, _) = queue.waiting();
        if misses > 0 || !busy { queue.pop() } else { None }
    }

    /// A fetch is of no use any more; itself, if it still waited.
    pub(super) fn cancel(&mut self, server: Server, fetch: FetchId) -> Option<Fetch> {
        self.queues.get_mut(&server)?.cancel(fetch)
    }

    /// A fetch begins.
    pub(super) fn begin(&mut self, fetch: Fetch) {
        let left = chunks(&fetch).map(|chunk| chunk.layer).collect();
        let (id, until) = (fetch.id, fetch.want);
        self.open.insert(id, Plan { fetch, until, left, bytes: ByteCount(0), begun: false });
    }

    /// The first bytes of a chunk are here: the fetches that begin with them.
    pub(super) fn begun(&mut self, chunk: &ChunkId) -> Vec<FetchId> {
        let fresh = self.open.iter_mut().filter(|(_, plan)| !plan.begun && plan.brings(chunk));
        fresh
            .map(|(id, plan)| {
                plan.begun = true;
                *id
            })
            .collect()
    }

    /// A chunk is here: whether any fetch is for it, and those which are over with it.
    pub(super) fn arrived(&mut self, chunk: &ChunkId, bytes: u64) -> (bool, Vec<Over>) {
        let mut meant = false;
        for plan in self.open.values_mut().filter(|plan| plan.brings(chunk)) {
            if plan.left.remove(&chunk.layer) {
                plan.bytes = ByteCount(plan.bytes.0.saturating_add(bytes));
                meant = true;
            }
        }
        if meant {
            self.landed.insert(chunk.clone());
        }
        (meant, self.over())
    }

    /// Fetches of which the lower layers are here, and up to which quality.
    pub(super) fn partly(&self) -> Vec<(FetchId, Quality)> {
        let partly = self.open.iter().filter_map(|(id, plan)| {
            let here = Quality(plan.left.first()?.0);
            (here > plan.fetch.have).then_some((*id, here))
        });
        partly.collect()
    }

    /// The lower layers of what a fetch brings are kept.
    pub(super) fn keeps(&mut self, fetch: FetchId, quality: Quality) {
        if let Some(plan) = self.open.get_mut(&fetch) {
            plan.fetch.have = quality;
        }
    }

    /// The block that a fetch brings.
    pub(super) fn block(&self, fetch: FetchId) -> Option<(&TitleName, u32)> {
        self.open.get(&fetch).map(|plan| (&plan.fetch.title, plan.fetch.block))
    }

    /// A chunk does not come: of one server alone if that is all that is known of
    /// it. Those which are over with it.
    pub(super) fn lacks(&mut self, chunk: &ChunkId, server: Option<Server>) -> Vec<Over> {
        let of = |plan: &&mut Plan| server.is_none_or(|server| plan.fetch.server == server);
        for plan in self.open.values_mut().filter(of) {
            // What came is here: another one failed.
            if plan.brings(chunk) && plan.left.contains(&chunk.layer) {
                plan.until = Quality(chunk.layer.0);
                plan.left.retain(|layer| *layer < chunk.layer);
            }
        }
        self.over()
    }

    fn over(&mut self) -> Vec<Over> {
        let done: Vec<FetchId> =
            self.open.iter().filter(|(_, plan)| plan.left.is_empty()).map(|(id, _)| *id).collect();
        let over = done.into_iter().filter_map(|id| self.open.remove(&id));
        over.map(|plan| Over { quality: plan.until, bytes: plan.bytes, fetch: plan.fetch }).collect()
    }

    /// A server is lost: the mind forgets what it ordered there.
    pub(super) fn lose(&mut self, server: Server) {
        self.open.retain(|_, plan| plan.fetch.server != server);
        self.queues.remove(&server);
    }

    /// A title is forgotten.
    pub(super) fn forget(&mut self, title: &TitleName) {
        self.open.retain(|_, plan| plan.fetch.title != *title);
        self.landed.retain(|chunk| chunk.title != *title);
    }

    /// A chunk that is here is kept from now on; whether it was not yet.
    pub(super) fn kept(&mut self, chunk: &ChunkId) -> bool {
        self.landed.remove(chunk)
    }

    /// Chunks that are here and for which nobody has a use any more.
    pub(super) fn useless(&mut self) -> Vec<ChunkId> {
        let is_meant = |chunk: &ChunkId| self.open.values().any(|plan| plan.brings(chunk));
        let useless: Vec<ChunkId> = self.landed.iter().filter(|chunk| !is_meant(chunk)).cloned().collect();
        for chunk in &useless {
            self.landed.remove(chunk);
        }
        useless
    }

    /// Whether a chunk is here and waits for the rest of its block.
    pub(super) fn has_landed(&self, chunk: &ChunkId) -> bool {
        self.landed.contains(chunk)
    }

    /// Whether any fetch waits for this chunk.
    pub(super) fn wants(&self, chunk: &ChunkId) -> bool {
        self.open.values().any(|plan| plan.left.contains(&chunk.layer) && plan.brings(chunk))
    }

    /// Servers at which something waits.
    pub(super) fn servers(&self) -> Vec<Server> {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(server, _)| *server).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::proxy::cooperation::FetchKind;

    fn fetch(id: u64, have: u8, want: u8, kind: FetchKind) -> Fetch {
        Fetch {
            id: FetchId(id),
            server: Server::Origin,
            title: "film".parse().unwrap(),
            block: 7,
            have: Quality(have),
            want: Quality(want),
            bytes: ByteCount(30),
            kind,
        }
    }

    fn chunk(layer: u8) -> ChunkId {
        ChunkId { title: "film".parse().unwrap(), block: 7, layer: Layer(layer) }
    }

    #[test]
    fn a_fetch_is_over_with_its_last_chunk() {
        let mut plans = Plans::new(1, 8);
        assert_eq!(plans.push(fetch(1, 0, 3, FetchKind::Miss)), []);
        let first = plans.next(Server::Origin).unwrap();
        plans.begin(first.clone());
        assert_eq!(plans.begun(&chunk(0)), [FetchId(1)]);
        assert_eq!(plans.begun(&chunk(1)), [], "it has begun");
        assert_eq!(plans.arrived(&chunk(0), 10), (true, vec![]));
        assert_eq!(plans.arrived(&chunk(2), 10), (true, vec![]));
        assert!(plans.has_landed(&chunk(0)) && !plans.wants(&chunk(0)) && plans.wants(&chunk(1)));
        let over = Over { fetch: first, quality: Quality(3), bytes: ByteCount(30) };
        assert_eq!(plans.arrived(&chunk(1), 10), (true, vec![over]));
        // The mind keeps two layers of it.
        assert!(plans.kept(&chunk(0)) && plans.kept(&chunk(1)));
        assert_eq!(plans.useless(), [chunk(2)]);
        assert_eq!(plans.useless(), []);
    }

    #[test]
    fn without_a_layer_what_is_below_is_what_there_is() {
        let mut plans = Plans::new(1, 8);
        let whole = fetch(1, 0, 3, FetchKind::Miss);
        plans.begin(whole.clone());
        assert_eq!(plans.lacks(&chunk(1), None), []);
        let over = Over { fetch: whole, quality: Quality(1), bytes: ByteCount(10) };
        assert_eq!(plans.arrived(&chunk(0), 10), (true, vec![over]));
        assert_eq!(plans.arrived(&chunk(2), 10), (false, vec![]), "nobody asked for it");
        let rest = fetch(2, 1, 3, FetchKind::Miss);
        plans.begin(rest.clone());
        let over = Over { fetch: rest, quality: Quality(1), bytes: ByteCount(0) };
        assert_eq!(plans.lacks(&chunk(1), Some(Server::Origin)), [over]);
    }

    #[test]
    fn what_is_fetched_ahead_waits_until_its_server_is_idle() {
        let mut plans = Plans::new(1, 8);
        plans.push(fetch(1, 0, 1, FetchKind::Miss));
        let miss = plans.next(Server::Origin).unwrap();
        plans.begin(miss);
        plans.push(fetch(2, 1, 2, FetchKind::Prefetch));
        assert_eq!(plans.next(Server::Origin), None);
        plans.arrived(&chunk(0), 10);
        assert_eq!(plans.next(Server::Origin).unwrap().id, FetchId(2));
        plans.push(fetch(3, 2, 3, FetchKind::Prefetch));
        assert_eq!(plans.push(fetch(4, 2, 3, FetchKind::Prefetch)), [fetch(3, 2, 3, FetchKind::Prefetch)]);
        assert_eq!(plans.servers(), [Server::Origin]);
        assert_eq!(plans.cancel(Server::Origin, FetchId(4)), Some(fetch(4, 2, 3, FetchKind::Prefetch)));
        assert_eq!(plans.servers(), []);
    }
}
