//! Everybody who dials in, as one queue of happenings.
//!
//! Nodes and proxies both live from it: connections are shaken hands with,
//! numbered and listened to here, each by a task of its own, and a request is
//! read before it is told, so that nobody who dawdles holds up the others.

use crate::connection::{Connection, Inbox};
use crate::endpoint::{Arrival, Endpoint};
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
    },
}

/// The queue of happenings at one endpoint.
#[derive(Debug)]
pub struct Host {
    happenings: mpsc::Receiver<Happening>,
}

#[derive(Clone, Debug)]
struct Door {
    happenings: mpsc::Sender<Happening>,
    own: SocketAddr,
    next_stream: Arc<AtomicU64>,
}

impl Host {
    /// Starts to accept. `own` is the address that is bound. Must be called
    /// inside a tokio runtime.
    pub fn start(endpoint: Endpoint, own: SocketAddr) -> Self {
        let (sender, happenings) = mpsc::channel(QUEUE);
        let door = Door { happenings: sender, own, next_stream: Arc::default() };
        tokio::spawn(accept(endpoint, door));
        Self { happenings }
    }

    /// The next happening; nothing once the endpoint is closed and all is told.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Happening> {
        self.happenings.recv().await
    }
}

async fn accept(endpoint: Endpoint, door: Door) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let mut next_link = 0;
    loop {
        let arrival = tokio::select! {
            arrival = endpoint.accept() => arrival,
            () = door.happenings.closed() => None,
        };
        let Some(arrival) = arrival else { return };
        // Dropping an arrival tells it that it is refused.
        let Ok(room) = Arc::clone(&handshakes).try_acquire_owned() else { continue };
        let link = LinkId(next_link);
        next_link = next_link.saturating_add(1);
        let door = door.clone();
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
            self.attend(link, &connection, inbox).await;
            // If nobody hears it, nobody holds anything for this link either.
            let _ = self.happenings.send(Happening::Gone { link }).await;
        }
        Ok(())
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
