//! Bare QUIC, to measure the transport against: quinn as it comes, with the
//! same certificates and the same socket buffers, and nothing else. A byte on a
//! stream asks for the one payload there is.

use crate::error::{ClosedBy, DialError, DialWhy, EndpointError};
use crate::keys::{ANYBODY, Authority, Identity};
use crate::{socket, tls};
use bytes::Bytes;
use quinn::{ClientConfig, Connection, ServerConfig, TokioRuntime};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A server that sends the same bytes to everybody. Ends when dropped.
#[derive(Debug)]
pub struct BareServer {
    address: SocketAddr,
    endpoint: quinn::Endpoint,
    accepting: JoinHandle<()>,
}

/// A connection to a [`BareServer`].
#[derive(Debug, Clone)]
pub struct BareClient {
    connection: Connection,
}

fn endpoint(server: Option<ServerConfig>) -> Result<quinn::Endpoint, EndpointError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = socket::bind(address, socket::SOCKET_BUFFER_BYTES)?;
    quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
        .map_err(|source| EndpointError::Bind { address, source })
}

impl BareServer {
    /// Serves `payload` on a free port of loopback.
    pub fn start(authority: &Authority, identity: &Identity, payload: Bytes) -> Result<Self, EndpointError> {
        let server = ServerConfig::with_crypto(tls::server(authority, identity)?);
        let endpoint = endpoint(Some(server))?;
        let bound = endpoint.local_addr();
        let address = bound
            .map_err(|source| EndpointError::Bind { address: (Ipv4Addr::LOCALHOST, 0).into(), source })?;
        let arrivals = endpoint.clone();
        let accepting = tokio::spawn(async move {
            while let Some(incoming) = arrivals.accept().await {
                let payload = payload.clone();
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        attend(connection, payload).await;
                    }
                });
            }
        });
        Ok(Self { address, endpoint, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.endpoint.close(0_u32.into(), b"measured");
    }
}

async fn attend(connection: Connection, payload: Bytes) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let payload = payload.clone();
        tokio::spawn(async move {
            // A client that is gone ends the connection and with it this task.
            let _ = receive.read_chunk(16, true).await;
            if send.write_chunk(payload).await.is_ok() {
                let _ = send.finish();
            }
        });
    }
}

impl BareClient {
    /// Connects from a port of its own.
    pub async fn dial(authority: &Authority, address: SocketAddr) -> Result<Self, DialError> {
        let failed = |why| DialError { address, why };
        let endpoint = tls::client(authority, None)
            .and_then(|tls| Ok((ClientConfig::new(tls), endpoint(None)?)))
            .map_err(|error| failed(DialWhy::Address(error.to_string())));
        let (config, endpoint) = endpoint?;
        let dialling = endpoint.connect_with(config, address, ANYBODY);
        let dialling = dialling.map_err(|error| failed(DialWhy::Address(error.to_string())))?;
        let connection = dialling.await.map_err(|error| failed(ClosedBy::from(error).into()))?;
        Ok(Self { connection })
    }

    /// Asks once and discards what comes; the number of bytes, or nothing if the
    /// connection broke.
    pub async fn discard(&self) -> Option<u64> {
        let (mut send, mut receive) = self.connection.open_bi().await.ok()?;
        send.write_all(b"?").await.ok()?;
        send.finish().ok()?;
        let mut bytes = 0_u64;
        while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.ok()? {
            bytes = bytes.saturating_add(u64::try_from(chunk.bytes.len()).ok()?);
        }
        Some(bytes)
    }
}
