//! The sending side of a stream.

use crate::connection::Pulse;
use crate::error::{ClosedBy, LinkError};
use crate::priority::Priority;
use crate::wire;
use bytes::Bytes;
use media::Hash;
use protocol::frame::{self, FrameError};
use protocol::{Refusal, StreamReply, StreamRequest};
use quinn::{RecvStream, SendStream, VarInt, WriteError};
use std::time::Duration;
use tokio::time::timeout;

/// A receiver that takes no byte for so long has stopped watching.
const PROGRESS: Duration = Duration::from_secs(10);
/// Bytes written before progress is asked again; at 100 kbit/s these take 5 s.
const PIECE: usize = 64 * 1024;

/// A stream the peer opened, before it is known what it asks for.
#[derive(Debug)]
pub struct PendingRequest {
    send: SendStream,
    receive: RecvStream,
    pulse: Pulse,
}

impl PendingRequest {
    pub(crate) fn new(send: SendStream, receive: RecvStream, pulse: Pulse) -> Self {
        Self { send, receive, pulse }
    }

    /// Reads the request, at most `within` this time.
    pub async fn read(mut self, within: Duration) -> Result<(StreamRequest, Responder), ServeError> {
        let request = match timeout(within, wire::read::<StreamRequest>(&mut self.receive)).await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) => return Err(ServeError::Cancelled),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(ServeError::Slow),
        };
        self.pulse.beat();
        let priority = match &request {
            StreamRequest::Manifest(_) => Priority::manifest(),
            StreamRequest::Chunk(chunk) => {
                let due = self.pulse.age() + Duration::from_millis(chunk.deadline_ms.into());
                Priority::chunk(chunk.id.layer, due)
            }
        };
        // It fails only if the peer stopped already, which the next write tells.
        let _ = self.send.set_priority(priority.value());
        Ok((request, Responder { stream: Some(self.send), header: None, left: 0 }))
    }
}

/// Answers one request. Dropped before its end it resets the stream, so that a
/// short payload is never mistaken for a whole one.
#[derive(Debug)]
pub struct Responder {
    stream: Option<SendStream>,
    /// Waits for the first piece, to travel in the same packet.
    header: Option<Bytes>,
    left: u64,
}

impl Responder {
    /// Announces what follows.
    ///
    /// # Errors
    /// Only if it cannot be framed.
    pub fn grant(&mut self, length: u64, hash: Hash) -> Result<(), ServeError> {
        self.header = Some(frame::encode(&StreamReply::Granted { length, hash }).map_err(LinkError::Frame)?);
        self.left = length;
        Ok(())
    }

    /// Sends the next bytes of what was granted; waits while the receiver is
    /// busy, but not for ever.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<(), ServeError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(ServeError::Length)?;
        let stream = self.stream.as_mut().ok_or(ServeError::Cancelled)?;
        if let Some(header) = self.header.take() {
            let first = bytes.split_to(bytes.len().min(PIECE));
            let mut both = [header, first];
            timeout(PROGRESS, stream.write_all_chunks(&mut both)).await.map_err(|_| ServeError::Slow)??;
        }
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            timeout(PROGRESS, stream.write_chunk(piece)).await.map_err(|_| ServeError::Slow)??;
        }
        Ok(())
    }

    /// Ends the payload, which must be complete.
    pub async fn finish(mut self) -> Result<(), ServeError> {
        if self.header.is_some() {
            self.send(Bytes::new()).await?;
        }
        if self.left > 0 {
            return Err(ServeError::Length);
        }
        let mut stream = self.stream.take().ok_or(ServeError::Cancelled)?;
        stream.finish().map_err(|_| ServeError::Cancelled)
    }

    /// Says no. Nothing may have been sent before.
    pub async fn refuse(mut self, why: Refusal) -> Result<(), ServeError> {
        let mut stream = self.stream.take().ok_or(ServeError::Cancelled)?;
        let written = timeout(PROGRESS, wire::write(&mut stream, &StreamReply::Refused(why))).await;
        written.map_err(|_| ServeError::Slow)??;
        stream.finish().map_err(|_| ServeError::Cancelled)
    }

    /// Resolves when the receiver wants no more of it.
    pub async fn cancelled(&self) {
        if let Some(stream) = &self.stream {
            let _ = stream.stopped().await;
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // It fails only if the peer stopped before.
            let _ = stream.reset(VarInt::from_u32(1));
        }
    }
}

/// A payload that was not sent whole; the stream was reset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// The receiver wants no more of it.
    #[error("the receiver does not want it any more")]
    Cancelled,
    /// The receiver takes nothing, or asks for nothing.
    #[error("the receiver makes no progress")]
    Slow,
    /// What was sent is not what was granted.
    #[error("more or less was sent than granted")]
    Length,
    /// The receiver broke the protocol.
    #[error("the receiver broke the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The connection is over.
    #[error(transparent)]
    Lost(ClosedBy),
}

impl From<LinkError> for ServeError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Frame(error) => Self::Frame(error),
            LinkError::CutShort | LinkError::Reset => Self::Cancelled,
            LinkError::Timeout => Self::Slow,
            LinkError::Lost(closed) => Self::Lost(closed),
        }
    }
}

impl From<WriteError> for ServeError {
    fn from(error: WriteError) -> Self {
        wire::write_error(error).into()
    }
}
