//! An origin alone, and viewers that talk to it.

use super::rig::{held, peer};
use crate::guests::GuestLimits;
use crate::message::{
    ChunkRequest, Hello, LayerSources, NodeAddress, Open, Opened, PROTOCOL_VERSION, Progress,
};
use crate::message::{SessionId, Visit};
use crate::node::autonomy::{Level, UserId};
use crate::node::*;
use crate::token::Claims;
use media::{ByteCount, ChunkId, Hash, Quality};

struct Alone {
    node: Node,
    now: Time,
    streams: u64,
}

impl Alone {
    fn new(adjust: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut config = NodeConfig::new(Level::Origin);
        adjust(&mut config);
        let node = Node::new(Time::ZERO, peer("origin"), config, 0);
        let mut alone = Self { node, now: Time::ZERO, streams: 0 };
        let layers: Vec<Layer> = Layer::first(3).collect();
        alone.input(Input::Shelf(vec![held("film", &layers)]));
        alone
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.node.handle_input(self.now, input);
        std::iter::from_fn(|| self.node.poll_output()).filter(|o| !matches!(o, Output::Event(_))).collect()
    }

    fn join(&mut self, link: u64) -> Vec<Output> {
        let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
        self.input(Input::Linked { link: LinkId(link), hello, here: ([127, 0, 0, 1], 4460).into() })
    }

    fn said(link: u64, outputs: Vec<Output>) -> Vec<Message> {
        let said = outputs.into_iter().map(|output| match output {
            Output::Send { link: to, message } if to == LinkId(link) => message,
            other => panic!("{other:?}"),
        });
        said.collect()
    }

    fn say(&mut self, link: u64, message: Message) -> Vec<Message> {
        let input = Input::Heard { link: LinkId(link), message, travel: Span::ZERO };
        Self::said(link, self.input(input))
    }

    /// The user of a connection has its number.
    fn open(&mut self, link: u64, title: &str, quality: Quality) -> Message {
        let visit = Visit::Seek(Progress::default());
        let open = Open::new(5, title.parse().unwrap(), quality, UserId(link), visit);
        let outputs = self.input(Input::Opens { link: LinkId(link), open, claims: Ok(Claims::NONE) });
        Self::said(link, outputs).remove(0)
    }

    fn ask(&mut self, link: u64, block: u32, layer: Layer) -> Result<StreamId, Refusal> {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let id = ChunkId { title: "film".parse().unwrap(), block, layer };
        let request = StreamRequest::Chunk(ChunkRequest::whole(id, 100));
        let outputs = self.input(Input::Asked { link: LinkId(link), stream, request: request.clone() });
        match &outputs[..] {
            [Output::Grant { stream: to, request: granted, slot: true, .. }] => {
                assert_eq!((to, granted), (&stream, &request));
                Ok(stream)
            }
            [Output::Refuse { stream: to, why }] if *to == stream => Err(*why),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_origin_alone_serves_every_layer() {
    let mut alone = Alone::new(|_| {});
    let hello = Hello { version: PROTOCOL_VERSION, peer: peer("origin"), role: Role::Node };
    assert_eq!(alone.join(1), [Output::Send { link: LinkId(1), message: Message::Hello(hello) }]);
    let [Message::Titles(titles)] = &alone.say(1, Message::ListTitles)[..] else { panic!() };
    assert_eq!(titles[0].title.as_str(), "film");
    let here = NodeAddress { peer: peer("origin"), address: ([127, 0, 0, 1], 4460).into() };
    let opened = Opened {
        request: 5,
        session: SessionId(1),
        quality: Quality::GOLD,
        manifest_length: 1000,
        manifest_hash: Hash::of(b"manifest"),
        sources: Layer::first(3).map(|layer| LayerSources { layer, nodes: vec![here] }).collect(),
        backup: None,
        epoch: 1,
        doors: Vec::new(),
    };
    assert_eq!(alone.open(1, "film", Quality(8)), Message::Opened(opened));
    for layer in Layer::first(3) {
        assert!(alone.ask(1, 599, layer).is_ok());
    }
    assert_eq!(alone.ask(1, 600, Layer::BASE), Err(Refusal::NoSuchChunk));
    assert_eq!(alone.ask(1, 0, Layer(3)), Err(Refusal::NoSuchChunk));
    assert_eq!(alone.say(1, Message::Probe(7)), [Message::Alive(7)]);
}

#[test]
fn a_proxy_speaks_for_many_users_on_one_connection() {
    let mut alone = Alone::new(|_| {});
    let hello = Hello { version: PROTOCOL_VERSION, peer: peer("proxy-1"), role: Role::Proxy };
    alone.input(Input::Linked { link: LinkId(1), hello, here: ([127, 0, 0, 1], 4460).into() });
    let open = |alone: &mut Alone, user, quality| {
        let visit = Visit::Seek(Progress::default());
        let open = Open::new(5, "film".parse().unwrap(), quality, UserId(user), visit);
        let outputs = alone.input(Input::Opens { link: LinkId(1), open, claims: Ok(Claims::NONE) });
        let Message::Opened(opened) = Alone::said(1, outputs).remove(0) else { panic!() };
        opened.session
    };
    let anna = open(&mut alone, 7, Quality::BRONZE);
    let berta = open(&mut alone, 8, Quality::GOLD);
    assert_ne!(anna, berta);
    for user in [7, 8] {
        assert!(alone.node.autonomy().serves(UserId(user), Layer::BASE), "each has a slot of its own");
    }
    assert!(alone.ask(1, 0, Layer::ENH2).is_ok());
    // One leaves, and the other is served as before.
    alone.say(1, Message::Close(berta));
    assert!(!alone.node.autonomy().serves(UserId(8), Layer::BASE));
    assert!(alone.ask(1, 1, Layer::BASE).is_ok());
    assert_eq!(alone.ask(1, 1, Layer::ENH2), Err(Refusal::NotServing));
    alone.say(1, Message::Close(anna));
    assert_eq!(alone.ask(1, 2, Layer::BASE), Err(Refusal::NoSession));
}

#[test]
fn every_no_has_its_name() {
    let limits = GuestLimits { links: 2, sessions: 2, sessions_per_link: 1, requests: 1 };
    let mut alone = Alone::new(|config| {
        config.guests = limits;
        config.autonomy.origin_capacity = 1;
    });
    alone.join(1);
    alone.join(2);
    let full = Message::Refused { request: 0, why: Refusal::Full };
    let parted = [Output::Send { link: LinkId(3), message: full }, Output::Part { link: LinkId(3) }];
    assert_eq!(alone.join(3), parted);
    assert_eq!(alone.ask(1, 0, Layer::BASE), Err(Refusal::NoSession));
    assert!(matches!(alone.open(1, "film", Quality::BRONZE), Message::Opened(_)));
    let refused = |why| Message::Refused { request: 5, why };
    assert_eq!(alone.open(2, "film", Quality::BRONZE), refused(Refusal::Full));
    assert_eq!(alone.open(2, "other", Quality::BRONZE), refused(Refusal::NoSuchTitle));
    assert_eq!(alone.ask(1, 0, Layer::ENH1), Err(Refusal::NotServing), "bronze has one layer");
    let stream = alone.ask(1, 0, Layer::BASE).unwrap();
    assert_eq!(alone.ask(1, 1, Layer::BASE), Err(Refusal::TooManyRequests));
    alone.input(Input::Answered { stream, outcome: Outcome::GivenUp });
    assert!(alone.ask(1, 1, Layer::BASE).is_ok());
    // The slot is free as soon as its user has parted.
    alone.input(Input::Gone { link: LinkId(1), parted: true });
    assert!(matches!(alone.open(2, "film", Quality::BRONZE), Message::Opened(_)));
}

#[test]
fn a_peer_of_another_version_or_of_our_own_name_is_not_let_in() {
    let mut alone = Alone::new(|_| {});
    for (version, why) in [(PROTOCOL_VERSION + 1, Refusal::Version), (PROTOCOL_VERSION, Refusal::Identity)] {
        let hello = Hello { version, peer: peer("origin"), role: Role::Node };
        let hello = if why == Refusal::Version { Hello { peer: peer("other"), ..hello } } else { hello };
        let outputs = alone.input(Input::Linked { link: LinkId(9), hello, here: ([127, 0, 0, 1], 1).into() });
        let refused = Output::Send { link: LinkId(9), message: Message::Refused { request: 0, why } };
        assert_eq!(outputs, [refused, Output::Part { link: LinkId(9) }]);
    }
}

#[test]
fn the_order_to_stop_lets_open_requests_finish() {
    let mut alone = Alone::new(|_| {});
    alone.join(1);
    alone.open(1, "film", Quality::BRONZE);
    let stream = alone.ask(1, 0, Layer::BASE).unwrap();
    let told = [Output::Send { link: LinkId(1), message: Message::Draining }];
    assert_eq!(alone.input(Input::Drain), told);
    assert_eq!(alone.node.poll_timeout(), Some(Time::ZERO + Span::from_secs(5)));
    assert_eq!(alone.ask(1, 1, Layer::BASE), Err(Refusal::Draining));
    assert_eq!(
        alone.open(1, "film", Quality::BRONZE),
        Message::Refused { request: 5, why: Refusal::Draining }
    );
    assert_eq!(alone.input(Input::Timeout), [], "a spurious timeout does nothing");
    let end = [Output::Part { link: LinkId(1) }, Output::Drained];
    assert_eq!(alone.input(Input::Answered { stream, outcome: Outcome::Sent { bytes: 9 } }), end);
    assert_eq!(alone.input(Input::Drain), []);
    assert_eq!(alone.node.poll_timeout(), None);
}

#[test]
fn what_does_not_finish_is_not_waited_for_for_ever() {
    let mut alone = Alone::new(|_| {});
    alone.join(1);
    alone.open(1, "film", Quality::BRONZE);
    alone.ask(1, 0, Layer::BASE).unwrap();
    alone.input(Input::Drain);
    alone.now += Span::from_secs(5);
    assert_eq!(alone.input(Input::Timeout).last(), Some(&Output::Drained));
}

#[test]
fn titles_that_come_later_are_found() {
    let mut alone = Alone::new(|_| {});
    alone.join(1);
    alone.input(Input::Shelf(vec![held("film", &[Layer::BASE]), held("news", &[Layer::BASE])]));
    let [Message::Titles(titles)] = &alone.say(1, Message::ListTitles)[..] else { panic!() };
    assert_eq!(titles.iter().map(|line| line.title.as_str()).collect::<Vec<_>>(), ["film", "news"]);
}

#[test]
fn a_title_that_has_to_be_here_as_a_whole_is_said_to_come_until_it_is() {
    for first in [true, false] {
        let archive = Door { peer: Some(peer("origin")), address: ([127, 0, 0, 1], 4470).into() };
        let mut config = NodeConfig::new(Level::BASE);
        (config.archive, config.archive_first) = (Some(archive), first);
        config.autonomy.store_limit = ByteCount(10_000_000);
        let node = Node::new(Time::ZERO, peer("base-1"), config, 0);
        let mut alone = Alone { node, now: Time::ZERO, streams: 0 };
        alone.join(1);
        let title: TitleName = "film".parse().unwrap();
        let open = Open::new(5, title.clone(), Quality::GOLD, UserId(1), Visit::Seek(Progress::default()));
        let asked = alone.input(Input::Opens { link: LinkId(1), open, claims: Ok(Claims::NONE) });
        assert_eq!(asked, [Output::Look { title: title.clone(), from: archive }]);
        let layers: Vec<Layer> = Layer::first(3).collect();
        let coming = Held { archived: true, ..held("film", &layers) };
        let found = Box::new(Ok(coming.clone()));
        let told = alone.input(Input::Looked { title: title.clone(), found });
        assert!(told.contains(&Output::Download { title: title.clone(), from: archive }), "{told:?}");
        let expected = if first { Err(Refusal::Coming) } else { Ok(StreamId(1)) };
        assert_eq!(alone.ask(1, 0, Layer::BASE), expected);
        // A manifest is no chunk.
        let (stream, request) = (StreamId(77), StreamRequest::Manifest(title.clone()));
        let granted = alone.input(Input::Asked { link: LinkId(1), stream, request });
        assert!(matches!(granted[..], [Output::Grant { .. }]), "{granted:?}");
        alone.input(Input::Shelf(vec![coming]));
        alone.input(Input::Downloaded { title, whole: true });
        assert!(alone.ask(1, 0, Layer::ENH2).is_ok(), "it is here");
    }
}
