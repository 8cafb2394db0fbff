//! What a client behind a proxy lives through while the network moves.

use super::rig::{BRONZE, GOLD, Rig, base_1, base_2, chunk, fill, film, node};
use crate::message::{Message, NodeAddress, Open, Progress, Visit};
use crate::node::autonomy::UserId;
use crate::proxy::*;
use crate::{LinkId, Sla};
use media::{Layer, Quality};

const ANNA: UserId = UserId(GOLD);

fn at(at: Upstream) -> NodeAddress {
    NodeAddress { peer: at.peer.unwrap(), address: at.address }
}

/// A gold client served by the first Base node, with the second behind it.
fn backed_up() -> Rig {
    let mut rig = Rig::new(ProxyConfig::default());
    rig.fake(base_1()).others.clear();
    rig.fake(base_1()).backup = Some(base_2());
    rig.fake(base_2()).knows.insert(ANNA);
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig
}

pub(super) fn vip() -> crate::SignedToken {
    let viewer = "anna".parse().unwrap();
    let promise = crate::Promise { viewer, sla: Sla::Vip, top: Quality::GOLD, until: u64::MAX };
    crate::SignedToken { promise, signature: vec![1, 2, 3] }
}

fn refused(rig: &mut Rig, link: u64) -> Vec<Message> {
    let outputs = rig.run(Span::from_secs(4));
    Rig::heard(&outputs, link)
}

#[test]
fn a_client_is_a_user_of_the_network_with_its_own_number_token_and_quality() {
    let mut rig = Rig::new(ProxyConfig { top: Quality::SILVER, ..ProxyConfig::default() });
    let token = vip();
    let progress =
        Progress { position: Span::from_secs(9), buffer: Span::from_secs(4), ..Progress::default() };
    let open = Open::new(7, film(), Quality::GOLD, ANNA, Visit::Seek(progress));
    let open = Open { token: Some(token.clone()), ..open };
    rig.input(Input::Heard { link: LinkId(GOLD), message: Message::Open(open) });
    let answers = rig.learn();
    let sought = |message: &Message| {
        matches!(message, Message::Open(open) if open.user == ANNA && open.token.as_ref() == Some(&token)
            && open.quality == Quality::SILVER && open.visit == Visit::Seek(progress))
    };
    assert!(rig.has_said(base_1(), sought), "{:?}", rig.said);
    let attached = |message: &Message| matches!(message, Message::Open(open) if open.visit == Visit::Attach && open.user == ANNA);
    assert!(rig.has_said(node("enh1-1", 3), attached));
    assert!(!rig.has_said(node("enh2-1", 4), attached), "no more than the proxy's own top");
    let heard = Rig::heard(&answers, GOLD);
    let [Message::Opened(opened)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((opened.quality, opened.epoch), (Quality::SILVER, 1));
    // It reports as a player does, with what the client told last.
    let (position, buffer) = (Span::from_secs(12), Span::from_secs(3));
    let message = Message::Position { user: ANNA, position, buffer, paused: true };
    rig.input(Input::Heard { link: LinkId(GOLD), message: message.clone() });
    rig.run(Span::from_secs(1));
    assert!(rig.has_said(base_1(), |said| *said == message));
    // And ends every session upstream when the client is done.
    rig.input(Input::Gone { link: LinkId(GOLD), parted: true });
    for node in [base_1(), node("enh1-1", 3)] {
        assert!(rig.has_said(node, |message| matches!(message, Message::Close(_))));
    }
}

#[test]
fn a_refusal_upstream_is_the_clients_by_its_name() {
    for why in [Refusal::Full, Refusal::Token, Refusal::SearchLost] {
        let mut rig = Rig::new(ProxyConfig::default());
        rig.fake(base_1()).refuses = Some(why);
        rig.open(GOLD, Quality::GOLD);
        let answers = rig.learn();
        assert_eq!(Rig::heard(&answers, GOLD), [Message::Refused { request: 7, why }]);
        // Its place here is free again.
        rig.fake(base_1()).refuses = None;
        assert!(matches!(Rig::heard(&rig.open(GOLD, Quality::GOLD), GOLD)[..], [Message::Opened(_)]));
    }
}

#[test]
fn each_door_is_tried_in_turn_and_with_nobody_there_that_is_said() {
    let config = ProxyConfig { upstream: vec![base_1(), base_2()], ..ProxyConfig::default() };
    let mut rig = Rig::new(config.clone());
    rig.fake(base_1()).dead = true;
    rig.open(GOLD, Quality::GOLD);
    let answers = rig.learn();
    assert!(matches!(Rig::heard(&answers, GOLD)[..], [Message::Opened(_)]));
    let mut rig = Rig::new(config);
    rig.fake(base_1()).dead = true;
    rig.fake(base_2()).dead = true;
    rig.open(GOLD, Quality::GOLD);
    let mut heard = Rig::heard(&rig.learn(), GOLD);
    heard.extend(refused(&mut rig, GOLD));
    assert_eq!(heard, [Message::Refused { request: 7, why: Refusal::Upstream }]);
}

#[test]
fn a_client_is_attached_where_its_door_sends_it() {
    let mut rig = Rig::new(ProxyConfig::default());
    rig.fake(base_1()).elsewhere = Some(base_2());
    rig.open(GOLD, Quality::GOLD);
    let answers = rig.learn();
    assert!(matches!(Rig::heard(&answers, GOLD)[..], [Message::Opened(_)]));
    let cold = chunk(0, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, base_2())]));
}

#[test]
fn what_was_open_at_a_silent_node_is_asked_of_the_backup_in_order_once_it_serves() {
    let mut rig = backed_up();
    let chunks = [chunk(2, Layer::BASE), chunk(0, Layer::BASE), chunk(0, Layer::ENH1), chunk(1, Layer::BASE)];
    for chunk in &chunks {
        rig.ask(GOLD, chunk).unwrap();
    }
    rig.fake(base_1()).dead = true;
    // Four hundred milliseconds without a word, and the backup is asked.
    let wait = Span::from_millis(390);
    assert_eq!(rig.run(wait), []);
    let asked = rig.run(Span::from_millis(120));
    let base = [0, 1, 2].map(|block| chunk(block, Layer::BASE));
    assert_eq!(asked, base.clone().map(|chunk| fill(&chunk, base_2())));
    // It does not serve yet: it is asked again every tenth of a second.
    for chunk in &base {
        let no = FillFailure::Refused(Refusal::NotServing);
        assert_eq!(rig.failed(chunk, base_2(), no), []);
    }
    let again = rig.run(Span::from_millis(100));
    assert_eq!(again, base.clone().map(|chunk| fill(&chunk, base_2())));
    // The network makes it serve; the client hears of the epoch and of nothing else.
    rig.fake(base_2()).serves.insert(ANNA, 2);
    let start = Message::DeliveryStart { user: ANNA, position: Span::ZERO, epoch: 2 };
    let told = rig.told(base_2(), start);
    let own = NodeAddress { peer: "proxy-1".parse().unwrap(), address: ([127, 0, 0, 1], 99).into() };
    let epoch = Message::LayerAt { user: ANNA, layer: Layer::BASE, node: Some(own), epoch: 2 };
    assert_eq!(Rig::heard(&told, GOLD), [epoch]);
    for chunk in &base {
        rig.filled(chunk);
    }
    let next = chunk(3, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, base_2())]));
}

#[test]
fn a_backup_that_calls_while_the_old_node_delivers_is_told_so() {
    let mut rig = backed_up();
    rig.told(base_2(), Message::DeliveryStart { user: ANNA, position: Span::ZERO, epoch: 2 });
    // The old node is asked, and answers; its farewell might be under way until then.
    rig.run(Span::from_millis(1));
    rig.input(Input::HeardFrom { address: base_1().address });
    rig.run(Span::from_millis(20));
    assert!(rig.has_said(base_2(), |said| *said == Message::StillServed { user: ANNA, epoch: 2 }));
    let cold = chunk(0, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, base_1())]));
}

#[test]
fn a_delivery_start_alone_moves_a_client_whose_node_says_nothing_to_a_question() {
    let mut rig = backed_up();
    let cold = chunk(0, Layer::BASE);
    rig.ask(GOLD, &cold).unwrap();
    rig.fake(base_1()).dead = true;
    rig.run(Span::from_millis(60));
    rig.fake(base_2()).serves.insert(ANNA, 2);
    rig.told(base_2(), Message::DeliveryStart { user: ANNA, position: Span::ZERO, epoch: 2 });
    rig.run(Span::from_millis(110));
    let next = chunk(1, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, base_2())]), "long before 400 ms");
}

#[test]
fn a_layer_goes_where_the_base_node_says() {
    let mut rig = backed_up();
    let other = node("enh1-2", 5);
    rig.nodes.insert(other.address, super::rig::Fake::default());
    let message = Message::LayerAt { user: ANNA, layer: Layer::ENH1, node: Some(at(other)), epoch: 1 };
    // Only its Base node may say so.
    rig.told(base_2(), message.clone());
    let cold = chunk(0, Layer::ENH1);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, node("enh1-1", 3))]));
    rig.told(base_1(), message);
    let cold = chunk(1, Layer::ENH1);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, other)]));
    assert!(rig.has_said(node("enh1-1", 3), |said| matches!(said, Message::Close(_))));
}

#[test]
fn whom_nobody_serves_any_more_is_sought_for_anew_in_a_later_epoch() {
    let config = ProxyConfig { upstream: vec![base_1(), base_2()], ..ProxyConfig::default() };
    let mut rig = Rig::new(config);
    rig.fake(base_1()).others.clear();
    rig.open(GOLD, Quality::GOLD);
    rig.learn();
    rig.fake(base_1()).dead = true;
    rig.input(Input::Unreached { address: base_1().address });
    let cold = chunk(0, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![]), "it waits");
    let outputs = rig.run(Span::from_secs(2));
    assert!(outputs.contains(&fill(&cold, base_2())), "{outputs:?}");
    let sought = |message: &Message| {
        matches!(message, Message::Open(open) if matches!(open.visit,
            Visit::Seek(progress) if progress.epoch == 1 && progress.started))
    };
    assert!(rig.has_said(base_2(), sought));
}

#[test]
fn a_client_that_is_lost_keeps_its_place_for_ten_seconds() {
    let mut rig = backed_up();
    rig.input(Input::Gone { link: LinkId(GOLD), parted: false });
    rig.run(Span::from_secs(9));
    rig.link(3);
    let open = Open::new(8, film(), Quality::GOLD, ANNA, Visit::Attach);
    let outputs = rig.input(Input::Heard { link: LinkId(3), message: Message::Open(open.clone()) });
    let heard = Rig::heard(&outputs, 3);
    let [Message::Opened(opened), Message::LayerAt { epoch: 1, .. }] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert_eq!((opened.request, opened.epoch), (8, 1));
    assert!(!rig.has_said(base_1(), |said| matches!(said, Message::Close(_))));
    rig.input(Input::Gone { link: LinkId(3), parted: false });
    rig.run(Span::from_secs(10));
    assert!(rig.has_said(base_1(), |said| matches!(said, Message::Close(_))));
    rig.link(4);
    let outputs = rig.input(Input::Heard { link: LinkId(4), message: Message::Open(open) });
    // Old news are asked for anew, and then nobody knows it.
    let outputs = if outputs.is_empty() || matches!(outputs[..], [Output::Learn { .. }]) {
        rig.learn()
    } else {
        outputs
    };
    assert_eq!(Rig::heard(&outputs, 4), [Message::Refused { request: 8, why: Refusal::NotServing }]);
}

#[test]
fn clients_are_told_of_other_proxies_first_and_then_of_nodes() {
    let other = NodeAddress { peer: "proxy-2".parse().unwrap(), address: ([127, 0, 0, 1], 98).into() };
    let mut rig = Rig::new(ProxyConfig { peers: vec![other], ..ProxyConfig::default() });
    rig.open(BRONZE, Quality::BRONZE);
    let answers = rig.learn();
    let heard = Rig::heard(&answers, BRONZE);
    let [Message::Opened(opened)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(opened.doors, [other, at(base_1()), at(base_2())]);
}

/// The same client with a VIP's token, or without.
fn backed_up_as(sla: Sla) -> Rig {
    let mut rig = Rig::new(ProxyConfig::default());
    rig.fake(base_1()).others.clear();
    rig.fake(base_1()).backup = Some(base_2());
    rig.fake(base_2()).knows.insert(ANNA);
    let open = Open::new(7, film(), Quality::GOLD, ANNA, Visit::Seek(Progress::default()));
    let token = (sla == Sla::Vip).then(vip);
    rig.input(Input::Heard { link: LinkId(GOLD), message: Message::Open(Open { token, ..open }) });
    rig.learn();
    rig
}

#[test]
fn a_vips_chunk_that_its_node_withholds_is_asked_of_the_standby_a_second_before_its_time() {
    let cold = chunk(0, Layer::BASE);
    let mut rig = backed_up_as(Sla::Vip);
    assert_eq!(rig.ask(GOLD, &cold), Ok(vec![fill(&cold, base_1())]));
    // The node answers every question, and sends nothing.
    assert_eq!(rig.run(Span::from_millis(2_990)), []);
    assert_eq!(rig.run(Span::from_millis(20)), [fill(&cold, base_2())]);
    let hedged = Event::Hedged { chunk: cold.clone(), from: base_1(), to: base_2() };
    assert!(rig.events.contains(&hedged));
    assert_eq!(rig.failed(&cold, base_1(), FillFailure::Silent), [], "that try is over");
    assert_eq!(rig.run(Span::from_secs(1)), [], "once is enough");
    rig.filled(&cold);
    // Who served before still does.
    let next = chunk(1, Layer::BASE);
    assert_eq!(rig.ask(GOLD, &next), Ok(vec![fill(&next, base_1())]));
    // What has begun to come is on its way.
    rig.input(Input::Came { chunk: next, bytes: 1 });
    assert_eq!(rig.run(Span::from_secs(5)), []);
    // A normal viewer's standby keeps no slot ready.
    let mut rig = backed_up_as(Sla::Normal);
    rig.ask(GOLD, &cold).unwrap();
    assert_eq!(rig.run(Span::from_secs(5)), []);
}

#[test]
fn a_vips_chunk_is_asked_of_the_standby_while_the_verdict_is_out() {
    let cold = chunk(0, Layer::BASE);
    for (sla, expected) in [(Sla::Vip, vec![fill(&cold, base_2())]), (Sla::Normal, vec![])] {
        let mut rig = backed_up_as(sla);
        rig.ask(GOLD, &cold).unwrap();
        rig.fake(base_1()).dead = true;
        assert_eq!(rig.run(Span::from_millis(190)), []);
        // Two hundred milliseconds without a word, half of what a verdict takes.
        assert_eq!(rig.run(Span::from_millis(120)), expected, "{sla:?}");
        assert!(!rig.events.contains(&Event::Silent { node: base_1() }));
    }
}
