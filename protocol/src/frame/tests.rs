#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::message::{
    ChunkRequest, Hello, LayerSources, NodeAddress, Open, Opened, PROTOCOL_VERSION, Refusal, Role, SessionId,
};
use media::{ChunkId, Hash, Layer, Quality, Span, TitleSummary};
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
    }
}

/// One of each kind, with the bytes it has had since version 1.
fn messages() -> Vec<(Message, String)> {
    let hello = Hello { version: PROTOCOL_VERSION, peer: "b-1".parse().unwrap(), role: Role::Node };
    let open = Open { request: 9, title: "film".parse().unwrap(), quality: Quality::SILVER };
    let refused = Message::Refused { request: 9, why: Refusal::Full };
    let seven = "07".repeat(32);
    vec![
        (Message::Hello(hello), "000103622d3101".into()),
        (Message::ListTitles, "01".into()),
        (Message::Titles(vec![summary()]), "02010466696c6d05800ad0050301".into()),
        (Message::Open(open), "03090466696c6d02".into()),
        (
            Message::Opened(opened()),
            format!("04010203ac02{seven}010101026531007f0000015001026232007f00000151"),
        ),
        (refused, "050904".into()),
        (Message::Close(SessionId(300)), "06ac02".into()),
        (Message::Probe(1), "0701".into()),
        (Message::Alive(1), "0801".into()),
        (Message::Draining, "09".into()),
    ]
}

#[test]
fn the_wire_does_not_change_unnoticed() {
    for (message, bytes) in messages() {
        let frame = encode(&message).unwrap();
        assert_eq!(hex(&frame[LENGTH_BYTES..]), bytes, "{message:?}");
        round_trip(&message);
    }
    let id = ChunkId { title: "film".parse().unwrap(), block: 258, layer: Layer::ENH2 };
    let chunk = StreamRequest::Chunk(ChunkRequest { id, deadline_ms: 400 });
    assert_eq!(hex(&encode(&chunk).unwrap()), "0000000b010466696c6d8202029003");
    let manifest = StreamRequest::Manifest("film".parse().unwrap());
    assert_eq!(hex(&encode(&manifest).unwrap()), "00000006000466696c6d");
    let granted = StreamReply::Granted { length: 200_000, hash: Hash::from([7; 32]) };
    assert_eq!(hex(&encode(&granted).unwrap()), format!("0000002400c09a0c{}", "07".repeat(32)));
    assert_eq!(hex(&encode(&StreamReply::Refused(Refusal::NoSession)).unwrap()), "000000020106");
    for value in [chunk, manifest] {
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

    let long = u32::try_from(MAX_STREAM_HEADER_BYTES).unwrap() + 1;
    let too_long = FrameError::TooLong { length: 1025, max: 1024 };
    assert_eq!(body_length::<StreamRequest>(long.to_be_bytes()), Err(too_long));
    assert_eq!(body_length::<StreamRequest>([0; 4]), Err(FrameError::Malformed));
    assert_eq!(decode::<StreamReply>(&[0; 1025]), Err(too_long));
}

#[test]
fn nothing_stands_behind_a_message_and_nobody_has_a_bad_name() {
    assert_eq!(decode::<Message>(&[9, 0, 0]), Err(FrameError::Leftover(2)));
    assert_eq!(decode::<Message>(&[10]), Err(FrameError::Malformed));
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
    fn a_bent_message_is_a_message_or_an_error(which in 0_usize..10, at in any::<prop::sample::Index>(), with: u8) {
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
