#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::guests::GuestLimits;
use crate::message::{ChunkRequest, SessionId, Visit};
use crate::node::autonomy::UserId;
use media::{ChunkId, Hash, Quality, Span, TitleSummary};
use proptest::prelude::*;

fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

fn at(name: &str, port: u16) -> NodeAddress {
    NodeAddress { peer: peer(name), address: ([127, 0, 0, 1], port).into() }
}

/// A node with the film's Base and nothing else, and verbs to talk to it.
struct Rig {
    node: Node,
    now: Time,
    streams: u64,
}

impl Rig {
    fn new(config: NodeConfig) -> Self {
        let mut rig =
            Self { node: Node::new(Time::ZERO, peer("base-1"), config, 0), now: Time::ZERO, streams: 0 };
        rig.input(Input::Shelf(vec![held("film")]));
        rig
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.node.handle_input(self.now, input);
        std::iter::from_fn(|| self.node.poll_output()).filter(|o| !matches!(o, Output::Event(_))).collect()
    }

    fn join(&mut self, link: u64) -> Vec<Output> {
        let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
        self.input(Input::Linked { link: LinkId(link), hello, here: ([127, 0, 0, 1], 4460).into() })
    }

    fn say(&mut self, link: u64, message: Message) -> Vec<Message> {
        let outputs = self.input(Input::Heard { link: LinkId(link), message });
        outputs
            .into_iter()
            .map(|output| match output {
                Output::Send { link: to, message } if to == LinkId(link) => message,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn open(&mut self, link: u64, quality: Quality) -> Message {
        let open = Open::new(5, "film".parse().unwrap(), quality, UserId(1), Visit::Attach);
        self.say(link, Message::Open(open)).remove(0)
    }

    /// What becomes of a request for a chunk of the film.
    fn ask(&mut self, link: u64, block: u32, layer: Layer) -> Result<StreamId, Refusal> {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let id = ChunkId { title: "film".parse().unwrap(), block, layer };
        let request = StreamRequest::Chunk(ChunkRequest { id, deadline_ms: 100 });
        let outputs = self.input(Input::Asked { link: LinkId(link), stream, request: request.clone() });
        match &outputs[..] {
            [Output::Grant { stream: to, request: granted }] => {
                assert_eq!((to, granted), (&stream, &request));
                Ok(stream)
            }
            [Output::Refuse { stream: to, why }] if *to == stream => Err(*why),
            other => panic!("{other:?}"),
        }
    }
}

fn held(title: &str) -> Held {
    let summary = TitleSummary {
        title: title.parse().unwrap(),
        duration: Span::from_secs(10),
        width: 64,
        height: 64,
        layers: 3,
        audio: false,
    };
    Held {
        summary,
        manifest_length: 1000,
        manifest_hash: Hash::of(b"manifest"),
        blocks: 10,
        layers: vec![Layer::BASE],
    }
}

#[test]
fn a_viewer_learns_who_has_what_and_gets_base_here() {
    let config = NodeConfig {
        sources: vec![
            LayerSources { layer: Layer::BASE, nodes: vec![at("base-2", 2)] },
            LayerSources { layer: Layer::ENH1, nodes: vec![at("enh1-1", 3), at("origin", 4)] },
        ],
        backup: Some(at("base-2", 2)),
        ..NodeConfig::default()
    };
    let mut rig = Rig::new(config);
    let hello = Hello { version: PROTOCOL_VERSION, peer: peer("base-1"), role: Role::Node };
    assert_eq!(rig.join(1), [Output::Send { link: LinkId(1), message: Message::Hello(hello) }]);
    assert_eq!(rig.say(1, Message::ListTitles), [Message::Titles(vec![held("film").summary])]);
    let opened = Opened {
        request: 5,
        session: SessionId(1),
        quality: Quality::GOLD,
        manifest_length: 1000,
        manifest_hash: Hash::of(b"manifest"),
        sources: vec![
            LayerSources { layer: Layer::BASE, nodes: vec![at("base-1", 4460), at("base-2", 2)] },
            LayerSources { layer: Layer::ENH1, nodes: vec![at("enh1-1", 3), at("origin", 4)] },
            LayerSources { layer: Layer::ENH2, nodes: vec![] },
        ],
        backup: Some(at("base-2", 2)),
        epoch: 0,
        doors: Vec::new(),
    };
    assert_eq!(rig.open(1, Quality(8)), Message::Opened(opened));
    assert!(rig.ask(1, 9, Layer::BASE).is_ok());
    assert_eq!(rig.ask(1, 10, Layer::BASE), Err(Refusal::NoSuchChunk));
    assert_eq!(rig.ask(1, 0, Layer(3)), Err(Refusal::NoSuchChunk));
    assert_eq!(rig.ask(1, 0, Layer::ENH1), Err(Refusal::LayerNotOffered));
    assert_eq!(rig.say(1, Message::Probe(7)), [Message::Alive(7)]);
}

#[test]
fn what_is_held_but_not_offered_is_refused_and_not_named() {
    let mut rig = Rig::new(NodeConfig { offer: Some(vec![Layer::ENH1]), ..NodeConfig::default() });
    rig.join(1);
    let Message::Opened(opened) = rig.open(1, Quality::BRONZE) else { panic!() };
    assert_eq!(opened.sources, [LayerSources { layer: Layer::BASE, nodes: vec![] }]);
    assert_eq!(rig.ask(1, 0, Layer::BASE), Err(Refusal::LayerNotOffered));
}

#[test]
fn a_node_that_is_named_in_its_own_list_keeps_that_place() {
    let nodes = vec![at("base-2", 2), at("base-1", 1)];
    let sources = vec![LayerSources { layer: Layer::BASE, nodes: nodes.clone() }];
    let mut rig = Rig::new(NodeConfig { sources, ..NodeConfig::default() });
    rig.join(1);
    let Message::Opened(opened) = rig.open(1, Quality::BRONZE) else { panic!() };
    assert_eq!(opened.sources[0].nodes, nodes);
}

#[test]
fn every_no_has_its_name() {
    let guests = GuestLimits { links: 2, sessions: 1, sessions_per_link: 1, requests: 1 };
    let mut rig = Rig::new(NodeConfig { guests, ..NodeConfig::default() });
    rig.join(1);
    rig.join(2);
    let full = Message::Refused { request: 0, why: Refusal::Full };
    let parted = [Output::Send { link: LinkId(3), message: full }, Output::Part { link: LinkId(3) }];
    assert_eq!(rig.join(3), parted);
    assert_eq!(rig.ask(1, 0, Layer::BASE), Err(Refusal::NoSession));
    assert!(matches!(rig.open(1, Quality::BRONZE), Message::Opened(_)));
    assert_eq!(rig.open(2, Quality::BRONZE), Message::Refused { request: 5, why: Refusal::Full });
    let stream = rig.ask(1, 0, Layer::BASE).unwrap();
    assert_eq!(rig.ask(1, 1, Layer::BASE), Err(Refusal::TooManyRequests));
    rig.input(Input::Answered { stream, outcome: Outcome::GivenUp });
    assert!(rig.ask(1, 1, Layer::BASE).is_ok());
    let other = Open::new(6, "other".parse().unwrap(), Quality::GOLD, UserId(1), Visit::Attach);
    let none = Message::Refused { request: 6, why: Refusal::NoSuchTitle };
    assert_eq!(rig.say(2, Message::Open(other)), [none]);
    assert_eq!(rig.say(2, Message::Alive(1)), [], "nonsense is an event and nothing else");
    // The session ends with its connection.
    rig.input(Input::Gone { link: LinkId(1) });
    assert!(matches!(rig.open(2, Quality::BRONZE), Message::Opened(_)));
}

#[test]
fn the_order_to_stop_lets_open_requests_finish() {
    let mut rig = Rig::new(NodeConfig::default());
    rig.join(1);
    rig.open(1, Quality::BRONZE);
    let stream = rig.ask(1, 0, Layer::BASE).unwrap();
    let told = [Output::Send { link: LinkId(1), message: Message::Draining }];
    assert_eq!(rig.input(Input::Drain), told);
    assert_eq!(rig.node.poll_timeout(), Some(Time::ZERO + Span::from_secs(5)));
    assert_eq!(rig.ask(1, 1, Layer::BASE), Err(Refusal::Draining));
    assert_eq!(rig.open(1, Quality::BRONZE), Message::Refused { request: 5, why: Refusal::Draining });
    assert_eq!(rig.input(Input::Timeout), [], "a spurious timeout does nothing");
    let end = [Output::Part { link: LinkId(1) }, Output::Drained];
    assert_eq!(rig.input(Input::Answered { stream, outcome: Outcome::Sent { bytes: 9 } }), end);
    assert_eq!(rig.input(Input::Drain), []);
    assert_eq!(rig.node.poll_timeout(), None);
}

#[test]
fn what_does_not_finish_is_not_waited_for_for_ever() {
    let mut rig = Rig::new(NodeConfig::default());
    rig.join(1);
    rig.open(1, Quality::BRONZE);
    rig.ask(1, 0, Layer::BASE).unwrap();
    rig.input(Input::Drain);
    rig.now += Span::from_secs(5);
    assert_eq!(rig.input(Input::Timeout).last(), Some(&Output::Drained));
}

#[test]
fn titles_that_come_later_are_found() {
    let mut rig = Rig::new(NodeConfig::default());
    rig.join(1);
    rig.input(Input::Shelf(vec![held("film"), held("news")]));
    let [Message::Titles(titles)] = &rig.say(1, Message::ListTitles)[..] else { panic!() };
    assert_eq!(titles.iter().map(|line| line.title.as_str()).collect::<Vec<_>>(), ["film", "news"]);
}

/// One step of a random conversation.
fn any_input() -> impl Strategy<Value = Input> {
    let link = (0_u64..4).prop_map(LinkId);
    let stream = (0_u64..8).prop_map(StreamId);
    let layer = (0_u8..4).prop_map(Layer);
    let hello = Hello { version: PROTOCOL_VERSION, peer: peer("v"), role: Role::Viewer };
    let title = || "film".parse().unwrap();
    let chunk =
        (link.clone(), stream.clone(), layer, 0_u32..12).prop_map(move |(link, stream, layer, block)| {
            let id = ChunkId { title: title(), block, layer };
            Input::Asked { link, stream, request: StreamRequest::Chunk(ChunkRequest { id, deadline_ms: 1 }) }
        });
    let open = (link.clone(), 0_u8..5).prop_map(move |(link, quality)| {
        let open = Open::new(1, "film".parse().unwrap(), Quality(quality), UserId(1), Visit::Attach);
        Input::Heard { link, message: Message::Open(open) }
    });
    prop_oneof![
        link.clone().prop_map(move |link| Input::Linked { link, hello, here: ([127, 0, 0, 1], 1).into() }),
        link.clone().prop_map(|link| Input::Gone { link }),
        link.clone().prop_map(|link| Input::Heard { link, message: Message::Draining }),
        (link, 0_u64..4).prop_map(|(link, id)| Input::Heard { link, message: Message::Close(SessionId(id)) }),
        stream.prop_map(|stream| Input::Answered { stream, outcome: Outcome::GivenUp }),
        Just(Input::Timeout),
        open,
        chunk,
    ]
}

proptest! {
    #[test]
    fn capacity_holds_and_the_same_inputs_give_the_same_outputs(inputs in prop::collection::vec(any_input(), 0..200)) {
        let guests = GuestLimits { links: 3, sessions: 2, sessions_per_link: 1, requests: 2 };
        let config = NodeConfig { guests, ..NodeConfig::default() };
        let (mut one, mut two) = (Rig::new(config.clone()), Rig::new(config));
        for input in inputs {
            let outputs = one.input(input.clone());
            prop_assert_eq!(&outputs, &two.input(input));
            prop_assert!(one.node.guests.session_count() <= 2);
            prop_assert!(one.node.guests.links().count() <= 3);
        }
    }
}
