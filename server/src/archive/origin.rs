//! Asking the origin's archive what a title is.

use crate::store::{described, lengths};
use bytes::Bytes;
use media::{Hash, Manifest, Quality, TitleName};
use protocol::node::{Door, Held};
use protocol::{Message, Open, Refusal, StreamRequest, UserId, Visit};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tracing::debug;
use transport::{Connection, Endpoint, Expect, Inbox};

/// How long the archive may take: less than the patience of whoever waits.
const LOOK: Duration = Duration::from_secs(2);

/// A title of the archive.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) title: TitleName,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) bytes: Bytes,
    pub(crate) hash: Hash,
    /// A connection by which its chunks may be asked for.
    pub(crate) line: Line,
}

/// A connection on which a title is open for copying.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) connection: Connection,
    /// Open as long as the connection is.
    _inbox: Inbox,
}

impl Looked {
    /// What the machine has to know of it.
    pub(crate) fn held(&self) -> Held {
        let layers = media::Layer::first(self.manifest.top_quality().layers()).collect();
        let lengths = Arc::new(lengths(&self.manifest));
        Held { archived: true, ..described(&self.manifest, self.bytes.len(), self.hash, layers, lengths) }
    }
}

/// Asks for a title, and keeps the connection.
///
/// # Errors
/// What the archive says, or [`Refusal::Upstream`] if nothing usable in time.
pub(crate) async fn look(endpoint: &Endpoint, title: TitleName, from: Door) -> Result<Looked, Refusal> {
    timeout(LOOK, ask(endpoint, title, from)).await.unwrap_or(Err(Refusal::Upstream))
}

/// Connects and opens the title. With what it is in this version.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    title: &TitleName,
    from: Door,
) -> Result<(Line, u64, Hash), Refusal> {
    let unreached = |error: transport::DialError| {
        debug!(%error, "the archive is not reached");
        Refusal::Upstream
    };
    let (connection, mut inbox) = endpoint.dial(from.address, from.peer, LOOK).await.map_err(unreached)?;
    let open = Open::new(1, title.clone(), Quality(u8::MAX), UserId(0), Visit::Copy);
    connection.send(Message::Open(open)).map_err(|_| Refusal::Upstream)?;
    let opened = loop {
        match inbox.recv().await {
            Ok(Message::Opened(opened)) => break opened,
            Ok(Message::Refused { why, .. }) => return Err(why),
            Ok(_) => {}
            Err(_) => return Err(Refusal::Upstream),
        }
    };
    Ok((Line { connection, _inbox: inbox }, opened.manifest_length, opened.manifest_hash))
}

async fn ask(endpoint: &Endpoint, title: TitleName, from: Door) -> Result<Looked, Refusal> {
    let (line, length, hash) = dial(endpoint, &title, from).await?;
    if length > media::manifest::MAX_MANIFEST_BYTES {
        return Err(Refusal::Malformed);
    }
    let request = StreamRequest::Manifest(title.clone());
    let payload = line.connection.request(&request, Expect::Exactly { length, hash }, LOOK).await;
    let bytes = payload.map_err(|_| Refusal::Upstream)?.bytes;
    let manifest = Manifest::parse(&bytes).map_err(|_| Refusal::Damaged)?;
    if manifest.title != title {
        return Err(Refusal::Damaged);
    }
    Ok(Looked { title, manifest: Arc::new(manifest), bytes, hash, line })
}
