//! Everybody who dials in, as one queue of happenings.
//!
//! Nodes and proxies both live from it: connections are shaken hands with,
//! numbered and listened to here, each by a task of its own, and a request is
//! read before it is told, so that nobody who dawdles holds up the others.

use crate::connection::{Connection, Inbox};
use crate::endpoint::{Arrival, Endpoint};
use crate::error::ClosedBy;
use crate::responder::{PendingRequest, Responder};
use protocol::{LinkId, Message, StreamId, StreamRequest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tracing::debug;

/// How long a handshake with its greeting, or a request, may take to arrive.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Handshakes under way at once; more are turned away.
const MAX_HANDSHAKES: usize = 512;
/// Happenings that wait to be heard.
const QUEUE: usize = 1024;

/// Something that came in from outside.
#[derive(Debug)]
pub enum Happening {
    /// Somebody connected, and waits for its greeting to be answered.
    Linked {
        /// The connection's number.
        link: LinkId,
        /// The connection.
        connection: Connection,
        /// Our address as this peer sees it.
        here: SocketAddr,
    },
    /// A message on the control stream.
    Heard {
        /// From whom.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// A request on a stream of its own.
    Asked {
        /// From whom.
        link: LinkId,
        /// The stream's number.
        stream: StreamId,
        /// What for.
        request: StreamRequest,
        /// The way to answer.
        responder: Responder,
    },
    /// The connection is over.
    Gone {
        /// Which.
        link: LinkId,
        /// Whether the peer ended it by itself.
        parted: bool,
    },
}

/// The queue of happenings at one endpoint.
#[derive(Debug)]
pub struct Host {
    happenings: mpsc::Receiver<Happening>,
    door: mpsc::WeakSender<Happening>,
    own: SocketAddr,
    next_stream: Arc<AtomicU64>,
    next_link: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
struct Door {
    happenings: mpsc::Sender<Happening>,
    own: SocketAddr,
    next_stream: Arc<AtomicU64>,
    next_link: Arc<AtomicU64>,
}

impl Host {
    /// Starts to accept. `own` is the address that is bound. Must be called
    /// inside a tokio runtime.
    pub fn start(endpoint: Endpoint, own: SocketAddr) -> Self {
        let (sender, happenings) = mpsc::channel(QUEUE);
        let (next_stream, next_link) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let door = sender.downgrade();
        let shared = (Arc::clone(&next_stream), Arc::clone(&next_link));
        let accepting = Door { happenings: sender, own, next_stream: shared.0, next_link: shared.1 };
        tokio::spawn(accept(endpoint, accepting));
        Self { happenings, door, own, next_stream, next_link }
    }

    /// Listens to a connection that was dialled as to those that are accepted;
    /// the number that it has from now on. Nothing if the endpoint is closed.
    pub fn attend(&self, connection: Connection, inbox: Inbox) -> Option<LinkId> {
        let door = Door {
            happenings: self.door.upgrade()?,
            own: self.own,
            next_stream: Arc::clone(&self.next_stream),
            next_link: Arc::clone(&self.next_link),
        };
        let link = door.number();
        tokio::spawn(async move { door.attend_to_end(link, connection, inbox).await });
        Some(link)
    }

    /// The next happening; nothing once the endpoint is closed and all is told.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Happening> {
        self.happenings.recv().await
    }
}

async fn accept(endpoint: Endpoint, door: Door) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    loop {
        let arrival = tokio::select! {
            arrival = endpoint.accept() => arrival,
            () = door.happenings.closed() => None,
        };
        let Some(arrival) = arrival else { return };
        // Dropping an arrival tells it that it is refused.
        let Ok(room) = Arc::clone(&handshakes).try_acquire_owned() else { continue };
        let door = door.clone();
        let link = door.number();
        tokio::spawn(async move {
            let from = arrival.remote_address();
            if let Err(error) = door.receive(link, arrival, room).await {
                debug!(%from, %error, "an arrival was turned away");
            }
        });
    }
}

impl Door {
    async fn receive(
        self,
        link: LinkId,
        arrival: Arrival,
        room: tokio::sync::OwnedSemaphorePermit,
    ) -> Result<(), crate::AcceptError> {
        let (connection, inbox) = arrival.establish(INTRODUCTION).await?;
        drop(room);
        let here = match connection.local_address() {
            Some(address) => SocketAddr::new(address.ip(), self.own.port()),
            None => self.own,
        };
        let linked = Happening::Linked { link, connection: connection.clone(), here };
        if self.happenings.send(linked).await.is_ok() {
            self.attend_to_end(link, connection, inbox).await;
        }
        Ok(())
    }

    fn number(&self) -> LinkId {
        LinkId(self.next_link.fetch_add(1, Ordering::Relaxed))
    }

    async fn attend_to_end(&self, link: LinkId, connection: Connection, inbox: Inbox) {
        self.attend(link, &connection, inbox).await;
        let parted = matches!(connection.close_reason(), Some(ClosedBy::Peer(_)));
        // If nobody hears it, nobody holds anything for this link either.
        let _ = self.happenings.send(Happening::Gone { link, parted }).await;
    }

    /// Passes on what one peer says and asks, until it is gone.
    async fn attend(&self, link: LinkId, connection: &Connection, mut inbox: Inbox) {
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Ok(message) => {
                        if self.happenings.send(Happening::Heard { link, message }).await.is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        debug!(?link, %error, "a control stream ended");
                        connection.close("the control stream ended");
                        return;
                    }
                },
                pending = connection.accept_request() => match pending {
                    Ok(pending) => {
                        tokio::spawn(self.clone().read(link, pending));
                    }
                    Err(_) => return,
                },
            }
        }
    }

    /// Reads one request; at most as many at once as a peer may have streams.
    async fn read(self, link: LinkId, pending: PendingRequest) {
        match pending.read(INTRODUCTION).await {
            Ok((request, responder)) => {
                let stream = StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed));
                // If nobody hears it, dropping the responder resets the stream.
                let _ = self.happenings.send(Happening::Asked { link, stream, request, responder }).await;
            }
            Err(error) => debug!(?link, %error, "a stream brought no request"),
        }
    }
}
