//! From an address to a title that is ready to be played.

use crate::link::{CallError, seek};
use crate::options::{PlayError, PlayOptions};
use media::manifest::MAX_MANIFEST_BYTES;
use media::{Manifest, ManifestError};
use protocol::message::Progress;
use protocol::{NodeAddress, Open, Opened, Refusal, StreamRequest, UserId, Visit};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use transport::{Connection, Endpoint, Expect, Inbox};

/// How long a node may take to greet, and then to open the title.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after one address the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// How long a manifest may take.
const MANIFEST_PATIENCE: Duration = Duration::from_secs(20);

/// A session at the first node that granted one.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
    pub(crate) opened: Opened,
    pub(crate) node: NodeAddress,
}

/// Opens the title at the first address that finds service for it. Addresses are
/// dialled one beside the other after a moment, but service is sought at one at
/// a time: two searches for one viewer would find it two places. If none grants
/// it, the first one's answer is the error.
pub(crate) async fn grant(
    endpoint: &Endpoint,
    options: &PlayOptions,
    open: &Open,
) -> Result<Granted, PlayError> {
    let mut attempts = JoinSet::new();
    for ((peer, address), place) in options.addresses.iter().copied().zip(0_u32..) {
        let endpoint = endpoint.clone();
        attempts.spawn(async move {
            sleep(STAGGER.saturating_mul(place)).await;
            (place, address, endpoint.dial(address, peer, PATIENCE).await)
        });
    }
    let mut first: Option<(u32, CallError)> = None;
    while let Some(attempt) = attempts.join_next().await {
        let (place, address, dialled) = attempt.map_err(|error| PlayError::Task(error.to_string()))?;
        let granted = match dialled {
            Ok(door) => seek(endpoint, door, address, open, PATIENCE).await,
            Err(error) => Err(CallError::Dial(error)),
        };
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

/// Fetches the manifest and checks that it is that of the title asked for.
pub(crate) async fn manifest(granted: &Granted, options: &PlayOptions) -> Result<Arc<Manifest>, PlayError> {
    let Opened { manifest_length: length, manifest_hash: hash, .. } = granted.opened;
    if length > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLong.into());
    }
    let request = StreamRequest::Manifest(options.title.clone());
    let expect = Expect::Exactly { length, hash };
    let payload = granted.connection.request(&request, expect, MANIFEST_PATIENCE).await?;
    let parse = tokio::task::spawn_blocking(move || Manifest::parse(&payload.bytes));
    let manifest = parse.await.map_err(|error| PlayError::Task(error.to_string()))??;
    if manifest.title != options.title {
        return Err(ManifestError::Inconsistent(format!("it is that of {}", manifest.title)).into());
    }
    Ok(Arc::new(manifest))
}
