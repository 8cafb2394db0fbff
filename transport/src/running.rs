//! A node or proxy that serves, for whoever started it.

use crate::endpoint::Endpoint;
use protocol::PeerId;
use serde::Serialize;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Something that serves. Dropping it ends it at once.
#[derive(Debug)]
pub struct Running {
    peer: PeerId,
    address: SocketAddr,
    endpoint: Endpoint,
    drain: watch::Sender<bool>,
    driver: JoinHandle<()>,
}

/// What a node or proxy says on standard output when it can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true.
    pub ready: bool,
    /// Its name.
    pub peer: PeerId,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Running {
    /// Starts the task that `drive` makes; it is given what turns true with the
    /// order to stop. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not tell the address that was bound.
    pub fn start<F>(
        peer: PeerId,
        endpoint: Endpoint,
        drive: impl FnOnce(SocketAddr, watch::Receiver<bool>) -> F,
    ) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = endpoint.local_address()?;
        let (drain, ordered) = watch::channel(false);
        let driver = tokio::spawn(drive(address, ordered));
        Ok(Self { peer, address, endpoint, drain, driver })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its name.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The line for whoever started it.
    pub fn ready(&self) -> Ready {
        Ready { ready: true, peer: self.peer, address: self.address }
    }

    /// Serves until `stop` resolves, then [drains](Self::drain).
    pub async fn until(self, stop: impl Future<Output = ()>) {
        stop.await;
        self.drain().await;
    }

    /// Tells every peer, lets open requests finish within the time that the
    /// configuration gives them, and ends.
    pub async fn drain(mut self) {
        // The driver ends by itself: at once, or when the time is up.
        let _ = self.drain.send(true);
        let _ = (&mut self.driver).await;
        self.endpoint.close().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.driver.abort();
        self.endpoint.close_now();
    }
}
