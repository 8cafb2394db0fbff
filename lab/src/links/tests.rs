#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use media::BitRate;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn socket(last: u8) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn heard(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut bytes = [0; 2_000];
    let (length, from) = socket.recv_from(&mut bytes).unwrap();
    (bytes[..length].to_vec(), from)
}

const SLOW: LinkShape =
    LinkShape::both(PipeShape { delay: Span::from_millis(40), queue: Span::from_secs(9), ..PipeShape::OPEN });

#[test]
fn a_link_is_chosen_by_where_one_dials_from_and_delays_both_ways() {
    let links = Links::start(1).unwrap();
    let (server, near, far) = (socket(1), socket(2), socket(3));
    let (door, address) = links.door(server.local_addr().unwrap()).unwrap();
    let link = links.link(SLOW);
    links.route(door, far.local_addr().unwrap().ip(), link, Way::Along);
    let began = Instant::now();
    far.send_to(b"far", address).unwrap();
    near.send_to(b"near", address).unwrap();
    assert_eq!(heard(&server).0, b"near", "nothing lies between");
    let (bytes, from) = heard(&server);
    assert_eq!(bytes, b"far");
    assert!(began.elapsed() >= Duration::from_millis(40));
    server.send_to(b"answer", from).unwrap();
    assert_eq!(heard(&far), (b"answer".to_vec(), address));
    assert!(began.elapsed() >= Duration::from_millis(80));
    let one = |bytes| Count { datagrams: 1, bytes, lost: 0, full: 0 };
    assert_eq!(links.counts(link), Counts { there: one(3), back: one(6) });
    assert_eq!(links.counts_of_others(door), Counts { there: one(4), back: Count::default() });
    assert_eq!((links.lateness().count(), links.turned_away()), (2, 0));
}

#[test]
fn two_doors_share_one_line_and_each_end_sees_its_own_direction() {
    let links = Links::start(1).unwrap();
    let (one, two) = (socket(2), socket(3));
    let at = |socket: &UdpSocket| socket.local_addr().unwrap();
    let ((door_one, to_one), (door_two, to_two)) =
        (links.door(at(&one)).unwrap(), links.door(at(&two)).unwrap());
    let link = links.link(SLOW);
    links.route(door_two, at(&one).ip(), link, Way::Along);
    links.route(door_one, at(&two).ip(), link, Way::Against);
    one.send_to(b"from one", to_two).unwrap();
    two.send_to(b"two", to_one).unwrap();
    assert_eq!((heard(&two).0, heard(&one).0), (b"from one".to_vec(), b"two".to_vec()));
    let counts = links.counts(link);
    assert_eq!((counts.there.bytes, counts.back.bytes), (8, 3));
}

#[test]
fn a_queue_has_an_end_and_a_line_can_be_changed_while_it_runs() {
    let links = Links::start(1).unwrap();
    let (server, client) = (socket(1), socket(2));
    let (door, address) = links.door(server.local_addr().unwrap()).unwrap();
    // A line that needs four minutes for a datagram and lets none wait.
    let stuck = PipeShape { rate: Some(BitRate(40)), queue: Span::ZERO, ..PipeShape::OPEN };
    let link = links.link(LinkShape::both(stuck));
    links.route(door, client.local_addr().unwrap().ip(), link, Way::Along);
    for _ in 0..3 {
        client.send_to(&[7; 1_172], address).unwrap();
    }
    let began = Instant::now();
    while links.counts(link).there.full < 2 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    let counts = links.counts(link).there;
    assert_eq!((counts.datagrams, counts.full), (1, 2));
    // Who dials by another line is not held up.
    links.route(door, client.local_addr().unwrap().ip(), links.link(LinkShape::OPEN), Way::Along);
    client.send_to(b"through", address).unwrap();
    assert_eq!(heard(&server).0, b"through");
    links.reshape(
        link,
        LinkShape { there: PipeShape { loss: 1.0, ..PipeShape::OPEN }, back: PipeShape::OPEN },
    );
    assert_eq!(links.counts(link).there.lost, 0);
}

#[test]
fn a_line_follows_a_trace_one_way_and_lets_go_of_it() {
    let links = Links::start(1).unwrap();
    let (server, client) = (socket(1), socket(2));
    let (door, address) = links.door(server.local_addr().unwrap()).unwrap();
    let link = links.link(LinkShape::both(PipeShape { queue: Span::from_secs(9), ..PipeShape::OPEN }));
    links.route(door, client.local_addr().unwrap().ip(), link, Way::Along);
    // Nothing for 200 ms, then as much as one likes.
    let trace = Trace::read("0,0\n0.2,1e9\n").unwrap();
    let began = Instant::now();
    links.follow(link, None, Some(Arc::new(trace)));
    client.send_to(b"question", address).unwrap();
    let (bytes, from) = heard(&server);
    assert_eq!(bytes, b"question");
    server.send_to(b"answer", from).unwrap();
    assert_eq!(heard(&client).0, b"answer");
    assert!(began.elapsed() >= Duration::from_millis(195), "{:?}", began.elapsed());
    links.follow(link, None, None);
    server.send_to(b"at once", from).unwrap();
    assert_eq!(heard(&client).0, b"at once");
    assert_eq!(links.counts(link).back.datagrams, 2);
}
