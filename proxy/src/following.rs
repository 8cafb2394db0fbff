//! Sending to one client: a whole chunk, or one that grows.

use crate::block::{Block, Follower, Growing, Step};
use bytes::Bytes;
use media::Hash;
use protocol::proxy::Outcome;
use std::time::Duration;
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
    /// This, as it comes.
    Growing { length: u64, hash: Hash, follower: Follower },
}

impl Source {
    pub(crate) fn bytes(bytes: Bytes, hash: Hash) -> Self {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Self::Whole(Block { bytes, length, hash })
    }

    pub(crate) fn growing(growing: &Growing) -> Self {
        Self::Growing { length: growing.length, hash: growing.hash, follower: growing.follow() }
    }
}

/// Sends it, and says how it went.
pub(crate) async fn send(source: Source, responder: Responder) -> Outcome {
    let sending = async {
        match source {
            Source::Whole(block) => whole(block, responder).await,
            Source::Growing { length, hash, follower } => growing(length, hash, follower, responder).await,
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

/// Grants with the first piece, so that what nobody delivers can be refused by
/// its name. A chunk that turns out wrong half-way is reset: dropping the
/// responder does that.
async fn growing(
    length: u64,
    hash: Hash,
    mut follower: Follower,
    mut responder: Responder,
) -> Result<Outcome, ServeError> {
    let mut granted = false;
    loop {
        let step = tokio::select! {
            step = follower.step() => step,
            () = responder.cancelled() => return Err(ServeError::Cancelled),
        };
        match step {
            Step::Piece(piece) if piece.is_empty() => {}
            Step::Piece(piece) => {
                if !granted {
                    responder.grant(length, hash)?;
                    granted = true;
                }
                responder.send(piece).await?;
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
