//! One connection to one source: dialled, opened for the title, listened to.

use crate::opening::Granted;
use bytes::Bytes;
use media::Layer;
use protocol::player::{FetchFailure, RequestId, SourceId};
use protocol::{Message, NodeAddress, Open, Opened, Part, PeerId, Refusal, SessionId, Visit};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use transport::{Connection, DialError, DialWhy, Endpoint, Inbox, Knock, Line};

/// What the tasks of the network tell the task that owns the machine.
#[derive(Debug)]
pub(crate) enum News {
    /// A connection stands and the title is open there.
    Up { source: SourceId, generation: u64, connection: Connection, opened: Box<Opened> },
    /// A dial failed, or a connection ended.
    Down { source: SourceId, generation: u64 },
    /// What became of a search for service that began at a door.
    Sought { door: SourceId, found: Option<Box<Granted>> },
    /// A message on the control stream.
    Said { source: SourceId, generation: u64, message: Message },
    /// What became of a request.
    Fetched {
        request: RequestId,
        source: SourceId,
        block: u32,
        layer: Layer,
        result: Result<(Bytes, Part), FetchFailure>,
    },
}

/// What may be under way on a connection before its line has proved wider. Little,
/// because each source has a connection of its own and all share one line; it
/// takes a few measurements to stretch to any line.
pub(crate) const FIRST_WINDOW: u32 = 16 * 1024;
/// The time between two looks at a line.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Looks that make one measurement of the line: a tenth of a second.
const LOOKS: u32 = 5;
/// The window holds what the line carries in this many measurements, 400 ms: it
/// stretches by itself wherever a round trip is shorter than that.
const MEASUREMENTS: u64 = 4;

/// How much may be under way: as little as keeps the line busy, so that what is
/// asked for next does not wait behind what was asked for before.
#[derive(Debug)]
struct LineWidth {
    window: u64,
    looks: u32,
    bytes: u64,
}

impl Default for LineWidth {
    fn default() -> Self {
        Self { window: FIRST_WINDOW.into(), looks: 0, bytes: 0 }
    }
}

impl LineWidth {
    /// Counts what came since the last look; tells of a wider window.
    fn look(&mut self, came: u64) -> Option<u64> {
        self.bytes = self.bytes.saturating_add(came);
        self.looks += 1;
        if self.looks < LOOKS {
            return None;
        }
        let wanted = self.bytes.saturating_mul(MEASUREMENTS);
        (self.looks, self.bytes) = (0, 0);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        Some(wanted)
    }
}

/// Widens the line before somebody owns it, as long as this is polled.
pub(crate) async fn stretch(line: Line) -> std::convert::Infallible {
    let (mut width, mut seen) = (LineWidth::default(), line.received_bytes());
    loop {
        sleep(LOOK).await;
        let bytes = line.received_bytes();
        if let Some(window) = width.look(bytes.saturating_sub(std::mem::replace(&mut seen, bytes))) {
            line.widen(window);
        }
    }
}

/// How often a node that does not serve us yet is asked on one connection.
const MOST_ASKED: u32 = 5;
/// The pause between.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long a door may take to be reached, and then to greet with nothing else
/// coming from it: others wait for it.
const GREETING: Duration = Duration::from_secs(1);
/// How long the end of a session may take to be said.
const FAREWELL: Duration = Duration::from_millis(200);

/// Fewer bytes than this between two looks can be acknowledgements alone.
const PAYLOAD_DATAGRAM: u64 = 600;

/// A connection that stands, as the owner of the machine sees it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection,
    /// The session there.
    pub(crate) session: SessionId,
    /// The task that listens; it ends when this is dropped.
    _listener: Stopper,
    heard: Instant,
    bytes: u64,
    /// `bytes` at the last look, whether or not it told of any.
    looked: u64,
    line: LineWidth,
}

impl Link {
    pub(crate) fn new(connection: Connection, session: SessionId, listener: Stopper) -> Self {
        let (heard, bytes) = (connection.last_heard(), connection.received_bytes());
        Self {
            connection,
            session,
            _listener: listener,
            heard,
            bytes,
            looked: bytes,
            line: LineWidth::default(),
        }
    }

    /// Bytes that came since this last told of some, if anything was heard: a
    /// message, a piece of a payload, or a datagram with part of one. The last
    /// counts because behind a deep queue a lost packet holds up everything that
    /// could be read for a whole round trip, while more keeps coming; mere
    /// acknowledgements are shorter and prove less.
    pub(crate) fn news(&mut self) -> Option<u64> {
        let (heard, bytes) = (self.connection.last_heard(), self.connection.received_bytes());
        let came = bytes.saturating_sub(std::mem::replace(&mut self.looked, bytes));
        if let Some(window) = self.line.look(came) {
            self.connection.widen(window);
        }
        if heard <= self.heard && came < PAYLOAD_DATAGRAM {
            return None;
        }
        self.heard = heard;
        let fresh = bytes.saturating_sub(self.bytes);
        self.bytes = bytes;
        Some(fresh)
    }
}

/// Ends a task when it is dropped.
#[derive(Debug)]
pub(crate) struct Stopper(pub(crate) AbortHandle);

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whom to dial, and what for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) source: SourceId,
    pub(crate) generation: u64,
    pub(crate) address: SocketAddr,
    pub(crate) peer: Option<PeerId>,
    pub(crate) open: Open,
    pub(crate) within: Duration,
}

/// Why a source cannot be asked.
#[derive(Debug)]
pub(crate) enum CallError {
    Dial(DialError),
    Refused(PeerId, Refusal),
    NoAnswer(PeerId),
}

/// Dials and listens until the connection ends.
pub(crate) fn call(endpoint: Endpoint, call: Call, news: mpsc::Sender<News>) -> Stopper {
    let (source, generation) = (call.source, call.generation);
    let task = tokio::spawn(async move {
        match connect(&endpoint, call.address, call.peer, &call.open, call.within).await {
            Ok((connection, inbox, opened)) => {
                let up = News::Up { source, generation, connection, opened: Box::new(opened) };
                if news.send(up).await.is_ok() {
                    listen(inbox, source, generation, news).await;
                }
            }
            Err(error) => {
                tracing::debug!(address = %call.address, ?error, "a source cannot be reached");
                // If nobody listens the film is over.
                let _ = news.send(News::Down { source, generation }).await;
            }
        }
    });
    Stopper(task.abort_handle())
}

/// Listens on a connection that stands already.
pub(crate) fn attend(inbox: Inbox, source: SourceId, generation: u64, news: mpsc::Sender<News>) -> Stopper {
    Stopper(tokio::spawn(listen(inbox, source, generation, news)).abort_handle())
}

async fn listen(mut inbox: Inbox, source: SourceId, generation: u64, news: mpsc::Sender<News>) {
    loop {
        // Silence is judged by the machine; the transport ends what is idle.
        let said = match inbox.recv().await {
            Ok(message) => News::Said { source, generation, message },
            Err(error) => {
                tracing::debug!(source = source.0, %error, "a connection ended");
                News::Down { source, generation }
            }
        };
        let over = matches!(said, News::Down { .. });
        if news.send(said).await.is_err() || over {
            return;
        }
    }
}

/// Dials, greets and opens the title, each `within` this time. The title is asked
/// for right behind the greeting.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    address: SocketAddr,
    peer: Option<PeerId>,
    open: &Open,
    within: Duration,
) -> Result<(Connection, Inbox, Opened), CallError> {
    let greeted = async {
        let mut knock = endpoint.knock(address, peer, within).await?;
        knock.say(&Message::Open(open.clone()), within).await;
        knock.greeted(within).await
    };
    let late = || Err(DialError { address, why: DialWhy::Timeout });
    let greeted = timeout(within, greeted).await.unwrap_or_else(|_| late());
    let (connection, mut inbox) = greeted.map_err(CallError::Dial)?;
    let node = connection.peer().peer;
    let mut asked = 0;
    loop {
        asked += 1;
        match hear(&connection, &mut inbox, open, within).await {
            Ok(Answer::Opened(opened)) => return Ok((connection, inbox, *opened)),
            // Who sent us here may be quicker with its word to us than to this node.
            Err(CallError::Refused(_, Refusal::NotServing)) if asked < MOST_ASKED => sleep(ASK_AGAIN).await,
            Err(error) => return Err(error),
            // Who attaches was sent here already.
            Ok(Answer::Elsewhere(_)) => return Err(CallError::Refused(node, Refusal::NotServing)),
        }
        connection.send(Message::Open(open.clone())).map_err(|_| CallError::NoAnswer(node))?;
    }
}

/// Seeks service at a door that was knocked at: the session is that of the door, or
/// of the node that it names. The door's connection stands as long as `door` does.
pub(crate) async fn seek(
    endpoint: &Endpoint,
    mut knock: Knock,
    address: SocketAddr,
    open: &Open,
    within: Duration,
    door: &mut Option<(Connection, Inbox)>,
) -> Result<Granted, CallError> {
    knock.say(&Message::Open(open.clone()), GREETING).await;
    let line = knock.line();
    let greeted = tokio::select! {
        greeted = knock.greeted(within) => greeted,
        () = silence(line) => Err(DialError { address, why: DialWhy::Timeout }),
    };
    let (connection, mut inbox) = greeted.map_err(CallError::Dial)?;
    let peer = connection.peer().peer;
    match hear(&connection, &mut inbox, open, within).await? {
        Answer::Opened(opened) => {
            Ok(Granted { connection, inbox, opened: *opened, node: NodeAddress { peer, address } })
        }
        Answer::Elsewhere(node) => {
            *door = Some((connection, inbox));
            let attach = Open { visit: Visit::Attach, ..open.clone() };
            let (connection, inbox, opened) =
                connect(endpoint, node.address, Some(node.peer), &attach, within).await?;
            Ok(Granted { connection, inbox, opened, node })
        }
    }
}

/// Waits until nothing has come for as long as a greeting may take. On a narrow line
/// the greeting stands behind what was asked for with it.
async fn silence(line: Line) {
    let (mut heard, mut bytes) = (Instant::now(), line.received_bytes());
    while heard.elapsed() < GREETING {
        sleep(LOOK).await;
        let now = line.received_bytes();
        if now.saturating_sub(std::mem::replace(&mut bytes, now)) >= PAYLOAD_DATAGRAM {
            heard = Instant::now();
        }
    }
}

/// Seeks service anew at one door; there is always an answer.
pub(crate) fn seek_anew(endpoint: Endpoint, call: Call, news: mpsc::Sender<News>) -> Stopper {
    let task = tokio::spawn(async move {
        let Call { source: door, address, peer, open, within, .. } = call;
        let found = async {
            let knock = endpoint.knock(address, peer, GREETING).await.map_err(CallError::Dial)?;
            seek(&endpoint, knock, address, &open, within, &mut None).await
        };
        let found = found.await.inspect_err(|error| {
            tracing::debug!(%address, ?error, "no service is found there");
        });
        // If nobody listens the film is over.
        let _ = news.send(News::Sought { door, found: found.ok().map(Box::new) }).await;
    });
    Stopper(task.abort_handle())
}

/// What a node answers to who wants to watch.
enum Answer {
    Opened(Box<Opened>),
    Elsewhere(NodeAddress),
}

/// The answer to what was asked by `open`.
async fn hear(
    connection: &Connection,
    inbox: &mut Inbox,
    open: &Open,
    within: Duration,
) -> Result<Answer, CallError> {
    let node = connection.peer().peer;
    match timeout(within, answer(inbox, open.request)).await {
        Ok(Some(Ok(answer))) => Ok(answer),
        Ok(Some(Err(why))) => Err(CallError::Refused(node, why)),
        Ok(None) | Err(_) => Err(CallError::NoAnswer(node)),
    }
}

/// The answer to the request of this number; nothing if the connection ends.
async fn answer(inbox: &mut Inbox, number: u32) -> Option<Result<Answer, Refusal>> {
    loop {
        match inbox.recv().await.ok()? {
            Message::Opened(opened) if opened.request == number => {
                return Some(Ok(Answer::Opened(Box::new(opened))));
            }
            Message::Elsewhere { request, base, .. } if request == number => {
                return Some(Ok(Answer::Elsewhere(base)));
            }
            Message::Refused { request, why } if request == number => return Some(Err(why)),
            _ => {}
        }
    }
}

/// Closes the session at a node, and gives the word a moment to leave.
pub(crate) async fn farewell(connection: Connection, session: SessionId) {
    if connection.send(Message::Close(session)).is_ok() {
        // A node that hangs hears of it when it wakes, or misses us.
        let _ = timeout(FAREWELL, connection.part()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_line_upwards_only() {
        let mut line = LineWidth::default();
        // 200 kbit/s: 500 bytes between two looks, which 16 KiB hold for two thirds of a second.
        assert_eq!((0..50).filter_map(|_| line.look(500)).count(), 0);
        // 40 Mbit/s.
        let wider: Vec<u64> = (0..10).filter_map(|_| line.look(100_000)).collect();
        assert_eq!(wider, [2_000_000]);
        assert_eq!((0..50).filter_map(|_| line.look(0)).count(), 0);
    }
}
