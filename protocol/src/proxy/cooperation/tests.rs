#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod laws;
mod stories;

use super::*;
use crate::proxy::talk::{BlockRange, QualityRun, Query, Reply};
use media::{BitRate, ByteCount, Span};

/// Blocks of a second with four layers of 125 kB: one takes a second at 1 Mbit/s.
struct Rig {
    mind: Cooperation,
    now: Time,
}

const LAYER: u64 = 125_000;

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

fn film() -> TitleName {
    "film".parse().unwrap()
}

impl Rig {
    /// An origin 100 ms away with 2 Mbit/s, a peer 20 ms away with 4 Mbit/s, and
    /// room for so many layers.
    fn new(layers: u64, change: impl FnOnce(&mut CooperationConfig)) -> Self {
        let mut config = CooperationConfig::paper(ByteCount(layers * LAYER));
        (config.inquiry, config.ahead, config.margin) = (20, 10, Span::ZERO);
        change(&mut config);
        let mut rig = Self { mind: Cooperation::new(config), now: Time::ZERO };
        let blocks = Arc::new(BlockTable::uniform(100, Span::from_secs(1), &[LAYER; 4]));
        rig.tell(Input::Title { title: film(), blocks });
        rig.tell(Input::PeerFound { peer: peer("p2") });
        for (server, delay, mbits) in [(Server::Origin, 100, 2_u64), (Server::Peer(peer("p2")), 20, 4)] {
            let (delay, rate) = (Some(Span::from_millis(delay)), Some(BitRate(mbits * 1_000_000)));
            rig.tell(Input::Measured { server, delay, rate });
        }
        rig
    }

    fn tell(&mut self, input: Input) -> Vec<Output> {
        self.mind.handle_input(self.now, input);
        let outputs = std::iter::from_fn(|| self.mind.poll_output());
        outputs.filter(|output| !matches!(output, Output::Event(Event::Answered { .. }))).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.now += Span::from_millis(millis);
    }

    fn arrive(&mut self, client: u64) {
        let (client, beta, delay) = (ClientId(client), Beta(600), Span::from_millis(10));
        let out = self.tell(Input::Arrived { client, title: film(), beta, delay, rate: BitRate(8_000_000) });
        let asks_at_once = self.mind.config().news && self.mind.config().cooperate;
        assert_eq!(queries(&out).len(), usize::from(asks_at_once));
    }

    fn ask(&mut self, client: u64, block: u32, quality: u8, buffered: u64) -> Vec<Output> {
        let (client, quality) = (ClientId(client), Quality(quality));
        let buffered = Span::from_millis(buffered);
        self.tell(Input::Asked { client, block, quality, buffered, starting: false })
    }

    fn reply(&mut self, first: u32, count: u32, quality: u8) {
        let run = QualityRun { blocks: BlockRange { first, count }, quality: Quality(quality) };
        let reply = Reply { title: film(), runs: vec![run] };
        assert_eq!(self.tell(Input::Replied { from: peer("p2"), reply }), []);
    }

    fn query(&mut self, ranges: &[(u32, u32)]) -> Vec<QualityRun> {
        let ranges =
            ranges.iter().map(|(first, count)| BlockRange { first: *first, count: *count }).collect();
        let query = Query { title: film(), ranges };
        let out = self.tell(Input::Queried { from: peer("p2"), query });
        match out.as_slice() {
            [Output::Reply { to, reply }] if *to == peer("p2") => reply.runs.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn fetched(&mut self, fetch: u64, quality: u8) -> Vec<Output> {
        let (fetch, quality, bytes) =
            (FetchId(fetch), Quality(quality), ByteCount(u64::from(quality) * LAYER));
        self.tell(Input::Fetched { fetch, quality, bytes, took: Span::ZERO })
    }

    fn held(&self, block: u32) -> u8 {
        self.mind.held(&film(), block).layers()
    }
}

/// Fetches as (number, from the origin, block, have, want, miss).
fn fetches(outputs: &[Output]) -> Vec<(u64, bool, u32, u8, u8, bool)> {
    let fetch = |output: &Output| match output {
        Output::Fetch(Fetch { id, server, block, have, want, kind, .. }) => {
            let (origin, miss) = (*server == Server::Origin, *kind == FetchKind::Miss);
            Some((id.0, origin, *block, have.layers(), want.layers(), miss))
        }
        _ => None,
    };
    outputs.iter().filter_map(fetch).collect()
}

fn queries(outputs: &[Output]) -> Vec<Vec<(u32, u32)>> {
    let ranges = |output: &Output| match output {
        Output::Query { query, .. } => {
            Some(query.ranges.iter().map(|range| (range.first, range.end())).collect())
        }
        _ => None,
    };
    outputs.iter().filter_map(ranges).collect()
}

/// What clients get now as (client, block, quality).
fn served(outputs: &[Output]) -> Vec<(u64, u32, u8)> {
    let serve = |output: &Output| match output {
        Output::Serve { client, block, quality, .. } => Some((client.0, *block, quality.layers())),
        _ => None,
    };
    outputs.iter().filter_map(serve).collect()
}

/// What clients wait for as (client, block, quality, fetch, freeze in ms).
fn waits(outputs: &[Output]) -> Vec<(u64, u32, u8, u64, u64)> {
    let wait = |output: &Output| match output {
        Output::Wait { client, block, quality, fetch, freeze } => {
            Some((client.0, *block, quality.layers(), fetch.0, freeze.as_millis()))
        }
        _ => None,
    };
    outputs.iter().filter_map(wait).collect()
}
