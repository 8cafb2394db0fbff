//! How a node stands, asked as whoever runs the network.

use super::StageError;
use protocol::message::OPERATOR;
use protocol::status::ProxyStatus;
use protocol::{Message, NodeStatus, PeerId};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;
use transport::{Authority, Connection, Endpoint, EndpointConfig, Identity, Inbox};

/// How long a node may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// A conversation with one node.
#[derive(Debug)]
pub struct Inquiry {
    connection: Connection,
    inbox: Inbox,
    // The connection's port.
    _endpoint: Endpoint,
}

impl Inquiry {
    /// Finds the node of this name, with the network's keys.
    ///
    /// # Errors
    /// The keys cannot be used, or the node is not reached.
    pub async fn of(keys: &Path, peer: PeerId, address: SocketAddr) -> Result<Self, StageError> {
        let failed = |why: &dyn std::fmt::Display| StageError::Ask { peer, why: why.to_string() };
        let operator: PeerId = OPERATOR.parse().map_err(|why| failed(&why))?;
        let identity = Identity::obtain(keys, operator).map_err(|why| failed(&why))?;
        let authority = Authority::load(keys).map_err(|why| failed(&why))?;
        let config = EndpointConfig::operator(&identity, authority);
        let endpoint = Endpoint::open(&config).map_err(|why| failed(&why))?;
        let dialled = endpoint.dial(address, Some(peer), DEADLINE).await;
        let (connection, inbox) = dialled.map_err(|why| failed(&why))?;
        Ok(Self { connection, inbox, _endpoint: endpoint })
    }

    /// How it stands now.
    ///
    /// # Errors
    /// It does not answer, or not with this.
    pub async fn status(&mut self) -> Result<NodeStatus, StageError> {
        self.ask(|message| match message {
            Message::Status(status) => Some(*status),
            _ => None,
        })
        .await
    }

    /// How it stands now, if it is a proxy.
    ///
    /// # Errors
    /// It does not answer, or not with this.
    pub async fn proxy_status(&mut self) -> Result<ProxyStatus, StageError> {
        self.ask(|message| match message {
            Message::ProxyStatus(status) => Some(*status),
            _ => None,
        })
        .await
    }

    async fn ask<T>(&mut self, take: impl Fn(Message) -> Option<T>) -> Result<T, StageError> {
        let peer = self.connection.peer().peer;
        let failed = |why: &dyn std::fmt::Display| StageError::Ask { peer, why: why.to_string() };
        self.connection.send(Message::AskStatus).map_err(|why| failed(&why))?;
        let answer = async {
            loop {
                match self.inbox.recv().await {
                    Ok(Message::Refused { why, .. }) => return Err(failed(&why)),
                    Ok(message) => {
                        if let Some(answer) = take(message) {
                            return Ok(answer);
                        }
                    }
                    Err(why) => return Err(failed(&why)),
                }
            }
        };
        timeout(DEADLINE, answer).await.unwrap_or_else(|_| Err(failed(&"no answer in time")))
    }
}
