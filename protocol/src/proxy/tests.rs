#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "tests state exact values"
)]

mod errand;
mod mind;
mod rig;
mod turns;

use super::*;
use crate::guests::{GuestLimits, StreamId};
use crate::message::{LayerSources, NodeAddress, Open, Progress, Visit};
use media::{Layer, Quality, TitleName};
use rig::{BRONZE, GOLD, Rig, base_1, base_2, chunk, fill, film, peer, shape};

#[test]
fn a_title_is_learnt_once_for_all_who_wait() {
    let mut rig = Rig::new(ProxyConfig::default());
    let learn = Output::Learn { title: film(), upstream: vec![base_1()] };
    assert_eq!(rig.open(GOLD, Quality::GOLD), [learn]);
    assert_eq!(rig.open(BRONZE, Quality::BRONZE), []);
    let answers = rig.learn();
    let [
        Output::Send { message: Message::Opened(bronze), .. },
        Output::Send { message: Message::Opened(gold), .. },
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
    let mut rig = Rig::playing_with(ProxyConfig { guests, ..ProxyConfig::default() });
    let cold = chunk(3, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, base_1())]));
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
    assert_eq!(rig.input(Input::Gone { link: LinkId(BRONZE), parted: true }), []);
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
    assert_eq!(rig.failed(&first, base_1(), FillFailure::Silent), [fill(&first, base_2())]);
    assert_eq!(rig.failed(&first, base_1(), FillFailure::Silent), [], "that try is over");
    assert_eq!(rig.ask(GOLD, &second), Ok(vec![fill(&second, base_2())]));
    // Who has not got it will not have it later.
    let damaged = FillFailure::Refused(Refusal::Damaged);
    assert_eq!(
        rig.failed(&first, base_2(), damaged),
        [Output::GiveUp { chunk: first.clone(), why: Refusal::Upstream }]
    );
    assert_eq!(rig.failed(&first, base_2(), damaged), [], "what was given up cannot fail again");
    rig.run(Span::from_secs(5));
    assert_eq!(rig.ask(GOLD, &first), Ok(vec![fill(&first, base_1())]));
}

#[test]
fn who_asks_for_what_comes_from_an_archive_is_told_so_and_may_ask_again() {
    let mut rig = Rig::playing();
    let id = chunk(0, Layer::BASE);
    let coming = FillFailure::Refused(Refusal::Coming);
    for _ in 0..2 {
        assert_eq!(rig.ask(GOLD, &id), Ok(vec![fill(&id, base_1())]), "its node is not avoided");
        let told = Output::GiveUp { chunk: id.clone(), why: Refusal::Coming };
        assert_eq!(rig.failed(&id, base_1(), coming), [told], "nobody else is asked");
    }
}

#[test]
fn a_liar_is_asked_last_for_a_minute() {
    let mut rig = Rig::playing();
    let id = chunk(0, Layer::BASE);
    rig.ask(GOLD, &id).unwrap();
    assert_eq!(rig.failed(&id, base_1(), FillFailure::Lie), [fill(&id, base_2())]);
    rig.filled(&id);
    rig.run(Span::from_secs(59));
    let next = chunk(1, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, base_2())]));
}

#[test]
fn what_is_under_way_is_bounded() {
    let mut rig =
        Rig::playing_with(ProxyConfig { max_fills: 2, max_fill_bytes: 150, ..ProxyConfig::default() });
    assert!(rig.ask(GOLD, &chunk(0, Layer::BASE)).is_ok());
    assert_eq!(rig.ask(GOLD, &chunk(1, Layer::BASE)), Err(Refusal::TooManyRequests));
    rig.filled(&chunk(0, Layer::BASE));
    assert!(rig.ask(GOLD, &chunk(1, Layer::BASE)).is_ok());
}

#[test]
fn a_title_is_asked_again_when_what_is_known_is_old() {
    let mut rig = Rig::playing();
    rig.run(Span::from_secs(10));
    let again = rig.open(GOLD, Quality::GOLD);
    assert!(matches!(again[..], [Output::Learn { .. }]));
    // Nobody answers: what is known is used.
    let answers = rig.input(Input::Learnt { title: film(), shape: Err(Refusal::Upstream), kept: Vec::new() });
    assert!(matches!(answers[0], Output::Send { message: Message::Opened(_), .. }));
    rig.open(GOLD, Quality::GOLD);
    let answers =
        rig.input(Input::Learnt { title: film(), shape: Err(Refusal::NoSuchTitle), kept: Vec::new() });
    let none = Message::Refused { request: 7, why: Refusal::NoSuchTitle };
    let forget = Output::Forget { title: film() };
    assert_eq!(answers, [forget, Output::Send { link: LinkId(GOLD), message: none }]);
}

#[test]
fn a_title_nobody_watches_makes_room_for_another() {
    let mut rig = Rig::new(ProxyConfig { max_titles: 1, ..ProxyConfig::default() });
    rig.open(GOLD, Quality::GOLD);
    rig.input(Input::Learnt { title: film(), shape: Ok(shape()), kept: Vec::new() });
    let news: TitleName = "news".parse().unwrap();
    let open = |title: &TitleName| {
        let visit = Visit::Seek(Progress::default());
        let open = Open::new(8, title.clone(), Quality::GOLD, UserId(1), visit);
        Input::Heard { link: LinkId(BRONZE), message: Message::Open(open) }
    };
    rig.input(open(&news));
    let full = Message::Refused { request: 8, why: Refusal::Full };
    let refused =
        [Output::Forget { title: news.clone() }, Output::Send { link: LinkId(BRONZE), message: full }];
    assert_eq!(
        rig.input(Input::Learnt { title: news.clone(), shape: Ok(shape()), kept: Vec::new() }),
        refused
    );
    rig.input(Input::Gone { link: LinkId(GOLD), parted: true });
    rig.input(open(&news));
    let answers = rig.input(Input::Learnt { title: news, shape: Ok(shape()), kept: Vec::new() });
    assert_eq!(answers[0], Output::Forget { title: film() });
    assert!(matches!(answers[1], Output::Send { message: Message::Opened(_), .. }));
}

#[test]
fn one_list_answers_all_who_are_curious() {
    let mut rig = Rig::playing();
    let ask = |link| Input::Heard { link: LinkId(link), message: Message::ListTitles };
    assert_eq!(rig.input(ask(GOLD)), [Output::List { upstream: vec![base_1()] }]);
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
