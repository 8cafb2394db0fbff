//! Peers that shake hands properly and then misbehave, byte by byte.

use crate::rig::{PATIENCE, Rig, peer};
use protocol::frame::{self, FrameError};
use protocol::message::ALPN;
use protocol::{Hello, Message, PROTOCOL_VERSION, Refusal, Role, StreamRequest};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use transport::{AcceptError, ClosedBy, DialWhy, LinkError, ServeError};

/// A TLS client that believes the rig's authority, for any protocol.
async fn dial_raw(
    rig: &Rig,
    address: SocketAddr,
    alpn: &[u8],
) -> Result<quinn::Connection, quinn::ConnectionError> {
    let pem = std::fs::read(rig.folder.path().join("ca.pem")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.connect_with(config, address, "lamina").unwrap().await
}

/// What a node makes of a peer whose first bytes on the control stream are these.
async fn meet(bytes: Vec<u8>, within: Duration) -> Result<LinkError, AcceptError> {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let meeting = tokio::spawn(async move {
        let (_connection, mut inbox) = node.accept().await.unwrap().establish(within).await?;
        loop {
            if let Err(error) = inbox.recv().await {
                return Ok(error);
            }
        }
    });
    let raw = dial_raw(&rig, address, ALPN).await.unwrap();
    let mut send = None;
    if !bytes.is_empty() {
        let (mut control, _receive) = raw.open_bi().await.unwrap();
        control.write_all(&bytes).await.unwrap();
        send = Some(control);
    }
    let met = meeting.await.unwrap();
    drop(send);
    met
}

fn hello() -> Vec<u8> {
    let hello = Hello { version: PROTOCOL_VERSION, peer: peer("viewer"), role: Role::Viewer };
    frame::encode(&Message::Hello(hello)).unwrap().to_vec()
}

#[tokio::test]
async fn whoever_shakes_hands_and_says_nothing_is_forgotten() {
    assert_eq!(meet(Vec::new(), Duration::from_millis(300)).await, Err(AcceptError::Timeout));
    // The same for half a greeting.
    let half = hello()[..6].to_vec();
    assert_eq!(meet(half, Duration::from_millis(300)).await, Err(AcceptError::Timeout));
}

#[tokio::test]
async fn garbage_in_the_place_of_a_greeting_is_turned_away() {
    let nonsense = [0, 0, 0, 3, 200, 1, 2].to_vec();
    let malformed = AcceptError::Misspoke(LinkError::Frame(FrameError::Malformed));
    assert_eq!(meet(nonsense, PATIENCE).await, Err(malformed));
    let endless = [0xff; 8].to_vec();
    let too_long = FrameError::TooLong { length: 0xffff_ffff, max: 256 * 1024 };
    assert_eq!(meet(endless, PATIENCE).await, Err(AcceptError::Misspoke(LinkError::Frame(too_long))));
    let early = frame::encode(&Message::ListTitles).unwrap().to_vec();
    assert!(matches!(meet(early, PATIENCE).await, Err(AcceptError::Misspoke(_))));
}

#[tokio::test]
async fn garbage_behind_a_greeting_ends_the_conversation() {
    let probe = frame::encode(&Message::Probe(1)).unwrap();
    let bytes = [&hello()[..], &probe[..], &[0, 0, 0, 2, 9, 9]].concat();
    assert_eq!(meet(bytes, PATIENCE).await, Ok(LinkError::Frame(FrameError::Leftover(1))));
}

#[tokio::test]
async fn a_request_of_garbage_harms_nobody() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let meeting = tokio::spawn(async move {
        let (connection, _inbox) = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
        connection.send(Message::Hello(node.hello())).unwrap();
        let mut outcomes = Vec::new();
        for within in [PATIENCE, PATIENCE, Duration::from_millis(300), PATIENCE] {
            let read = connection.accept_request().await.unwrap().read(within).await;
            outcomes.push(read.map(|(request, _)| request));
        }
        outcomes
    });
    let raw = dial_raw(&rig, address, ALPN).await.unwrap();
    let (mut control, _listening) = raw.open_bi().await.unwrap();
    control.write_all(&hello()).await.unwrap();
    let lawful = StreamRequest::Manifest("film".parse().unwrap());
    // Too long, nonsense, too slow, and then one as it should be.
    let asked = [&[0, 0, 9, 9][..], &[0, 0, 0, 1, 77], &[0, 0], &frame::encode(&lawful).unwrap()];
    let mut streams = Vec::new();
    for bytes in asked {
        let (mut send, receive) = raw.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        streams.push((send, receive));
    }
    let outcomes = meeting.await.unwrap();
    let too_long = FrameError::TooLong { length: 0x909, max: 1024 };
    assert_eq!(
        outcomes,
        [
            Err(ServeError::Frame(too_long)),
            Err(ServeError::Frame(FrameError::Malformed)),
            Err(ServeError::Slow),
            Ok(lawful)
        ]
    );
}

#[tokio::test]
async fn nobody_opens_more_streams_than_are_allowed() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let meeting = tokio::spawn(async move {
        let met = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
        met.0.closed().await
    });
    let raw = dial_raw(&rig, address, ALPN).await.unwrap();
    let (mut control, _listening) = raw.open_bi().await.unwrap();
    control.write_all(&hello()).await.unwrap();
    let mut streams = Vec::new();
    for _ in 1..64 {
        let mut stream = raw.open_bi().await.unwrap();
        stream.0.write_all(&[0]).await.unwrap();
        streams.push(stream);
    }
    let one_more = tokio::time::timeout(Duration::from_millis(100), raw.open_bi()).await;
    assert!(one_more.is_err(), "the 65th stream waits for ever");
    let uni = tokio::time::timeout(Duration::from_millis(100), raw.open_uni()).await;
    assert!(uni.is_err(), "and streams of one direction are not for us");
    raw.close(0_u32.into(), b"enough");
    assert_eq!(meeting.await.unwrap(), ClosedBy::Peer("enough".into()));
}

#[tokio::test]
async fn another_application_protocol_is_told_apart_from_a_bad_certificate() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let meeting = tokio::spawn(async move { node.accept().await.unwrap().establish(PATIENCE).await });
    assert!(dial_raw(&rig, address, b"h3").await.is_err());
    let met = meeting.await.unwrap().unwrap_err();
    assert!(matches!(met, AcceptError::Lost(ClosedBy::OtherProtocol(_))), "{met:?}");

    // The other way round: a web server with a certificate of ours.
    let pem = std::fs::read(rig.folder.path().join("peers/base-1.pem")).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(&pem).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(&pem).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).unwrap()));
    let web = quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = web.local_addr().unwrap();
    tokio::spawn(async move { web.accept().await.unwrap().await.map(|_| ()) });
    let error = rig.viewer().dial(address, None, PATIENCE).await.unwrap_err();
    assert!(matches!(error.why, DialWhy::OtherProtocol(_)), "{error:?}");
}

#[tokio::test]
async fn a_node_of_another_version_is_refused_by_that_name() {
    let rig = Rig::new();
    let node = rig.member("base-1", Role::Node);
    let address = node.local_address().unwrap();
    let meeting = tokio::spawn(async move {
        let (connection, _inbox) = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
        connection.send(Message::Hello(Hello { version: PROTOCOL_VERSION + 1, ..node.hello() })).unwrap();
        connection.closed().await
    });
    let error = rig.viewer().dial(address, None, PATIENCE).await.unwrap_err();
    assert_eq!(error.why, DialWhy::Refused(Refusal::Version));
    meeting.await.unwrap();
}
