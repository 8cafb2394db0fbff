//! A payload over real QUIC is whole and checked, or a named error.

use crate::rig::{PATIENCE, Rig, chunk, payload, peer};
use bytes::Bytes;
use media::{ChunkId, ChunkInfo, Half, Hash, Layer};
use protocol::{ChunkRequest, Message, Part, Refusal, StreamRequest};
use std::time::Duration;
use tokio::sync::mpsc;
use transport::{Connection, Endpoint, EndpointConfig, Expect, Form, RequestError, Responder, ServeError};

async fn next_request(node: &Connection) -> Responder {
    let (request, responder) = node.accept_request().await.unwrap().read(PATIENCE).await.unwrap();
    assert_eq!(request, chunk(7));
    responder
}

async fn give(mut to: Responder, (length, hash): (u64, Hash), pieces: Vec<Bytes>) -> Result<(), ServeError> {
    to.grant(length, hash)?;
    for piece in pieces {
        to.send(piece).await?;
    }
    to.finish().await
}

/// What a viewer gets from a node that announces `length` and `hash` and sends
/// `pieces`.
async fn ask(
    expect: Expect,
    (length, hash): (u64, Hash),
    pieces: Vec<Bytes>,
) -> (Result<Bytes, RequestError>, Result<(), ServeError>) {
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("base-1").await;
    let serve = tokio::spawn(async move {
        let responder = next_request(&node).await;
        let served = give(responder, (length, hash), pieces).await;
        node.closed().await;
        served
    });
    let got = viewer.request(&chunk(7), expect, PATIENCE).await;
    drop(viewer);
    (got.map(|payload| payload.bytes), serve.await.unwrap())
}

#[tokio::test]
async fn what_was_sent_in_pieces_arrives_whole() {
    let (bytes, hash) = payload(300_000);
    let pieces = vec![bytes.slice(..1), bytes.slice(1..200_000), bytes.slice(200_000..)];
    let known = Expect::Exactly { length: 300_000, hash };
    assert_eq!(ask(known, (300_000, hash), pieces.clone()).await, (Ok(bytes.clone()), Ok(())));
    assert_eq!(ask(Expect::AtMost(300_000), (300_000, hash), pieces).await, (Ok(bytes), Ok(())));
    let empty = (0, Hash::of(b""));
    assert_eq!(ask(Expect::AtMost(0), empty, Vec::new()).await, (Ok(Bytes::new()), Ok(())));
}

#[tokio::test]
async fn one_wrong_bit_is_an_error() {
    let (bytes, hash) = payload(100_000);
    let mut bent = bytes.to_vec();
    bent[50_000] ^= 1;
    let known = Expect::Exactly { length: 100_000, hash };
    let (got, _) = ask(known, (100_000, hash), vec![bent.into()]).await;
    assert_eq!(got, Err(RequestError::Corrupt));
}

#[tokio::test]
async fn a_sender_that_stops_early_never_makes_a_payload() {
    let (bytes, hash) = payload(100_000);
    let short = vec![bytes.slice(..99_999)];
    let (got, served) = ask(Expect::AtMost(100_000), (100_000, hash), short).await;
    assert_eq!(got, Err(RequestError::Reset));
    assert_eq!(served, Err(ServeError::Length));
    let long = vec![bytes.clone(), Bytes::from_static(b"!")];
    let (got, served) = ask(Expect::AtMost(100_000), (100_000, hash), long).await;
    assert_eq!(got, Err(RequestError::Reset));
    assert_eq!(served, Err(ServeError::Length));
}

#[tokio::test]
async fn a_length_beyond_the_bound_is_not_read() {
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("base-1").await;
    let serve = tokio::spawn(async move {
        let mut responder = next_request(&node).await;
        responder.grant(u64::MAX, Hash::of(b"")).unwrap();
        responder.send(Bytes::from_static(b"x")).await.unwrap();
        responder.cancelled().await;
    });
    let got = viewer.request(&chunk(7), Expect::AtMost(1000), PATIENCE).await;
    serve.await.unwrap();
    assert_eq!(got, Err(RequestError::TooLong { length: u64::MAX, max: 1000 }));
}

#[tokio::test]
async fn an_announcement_that_is_not_the_manifests_is_refused() {
    let (bytes, hash) = payload(1000);
    let other = Expect::Exactly { length: 1000, hash: Hash::of(b"another") };
    let (got, _) = ask(other, (1000, hash), vec![bytes]).await;
    assert_eq!(got, Err(RequestError::Unexpected));
    assert!(RequestError::Unexpected.is_lie());
}

#[tokio::test]
async fn a_refusal_arrives_by_its_name() {
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("base-1").await;
    let serve = tokio::spawn(async move {
        next_request(&node).await.refuse(Refusal::LayerNotOffered).await.unwrap();
        node.closed().await
    });
    let got = viewer.request(&chunk(7), Expect::AtMost(9), PATIENCE).await;
    assert_eq!(got, Err(RequestError::Refused(Refusal::LayerNotOffered)));
    drop(viewer);
    serve.await.unwrap();
}

#[tokio::test]
async fn a_request_that_is_dropped_stops_the_sender() {
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("base-1").await;
    let (bytes, hash) = payload(1_000_000);
    let serve = tokio::spawn(async move {
        let mut responder = next_request(&node).await;
        responder.grant(1_000_000_000, hash).unwrap();
        loop {
            if let Err(error) = responder.send(bytes.clone()).await {
                return error;
            }
        }
    });
    let mut reader = viewer.open(&chunk(7), Expect::AtMost(u64::MAX)).await.unwrap();
    assert!(!reader.next_piece().await.unwrap().unwrap().is_empty());
    drop(reader);
    assert_eq!(serve.await.unwrap(), ServeError::Cancelled);
}

#[tokio::test]
async fn a_deadline_ends_a_request_and_the_connection_goes_on() {
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("base-1").await;
    let serve = tokio::spawn(async move {
        let silent = next_request(&node).await;
        silent.cancelled().await;
        drop(silent);
        next_request(&node).await.refuse(Refusal::Draining).await.unwrap();
        node.closed().await
    });
    let late = viewer.request(&chunk(7), Expect::AtMost(9), Duration::from_millis(50)).await;
    assert_eq!(late, Err(RequestError::Timeout));
    let next = viewer.request(&chunk(7), Expect::AtMost(9), PATIENCE).await;
    assert_eq!(next, Err(RequestError::Refused(Refusal::Draining)));
    drop(viewer);
    serve.await.unwrap();
}

#[tokio::test]
async fn pieces_pass_on_before_the_whole_is_here() {
    let rig = Rig::new();
    let ((viewer, _), (node, mut inbox)) = rig.pair("base-1").await;
    let (bytes, hash) = payload(2000);
    let serve = tokio::spawn(async move {
        let mut responder = next_request(&node).await;
        responder.grant(2000, hash).unwrap();
        responder.send(bytes.slice(..1000)).await.unwrap();
        // Not before the viewer says that it holds the first half.
        assert_eq!(inbox.recv().await, Ok(Message::Probe(1000)));
        responder.send(bytes.slice(1000..)).await.unwrap();
        responder.finish().await.unwrap();
        node.closed().await
    });
    let mut reader = viewer.open(&chunk(7), Expect::AtMost(2000)).await.unwrap();
    let mut got = 0;
    while got < 1000 {
        got += reader.next_piece().await.unwrap().unwrap().len();
    }
    viewer.send(Message::Probe(1000)).unwrap();
    while let Some(piece) = reader.next_piece().await.unwrap() {
        got += piece.len();
    }
    assert_eq!(got, 2000);
    drop(reader);
    drop(viewer);
    serve.await.unwrap();
}

#[tokio::test]
async fn of_a_chunk_in_halves_a_player_takes_what_it_is_given_and_shows_what_it_may() {
    let (bytes, hash) = payload(100_000);
    let info = ChunkInfo { offset: 0, length: 100_000, hash };
    let first = bytes.slice(..60_000);
    let half = Half { length: 60_000, hash: Hash::of(&first), pictures: hash };
    let shown = [
        (Form::Whole, bytes.clone(), Ok((bytes.clone(), Part::Whole))),
        (Form::Half, first.clone(), Ok((first.clone(), Part::First))),
        (Form::HalfTrial, bytes.clone(), Ok((first.clone(), Part::First))),
        (Form::Trial, bytes.clone(), Err(RequestError::Refused(Refusal::Filtered))),
        (Form::Trial, first.clone(), Err(RequestError::Refused(Refusal::Filtered))),
        (Form::Half, bytes.slice(..50_000), Err(RequestError::Unexpected)),
    ];
    let rig = Rig::new();
    let ((viewer, _), (node, _kept)) = rig.pair("proxy-1").await;
    for (form, sent, expected) in shown {
        let what = (u64::try_from(sent.len()).unwrap(), Hash::of(&sent));
        let serve = async {
            let mut responder = next_request(&node).await;
            responder.set_form(form);
            // Who does not want it stops reading.
            let _ = give(responder, what, vec![sent]).await;
        };
        let StreamRequest::Chunk(asked) = chunk(7) else { unreachable!() };
        let got = viewer.request_part(&asked.id, (&info, Some(&half)), Duration::from_secs(1));
        let (got, ()) = tokio::join!(got, serve);
        assert_eq!(got.map(|(chunk, part)| (chunk.into_bytes(), part)), expected, "{form:?}");
    }
}

#[tokio::test]
async fn where_little_may_be_under_way_what_is_due_first_is_whole_first() {
    let rig = Rig::new();
    let (address, guest) = rig.one_guest("base-1");
    let mut narrow = EndpointConfig::viewer(peer("viewer"), rig.keys.authority().unwrap());
    narrow.payload_window = 16 * 1024;
    let viewer = Endpoint::open(&narrow).unwrap();
    let (connection, _inbox) = viewer.dial(address, Some(peer("base-1")), PATIENCE).await.unwrap();
    let (node, _kept) = guest.await.unwrap();
    let (bytes, hash) = payload(100_000);
    let known = Expect::Exactly { length: 100_000, hash };
    // Base due last is asked for first, and an enhancement that is due at once in between.
    let asked = [(Layer::BASE, 30_000), (Layer::ENH1, 0), (Layer::BASE, 20_000), (Layer::BASE, 10_000)];
    let (whole, mut order) = mpsc::channel(asked.len());
    let mut responders = Vec::new();
    for (layer, deadline) in asked {
        let (connection, whole, known) = (connection.clone(), whole.clone(), known);
        tokio::spawn(async move {
            let id = ChunkId { title: "film".parse().unwrap(), block: 0, layer };
            let request = StreamRequest::Chunk(ChunkRequest::whole(id, deadline));
            connection.request(&request, known, PATIENCE).await.unwrap();
            whole.send((layer, deadline)).await.unwrap();
        });
        responders.push(node.accept_request().await.unwrap().read(PATIENCE).await.unwrap().1);
    }
    for responder in responders {
        tokio::spawn(give(responder, (100_000, hash), vec![bytes.clone()]));
    }
    let mut seen = Vec::new();
    for _ in asked {
        seen.push(order.recv().await.unwrap());
    }
    let due = [(Layer::BASE, 10_000), (Layer::BASE, 20_000), (Layer::BASE, 30_000), (Layer::ENH1, 0)];
    assert_eq!(seen, due);
}
