//! One UDP port that dials and, with a certificate, accepts. Viewers and
//! operators only dial.

use crate::connection::{Connection, Inbox, Pulse, open, widen};
use crate::error::{AcceptError, ClosedBy, DialError, DialWhy, EndpointError, LinkError, RequestError};
use crate::keys::{ANYBODY, dns_name};
use crate::payload::{Expect, Payload};
use crate::settings::{self, EndpointConfig};
use crate::{socket, tls, wire};
use protocol::{Hello, Message, PROTOCOL_VERSION, PeerId, Refusal, Role, StreamRequest};
use quinn::{ClientConfig, RecvStream, SendStream, ServerConfig, TokioRuntime, VarInt};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a peer that was told to go may take to hear it.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);
/// Handshakes under way at once; more are turned away.
const MAX_ARRIVALS: usize = 1024;

/// A UDP port with an identity. Clones share it; connections outlive it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    quic: quinn::Endpoint,
    client: ClientConfig,
    hello: Hello,
}

/// Somebody who knocks and is not yet known.
#[derive(Debug)]
pub struct Arrival(quinn::Incoming);

impl Endpoint {
    /// Binds and, if it is to accept and has an identity, listens. Must be
    /// called inside a tokio runtime.
    pub fn open(config: &EndpointConfig) -> Result<Self, EndpointError> {
        let identity = config.identity.as_ref();
        let named = identity.is_some_and(|identity| identity.peer() == config.peer);
        if config.role != Role::Viewer && !named {
            return Err(EndpointError::NoIdentity);
        }
        let mut client = ClientConfig::new(tls::client(&config.authority, identity)?);
        client.transport_config(settings::dialling(config.congestion, config.payload_window));
        let accepts = config.accepts && accepts(config.role);
        let server = match identity.filter(|_| accepts) {
            Some(identity) => {
                let mut server = ServerConfig::with_crypto(tls::server(&config.authority, identity)?);
                server.transport_config(settings::accepting(config.congestion)).max_incoming(MAX_ARRIVALS);
                Some(server)
            }
            None => None,
        };
        let socket = socket::bind(config.bind, config.socket_buffer)?;
        let quic =
            quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
                .map_err(|source| EndpointError::Bind { address: config.bind, source })?;
        let hello = Hello { version: PROTOCOL_VERSION, peer: config.peer, role: config.role };
        Ok(Self { quic, client, hello })
    }

    /// The address that is bound, with the port that was chosen.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.quic.local_addr()
    }

    /// What this endpoint says first.
    pub fn hello(&self) -> Hello {
        self.hello
    }

    /// The same port under another part, whether or not its certificate allows
    /// it: what an impostor would do, so that its refusal can be tested.
    #[doc(hidden)]
    #[must_use]
    pub fn introducing_itself_as(mut self, role: Role) -> Self {
        self.hello.role = role;
        self
    }

    /// Connects and exchanges greetings, all `within` this time. If the name of
    /// the peer is known, its certificate must carry it.
    pub async fn dial(
        &self,
        address: SocketAddr,
        expected: Option<PeerId>,
        within: Duration,
    ) -> Result<(Connection, Inbox), DialError> {
        let dialled = async { self.knock(address, expected, within).await?.greeted(within).await };
        let late = || Err(DialError { address, why: DialWhy::Timeout });
        timeout(within, dialled).await.unwrap_or_else(|_| late())
    }

    /// Connects and says the greeting, `within` this time, without waiting for its
    /// answer: what is said and asked meanwhile saves a round trip.
    pub async fn knock(
        &self,
        address: SocketAddr,
        expected: Option<PeerId>,
        within: Duration,
    ) -> Result<Knock, DialError> {
        let failed = |why| DialError { address, why };
        let handshake = async {
            let name = expected.map_or_else(|| ANYBODY.to_owned(), dns_name);
            let dialling = self.quic.connect_with(self.client.clone(), address, &name);
            let dialling = dialling.map_err(|error| DialWhy::Address(error.to_string()))?;
            let quic = dialling.await.map_err(ClosedBy::from)?;
            let (mut send, receive) = quic.open_bi().await.map_err(ClosedBy::from)?;
            wire::write(&mut send, &Message::Hello(self.hello)).await?;
            let local = self.quic.local_addr().ok();
            Ok(Knock { quic, send, receive, pulse: Pulse::new(), address, expected, local })
        };
        timeout(within, handshake).await.unwrap_or(Err(DialWhy::Timeout)).map_err(failed)
    }

    /// The next one who knocks; nothing once the endpoint is closed. Waits as
    /// long as it takes.
    pub async fn accept(&self) -> Option<Arrival> {
        self.quic.accept().await.map(Arrival)
    }

    /// Ends every connection at once; the peers are told, if there is time.
    pub fn close_now(&self) {
        self.quic.close(VarInt::from_u32(0), b"going away");
    }

    /// Ends every connection at once and waits until the peers can have heard it.
    pub async fn close(&self) {
        self.close_now();
        // Nobody is harmed if they have not: their connections time out.
        let _ = timeout(FAREWELL, self.quic.wait_idle()).await;
    }
}

/// A connection whose greeting is not answered yet. That the peer belongs to the
/// authority, and has the name by which it was dialled, its certificate has shown.
#[derive(Debug)]
pub struct Knock {
    quic: quinn::Connection,
    send: SendStream,
    receive: RecvStream,
    pulse: Pulse,
    address: SocketAddr,
    expected: Option<PeerId>,
    local: Option<SocketAddr>,
}

/// What comes by a connection, and how much of it may be under way. It keeps no
/// connection alive.
#[derive(Clone, Debug)]
pub struct Line(quinn::Connection);

impl Line {
    /// See [`Connection::received_bytes`].
    pub fn received_bytes(&self) -> u64 {
        self.0.stats().udp_rx.bytes
    }

    /// See [`Connection::widen`].
    pub fn widen(&self, bytes: u64) {
        widen(&self.0, bytes);
    }
}

impl Knock {
    /// Says something right behind the greeting, `within` this time. It is heard if
    /// that is answered; why it was not said, [`Knock::greeted`] tells.
    pub async fn say(&mut self, message: &Message, within: Duration) {
        if let Err(error) = timeout(within, wire::write(&mut self.send, message)).await {
            tracing::debug!(address = %self.address, %error, "a first word was not said");
        }
    }

    /// What is to be watched before the greeting is answered.
    pub fn line(&self) -> Line {
        Line(self.quic.clone())
    }

    /// As [`Connection::request`], but asked right behind the greeting.
    pub fn request(
        &self,
        request: StreamRequest,
        expect: Expect,
        within: Duration,
    ) -> impl Future<Output = Result<Payload, RequestError>> + Send + use<> {
        let (quic, pulse) = (self.quic.clone(), self.pulse.clone());
        async move {
            let whole = async { open(&quic, pulse, &request, expect).await?.collect().await };
            timeout(within, whole).await.unwrap_or(Err(RequestError::Timeout))
        }
    }

    /// Waits for the answer to the greeting, `within` this time.
    pub async fn greeted(self, within: Duration) -> Result<(Connection, Inbox), DialError> {
        let address = self.address;
        let answer = timeout(within, self.answer()).await.unwrap_or(Err(DialWhy::Timeout));
        answer.map_err(|why| DialError { address, why })
    }

    async fn answer(mut self) -> Result<(Connection, Inbox), DialWhy> {
        let hello = match wire::read::<Message>(&mut self.receive).await? {
            Some(Message::Hello(hello)) if hello.version != PROTOCOL_VERSION => {
                return Err(DialWhy::Refused(Refusal::Version));
            }
            Some(Message::Hello(hello)) => hello,
            Some(Message::Refused { why, .. }) => return Err(DialWhy::Refused(why)),
            Some(_) => return Err(LinkError::Frame(protocol::frame::FrameError::Malformed).into()),
            None => return Err(LinkError::CutShort.into()),
        };
        let expected = self.expected.is_none_or(|peer| peer == hello.peer);
        if !expected || !accepts(hello.role) || !tls::proves(self.quic.peer_identity(), hello.peer) {
            return Err(DialWhy::Claim(hello.peer));
        }
        let Self { quic, send, receive, pulse, local, .. } = self;
        Ok(Connection::start((quic, pulse), hello, local, send, receive))
    }
}

impl Arrival {
    /// Where the knock comes from.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// Shakes hands and hears the peer's greeting, `within` this time. Whoever
    /// claims to be anything but a viewer must hold a certificate of that name. The
    /// greeting is answered by the caller with [`Message::Hello`] or
    /// [`Message::Refused`].
    pub async fn establish(self, within: Duration) -> Result<(Connection, Inbox), AcceptError> {
        timeout(within, self.meet()).await.unwrap_or(Err(AcceptError::Timeout))
    }

    async fn meet(self) -> Result<(Connection, Inbox), AcceptError> {
        let lost = |error: quinn::ConnectionError| AcceptError::Lost(error.into());
        let local_ip = self.0.local_ip();
        let quic = self.0.accept().map_err(lost)?.await.map_err(lost)?;
        let (send, mut receive) = quic.accept_bi().await.map_err(lost)?;
        let hello = match wire::read::<Message>(&mut receive).await {
            Ok(Some(Message::Hello(hello))) => hello,
            Ok(_) => return Err(turn_away(quic, AcceptError::Misspoke(LinkError::CutShort))),
            Err(LinkError::Lost(closed)) => return Err(AcceptError::Lost(closed)),
            Err(error) => return Err(turn_away(quic, AcceptError::Misspoke(error))),
        };
        if hello.role != Role::Viewer && !tls::proves(quic.peer_identity(), hello.peer) {
            let (connection, _) = Connection::start((quic, Pulse::new()), hello, None, send, receive);
            // The peer learns why, if it still listens.
            let _ = connection.send(Message::Refused { request: 0, why: Refusal::Identity });
            connection.part().await;
            return Err(AcceptError::Claim(hello.peer));
        }
        let local = local_ip.map(|ip| SocketAddr::new(ip, 0));
        Ok(Connection::start((quic, Pulse::new()), hello, local, send, receive))
    }
}

/// Who may be dialled: whoever watches or runs the network only dials.
fn accepts(role: Role) -> bool {
    matches!(role, Role::Node | Role::Proxy)
}

#[allow(clippy::needless_pass_by_value, reason = "the connection ends here")]
fn turn_away(quic: quinn::Connection, error: AcceptError) -> AcceptError {
    quic.close(VarInt::from_u32(1), b"the first message is no greeting");
    error
}
