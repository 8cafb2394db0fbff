//! What holds whatever happens.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Arrive(u64),
    Leave(u64),
    Ask(u64, u32, u8, u64),
    Fetched(usize, u8),
    Failed(usize, FetchFailure),
    Begun(usize),
    Query(u32, u32),
    Reply(u32, u32, u8),
    Lost(bool),
    Found(bool),
    Damaged(u32, u8),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let why =
        prop_oneof![Just(FetchFailure::Absent), Just(FetchFailure::Overwritten), Just(FetchFailure::Failed)];
    prop_oneof![
        1 => (0_u64..4).prop_map(Op::Arrive),
        1 => (0_u64..4).prop_map(Op::Leave),
        8 => (0_u64..4, 0_u32..110, 0_u8..6, 0_u64..6_000).prop_map(|(c, b, q, p)| Op::Ask(c, b, q, p)),
        8 => (0_usize..9, 0_u8..6).prop_map(|(at, quality)| Op::Fetched(at, quality)),
        2 => (0_usize..9, why).prop_map(|(at, why)| Op::Failed(at, why)),
        1 => (0_usize..9).prop_map(Op::Begun),
        1 => (0_u32..100, 0_u32..30).prop_map(|(first, count)| Op::Query(first, count)),
        1 => (0_u32..100, 0_u32..30, 0_u8..6).prop_map(|(first, count, q)| Op::Reply(first, count, q)),
        1 => any::<bool>().prop_map(Op::Lost),
        1 => any::<bool>().prop_map(Op::Found),
        1 => (0_u32..100, 0_u8..4).prop_map(|(block, quality)| Op::Damaged(block, quality)),
        1 => (0_u64..3_000).prop_map(Op::Pass),
    ]
}

/// What the outputs say: what is open at whom, what is kept, and who waits.
#[derive(Default)]
struct Seen {
    open: Vec<Fetch>,
    kept: BTreeMap<u32, u8>,
    waiting: Vec<(u64, u32)>,
}

impl Seen {
    fn note(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Fetch(fetch) => {
                    let delta = fetch.have == Quality::NONE || fetch.have < fetch.want;
                    assert!(delta && fetch.want > Quality::NONE && fetch.want <= Quality(4));
                    let mut same = self.open.iter().filter(|open| open.block == fetch.block);
                    let twice = |open: &Fetch| {
                        open.server == fetch.server && open.kind == FetchKind::Miss && open.want >= fetch.want
                    };
                    assert!(!same.any(twice), "twice on one session: {fetch:?}");
                    self.open.push(fetch);
                }
                Output::Keep { block, quality, .. } => {
                    let before = self.kept.insert(block, quality.layers()).unwrap_or(0);
                    assert!(before < quality.layers(), "what is kept grows");
                }
                Output::Drop { block, quality, .. } => {
                    let before = self.kept.insert(block, quality.layers()).unwrap_or(0);
                    assert!(before > quality.layers(), "what goes shrinks");
                }
                Output::Serve { client, block, quality, .. } => {
                    assert!(quality > Quality::NONE);
                    self.waiting.retain(|waiting| *waiting != (client.0, block));
                }
                Output::Wait { client, block, fetch, .. } => {
                    assert!(self.open.iter().any(|open| open.id == fetch), "a wait for what is open");
                    self.waiting.retain(|waiting| *waiting != (client.0, block));
                    self.waiting.push((client.0, block));
                }
                Output::Refuse { client, block, .. } => {
                    self.waiting.retain(|waiting| *waiting != (client.0, block));
                }
                Output::Query { .. } | Output::Reply { .. } | Output::Cancel { .. } | Output::Event(_) => {}
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<Fetch> {
        (at < self.open.len()).then(|| self.open.remove(at))
    }
}

fn input(op: &Op, seen: &mut Seen) -> Option<Input> {
    let (server, title) = (|origin| if origin { Server::Origin } else { Server::Peer(peer("p2")) }, film());
    Some(match *op {
        Op::Arrive(client) => {
            seen.waiting.retain(|(waiting, _)| *waiting != client);
            let (client, beta, delay) = (ClientId(client), Beta(600), Span::from_millis(10));
            Input::Arrived { client, title, beta, delay, rate: BitRate(8_000_000) }
        }
        Op::Leave(client) => {
            seen.waiting.retain(|(waiting, _)| *waiting != client);
            Input::Left { client: ClientId(client) }
        }
        Op::Ask(client, block, quality, buffered) => {
            let (client, quality, buffered) =
                (ClientId(client), Quality(quality), Span::from_millis(buffered));
            Input::Asked { client, block, quality, buffered, starting: buffered < Span::from_millis(9) }
        }
        Op::Fetched(at, quality) => {
            let fetch = seen.take(at)?;
            let (quality, bytes) = (Quality(quality).min(fetch.want), fetch.bytes);
            Input::Fetched { fetch: fetch.id, quality, bytes, took: Span::from_millis(300) }
        }
        Op::Failed(at, why) => Input::FetchFailed { fetch: seen.take(at)?.id, why },
        Op::Begun(at) => Input::Begun { fetch: seen.open.get(at)?.id },
        Op::Query(first, count) => {
            let query = Query { title, ranges: vec![BlockRange { first, count }] };
            Input::Queried { from: peer("p2"), query }
        }
        Op::Reply(first, count, quality) => {
            let run = QualityRun { blocks: BlockRange { first, count }, quality: Quality(quality) };
            Input::Replied { from: peer("p2"), reply: Reply { title, runs: vec![run] } }
        }
        Op::Lost(origin) => {
            seen.open.retain(|fetch| fetch.server != server(origin));
            Input::Lost { server: server(origin) }
        }
        Op::Found(true) => Input::OriginFound,
        Op::Found(false) => Input::PeerFound { peer: peer("p2") },
        Op::Damaged(block, quality) => {
            let left = seen.kept.get(&block).copied().unwrap_or(0).min(quality);
            seen.kept.insert(block, left);
            Input::Damaged { title, block, quality: Quality(quality) }
        }
        Op::Pass(_) => Input::Timeout,
    })
}

proptest! {
    #[test]
    fn tables_agree_with_what_was_said_and_the_cache_is_never_too_full(
        ops in proptest::collection::vec(op(), 1..160),
        room in 1_u64..60,
        delta: bool,
    ) {
        let mut rig = Rig::new(room, |config| {
            config.transfer = if delta { Transfer::Delta } else { Transfer::Whole };
            config.max_fetches = 6;
            config.news = delta;
        });
        let mut seen = Seen::default();
        for op in &ops {
            if let Op::Pass(millis) = op {
                rig.pass(*millis);
            }
            let Some(input) = input(op, &mut seen) else { continue };
            let outputs = rig.tell(input);
            seen.note(outputs);
            prop_assert!(rig.mind.used() <= ByteCount(room * LAYER));
            let kept: u64 = seen.kept.values().map(|quality| u64::from(*quality) * LAYER).sum();
            prop_assert_eq!(rig.mind.used(), ByteCount(kept));
            prop_assert!(seen.kept.iter().all(|(block, quality)| rig.held(*block) == *quality));
            prop_assert_eq!(rig.mind.open_fetches(), seen.open.len());
            prop_assert!(rig.mind.server_lines().iter().all(|line| line.open <= 6));
        }
        // Whatever is open comes to an end, and then nobody waits.
        for _ in 0..200 {
            let Some(fetch) = seen.take(0) else { break };
            let (quality, bytes) = (fetch.want, fetch.bytes);
            let outputs = rig.tell(Input::Fetched { fetch: fetch.id, quality, bytes, took: Span::ZERO });
            seen.note(outputs);
        }
        prop_assert_eq!(rig.mind.open_fetches(), 0);
        prop_assert!(seen.waiting.is_empty(), "{:?}", seen.waiting);
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(ops in proptest::collection::vec(op(), 1..40)) {
        let run = || {
            let (mut rig, mut seen, mut all) = (Rig::new(20, |_| ()), Seen::default(), Vec::new());
            for op in &ops {
                if let Some(input) = input(op, &mut seen) {
                    let outputs = rig.tell(input);
                    all.extend(outputs.clone());
                    seen.note(outputs);
                }
            }
            all
        };
        prop_assert_eq!(run(), run());
    }
}
