//! Two peers on loopback that believe the same authority.

use media::{ChunkId, Hash, Layer};
use protocol::{ChunkRequest, Message, PeerId, Role, StreamRequest};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use transport::{Connection, Endpoint, EndpointConfig, Inbox, Keys};

/// Long enough for a busy machine; never waited for when things go right.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Rig {
    pub(crate) keys: Keys,
    pub(crate) folder: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::init(folder.path()).unwrap();
        Self { keys, folder }
    }

    pub(crate) fn member(&self, name: &str, role: Role) -> Endpoint {
        let identity = self.keys.identity(peer(name)).unwrap();
        Endpoint::open(&EndpointConfig::member(role, &identity, self.keys.authority().unwrap())).unwrap()
    }

    pub(crate) fn viewer(&self) -> Endpoint {
        Endpoint::open(&EndpointConfig::viewer(peer("viewer"), self.keys.authority().unwrap())).unwrap()
    }

    /// A node that greets one peer and hands the connection back.
    pub(crate) fn one_guest(&self, name: &str) -> (SocketAddr, JoinHandle<(Connection, Inbox)>) {
        let node = self.member(name, Role::Node);
        let address = node.local_address().unwrap();
        let guest = tokio::spawn(async move {
            let (connection, inbox) = node.accept().await.unwrap().establish(PATIENCE).await.unwrap();
            connection.send(Message::Hello(node.hello())).unwrap();
            (connection, inbox)
        });
        (address, guest)
    }

    /// A viewer connected to a node of this name.
    pub(crate) async fn pair(&self, name: &str) -> (Side, Side) {
        let (address, guest) = self.one_guest(name);
        let viewer = self.viewer().dial(address, Some(peer(name)), PATIENCE).await.unwrap();
        (viewer, guest.await.unwrap())
    }
}

pub(crate) type Side = (Connection, Inbox);

pub(crate) fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

pub(crate) fn chunk(block: u32) -> StreamRequest {
    let id = ChunkId { title: "film".parse().unwrap(), block, layer: Layer::BASE };
    StreamRequest::Chunk(ChunkRequest::whole(id, 1000))
}

/// Bytes that differ everywhere, and their hash.
pub(crate) fn payload(length: usize) -> (bytes::Bytes, Hash) {
    let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n * n % 251).unwrap()).collect();
    let hash = Hash::of(&bytes);
    (bytes.into(), hash)
}
