//! A connection: one control stream, and streams for payloads beside it.

use crate::endpoint::FAREWELL;
use crate::error::{ClosedBy, LinkError, RequestError, SendError};
use crate::payload::{Expect, Payload, PayloadReader};
use crate::priority::Priority;
use crate::responder::{Form, PendingRequest};
use crate::turns::Turns;
use crate::wire;
use media::{Chunk, ChunkId, ChunkInfo, Half};
use protocol::frame::FrameError;
use protocol::{ChunkRequest, Hello, Message, Part, Refusal, StreamRequest};
use quinn::{RecvStream, SendStream, VarInt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Messages that wait to be heard, at most.
const QUEUE: usize = 64;
/// Messages that wait to be sent, at most: when a node dies, its neighbours have
/// something to say about each of its users at once.
const OUTGOING: usize = 1024;
/// A peer that takes no byte of a message for so long is gone.
const MESSAGE_PROGRESS: Duration = Duration::from_secs(5);

/// One side of a connection. Clones share it; it ends when the last is dropped.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    quic: quinn::Connection,
    peer: Hello,
    local: Option<SocketAddr>,
    outgoing: mpsc::Sender<Outgoing>,
    pulse: Pulse,
    turns: Turns,
}

#[derive(Debug)]
enum Outgoing {
    Message(Message),
    End,
}

/// What the peer says on the control stream, in order.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<Result<Message, LinkError>>);

/// When the connection began, and when the peer was last heard.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    born: Instant,
    heard_nanos: Arc<AtomicU64>,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { born: Instant::now(), heard_nanos: Arc::default() }
    }

    pub(crate) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    pub(crate) fn beat(&self) {
        let nanos = u64::try_from(self.age().as_nanos()).unwrap_or(u64::MAX);
        self.heard_nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.born + Duration::from_nanos(self.heard_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.quic.close(VarInt::from_u32(0), b"done");
    }
}

impl Connection {
    pub(crate) fn start(
        (quic, pulse): (quinn::Connection, Pulse),
        peer: Hello,
        local: Option<SocketAddr>,
        send: SendStream,
        receive: RecvStream,
    ) -> (Self, Inbox) {
        let (outgoing, to_send) = mpsc::channel(OUTGOING);
        let (heard, inbox) = mpsc::channel(QUEUE);
        let turns = Turns::default();
        tokio::spawn(speak(send, to_send, turns.clone()));
        tokio::spawn(listen(receive, heard, pulse.clone()));
        (Self(Arc::new(Shared { quic, peer, local, outgoing, pulse, turns })), Inbox(inbox))
    }

    /// Who the peer is, as checked against its certificate (a viewer has none
    /// and may use any name).
    pub fn peer(&self) -> Hello {
        self.0.peer
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        let address = self.0.quic.remote_address();
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// Our address as the peer sees it, where the system tells; the port is 0 on
    /// the accepting side.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.0.local
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.0.quic.rtt()
    }

    /// Bytes of UDP payload that came from the peer so far, lost ones excluded,
    /// those of streams that were stopped included.
    pub fn received_bytes(&self) -> u64 {
        self.0.quic.stats().udp_rx.bytes
    }

    /// Bytes of UDP payload that went to the peer so far and were not lost: what
    /// its line has taken, or is taking right now.
    pub fn taken_bytes(&self) -> u64 {
        let stats = self.0.quic.stats();
        stats.udp_tx.bytes.saturating_sub(stats.path.lost_bytes)
    }

    /// Lets so many bytes of payloads be under way at once; never fewer than
    /// were allowed before. At most 8 MiB.
    pub fn widen(&self, bytes: u64) {
        widen(&self.0.quic, bytes);
    }

    /// When the peer was last heard: any message, any piece of a payload.
    pub fn last_heard(&self) -> Instant {
        self.0.pulse.last()
    }

    /// Puts a message into the control stream's queue; never waits.
    ///
    /// # Errors
    /// The peer does not take its messages, or is gone. The message is dropped.
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        self.0.outgoing.try_send(Outgoing::Message(message)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Full,
            mpsc::error::TrySendError::Closed(_) => SendError::Closed,
        })
    }

    /// Asks for a payload and waits until it is whole and checked, at most
    /// `within` this time. Dropping the future tells the peer to stop.
    pub async fn request(
        &self,
        request: &StreamRequest,
        expect: Expect,
        within: Duration,
    ) -> Result<Payload, RequestError> {
        let whole = async { self.open(request, expect).await?.collect().await };
        timeout(within, whole).await.unwrap_or(Err(RequestError::Timeout))
    }

    /// [`Connection::request`] for a chunk of which the manifest says what it
    /// must be. The peer is told that it is of no use after `within`.
    pub async fn request_chunk(
        &self,
        id: &ChunkId,
        info: &ChunkInfo,
        within: Duration,
    ) -> Result<Chunk, RequestError> {
        Ok(self.request_part(id, (info, None), within).await?.0)
    }

    /// As [`Connection::request_chunk`], but the first half of the chunk is taken too,
    /// where that is all that there is for us: then it is what comes back.
    pub async fn request_part(
        &self,
        id: &ChunkId,
        (info, half): (&ChunkInfo, Option<&Half>),
        within: Duration,
    ) -> Result<(Chunk, Part), RequestError> {
        let deadline_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        let request = StreamRequest::Chunk(ChunkRequest::whole(id.clone(), deadline_ms));
        let (length, hash) = (info.length, info.hash);
        let expect = half.map_or(Expect::Exactly { length, hash }, |half| Expect::Either {
            whole: (length, hash),
            half: (half.length, half.hash),
        });
        let whole = async {
            let reader = self.open(&request, expect).await?;
            let (form, hash) = (reader.form(), reader.hash());
            let bytes = reader.collect_unchecked().await?;
            // It came to see whether it can, and is not to be shown.
            let trial = form == Form::Trial;
            if trial { Err(RequestError::Refused(Refusal::Filtered)) } else { Ok((bytes, form, hash)) }
        };
        let (bytes, form, hash) = timeout(within, whole).await.unwrap_or(Err(RequestError::Timeout))?;
        if form == Form::Whole && hash == info.hash {
            return Ok((Chunk::verify(id.clone(), bytes, info.length, &info.hash)?, Part::Whole));
        }
        let half = half.ok_or(RequestError::Unexpected)?;
        let first = usize::try_from(half.length).ok().filter(|first| *first <= bytes.len());
        let bytes = bytes.slice(..first.ok_or(RequestError::Unexpected)?);
        Ok((Chunk::verify(id.clone(), bytes, half.length, &half.hash)?, Part::First))
    }

    /// Asks for a payload and waits until it is granted; it is then read in
    /// pieces. The deadline is the caller's: dropping the reader, or this
    /// future, tells the peer to stop.
    pub async fn open(&self, request: &StreamRequest, expect: Expect) -> Result<PayloadReader, RequestError> {
        open(&self.0.quic, self.0.pulse.clone(), request, expect).await
    }

    /// The next stream the peer opens. Waits as long as the connection lives.
    pub async fn accept_request(&self) -> Result<PendingRequest, ClosedBy> {
        let (send, receive) = self.0.quic.accept_bi().await?;
        Ok(PendingRequest::new(send, receive, self.0.pulse.clone(), self.0.turns.clone()))
    }

    /// Waits until the connection is over and tells how it ended.
    pub async fn closed(&self) -> ClosedBy {
        self.0.quic.closed().await.into()
    }

    /// How the connection ended, if it has.
    pub fn close_reason(&self) -> Option<ClosedBy> {
        self.0.quic.close_reason().map(Into::into)
    }

    /// Ends the connection now; what is under way is lost. `word` is told to
    /// the peer.
    pub fn close(&self, word: &str) {
        self.0.quic.close(VarInt::from_u32(1), word.as_bytes());
    }

    /// Sends what is queued, says no more, and leaves it to the peer to end the
    /// connection, but for no longer than a second: whoever closes first would
    /// throw away what the other has not read.
    pub async fn part(&self) {
        let ended = async {
            // If it cannot be queued the connection is over anyway.
            let _ = self.0.outgoing.send(Outgoing::End).await;
            self.0.quic.closed().await
        };
        if timeout(FAREWELL, ended).await.is_err() {
            self.close("parted");
        }
    }
}

impl Inbox {
    /// The next message; waits as long as the connection lives.
    ///
    /// # Errors
    /// The connection or the stream is over. Every later call says so too.
    pub async fn recv(&mut self) -> Result<Message, LinkError> {
        self.0.recv().await.unwrap_or(Err(LinkError::Lost(ClosedBy::Here)))
    }
}

pub(crate) fn widen(quic: &quinn::Connection, bytes: u64) {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(crate::settings::PAYLOAD_WINDOW);
    quic.set_receive_window(bytes.into());
}

/// Asks on a stream of its own, and waits until it is granted.
pub(crate) async fn open(
    quic: &quinn::Connection,
    pulse: Pulse,
    request: &StreamRequest,
    expect: Expect,
) -> Result<PayloadReader, RequestError> {
    let lost = |error: quinn::ConnectionError| RequestError::Lost(error.into());
    let (mut send, receive) = quic.open_bi().await.map_err(lost)?;
    // A request is small; whichever stream it is on, it should go now.
    let _ = send.set_priority(Priority::manifest().value());
    wire::write(&mut send, request).await?;
    let _ = send.finish();
    PayloadReader::start(receive, expect, pulse).await
}

/// Writes what is queued until told to end or until the connection is over.
async fn speak(mut stream: SendStream, mut queue: mpsc::Receiver<Outgoing>, turns: Turns) {
    let _ = stream.set_priority(Priority::CONTROL.value());
    while let Some(Outgoing::Message(message)) = queue.recv().await {
        let _first = turns.wait(Priority::CONTROL);
        match timeout(MESSAGE_PROGRESS, wire::write(&mut stream, &message)).await {
            Ok(Ok(())) => {}
            // A message beyond its bounds is not sent; the rest are.
            Ok(Err(LinkError::Frame(error))) => tracing::error!(%error, "a message was not sent"),
            Ok(Err(_)) | Err(_) => {
                let _ = stream.reset(VarInt::from_u32(0));
                return;
            }
        }
    }
    let _ = stream.finish();
    // Until the peer has it, the stream must not be dropped.
    let _ = timeout(FAREWELL, stream.stopped()).await;
}

/// Reads messages until the peer ends, breaks the protocol or is gone.
async fn listen(mut stream: RecvStream, heard: mpsc::Sender<Result<Message, LinkError>>, pulse: Pulse) {
    loop {
        let message = match wire::read::<Message>(&mut stream).await {
            Ok(Some(Message::Hello(_))) => Err(LinkError::Frame(FrameError::Malformed)),
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(LinkError::Lost(ClosedBy::Peer("no more messages".to_owned()))),
            Err(error) => Err(error),
        };
        pulse.beat();
        let over = message.is_err();
        let unheard = heard.send(message).await.is_err();
        if over || unheard {
            return;
        }
    }
}
