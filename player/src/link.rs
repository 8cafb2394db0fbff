//! One connection to one source: dialled, opened for the title, listened to.

use bytes::Bytes;
use media::{Layer, TitleName};
use protocol::player::{FetchFailure, RequestId, SourceId};
use protocol::{Message, Open, Opened, PeerId, Refusal};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use transport::{Connection, DialError, Endpoint, Inbox};

/// What the tasks of the network tell the task that owns the machine.
#[derive(Debug)]
pub(crate) enum News {
    /// A connection stands and the title is open there.
    Up { source: SourceId, generation: u64, connection: Connection },
    /// A dial failed, or a connection ended.
    Down { source: SourceId, generation: u64 },
    /// A message on the control stream.
    Said { source: SourceId, generation: u64, message: Message },
    /// What became of a request.
    Fetched {
        request: RequestId,
        source: SourceId,
        block: u32,
        layer: Layer,
        result: Result<Bytes, FetchFailure>,
    },
}

/// A connection that stands, as the owner of the machine sees it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: Connection,
    /// The task that listens; it ends when this is dropped.
    _listener: Stopper,
    heard: Instant,
    bytes: u64,
}

impl Link {
    pub(crate) fn new(connection: Connection, listener: Stopper) -> Self {
        let (heard, bytes) = (connection.last_heard(), connection.received_bytes());
        Self { connection, _listener: listener, heard, bytes }
    }

    /// Bytes that came since this last told of some, if anything was heard.
    pub(crate) fn news(&mut self) -> Option<u64> {
        let heard = self.connection.last_heard();
        if heard <= self.heard {
            return None;
        }
        self.heard = heard;
        let bytes = self.connection.received_bytes();
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
            Ok((connection, inbox, _)) => {
                let up = News::Up { source, generation, connection };
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

/// Dials, greets and opens the title, all `within` this time.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    address: SocketAddr,
    peer: Option<PeerId>,
    open: &Open,
    within: Duration,
) -> Result<(Connection, Inbox, Opened), CallError> {
    let (connection, mut inbox) = endpoint.dial(address, peer, within).await.map_err(CallError::Dial)?;
    let node = connection.peer().peer;
    connection.send(Message::Open(open.clone())).map_err(|_| CallError::NoAnswer(node))?;
    match timeout(within, answer(&mut inbox, open.request)).await {
        Ok(Some(Ok(opened))) => Ok((connection, inbox, opened)),
        Ok(Some(Err(why))) => Err(CallError::Refused(node, why)),
        Ok(None) | Err(_) => Err(CallError::NoAnswer(node)),
    }
}

/// The answer to the request of this number; nothing if the connection ends.
async fn answer(inbox: &mut Inbox, number: u32) -> Option<Result<Opened, Refusal>> {
    loop {
        match inbox.recv().await.ok()? {
            Message::Opened(opened) if opened.request == number => return Some(Ok(opened)),
            Message::Refused { request, why } if request == number => return Some(Err(why)),
            _ => {}
        }
    }
}

/// The request to open a title; connections are told apart by themselves, so
/// its number may always be the same.
pub(crate) fn opening(title: &TitleName, quality: media::Quality) -> Open {
    Open { request: 1, title: title.clone(), quality }
}
