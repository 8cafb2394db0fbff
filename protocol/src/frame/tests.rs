#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::message::{
    ChunkRequest, Contact, Hello, LayerSources, NodeAddress, Open, Opened, PROTOCOL_VERSION, Part, Progress,
    Refusal, Role, SessionId, Visit,
};
use crate::node::autonomy::agent::{
    AgentState, DiscoveryAgent, MAX_PATH, MAX_ROUTE, Note, Offer, PlacementAgent, Speaks,
};
use crate::node::autonomy::ledger::Edition;
use crate::node::autonomy::talk::PlacementAnswer;
use crate::node::autonomy::{AgentMessage, DiscoveryKind, EntryKind, Level, SearchId, Sla, UserId};
use crate::node::autonomy::{LayerOrder, PlacementOrder};
use crate::proxy::cooperation::{ClientId, Counts, Server};
use crate::proxy::{BlockRange, QualityRun, Query, Reply};
use crate::status::{
    Admission, CachedLine, ClientLine, EventLine, MAX_EVENTS, MAX_LINES, NeighbourLine, NodeStatus,
    PlacementLine, ProxyCounts, ProxyStatus, ServerLine, Slots, TitleLine, Traffic,
};
use crate::token::{MAX_SIGNATURE_BYTES, Promise, SignedToken};
use media::{BitRate, ByteCount, ChunkId, Hash, Layer, Quality, Span, TitleSummary};
use proptest::prelude::*;
use std::fmt::Debug;

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

fn round_trip<F: Frame + PartialEq + Debug>(value: &F) {
    let frame = encode(value).unwrap();
    let (length, body) = frame.split_at(LENGTH_BYTES);
    assert_eq!(body_length::<F>(length.try_into().unwrap()), Ok(body.len()));
    assert_eq!(&decode::<F>(body).unwrap(), value);
}

fn node(name: &str, port: u16) -> NodeAddress {
    NodeAddress { peer: name.parse().unwrap(), address: ([127, 0, 0, 1], port).into() }
}

fn opened() -> Opened {
    Opened {
        request: 1,
        session: SessionId(2),
        quality: Quality::GOLD,
        manifest_length: 300,
        manifest_hash: Hash::from([7; 32]),
        sources: vec![LayerSources { layer: Layer::ENH1, nodes: vec![node("e1", 80)] }],
        backup: Some(node("b2", 81)),
        epoch: 3,
        doors: vec![node("b3", 82)],
    }
}

fn open(visit: Visit) -> Open {
    let former = vec!["b1".parse().unwrap()];
    let promise = Promise { viewer: "v".parse().unwrap(), sla: Sla::Vip, top: Quality::GOLD, until: 8 };
    let token = Some(SignedToken { promise, signature: vec![1, 2] });
    let title = "film".parse().unwrap();
    Open { request: 9, title, quality: Quality::SILVER, user: UserId(300), visit, token, former }
}

fn status() -> NodeStatus {
    let title: media::TitleName = "film".parse().unwrap();
    let (level, events) = (Level::BASE, vec![EventLine { ago: Span::from_nanos(3), event: "{}".into() }]);
    NodeStatus {
        peer: "b1".parse().unwrap(),
        level,
        up: Span::from_nanos(1),
        draining: false,
        titles: vec![TitleLine { title: title.clone(), layers: vec![Layer::BASE], size: ByteCount(9) }],
        slots: Slots { capacity: 30, used: 1, ..Slots::default() },
        admission: Admission::default(),
        sessions: 2,
        neighbours: vec![NeighbourLine {
            node: node("e1", 80),
            level,
            silent: Span::from_nanos(2),
            dead: true,
        }],
        dead: vec!["e1".parse().unwrap()],
        placements: vec![PlacementLine { title, layers: vec![(Layer::BASE, 1, 2)], wanted: 2 }],
        traffic: Traffic { media: 5, signals: 6, agents: 7, archive: 8 },
        events,
    }
}

fn proxy_status() -> ProxyStatus {
    let title: media::TitleName = "film".parse().unwrap();
    let (delay, rate, peer) = (Span::from_nanos(3), BitRate(4), "p2".parse().unwrap());
    let cached = CachedLine {
        title: title.clone(),
        clients: 1,
        blocks: 2,
        held: 3,
        size: ByteCount(4),
        marked_by: vec![peer],
    };
    let (client, wanted, acceptable) = (ClientId(7), Quality(2), Quality(1));
    ProxyStatus {
        peer: "p1".parse().unwrap(),
        up: Span::from_nanos(1),
        draining: false,
        sessions: 2,
        capacity: ByteCount(9),
        used: ByteCount(8),
        proxy: ProxyCounts { hits: 3, ..ProxyCounts::default() },
        counts: Counts { hits: 1, ..Counts::default() },
        servers: vec![ServerLine {
            server: Server::Peer(peer),
            lost: false,
            delay,
            rate,
            open: 5,
            offers: Some(6),
        }],
        titles: vec![cached],
        clients: vec![ClientLine { client, title, position: Some(8), wanted, acceptable, delay, rate }],
        events: Vec::new(),
    }
}

fn summary() -> TitleSummary {
    TitleSummary {
        title: "film".parse().unwrap(),
        duration: Span::from_nanos(5),
        width: 1280,
        height: 720,
        layers: 3,
        audio: true,
        class: media::TitleClass::Archived,
    }
}

fn agent() -> DiscoveryAgent {
    let peer = |name: &str| name.parse().unwrap();
    let note = Note { node: peer("b2"), hops: 2, free: 3, headroom: 9, lowest: None, passed: true };
    DiscoveryAgent {
        id: SearchId { start: peer("b1"), user: UserId(7), serial: 1 },
        title: "film".parse().unwrap(),
        kind: DiscoveryKind::Relocate { leaving: peer("b3") },
        wanted: EntryKind::VipDual,
        state: AgentState::Reply { late: false, speaks: Speaks::All },
        path: [peer("b1"), peer("e1")].into(),
        at: 1,
        travelled: Span::from_nanos(4),
        timeout: Span::from_nanos(6),
        radius: Span::from_nanos(7),
        boards: true,
        route: [note].into(),
        candidate: Some(Offer { note, held: true }),
    }
}

/// A title and its last order, as nodes speak of it.
fn about_a_title() -> Vec<(Message, String)> {
    let title: media::TitleName = "film".parse().unwrap();
    let (origin, version) = ("o".parse().unwrap(), Hash::from([7; 32]));
    let seven = "07".repeat(32);
    let layer = LayerOrder { layer: Layer::BASE, size: ByteCount(9), importance: 100 };
    let order =
        PlacementOrder { title: title.clone(), layers: [layer].into(), popularity: 5, copies: 2, version };
    let agent = PlacementAgent { origin, serial: 3, order, withdraw: false, edition: 300 };
    let placed = AgentMessage::Placed {
        title: title.clone(),
        layer: Layer::BASE,
        answer: PlacementAnswer::Lost,
        version,
    };
    let edition = Edition { title, origin, number: 300, version: None };
    vec![
        (
            Message::Agent(AgentMessage::Placement(agent)),
            format!("0a03016f030466696c6d010009640502{seven}00ac02"),
        ),
        (Message::Agent(placed), format!("0a040466696c6d0003{seven}")),
        (Message::Agent(AgentMessage::Editions([edition].into())), "0a17010466696c6d016fac0200".into()),
    ]
}

/// One of each kind, with the bytes it has had since this version.
fn messages() -> Vec<(Message, String)> {
    let hello = Hello { version: PROTOCOL_VERSION, peer: "b-1".parse().unwrap(), role: Role::Node };
    let user = UserId(7);
    let at = |millis| Span::from_nanos(millis);
    let progress = Progress { started: true, epoch: 1, position: at(5), buffer: at(4) };
    let refused = Message::Refused { request: 9, why: Refusal::Full };
    let seven = "07".repeat(32);
    vec![
        (Message::Hello(hello), "000603622d3101".into()),
        (Message::ListTitles, "01".into()),
        (Message::Titles(vec![summary()]), "02010466696c6d05800ad005030100".into()),
        (Message::Open(open(Visit::Seek(progress))), "03090466696c6d02ac02000101050401017601030802010201026231".into()),
        (Message::Open(Open { token: None, ..open(Visit::Attach) }), "03090466696c6d02ac02010001026231".into()),
        (
            Message::Opened(opened()),
            format!("04010203ac02{seven}010101026531007f0000015001026232007f000001510301026233007f00000152"),
        ),
        (refused, "050904".into()),
        (Message::Close(SessionId(300)), "06ac02".into()),
        (Message::Probe(1), "0701".into()),
        (Message::Alive(1), "0801".into()),
        (Message::Draining, "09".into()),
        (Message::Agent(AgentMessage::SearchAgain(UserId(300))), "0a12ac02".into()),
        (Message::Agent(AgentMessage::Digest(300)), "0a15ac02".into()),
        (
            Message::Agent(AgentMessage::Standings([("b2".parse().unwrap(), 1)].into())),
            "0a160102623201".into(),
        ),
        (
            Message::Agent(AgentMessage::Discovery(Box::new(agent()))),
            "0a0b02623107010466696c6d010262330101000002026231026531010406070101026232020309000101026232020309000101"
                .into(),
        ),
        (
            Message::BackupIs { user: UserId(7), backup: node("b2", 81), epoch: 1 },
            "0b07026232007f0000015101".into(),
        ),
        (
            Message::DeliveryStart { user: UserId(7), position: Span::from_nanos(5), epoch: 2 },
            "0c070502".into(),
        ),
        (Message::StillServed { user: UserId(7), epoch: 2 }, "0d0702".into()),
        (
            Message::Neighbour(Contact { node: node("e1", 80), level: Level::ENH1, since: 300 }),
            "17026531007f000001500001ac02".into(),
        ),
        (
            Message::Contacts(vec![Contact { node: node("e1", 80), level: Level::ENH1, since: 300 }]),
            "0e01026531007f000001500001ac02".into(),
        ),
        (Message::Elsewhere { request: 9, base: node("b2", 81), epoch: 1 }, "0f09026232007f0000015101".into()),
        (Message::LayerAt { user, layer: Layer::ENH1, node: Some(node("e1", 80)), epoch: 1 }, "10070101026531007f0000015001".into()),
        (Message::Position { user, position: at(5), buffer: at(4), paused: true }, "1107050401".into()),
        (
            Message::Publish { request: 9, title: "film".parse().unwrap(), copies: 2, popularity: 1000 },
            "12090466696c6d02e807".into(),
        ),
        (Message::Unpublish { request: 9, title: "film".parse().unwrap() }, "13090466696c6d".into()),
        (Message::Done { request: 9 }, "1409".into()),
        (Message::AskStatus, "15".into()),
        (
            Message::Query(Query { title: "film".parse().unwrap(), ranges: vec![BlockRange { first: 3, count: 20 }] }),
            "180466696c6d010314".into(),
        ),
        (
            Message::Reply(Reply {
                title: "film".parse().unwrap(),
                runs: vec![QualityRun { blocks: BlockRange { first: 3, count: 20 }, quality: Quality(2) }],
            }),
            "190466696c6d01031402".into(),
        ),
        (
            Message::ProxyStatus(Box::new(proxy_status())),
            "1a02703101000209080300000000000100000000000000000101027032000304050106010466696c6d010203040102703201070466696c6d01080201030400".into(),
        ),
        (Message::Status(Box::new(status())), "1602623100000100010466696c6d0100091e01000000000000000000000000000000000201026531007f000001500000020101026531010466696c6d0100010202050607080103027b7d".into()),
    ]
}

#[test]
fn the_wire_does_not_change_unnoticed() {
    let mut changed = Vec::new();
    for (message, bytes) in messages().into_iter().chain(about_a_title()) {
        let now = hex(&encode(&message).unwrap()[LENGTH_BYTES..]);
        if now != bytes {
            changed.push(format!("{message:?}: {bytes} has become {now}"));
        }
        round_trip(&message);
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    let id = ChunkId { title: "film".parse().unwrap(), block: 258, layer: Layer::ENH2 };
    let chunk = StreamRequest::Chunk(ChunkRequest::whole(id, 400));
    assert_eq!(hex(&encode(&chunk).unwrap()), "0000000c010466696c6d820202900301");
    let StreamRequest::Chunk(whole) = chunk.clone() else { unreachable!() };
    let first = StreamRequest::Chunk(ChunkRequest { part: Part::First, ..whole });
    assert_eq!(hex(&encode(&first).unwrap()), "0000000c010466696c6d820202900300");
    let manifest = StreamRequest::Manifest("film".parse().unwrap());
    assert_eq!(hex(&encode(&manifest).unwrap()), "00000006000466696c6d");
    let granted = StreamReply::Granted { length: 200_000, hash: Hash::from([7; 32]) };
    assert_eq!(hex(&encode(&granted).unwrap()), format!("0000002400c09a0c{}", "07".repeat(32)));
    assert_eq!(hex(&encode(&StreamReply::Refused(Refusal::NoSession)).unwrap()), "000000020106");
    let (length, hash) = (200_000, Hash::from([7; 32]));
    let others = [
        StreamReply::Trial { length, hash },
        StreamReply::Half { length, hash },
        StreamReply::HalfTrial { length, hash },
    ];
    for (number, reply) in (2..).zip(others) {
        let expected = format!("00000024{number:02x}c09a0c{}", "07".repeat(32));
        assert_eq!(hex(&encode(&reply).unwrap()), expected);
        round_trip(&reply);
    }
    let packed = StreamReply::Packed { packed: 50_000, length, hash };
    let expected = format!("0000002705d08603c09a0c{}", "07".repeat(32));
    assert_eq!(hex(&encode(&packed).unwrap()), expected);
    round_trip(&packed);
    for value in [chunk, first, manifest] {
        round_trip(&value);
    }
    round_trip(&granted);
}

#[test]
fn bounds_hold_both_ways() {
    let mut crowded = opened();
    crowded.sources[0].nodes = vec![node("e1", 80); MAX_SOURCES + 1];
    assert_eq!(encode(&Message::Opened(crowded.clone())), Err(FrameError::List));
    let body = postcard::to_stdvec(&Message::Opened(crowded)).unwrap();
    assert_eq!(decode::<Message>(&body), Err(FrameError::List));

    let mut forged = open(Visit::Attach);
    forged.token.as_mut().unwrap().signature = vec![0; MAX_SIGNATURE_BYTES + 1];
    assert_eq!(encode(&Message::Open(forged)), Err(FrameError::List));
    let contact = Contact { node: node("e1", 80), level: Level::ENH1, since: 1 };
    assert_eq!(encode(&Message::Contacts(vec![contact; MAX_CONTACTS + 1])), Err(FrameError::List));
    round_trip(&Message::Contacts(vec![contact; MAX_CONTACTS]));
    let mut talkative = status();
    talkative.events = vec![talkative.events[0].clone(); MAX_EVENTS + 1];
    assert_eq!(encode(&Message::Status(Box::new(talkative))), Err(FrameError::List));
    let mut full = status();
    full.neighbours = vec![full.neighbours[0]; MAX_LINES];
    round_trip(&Message::Status(Box::new(full)));

    let long = u32::try_from(MAX_STREAM_HEADER_BYTES).unwrap() + 1;
    let too_long = FrameError::TooLong { length: 1025, max: 1024 };
    assert_eq!(body_length::<StreamRequest>(long.to_be_bytes()), Err(too_long));
    assert_eq!(body_length::<StreamRequest>([0; 4]), Err(FrameError::Malformed));
    assert_eq!(decode::<StreamReply>(&[0; 1025]), Err(too_long));
}

#[test]
fn an_agent_carries_no_more_than_it_may() {
    let long = DiscoveryAgent { path: vec!["b1".parse().unwrap(); MAX_PATH + 1].into(), ..agent() };
    let talkative = DiscoveryAgent { route: vec![agent().route[0]; MAX_ROUTE + 1].into(), ..agent() };
    for agent in [long, talkative] {
        let message = Message::Agent(AgentMessage::Discovery(Box::new(agent)));
        assert_eq!(encode(&message), Err(FrameError::List));
        let body = postcard::to_stdvec(&message).unwrap();
        assert_eq!(decode::<Message>(&body), Err(FrameError::List));
    }
    let most = DiscoveryAgent {
        path: vec!["seventeen-letter".parse().unwrap(); MAX_PATH].into(),
        route: vec![agent().route[0]; MAX_ROUTE].into(),
        ..agent()
    };
    round_trip(&Message::Agent(AgentMessage::Discovery(Box::new(most))));
}

#[test]
fn nothing_stands_behind_a_message_and_nobody_has_a_bad_name() {
    assert_eq!(decode::<Message>(&[9, 0, 0]), Err(FrameError::Leftover(2)));
    assert_eq!(decode::<Message>(&[27]), Err(FrameError::Malformed));
    // A title that would be a path out of the library.
    assert_eq!(decode::<StreamRequest>(&[0, 2, b'.', b'.']), Err(FrameError::Malformed));
    // A list that claims a billion entries in six bytes.
    assert_eq!(decode::<Message>(&[2, 0xff, 0xff, 0xff, 0xff, 3]), Err(FrameError::Malformed));
}

#[test]
fn a_full_list_of_titles_fits_a_frame() {
    let mut long = summary();
    long.title = "x".repeat(128).parse().unwrap();
    round_trip(&Message::Titles(vec![long; MAX_TITLES]));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(message) = decode::<Message>(&body) {
            round_trip(&message);
        }
        if let Ok(request) = decode::<StreamRequest>(&body) {
            round_trip(&request);
        }
        if let Ok(reply) = decode::<StreamReply>(&body) {
            round_trip(&reply);
        }
    }

    #[test]
    fn a_bent_message_is_a_message_or_an_error(which in 0_usize..messages().len(), at in any::<prop::sample::Index>(), with: u8) {
        let (message, _) = messages().swap_remove(which);
        let mut body = encode(&message).unwrap()[LENGTH_BYTES..].to_vec();
        let at = at.index(body.len());
        body[at] ^= with;
        if let Ok(message) = decode::<Message>(&body) {
            round_trip(&message);
        }
        prop_assert!(decode::<Message>(&body[..at]).is_err() || at == body.len());
    }
}
