//! What must hold whatever comes: the same inputs give the same outputs, nothing
//! grows without bound, nothing is waited for for ever.

use super::people::Person;
use super::rig::{Rig, held, ms, peer};
use super::stories::network;
use crate::message::{
    ChunkRequest, Contact, Hello, NodeAddress, Open, PROTOCOL_VERSION, Progress, SessionId, Visit,
};
use crate::node::autonomy::agent::{PlacementAgent, PlacementOrder, UserInfo};
use crate::node::autonomy::ledger::Edition;
use crate::node::autonomy::talk::{PlacementAnswer, Standing};
use crate::node::autonomy::{
    AdmissionRefusal, AgentMessage, EntryKind, LayerOrder, Level, SearchId, Sla, UserId,
};
use crate::node::*;
use crate::token::Claims;
use media::{ByteCount, ChunkId, Quality};
use proptest::prelude::*;

/// A whole evening: viewers, deaths, a hang, a stop in order, returns.
fn evening() -> Rig {
    let mut rig = network(3);
    for user in 1..=4 {
        if user == 1 {
            rig.vip(UserId(user));
        }
        rig.seek(UserId(user), if user % 2 == 0 { "base-1" } else { "base-2" });
        rig.run(ms(700));
    }
    rig.kill("base-1");
    rig.run(ms(3_000));
    rig.hang("enh1-1");
    rig.run(ms(900));
    rig.resume("enh1-1");
    rig.revive("base-1");
    rig.run(ms(5_000));
    rig.drain("enh2-1");
    rig.vanish(UserId(2));
    rig.run(ms(14_000));
    rig
}

#[test]
fn the_same_evening_twice_is_the_same_to_the_byte() {
    let (one, two) = (evening(), evening());
    assert!(one.trace.len() > 100_000, "{}", one.trace.len());
    assert_eq!(one.trace, two.trace);
}

#[test]
fn events_are_for_people_and_a_copy_of_a_network_goes_on_as_the_original() {
    let mut one = network(3);
    let mut two = one.clone();
    two.events.clear();
    for rig in [&mut one, &mut two] {
        rig.trace.clear();
        rig.seek(UserId(1), "base-1");
        rig.run(ms(1_000));
        rig.kill("base-1");
        rig.run(ms(1_000));
    }
    assert_eq!(one.trace, two.trace);
    let seen = |person: &Person| (person.base, person.epoch);
    assert_eq!(seen(&one.people[&UserId(1)]), seen(&two.people[&UserId(1)]));
}

const NODES: [&str; 4] = ["base-1", "base-2", "enh1-1", "origin"];

fn any_peer() -> impl Strategy<Value = PeerId> + Clone {
    (0..NODES.len()).prop_map(|number| peer(NODES[number]))
}

fn any_level() -> impl Strategy<Value = Level> {
    prop_oneof![(0_u8..4).prop_map(|layer| Level::Layer(Layer(layer))), Just(Level::Origin)]
}

fn any_title() -> impl Strategy<Value = TitleName> {
    prop_oneof![Just("film"), Just("news"), Just("none")].prop_map(|title| title.parse().unwrap())
}

fn any_layer() -> impl Strategy<Value = Layer> {
    (0_u8..5).prop_map(Layer)
}

fn any_user() -> impl Strategy<Value = UserId> + Clone {
    (0_u64..4).prop_map(UserId)
}

fn any_contact() -> impl Strategy<Value = Contact> {
    (any_peer(), 0_u16..3, any_level(), 0_u64..4).prop_map(|(peer, port, level, since)| {
        let node = NodeAddress { peer, address: ([127, 0, 0, 1], port).into() };
        Contact { node, level, since }
    })
}

fn any_info() -> impl Strategy<Value = UserInfo> {
    let layers = prop::collection::vec((any_layer(), any_peer()), 0..3);
    (any_user(), any_title(), any::<u8>(), any::<bool>(), 0_u64..5, layers).prop_map(
        |(user, title, quality, vip, epoch, layers)| UserInfo {
            user,
            title,
            quality: Quality(quality),
            sla: if vip { Sla::Vip } else { Sla::Normal },
            started: vip,
            epoch,
            position: ms(epoch),
            remaining: Span::from_nanos(u64::MAX / 4 * (epoch % 4)),
            buffer: ms(1),
            level: ms(1),
            layers: layers.into(),
        },
    )
}

fn any_agent() -> impl Strategy<Value = AgentMessage> {
    let standing = (any_peer(), any_peer(), any::<u32>()).prop_map(|(node, detector, seq)| Standing {
        node,
        detector,
        seq,
    });
    let search =
        (any_peer(), any_user(), 0_u32..3).prop_map(|(start, user, serial)| SearchId { start, user, serial });
    let order = |(title, layer, copies): (TitleName, Layer, u16)| PlacementOrder {
        title,
        layers: vec![LayerOrder { layer, size: ByteCount(1), importance: 100 }].into(),
        popularity: 1000,
        copies,
        version: Hash::from([u8::from(copies > 1); 32]),
    };
    let placement = (any_peer(), 0_u32..4, (any_title(), any_layer(), 0_u16..3), any::<bool>()).prop_map(
        move |(origin, serial, parts, withdraw)| {
            let (order, edition) = (order(parts), serial.into());
            AgentMessage::Placement(PlacementAgent { origin, serial, order, withdraw, edition })
        },
    );
    prop_oneof![
        Just(AgentMessage::Signal),
        standing.clone().prop_map(AgentMessage::FailureDetected),
        standing.prop_map(AgentMessage::Returned),
        placement,
        (any_title(), any_layer()).prop_map(|(title, layer)| AgentMessage::Placed {
            title,
            layer,
            answer: if layer == Layer::BASE { PlacementAnswer::Lost } else { PlacementAnswer::Whole },
            version: Hash::from([0; 32]),
        }),
        (any_title(), any_peer(), 0_u64..4, any::<bool>()).prop_map(|(title, origin, number, there)| {
            let version = there.then_some(Hash::from([1; 32]));
            AgentMessage::Editions([Edition { title, origin, number, version }].into())
        }),
        (any_title(), any_layer()).prop_map(|(title, layer)| AgentMessage::Take {
            title,
            layer,
            size: ByteCount(1)
        }),
        (any_user(), any_layer(), any_peer(), 0_u64..4)
            .prop_map(|(user, layer, node, epoch)| AgentMessage::Granted { user, layer, node, epoch }),
        (any_user(), any_layer()).prop_map(|(user, layer)| AgentMessage::NotGranted {
            user,
            layer,
            why: AdmissionRefusal::NotStored
        }),
        (any_user(), any_layer(), any_peer(), 0_u64..4)
            .prop_map(|(user, layer, base, epoch)| AgentMessage::Adopt { user, layer, base, epoch }),
        (any_user(), 0_u64..4).prop_map(|(user, epoch)| AgentMessage::Release { user, epoch }),
        (any_user(), any_layer(), 0_u64..4).prop_map(|(user, layer, epoch)| AgentMessage::ReleaseLayer {
            user,
            layer,
            epoch
        }),
        (any_user(), any_layer()).prop_map(|(user, layer)| AgentMessage::NotDelivered { user, layer }),
        search.clone().prop_map(AgentMessage::Cancel),
        search.clone().prop_map(AgentMessage::Confirmed),
        (search, any::<bool>(), any_info()).prop_map(|(search, vip, info)| AgentMessage::Confirm {
            search,
            kind: if vip { EntryKind::VipDual } else { EntryKind::NormalDual },
            info: Box::new(info)
        }),
        (any_user(), any::<bool>()).prop_map(|(user, at_once)| AgentMessage::Relocate { user, at_once }),
        (any_user(), 0_u64..4).prop_map(|(user, epoch)| AgentMessage::TookOver { user, epoch }),
        any_user().prop_map(AgentMessage::SearchAgain),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        8 => any_agent().prop_map(Message::Agent),
        2 => prop::collection::vec(any_contact(), 0..3).prop_map(Message::Contacts),
        2 => any_contact().prop_map(Message::Neighbour),
        1 => (any_user(), any::<u64>()).prop_map(|(user, at)| Message::Position {
            user,
            position: Span::from_nanos(at),
            buffer: ms(1),
            paused: at % 2 == 0,
        }),
        1 => (any_user(), 0_u64..4).prop_map(|(user, epoch)| Message::StillServed { user, epoch }),
        1 => (0_u64..4).prop_map(|id| Message::Close(SessionId(id))),
        1 => any_title().prop_map(|title| Message::Publish { request: 1, title, copies: 1, popularity: 9 }),
        1 => any_title().prop_map(|title| Message::Unpublish { request: 1, title }),
        1 => prop_oneof![Just(Message::AskStatus), Just(Message::ListTitles), Just(Message::Draining)],
    ]
}

/// Anything at all, with spans of time in between.
fn any_input() -> impl Strategy<Value = Input> {
    let link = || (0_u64..6).prop_map(LinkId);
    let here: SocketAddr = ([127, 0, 0, 1], 1).into();
    let role = prop_oneof![Just(Role::Node), Just(Role::Viewer), Just(Role::Operator), Just(Role::Proxy)];
    let hello = (any_peer(), role).prop_map(|(peer, role)| Hello { version: PROTOCOL_VERSION, peer, role });
    let visit = prop_oneof![Just(Visit::Seek(Progress::default())), Just(Visit::Attach), Just(Visit::Copy)];
    let open = (link(), any_title(), any::<u8>(), any_user(), visit, any::<bool>()).prop_map(
        |(link, title, quality, user, visit, vip)| {
            let sla = if vip { Sla::Vip } else { Sla::Normal };
            let claims = Ok(Claims { sla, top: Quality::GOLD });
            Input::Opens { link, open: Open::new(1, title, Quality(quality), user, visit), claims }
        },
    );
    let asked = (link(), 0_u64..8, any_title(), any_layer(), 0_u32..700).prop_map(
        |(link, stream, title, layer, block)| {
            let id = ChunkId { title, block, layer };
            let request = StreamRequest::Chunk(ChunkRequest::whole(id, 1));
            Input::Asked { link, stream: StreamId(stream), request }
        },
    );
    let shelf = prop::collection::vec(0_u8..3, 0..3).prop_map(|layers| {
        let layers: Vec<Layer> = layers.into_iter().map(Layer).collect();
        Input::Shelf(vec![held("film", &layers), held("news", &layers)])
    });
    prop_oneof![
        2 => (link(), hello.clone()).prop_map(move |(link, hello)| Input::Linked { link, hello, here }),
        1 => (link(), 0_u16..3, hello).prop_map(|(link, port, hello)| Input::Reached {
            link,
            address: ([127, 0, 0, 1], port).into(),
            hello
        }),
        1 => (0_u16..3).prop_map(|port| Input::Unreached { address: ([127, 0, 0, 1], port).into() }),
        1 => (link(), any::<bool>()).prop_map(|(link, parted)| Input::Gone { link, parted }),
        8 => (link(), any_message()).prop_map(|(link, message)| Input::Heard { link, message, travel: ms(1) }),
        3 => open,
        2 => asked,
        1 => (0_u64..8).prop_map(|stream| Input::Answered { stream: StreamId(stream), outcome: Outcome::GivenUp }),
        1 => shelf,
        3 => Just(Input::Timeout),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_comes_is_bounded_repeatable_and_waits_for_something_later(
        level in any_level(),
        inputs in prop::collection::vec((0_u64..800, any_input()), 0..150),
        stops in any::<bool>(),
    ) {
        let mut config = NodeConfig::new(level);
        config.guests = crate::GuestLimits { links: 4, sessions: 3, sessions_per_link: 2, requests: 2 };
        config.join = vec![Door { address: ([127, 0, 0, 1], 1).into(), peer: None }];
        config.publish = Some(1);
        config.autonomy.capacity = 3;
        config.autonomy.origin_capacity = 3;
        config.autonomy.bottom_line = 1;
        config.autonomy.max_rows = 2;
        config.autonomy.max_neighbours = 2;
        config.autonomy.max_nodes = 3;
        let new = || Node::new(Time::ZERO, peer("base-1"), config.clone(), 7);
        let (mut one, mut two) = (new(), new());
        let mut now = Time::ZERO;
        let last = stops.then_some((0, Input::Drain));
        for (wait, input) in inputs.into_iter().chain(last) {
            now += ms(wait);
            for node in [&mut one, &mut two] {
                node.handle_input(now, input.clone());
            }
            let outputs: Vec<Output> = std::iter::from_fn(|| one.poll_output()).collect();
            let same: Vec<Output> = std::iter::from_fn(|| two.poll_output()).collect();
            prop_assert_eq!(outputs.clone(), same);
            for output in outputs {
                if let Output::Send { message, .. } = output {
                    prop_assert!(crate::frame::encode(&message).is_ok(), "{:?}", message);
                }
            }
            prop_assert!(one.guests.session_count() <= 3 && one.guests.links().count() <= 4);
            prop_assert!(one.viewers.len() <= 3);
            prop_assert!(one.autonomy.used() <= 3, "{}", one.autonomy.used());
            prop_assert!(one.autonomy.rows().count() <= 2);
            prop_assert!(one.autonomy.neighbours().count() <= 2);
            prop_assert!(one.book.all().count() <= 3);
            prop_assert!(one.mesh.neighbours().count() <= 4);
        }
        // Left alone, it is woken now and then, each time for something.
        for _ in 0..50 {
            let Some(due) = one.poll_timeout() else { break };
            now = now.max(due);
            one.handle_input(now, Input::Timeout);
            while one.poll_output().is_some() {}
            prop_assert!(one.poll_timeout().is_none_or(|next| next > now), "{:?}", one.poll_timeout());
        }
        if stops {
            now += ms(6_000);
            one.handle_input(now, Input::Timeout);
            prop_assert_eq!(one.poll_timeout(), None);
        }
    }
}
