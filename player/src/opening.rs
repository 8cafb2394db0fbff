//! From an address to a title that is ready to be played.

use crate::link::{CallError, seek, stretch};
use crate::options::{PlayError, PlayOptions};
use media::manifest::MAX_MANIFEST_BYTES;
use media::{Manifest, ManifestError};
use protocol::message::Progress;
use protocol::{NodeAddress, Open, Opened, PeerId, Refusal, StreamRequest, UserId, Visit};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use transport::{Connection, Endpoint, Expect, Inbox, Payload, RequestError};

/// How long a node may take to greet, and then to open the title.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after one address the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// How long a manifest may take.
const MANIFEST_PATIENCE: Duration = Duration::from_secs(20);
/// How long one asked for early of another node than the granting one may still take.
const EARLY_PATIENCE: Duration = Duration::from_millis(500);

/// A session at the first node that granted one.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
    pub(crate) opened: Opened,
    pub(crate) node: NodeAddress,
}

/// The manifest, asked of the first door right behind the greeting: it comes while
/// the door looks for service. It may be that of another version.
#[derive(Debug)]
pub(crate) struct Early {
    manifest: JoinHandle<Result<Payload, RequestError>>,
    /// A door that serves somebody else stays open until the manifest is here.
    door: Option<(Connection, Inbox)>,
}

impl Drop for Early {
    fn drop(&mut self) {
        self.manifest.abort();
    }
}

/// Opens the title at the first address that finds service for it. Addresses are
/// dialled one beside the other after a moment, but service is sought at one at
/// a time: two searches for one viewer would find it two places. If none grants
/// it, the first one's answer is the error.
pub(crate) async fn grant(
    endpoint: &Endpoint,
    options: &PlayOptions,
    open: &Open,
) -> Result<(Granted, Early), PlayError> {
    let mut attempts = JoinSet::new();
    let search = Arc::new(Semaphore::new(1));
    for ((peer, address), place) in options.addresses.iter().copied().zip(0_u32..) {
        let (endpoint, open, search) = (endpoint.clone(), open.clone(), search.clone());
        attempts.spawn(async move {
            sleep(STAGGER.saturating_mul(place)).await;
            let granted = attempt(&endpoint, (peer, address), &open, &search).await;
            (place, granted)
        });
    }
    let mut first: Option<(u32, CallError)> = None;
    while let Some(attempt) = attempts.join_next().await {
        let (place, granted) = attempt.map_err(|error| PlayError::Task(error.to_string()))?;
        match granted {
            Ok(granted) => return Ok(granted),
            Err(error) if first.as_ref().is_none_or(|(before, _)| place < *before) => {
                first = Some((place, error));
            }
            Err(_) => {}
        }
    }
    Err(match first {
        None => PlayError::NoAddress,
        Some((_, CallError::Dial(error))) => PlayError::Dial(error),
        Some((_, CallError::Refused(node, why))) => refused(options, node, why),
        Some((_, CallError::NoAnswer(node))) => PlayError::NoAnswer(node),
    })
}

/// Knocks at one door, and seeks service there when nobody else does.
async fn attempt(
    endpoint: &Endpoint,
    (peer, address): (Option<PeerId>, SocketAddr),
    open: &Open,
    search: &Semaphore,
) -> Result<(Granted, Early), CallError> {
    let knock = endpoint.knock(address, peer, PATIENCE).await.map_err(CallError::Dial)?;
    // It is never closed.
    let turn = search.acquire().await;
    let request = StreamRequest::Manifest(open.title.clone());
    let manifest = knock.request(request, Expect::AtMost(MAX_MANIFEST_BYTES), MANIFEST_PATIENCE);
    let stretching = stretch(knock.line());
    let manifest = tokio::spawn(async move {
        tokio::select! {
            manifest = manifest => manifest,
            never = stretching => match never {},
        }
    });
    let mut early = Early { manifest, door: None };
    let granted = seek(endpoint, knock, address, open, PATIENCE, &mut early.door).await?;
    // Whoever still waits for a turn is to seek no more.
    turn.into_iter().for_each(SemaphorePermit::forget);
    Ok((granted, early))
}

/// The request by which a viewer enters the network. Connections are told apart
/// by themselves, so its number may always be the same.
pub(crate) fn entering(options: &PlayOptions) -> Result<Open, PlayError> {
    // Whoever knows the number can speak for the viewer.
    let user = getrandom::u64().map_err(|error| PlayError::Lot(error.to_string()))?;
    let progress = Progress { buffer: options.buffer, position: options.start, ..Progress::default() };
    let visit = Visit::Seek(progress);
    let open = Open::new(1, options.title.clone(), options.quality, UserId(user), visit);
    Ok(Open { token: options.token.clone(), ..open })
}

fn refused(options: &PlayOptions, node: protocol::PeerId, why: Refusal) -> PlayError {
    PlayError::Refused { node, title: options.title.clone(), why }
}

/// The manifest of the title that was opened: the one that was asked for early, or
/// if that does not come or is another one, the one that the granting node has.
pub(crate) async fn manifest(
    granted: &Granted,
    mut early: Early,
    options: &PlayOptions,
) -> Result<Arc<Manifest>, PlayError> {
    let Opened { manifest_length: length, manifest_hash: hash, .. } = granted.opened;
    if length > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLong.into());
    }
    let request = StreamRequest::Manifest(options.title.clone());
    let expect = Expect::Exactly { length, hash };
    let anew = granted.connection.request(&request, expect, MANIFEST_PATIENCE);
    let elsewhere = early.door.is_some();
    let coming = async {
        let came = (&mut early.manifest).await.ok().and_then(Result::ok);
        came.filter(|came| came.hash == hash)
    };
    tokio::pin!(coming, anew);
    let patience = if elsewhere { EARLY_PATIENCE } else { MANIFEST_PATIENCE };
    let payload = match timeout(patience, &mut coming).await {
        Ok(Some(payload)) => payload,
        Ok(None) => anew.await?,
        // The door may have died since.
        Err(_) => tokio::select! {
            Some(payload) = &mut coming => payload,
            asked = anew => match asked {
                Ok(payload) => payload,
                Err(error) => coming.await.ok_or(error)?,
            },
        },
    };
    let parse = tokio::task::spawn_blocking(move || Manifest::parse(&payload.bytes));
    let manifest = parse.await.map_err(|error| PlayError::Task(error.to_string()))??;
    if manifest.title != options.title {
        return Err(ManifestError::Inconsistent(format!("it is that of {}", manifest.title)).into());
    }
    Ok(Arc::new(manifest))
}
