#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::guests::GuestLimits;
use crate::message::{ChunkRequest, Visit};
use crate::node::autonomy::UserId;
use media::{Hash, Quality, Span};

const BRONZE: u64 = 1;
const GOLD: u64 = 2;

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

fn node(name: &str, port: u16) -> Upstream {
    Upstream { peer: Some(peer(name)), address: ([127, 0, 0, 1], port).into() }
}

fn film() -> TitleName {
    "film".parse().unwrap()
}

fn chunk(block: u32, layer: Layer) -> ChunkId {
    ChunkId { title: film(), block, layer }
}

/// Ten blocks; Base at two nodes.
fn shape() -> Shape {
    let base = vec![node("base-1", 1), node("base-2", 2)];
    let sources = vec![base, vec![node("enh1-1", 3)], vec![node("enh2-1", 4)]];
    Shape { manifest_length: 9, manifest_hash: Hash::of(b"manifest"), blocks: 10, sources }
}

/// A proxy with a bronze and a gold client, and verbs to talk to it.
struct Rig {
    proxy: Proxy,
    now: Time,
    streams: u64,
    /// What is in memory.
    held: Vec<ChunkId>,
}

impl Rig {
    fn new(mut config: ProxyConfig) -> Self {
        config.upstream = vec![node("base-1", 1)];
        let proxy = Proxy::new(Time::ZERO, peer("proxy-1"), config, 0);
        let mut rig = Self { proxy, now: Time::ZERO, streams: 0, held: Vec::new() };
        for link in [BRONZE, GOLD] {
            let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
            rig.input(Input::Linked { link: LinkId(link), hello, here: ([127, 0, 0, 1], 99).into() });
        }
        rig
    }

    fn playing() -> Self {
        let mut rig = Self::new(ProxyConfig::default());
        rig.open(BRONZE, Quality::BRONZE);
        rig.open(GOLD, Quality::GOLD);
        rig.input(Input::Learnt { title: film(), shape: Ok(shape()) });
        rig
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.proxy.handle_input(self.now, input);
        std::iter::from_fn(|| self.proxy.poll_output()).filter(|o| !matches!(o, Output::Event(_))).collect()
    }

    fn open(&mut self, link: u64, quality: Quality) -> Vec<Output> {
        let message = Message::Open(Open::new(7, film(), quality, UserId(1), Visit::Attach));
        self.input(Input::Heard { link: LinkId(link), message })
    }

    /// Asks for a chunk: refused, or served and the outputs before that.
    fn ask(&mut self, link: u64, id: &ChunkId) -> Result<Vec<Output>, Refusal> {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let request = StreamRequest::Chunk(ChunkRequest { id: id.clone(), deadline_ms: 1 });
        let held = self.held.contains(id);
        let mut outputs = self.input(Input::Asked { link: LinkId(link), stream, request, held, length: 100 });
        match outputs.pop() {
            Some(Output::Serve { stream: to }) if to == stream => Ok(outputs),
            Some(Output::Refuse { stream: to, why }) if to == stream => Err(why),
            other => panic!("{other:?}"),
        }
    }

    fn filled(&mut self, id: &ChunkId) {
        self.held.push(id.clone());
        assert_eq!(self.input(Input::Filled { chunk: id.clone() }), []);
    }

    fn failed(&mut self, id: &ChunkId, why: FillFailure) -> Vec<Output> {
        self.input(Input::FillFailed { chunk: id.clone(), why })
    }
}

fn fill(chunk: &ChunkId, from: Upstream) -> Output {
    Output::Fill { chunk: chunk.clone(), from }
}

#[test]
fn a_title_is_learnt_once_for_all_who_wait() {
    let mut rig = Rig::new(ProxyConfig::default());
    let learn = Output::Learn { title: film(), upstream: vec![node("base-1", 1)] };
    assert_eq!(rig.open(GOLD, Quality::GOLD), [learn]);
    assert_eq!(rig.open(BRONZE, Quality::BRONZE), []);
    let answers = rig.input(Input::Learnt { title: film(), shape: Ok(shape()) });
    let [
        Output::Send { message: Message::Opened(gold), .. },
        Output::Send { message: Message::Opened(bronze), .. },
    ] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!((gold.quality, bronze.quality), (Quality::GOLD, Quality::BRONZE));
    let own = NodeAddress { peer: peer("proxy-1"), address: ([127, 0, 0, 1], 99).into() };
    assert_eq!(bronze.sources, [LayerSources { layer: Layer::BASE, nodes: vec![own] }]);
    assert_eq!(gold.sources.len(), 3);
}

#[test]
fn many_who_ask_for_one_chunk_cause_one_fetch() {
    let guests = GuestLimits { requests: 2000, ..GuestLimits::default() };
    let mut rig = Rig::new(ProxyConfig { guests, ..ProxyConfig::default() });
    rig.open(GOLD, Quality::GOLD);
    rig.input(Input::Learnt { title: film(), shape: Ok(shape()) });
    let cold = chunk(3, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, node("base-1", 1))]));
    for _ in 0..999 {
        assert_eq!(rig.ask(GOLD, &cold), Ok(vec![]));
    }
    rig.filled(&cold);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![]), "it is in memory now");
}

#[test]
fn a_fetch_goes_on_when_the_first_to_ask_is_gone() {
    let mut rig = Rig::playing();
    let cold = chunk(3, Layer::BASE);
    rig.ask(BRONZE, &cold).unwrap();
    assert_eq!(rig.input(Input::Gone { link: LinkId(BRONZE) }), []);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![]));
    rig.filled(&cold);
}

#[test]
fn a_bronze_client_gets_no_enhancement() {
    let mut rig = Rig::playing();
    assert!(rig.ask(BRONZE, &chunk(0, Layer::BASE)).is_ok());
    assert_eq!(rig.ask(BRONZE, &chunk(0, Layer::ENH1)), Err(Refusal::AboveQuality));
    assert!(rig.ask(GOLD, &chunk(0, Layer::ENH2)).is_ok());
    assert_eq!(rig.ask(GOLD, &chunk(10, Layer::BASE)), Err(Refusal::NoSuchChunk));
}

#[test]
fn a_silent_source_is_followed_by_the_next_and_asked_last_for_a_while() {
    let mut rig = Rig::playing();
    let (first, second) = (chunk(0, Layer::BASE), chunk(1, Layer::BASE));
    rig.ask(GOLD, &first).unwrap();
    assert_eq!(rig.failed(&first, FillFailure::Silent), [fill(&first, node("base-2", 2))]);
    assert_eq!(rig.ask(GOLD, &second), Ok(vec![fill(&second, node("base-2", 2))]));
    assert_eq!(rig.failed(&first, FillFailure::Silent), [Output::GiveUp { chunk: first.clone() }]);
    assert_eq!(rig.failed(&first, FillFailure::Silent), [], "what was given up cannot fail again");
    rig.now += Span::from_secs(5);
    assert_eq!(rig.ask(GOLD, &first), Ok(vec![fill(&first, node("base-1", 1))]));
}

#[test]
fn a_liar_is_asked_last_for_a_minute() {
    let mut rig = Rig::playing();
    let id = chunk(0, Layer::BASE);
    rig.ask(GOLD, &id).unwrap();
    assert_eq!(rig.failed(&id, FillFailure::Lie), [fill(&id, node("base-2", 2))]);
    rig.filled(&id);
    rig.now += Span::from_secs(59);
    let next = chunk(1, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, node("base-2", 2))]));
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut rig = Rig::new(ProxyConfig { max_fills: 2, max_fill_bytes: 150, ..ProxyConfig::default() });
    rig.open(GOLD, Quality::GOLD);
    rig.input(Input::Learnt { title: film(), shape: Ok(shape()) });
    assert!(rig.ask(GOLD, &chunk(0, Layer::BASE)).is_ok());
    assert_eq!(rig.ask(GOLD, &chunk(1, Layer::BASE)), Err(Refusal::TooManyRequests));
    rig.filled(&chunk(0, Layer::BASE));
    assert!(rig.ask(GOLD, &chunk(1, Layer::BASE)).is_ok());
}

#[test]
fn a_title_is_asked_again_when_what_is_known_is_old() {
    let mut rig = Rig::playing();
    rig.now += Span::from_secs(10);
    let again = rig.open(GOLD, Quality::GOLD);
    assert!(matches!(again[..], [Output::Learn { .. }]));
    // Nobody answers: what is known is used.
    let answers = rig.input(Input::Learnt { title: film(), shape: Err(Refusal::Upstream) });
    assert!(matches!(&answers[..], [Output::Send { message: Message::Opened(_), .. }]));
    rig.open(GOLD, Quality::GOLD);
    let answers = rig.input(Input::Learnt { title: film(), shape: Err(Refusal::NoSuchTitle) });
    let none = Message::Refused { request: 7, why: Refusal::NoSuchTitle };
    let forget = Output::Forget { title: film() };
    assert_eq!(answers, [forget, Output::Send { link: LinkId(GOLD), message: none }]);
}

#[test]
fn a_title_nobody_watches_makes_room_for_another() {
    let mut rig = Rig::new(ProxyConfig { max_titles: 1, ..ProxyConfig::default() });
    rig.open(GOLD, Quality::GOLD);
    rig.input(Input::Learnt { title: film(), shape: Ok(shape()) });
    let news: TitleName = "news".parse().unwrap();
    let open = |title: &TitleName| {
        let open = Open::new(8, title.clone(), Quality::GOLD, UserId(1), Visit::Attach);
        Input::Heard { link: LinkId(BRONZE), message: Message::Open(open) }
    };
    rig.input(open(&news));
    let full = Message::Refused { request: 8, why: Refusal::Full };
    let refused =
        [Output::Forget { title: news.clone() }, Output::Send { link: LinkId(BRONZE), message: full }];
    assert_eq!(rig.input(Input::Learnt { title: news.clone(), shape: Ok(shape()) }), refused);
    rig.input(Input::Gone { link: LinkId(GOLD) });
    rig.input(open(&news));
    let answers = rig.input(Input::Learnt { title: news, shape: Ok(shape()) });
    assert_eq!(answers[0], Output::Forget { title: film() });
    assert!(matches!(answers[1], Output::Send { message: Message::Opened(_), .. }));
}

#[test]
fn one_list_answers_all_who_are_curious() {
    let mut rig = Rig::playing();
    let ask = |link| Input::Heard { link: LinkId(link), message: Message::ListTitles };
    assert_eq!(rig.input(ask(GOLD)), [Output::List { upstream: vec![node("base-1", 1)] }]);
    assert_eq!(rig.input(ask(BRONZE)), []);
    assert_eq!(rig.input(ask(BRONZE)), []);
    let told = |link| Output::Send { link: LinkId(link), message: Message::Titles(vec![]) };
    assert_eq!(rig.input(Input::Listed(Ok(vec![]))), [told(GOLD), told(BRONZE)]);
}

#[test]
fn the_order_to_stop_waits_for_open_requests() {
    let mut rig = Rig::playing();
    let id = chunk(0, Layer::BASE);
    rig.ask(GOLD, &id).unwrap();
    let told = |link| Output::Send { link: LinkId(link), message: Message::Draining };
    assert_eq!(rig.input(Input::Drain), [told(BRONZE), told(GOLD)]);
    assert_eq!(rig.ask(GOLD, &id), Err(Refusal::Draining));
    let outcome = Outcome::Sent { bytes: 100 };
    let parts = [BRONZE, GOLD].map(|link| Output::Part { link: LinkId(link) });
    let end = [parts.to_vec(), vec![Output::Drained]].concat();
    assert_eq!(rig.input(Input::Answered { stream: StreamId(1), outcome }), end);
}
