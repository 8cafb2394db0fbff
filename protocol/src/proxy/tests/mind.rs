//! The mind inside the proxy: what it asks of another proxy and fetches there, what
//! becomes of that when the other one dies, what a full cache lets go, and how much
//! clients insist on.

use super::errand::vip;
use super::rig::{BRONZE, GOLD, Rig, base_1, base_2, chunk, fill, film, node};
use crate::message::{Message, NodeAddress, Open, Progress, Visit};
use crate::node::autonomy::UserId;
use crate::proxy::cooperation::CooperationConfig;
use crate::proxy::*;
use crate::{LinkId, SignedToken};
use media::{ByteCount, ChunkId, Layer, Quality};

const ANNA: UserId = UserId(GOLD);

fn proxy_2() -> NodeAddress {
    NodeAddress { peer: "proxy-2".parse().unwrap(), address: ([127, 0, 0, 1], 98).into() }
}

fn layers(block: u32) -> [ChunkId; 3] {
    [Layer::BASE, Layer::ENH1, Layer::ENH2].map(|layer| chunk(block, layer))
}

/// All layers of a block from the nodes that serve them.
fn from_nodes(block: u32) -> Vec<Output> {
    let nodes = [base_1(), node("enh1-1", 3), node("enh2-1", 4)];
    layers(block).iter().zip(nodes).map(|(chunk, node)| fill(chunk, node)).collect()
}

fn from_peer(block: u32) -> Vec<Output> {
    layers(block).iter().map(|chunk| fill(chunk, proxy_2().into())).collect()
}

/// Nothing is fetched ahead, so that each request is told from the others.
fn calm(cooperation: CooperationConfig) -> ProxyConfig {
    let cooperation = CooperationConfig { prefetch: false, ..cooperation };
    ProxyConfig { cooperation, ..ProxyConfig::default() }
}

/// A proxy beside another one that holds the whole film in gold.
fn beside_another() -> Rig {
    let config = calm(ProxyConfig::default().cooperation);
    let mut rig = Rig::thinking(ProxyConfig { peers: vec![proxy_2()], ..config });
    rig.fake(proxy_2().into()).holds = Quality::GOLD;
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig
}

#[test]
fn what_another_proxy_holds_is_fetched_there_until_it_dies_and_again_when_it_is_back() {
    let mut rig = beside_another();
    // It is asked what it holds as soon as the client comes, before that asks for anything.
    let query = Query { title: film(), ranges: vec![BlockRange { first: 0, count: 10 }] };
    assert!(rig.has_said(proxy_2().into(), |said| *said == Message::Query(query.clone())));
    assert_eq!(rig.ask(GOLD, &chunk(0, Layer::BASE)), Ok(from_peer(0)));
    assert_eq!(rig.ask(GOLD, &chunk(1, Layer::BASE)), Ok(from_peer(1)));
    // It dies with both blocks under way; after 400 ms the nodes are asked, Base first.
    rig.fake(proxy_2().into()).dead = true;
    assert_eq!(rig.run(Span::from_millis(390)), []);
    let asked = rig.run(Span::from_millis(120));
    assert_eq!(asked[..2], [&from_nodes(0)[0], &from_nodes(1)[0]].map(Clone::clone));
    assert_eq!(asked[2..], [&from_nodes(0)[1..], &from_nodes(1)[1..]].concat());
    assert_eq!(rig.ask(GOLD, &chunk(2, Layer::BASE)), Ok(from_nodes(2)));
    rig.fake(proxy_2().into()).dead = false;
    rig.run(Span::from_secs(2));
    assert_eq!(rig.ask(GOLD, &chunk(3, Layer::BASE)), Ok(from_peer(3)));
}

#[test]
fn another_proxy_that_refuses_is_passed_by_for_that_block() {
    let mut rig = beside_another();
    rig.ask(GOLD, &chunk(0, Layer::BASE)).unwrap();
    rig.ask(GOLD, &chunk(1, Layer::BASE)).unwrap();
    let gone = FillFailure::Refused(Refusal::NotHeld);
    let asked = rig.failed(&chunk(1, Layer::BASE), proxy_2().into(), gone);
    assert!(asked.contains(&fill(&chunk(1, Layer::BASE), base_1())), "{asked:?}");
    assert_eq!(rig.ask(GOLD, &chunk(2, Layer::BASE)), Ok(from_peer(2)), "it has others");
}

/// All of a block comes; what the proxy does then.
fn come(rig: &mut Rig, block: u32) -> Vec<Output> {
    let come = |chunk: ChunkId| {
        rig.held.push(chunk.clone());
        rig.input(Input::Filled { chunk })
    };
    layers(block).map(come).concat()
}

#[test]
fn a_full_cache_lowers_what_somebody_is_yet_to_see_and_drops_what_nobody_will() {
    let capacity = ByteCount(750_000);
    let cooperation = CooperationConfig {
        inquiry: 2,
        ahead: 1,
        cooperate: false,
        ..CooperationConfig::production(capacity)
    };
    let kept = |block| layers(block).map(|chunk| Output::Keep { chunk }).to_vec();
    let mut rig = Rig::thinking(calm(cooperation));
    rig.open(BRONZE, Quality::SILVER);
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    for block in 0..3 {
        assert_eq!(rig.ask(GOLD, &chunk(block, Layer::BASE)), Ok(from_nodes(block)));
        assert_eq!(come(&mut rig, block), kept(block));
    }
    assert_eq!(rig.ask(BRONZE, &chunk(0, Layer::BASE)), Ok(vec![]), "a hit");
    // Three blocks of 212 kB are here, and a fourth is 98 kB too much. A silver client
    // has block 2 before it: what it does not need of that goes.
    rig.ask(GOLD, &chunk(3, Layer::BASE)).unwrap();
    let lowered = Output::Remove { chunk: chunk(2, Layer::ENH2) };
    let [one, two, three] = layers(3).map(|chunk| Output::Keep { chunk });
    assert_eq!(come(&mut rig, 3), [one, two, lowered, three]);
    assert_eq!(rig.proxy.advisor.mind.used(), ByteCount(748_000));
    // It leaves: nobody will want blocks 2 and 3 any more.
    rig.input(Input::Gone { link: LinkId(BRONZE), parted: true });
    rig.ask(GOLD, &chunk(4, Layer::BASE)).unwrap();
    let dropped = layers(3).map(|chunk| Output::Remove { chunk }).to_vec();
    assert_eq!(come(&mut rig, 4), [dropped, kept(4)].concat());
}

#[test]
fn what_another_proxy_holds_of_a_block_is_fetched_there_and_the_rest_from_the_nodes() {
    let config = calm(ProxyConfig::default().cooperation);
    let mut rig = Rig::thinking(ProxyConfig { peers: vec![proxy_2()], ..config });
    rig.fake(proxy_2().into()).holds = Quality::SILVER;
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    let [base, enh1, enh2] = layers(0);
    let lower = [&base, &enh1].map(|chunk| fill(chunk, proxy_2().into()));
    let asked = [lower.to_vec(), vec![fill(&enh2, node("enh2-1", 4))]].concat();
    assert_eq!(rig.ask(GOLD, &base), Ok(asked));
    // It has it no more: the nodes have.
    let gone = FillFailure::Refused(Refusal::NotHeld);
    assert_eq!(rig.failed(&enh1, proxy_2().into(), gone), [fill(&enh1, node("enh1-1", 3))]);
}

#[test]
fn whoever_marked_a_block_hears_of_its_base_before_all_of_it_is_here() {
    let config = calm(ProxyConfig::default().cooperation);
    let mut rig = Rig::thinking(ProxyConfig { peers: vec![proxy_2()], ..config });
    let hello = crate::message::Hello {
        version: crate::message::PROTOCOL_VERSION,
        peer: proxy_2().peer,
        role: crate::message::Role::Proxy,
    };
    rig.input(Input::Linked { link: LinkId(9), hello, here: ([127, 0, 0, 1], 99).into() });
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig.ask(GOLD, &chunk(0, Layer::BASE)).unwrap();
    let ranges = vec![BlockRange { first: 0, count: 2 }];
    let query = Message::Query(Query { title: film(), ranges });
    rig.input(Input::Heard { link: LinkId(9), message: query });
    let mut told = Vec::new();
    for chunk in layers(0) {
        rig.held.push(chunk.clone());
        let outputs = rig.input(Input::Filled { chunk });
        told.extend(Rig::heard(&outputs, 9));
    }
    let blocks = BlockRange { first: 0, count: 1 };
    let news = [Quality::BRONZE, Quality::SILVER, Quality::GOLD]
        .map(|quality| Message::Reply(Reply { title: film(), runs: vec![QualityRun { blocks, quality }] }));
    assert_eq!(told, news);
}

/// The least that the one client accepts.
fn acceptable(rig: &Rig) -> Quality {
    let [line] = &rig.proxy.advisor.mind.client_lines()[..] else { panic!("one client") };
    line.acceptable
}

#[test]
fn gold_insists_on_all_of_it_and_on_base_alone_while_its_service_fails_over() {
    let mut rig = Rig::thinking(calm(ProxyConfig::default().cooperation));
    rig.fake(base_1()).others.clear();
    rig.fake(base_1()).backup = Some(base_2());
    rig.fake(base_2()).knows.insert(ANNA);
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig.ask(GOLD, &chunk(0, Layer::BASE)).unwrap();
    assert_eq!(acceptable(&rig), Quality::GOLD, "0.8 of three layers");
    rig.fake(base_1()).dead = true;
    rig.run(Span::from_millis(510));
    rig.ask(GOLD, &chunk(1, Layer::BASE)).unwrap();
    assert_eq!(acceptable(&rig), Quality::BRONZE);
    rig.fake(base_2()).serves.insert(ANNA, 2);
    rig.told(base_2(), Message::DeliveryStart { user: ANNA, position: Span::ZERO, epoch: 2 });
    rig.ask(GOLD, &chunk(2, Layer::BASE)).unwrap();
    assert_eq!(acceptable(&rig), Quality::GOLD);
    // The node of a layer dies: what is below it will do until there is another.
    rig.input(Input::Unreached { address: node("enh2-1", 4).address });
    rig.fake(node("enh2-1", 4)).dead = true;
    rig.ask(GOLD, &chunk(3, Layer::BASE)).unwrap();
    assert_eq!(acceptable(&rig), Quality::BRONZE);
}

#[test]
fn each_class_accepts_its_own_part_of_what_it_asks_for() {
    let insistence = Insistence { usual: 400, gold: 600, vip: 350 };
    let part = |quality: Quality, token: Option<SignedToken>| {
        let mut rig = Rig::thinking(ProxyConfig { insistence, ..calm(ProxyConfig::default().cooperation) });
        let open = Open::new(7, film(), quality, ANNA, Visit::Seek(Progress::default()));
        rig.input(Input::Heard { link: LinkId(GOLD), message: Message::Open(Open { token, ..open }) });
        rig.learn();
        rig.ask(GOLD, &chunk(0, Layer::BASE)).unwrap();
        acceptable(&rig).layers()
    };
    let parts = |token: Option<SignedToken>| {
        [Quality::BRONZE, Quality::SILVER, Quality::GOLD].map(|quality| part(quality, token.clone()))
    };
    // 0.4 of one and of two layers, 0.6 of three; a VIP 0.75 and 0.95.
    assert_eq!(parts(None), [1, 1, 2]);
    assert_eq!(parts(Some(vip())), [1, 2, 3]);
}
