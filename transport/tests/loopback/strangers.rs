//! Who is let in, who is not, and what the refused one is told.

use crate::rig::{PATIENCE, Rig, payload, peer};
use protocol::{Message, Refusal, Role};
use std::net::UdpSocket;
use std::time::Duration;
use transport::{
    AcceptError, Authority, DialWhy, Endpoint, EndpointConfig, EndpointError, Identity, Keys, KeysError,
    LinkError,
};

#[tokio::test]
async fn greetings_say_who_is_who() {
    let rig = Rig::new();
    let (address, guest) = rig.one_guest("origin");
    let proxy = rig.member("proxy-1", Role::Proxy);
    let (to_origin, mut inbox) = proxy.dial(address, Some(peer("origin")), PATIENCE).await.unwrap();
    let (from_proxy, _kept) = guest.await.unwrap();
    assert_eq!((to_origin.peer().peer, to_origin.peer().role), (peer("origin"), Role::Node));
    assert_eq!((from_proxy.peer().peer, from_proxy.peer().role), (peer("proxy-1"), Role::Proxy));
    let before = to_origin.last_heard();
    from_proxy.send(Message::Alive(3)).unwrap();
    assert_eq!(inbox.recv().await, Ok(Message::Alive(3)));
    assert!(to_origin.last_heard() > before);
}

#[tokio::test]
async fn another_authority_is_a_certificate_refused() {
    let (ours, theirs) = (Rig::new(), Rig::new());
    let (address, _guest) = ours.one_guest("base-1");
    let error = theirs.viewer().dial(address, None, PATIENCE).await.unwrap_err();
    assert!(matches!(error.why, DialWhy::Certificate(_)), "{error:?}");
    assert!(error.why.to_string().starts_with("certificate refused"), "{}", error.why);
}

#[tokio::test]
async fn a_node_of_another_cluster_is_refused_although_it_trusts_us() {
    let (ours, theirs) = (Rig::new(), Rig::new());
    let node = ours.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let guest = tokio::spawn(async move { node.accept().await.unwrap().establish(PATIENCE).await });
    // It has our authority's public certificate, but its own from elsewhere.
    let identity = theirs.keys.identity(peer("base-2")).unwrap();
    let config = EndpointConfig::member(Role::Node, &identity, ours.keys.authority().unwrap());
    let error = Endpoint::open(&config).unwrap().dial(address, None, PATIENCE).await.unwrap_err();
    assert!(matches!(error.why, DialWhy::Certificate(_)), "{error:?}");
    assert!(matches!(guest.await.unwrap(), Err(AcceptError::Lost(_))));
}

#[tokio::test]
async fn a_certificate_of_another_name_is_refused() {
    let rig = Rig::new();
    let (address, _guest) = rig.one_guest("base-1");
    let error = rig.viewer().dial(address, Some(peer("base-2")), PATIENCE).await.unwrap_err();
    assert!(matches!(error.why, DialWhy::Certificate(_)), "{error:?}");
}

#[tokio::test]
async fn a_viewer_cannot_call_itself_a_node() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let guest = tokio::spawn(async move { node.accept().await.unwrap().establish(PATIENCE).await });
    let honest = EndpointConfig::viewer(peer("origin"), rig.keys.authority().unwrap());
    let liar = EndpointConfig { role: Role::Node, ..honest };
    assert!(matches!(Endpoint::open(&liar), Err(EndpointError::NoIdentity)));
    let error = dial_lying(&rig, address, "origin", None).await;
    assert_eq!(error, DialWhy::Refused(Refusal::Identity));
    assert_eq!(guest.await.unwrap().unwrap_err(), AcceptError::Claim(peer("origin")));
}

#[tokio::test]
async fn a_node_cannot_take_another_ones_name() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let guest = tokio::spawn(async move { node.accept().await.unwrap().establish(PATIENCE).await });
    let error = dial_lying(&rig, address, "origin", Some(rig.keys.identity(peer("base-2")).unwrap())).await;
    assert_eq!(error, DialWhy::Refused(Refusal::Identity));
    assert_eq!(guest.await.unwrap().unwrap_err(), AcceptError::Claim(peer("origin")));
}

#[tokio::test]
async fn an_operator_proves_its_name_as_nodes_do() {
    let rig = Rig::new();
    let operator = || EndpointConfig::viewer(peer("operator"), rig.keys.authority().unwrap());
    let bare = EndpointConfig { role: Role::Operator, ..operator() };
    assert!(matches!(Endpoint::open(&bare), Err(EndpointError::NoIdentity)));
    for identity in [None, Some(rig.keys.identity(peer("base-2")).unwrap())] {
        let node = rig.member("base-1", Role::Node);
        let address = node.local_address().unwrap();
        let guest = tokio::spawn(async move { node.accept().await.unwrap().establish(PATIENCE).await });
        let config = EndpointConfig { identity, ..operator() };
        let liar = Endpoint::open(&config).unwrap().introducing_itself_as(Role::Operator);
        let error = liar.dial(address, None, PATIENCE).await.unwrap_err();
        assert_eq!(error.why, DialWhy::Refused(Refusal::Identity));
        assert_eq!(guest.await.unwrap().unwrap_err(), AcceptError::Claim(peer("operator")));
    }
    let (address, guest) = rig.one_guest("base-1");
    let identity = rig.keys.identity(peer("operator")).unwrap();
    let honest = Endpoint::open(&EndpointConfig::operator(&identity, rig.keys.authority().unwrap()));
    let (_connection, _inbox) = honest.unwrap().dial(address, None, PATIENCE).await.unwrap();
    let (seen, _) = guest.await.unwrap();
    assert_eq!((seen.peer().peer, seen.peer().role), (peer("operator"), Role::Operator));
}

#[tokio::test]
async fn an_operator_accepts_nobody() {
    let rig = Rig::new();
    let identity = rig.keys.identity(peer("operator")).unwrap();
    let member = EndpointConfig::member(Role::Operator, &identity, rig.keys.authority().unwrap());
    assert!(member.accepts, "even where it is asked to");
    let operator = Endpoint::open(&member).unwrap();
    let address = operator.local_address().unwrap();
    let error = rig.viewer().dial(address, None, Duration::from_millis(300)).await.unwrap_err();
    assert!(!matches!(error.why, DialWhy::Refused(_)), "{error:?}");
    // A node that calls itself an operator is not believed by those who dial it.
    let node = rig.member("base-1", Role::Node).introducing_itself_as(Role::Operator);
    let address = node.local_address().unwrap();
    let guest = tokio::spawn(async move {
        let (connection, inbox) = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
        connection.send(Message::Hello(node.hello())).unwrap();
        (connection, inbox)
    });
    let error = rig.viewer().dial(address, None, PATIENCE).await.unwrap_err();
    assert_eq!(error.why, DialWhy::Claim(peer("base-1")));
    guest.await.unwrap();
}

/// Dials as a node of this name with whatever certificate.
async fn dial_lying(
    rig: &Rig,
    address: std::net::SocketAddr,
    name: &str,
    identity: Option<Identity>,
) -> DialWhy {
    let mut config = EndpointConfig::viewer(peer(name), rig.keys.authority().unwrap());
    config.identity = identity;
    let liar = Endpoint::open(&config).unwrap().introducing_itself_as(Role::Node);
    liar.dial(address, None, PATIENCE).await.unwrap_err().why
}

#[tokio::test]
async fn nobody_there_is_a_timeout() {
    let rig = Rig::new();
    // Bound but mute.
    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap();
    let error = rig.viewer().dial(address, None, Duration::from_millis(100)).await.unwrap_err();
    assert_eq!((error.address, error.why), (address, DialWhy::Timeout));
}

#[tokio::test]
async fn a_second_greeting_ends_the_conversation() {
    let rig = Rig::new();
    let ((viewer, _kept), (_node, mut inbox)) = rig.pair("base-1").await;
    viewer.send(Message::Hello(viewer.peer())).unwrap();
    assert!(matches!(inbox.recv().await, Err(LinkError::Frame(_))));
}

#[tokio::test]
async fn who_parts_is_heard_to_the_last_word() {
    let rig = Rig::new();
    let ((viewer, mut inbox), (node, _kept)) = rig.pair("base-1").await;
    for n in 0..50 {
        node.send(Message::Probe(n)).unwrap();
    }
    let parted = tokio::spawn(async move { node.part().await });
    for n in 0..50 {
        assert_eq!(inbox.recv().await, Ok(Message::Probe(n)));
    }
    assert!(matches!(inbox.recv().await, Err(LinkError::Lost(_))));
    drop(viewer);
    parted.await.unwrap();
}

#[test]
fn keys_are_private_and_never_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::new();
    rig.keys.issue(peer("base-1")).unwrap();
    let mode = |name: &str| rig.folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca.key"), mode("peers/base-1.pem"), mode("ca.pem")), (0o600, 0o600, 0o644));
    assert!(matches!(Keys::init(rig.folder.path()), Err(KeysError::Exists { .. })));
    let again = Keys::open_or_init(rig.folder.path()).unwrap();
    assert_eq!(again.authority().unwrap(), rig.keys.authority().unwrap());
    let left: Vec<_> =
        std::fs::read_dir(rig.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn keys_that_are_missing_or_damaged_say_so() {
    let rig = Rig::new();
    let folder = rig.folder.path();
    let nothing = folder.join("nothing");
    assert!(matches!(Keys::open(&nothing), Err(KeysError::NoKeys { .. })));
    assert!(matches!(Authority::load(&nothing), Err(KeysError::Read { .. })));
    assert!(matches!(Identity::load(folder, peer("base-9")), Err(KeysError::NoIdentity { .. })));
    assert!(matches!(rig.keys.issue(peer("base-")), Err(KeysError::Name(_))));
    rig.keys.issue(peer("base-1")).unwrap();
    std::fs::copy(folder.join("peers/base-1.pem"), folder.join("peers/base-2.pem")).unwrap();
    assert!(matches!(Identity::load(folder, peer("base-2")), Err(KeysError::Malformed { .. })));
    std::fs::write(folder.join("ca.pem"), payload(100).0).unwrap();
    assert!(Authority::load(folder).is_err());
}

#[tokio::test]
async fn both_families_are_reached_from_one_viewer() {
    let rig = Rig::new();
    let identity = rig.keys.identity(peer("base-1")).unwrap();
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        let member = EndpointConfig::member(Role::Node, &identity, rig.keys.authority().unwrap());
        let Ok(node) = Endpoint::open(&EndpointConfig { bind: bind.parse().unwrap(), ..member }) else {
            assert_ne!(bind, "127.0.0.1:0", "every machine has IPv4");
            continue;
        };
        let address = node.local_address().unwrap();
        let greeting = tokio::spawn(async move {
            let (connection, _inbox) = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
            connection.send(Message::Hello(node.hello())).unwrap();
            connection.closed().await
        });
        let (connection, _inbox) = rig.viewer().dial(address, None, PATIENCE).await.unwrap();
        assert_eq!(connection.remote_address(), address);
        drop(connection);
        greeting.await.unwrap();
    }
}
