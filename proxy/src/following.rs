//! Sending to one client: a whole chunk, or one that grows.

use crate::block::{Block, Follower, Growing, Step};
use crate::store::Title;
use media::{Half, Hash};
use protocol::proxy::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::debug;
use transport::{Responder, ServeError};

/// A payload that is not through after this long is given up.
const PAYLOAD: Duration = Duration::from_mins(2);

/// What is to be sent on a stream.
#[derive(Debug)]
pub(crate) enum Source {
    /// All of this.
    Whole(Block),
    /// A manifest.
    Manifest(Arc<Title>),
    /// This, as it comes: a chunk, or the first half of one.
    Growing { length: u64, hash: Hash, first: bool, follower: Follower },
}

impl Source {
    /// The first half of a chunk: the bytes are those of the whole.
    pub(crate) fn first(self, half: Half) -> Option<Self> {
        let Half { length, hash, .. } = half;
        Some(match self {
            Self::Whole(block) => {
                let first = usize::try_from(length).ok().filter(|first| *first <= block.bytes.len())?;
                Self::Whole(Block { bytes: block.bytes.slice(..first), length, hash })
            }
            Self::Manifest(_) => return None,
            Self::Growing { follower, .. } => Self::Growing { length, hash, first: true, follower },
        })
    }

    pub(crate) fn growing(growing: &Growing) -> Self {
        let (length, hash) = (growing.length, growing.hash);
        Self::Growing { length, hash, first: false, follower: growing.follow() }
    }
}

/// Sends it, and says how it went.
pub(crate) async fn send(source: Source, responder: Responder) -> Outcome {
    let sending = async {
        match source {
            Source::Whole(block) => whole(block, responder).await,
            Source::Manifest(title) => give(title, responder).await,
            Source::Growing { length, hash, first, follower } => {
                growing((length, hash, first), follower, responder).await
            }
        }
    };
    match timeout(PAYLOAD, sending).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            debug!(%error, "a payload was given up");
            Outcome::GivenUp
        }
        Err(_) => Outcome::GivenUp,
    }
}

async fn whole(block: Block, mut responder: Responder) -> Result<Outcome, ServeError> {
    responder.grant(block.length, block.hash)?;
    responder.send(block.bytes).await?;
    responder.deliver().await?;
    Ok(Outcome::Sent { bytes: block.length })
}

async fn give(title: Arc<Title>, mut responder: Responder) -> Result<Outcome, ServeError> {
    let packing = spawn_blocking(move || title.packed());
    let manifest = packing.await.map_err(|_| ServeError::Cancelled)?;
    let bytes = u64::try_from(manifest.bytes.len()).unwrap_or(u64::MAX);
    responder.give(manifest).await?;
    responder.deliver().await?;
    Ok(Outcome::Sent { bytes })
}

/// Grants with the first piece, so that what nobody delivers can be refused by
/// its name. A chunk that turns out wrong half-way is reset: dropping the
/// responder does that.
async fn growing(
    (length, hash, first): (u64, Hash, bool),
    mut follower: Follower,
    mut responder: Responder,
) -> Result<Outcome, ServeError> {
    let (mut granted, mut left) = (false, length);
    loop {
        let step = tokio::select! {
            step = follower.step() => step,
            () = responder.cancelled() => return Err(ServeError::Cancelled),
        };
        match step {
            Step::Piece(piece) if piece.is_empty() => {}
            Step::Piece(mut piece) => {
                if !granted {
                    responder.grant(length, hash)?;
                    granted = true;
                }
                piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left = left.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                responder.send(piece).await?;
                if first && left == 0 {
                    // The rest is not waited for.
                    responder.deliver().await?;
                    return Ok(Outcome::Sent { bytes: length });
                }
            }
            Step::Whole => {
                responder.deliver().await?;
                return Ok(Outcome::Sent { bytes: length });
            }
            Step::Broken(_) if granted => return Ok(Outcome::Unavailable),
            Step::Broken(why) => {
                responder.refuse(why).await?;
                return Ok(Outcome::Unavailable);
            }
        }
    }
}
