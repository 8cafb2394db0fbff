//! The sending side of a stream.

use crate::connection::Pulse;
use crate::error::{ClosedBy, LinkError};
use crate::priority::Priority;
use crate::turns::Turns;
use crate::wire;
use bytes::Bytes;
use media::{Hash, PackedManifest};
use protocol::frame::{self, FrameError};
use protocol::{Refusal, StreamReply, StreamRequest};
use quinn::{RecvStream, SendStream, VarInt, WriteError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A receiver that does not take a piece for so long, while nobody goes before it,
/// has stopped watching.
const PROGRESS: Duration = Duration::from_secs(10);
/// A piece in bytes; at 100 kbit/s it takes 5 s.
const PIECE: usize = 64 * 1024;

/// A stream the peer opened, before it is known what it asks for.
#[derive(Debug)]
pub struct PendingRequest {
    send: SendStream,
    receive: RecvStream,
    pulse: Pulse,
    turns: Turns,
}

impl PendingRequest {
    pub(crate) fn new(send: SendStream, receive: RecvStream, pulse: Pulse, turns: Turns) -> Self {
        Self { send, receive, pulse, turns }
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
        let (priority, without_slot) = match &request {
            StreamRequest::Manifest(_) => (Priority::manifest(), Priority::manifest()),
            StreamRequest::Chunk(chunk) => {
                let due = self.pulse.age() + Duration::from_millis(chunk.deadline_ms.into());
                let layer = chunk.id.layer;
                (Priority::chunk(layer, due), Priority::chunk_without_slot(layer, due))
            }
        };
        // It fails only if the peer stopped already, which the next write tells.
        let _ = self.send.set_priority(priority.value());
        let responder = Responder {
            stream: Some(self.send),
            turns: self.turns,
            priority,
            without_slot,
            header: None,
            left: 0,
            form: Form::Whole,
        };
        Ok((request, responder))
    }
}

/// Answers one request. Dropped before its end it resets the stream, so that a
/// short payload is never mistaken for a whole one.
#[derive(Debug)]
pub struct Responder {
    stream: Option<SendStream>,
    turns: Turns,
    priority: Priority,
    without_slot: Priority,
    /// Waits for the first piece, to travel in the same packet.
    header: Option<Bytes>,
    left: u64,
    form: Form,
}

/// What a granted payload is to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// All that was asked for.
    #[default]
    Whole,
    /// The first half of the chunk.
    Half,
    /// A trial of the receiver's line, and not to be shown.
    Trial,
    /// All of the chunk, of which only the first half is to be shown.
    HalfTrial,
}

impl Responder {
    /// What follows is this, and not all that was asked for.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// Announces what follows.
    ///
    /// # Errors
    /// Only if it cannot be framed.
    pub fn grant(&mut self, length: u64, hash: Hash) -> Result<(), ServeError> {
        let reply = match self.form {
            Form::Whole => StreamReply::Granted { length, hash },
            Form::Half => StreamReply::Half { length, hash },
            Form::Trial => StreamReply::Trial { length, hash },
            Form::HalfTrial => StreamReply::HalfTrial { length, hash },
        };
        self.announce(&reply, length)
    }

    fn announce(&mut self, reply: &StreamReply, length: u64) -> Result<(), ServeError> {
        self.header = Some(frame::encode(reply).map_err(LinkError::Frame)?);
        self.left = length;
        Ok(())
    }

    /// Sends a manifest; to be ended as any other payload.
    pub async fn give(&mut self, manifest: PackedManifest) -> Result<(), ServeError> {
        let PackedManifest { bytes, length, hash } = manifest;
        let packed = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.announce(&StreamReply::Packed { packed, length, hash }, packed)?;
        self.send(bytes).await
    }

    /// Sends after everything of this connection that has a slot.
    pub fn go_last(&mut self) {
        self.priority = self.without_slot;
        if let Some(stream) = &self.stream {
            // As where the priority was set first.
            let _ = stream.set_priority(self.priority.value());
        }
    }

    /// Sends the next bytes of what was granted; waits while the receiver is
    /// busy, but not for ever, and while others of this connection go first.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), ServeError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(ServeError::Length)?;
        let stream = self.stream.as_mut().ok_or(ServeError::Cancelled)?;
        let mut rest = [self.header.take().unwrap_or_default(), bytes];
        let mut turn = self.turns.wait(self.priority);
        // Time in which it had the turn and too little was taken of it.
        let (mut patience, mut taken) = (PROGRESS, 0_usize);
        while rest.iter().any(|part| !part.is_empty()) {
            tokio::select! {
                biased;
                () = turn.begins() => {}
                // Only who has the turn would hear of it by writing.
                _ = stream.stopped() => return Err(ServeError::Cancelled),
            }
            let began = Instant::now();
            tokio::select! {
                // Writes some, or waits and has written nothing.
                written = timeout(patience, stream.write_chunks(&mut rest)) => {
                    taken = taken.saturating_add(written.map_err(|_| ServeError::Slow)??.bytes);
                }
                () = turn.ends() => {}
            }
            patience = patience.saturating_sub(began.elapsed());
            if taken >= PIECE {
                (patience, taken) = (PROGRESS, 0);
            }
        }
        Ok(())
    }

    /// Ends the payload, which must be complete, and waits until the receiver has
    /// all of it.
    ///
    /// # Errors
    /// The receiver wants no more of it, or is gone.
    pub async fn deliver(mut self) -> Result<(), ServeError> {
        let mut stream = self.end().await?;
        stream.finish().map_err(|_| ServeError::Cancelled)?;
        match stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(ServeError::Cancelled),
        }
    }

    /// Ends the payload, which must be complete.
    pub async fn finish(mut self) -> Result<(), ServeError> {
        let mut stream = self.end().await?;
        stream.finish().map_err(|_| ServeError::Cancelled)
    }

    async fn end(&mut self) -> Result<SendStream, ServeError> {
        if self.header.is_some() {
            self.send(Bytes::new()).await?;
        }
        if self.left > 0 {
            return Err(ServeError::Length);
        }
        self.stream.take().ok_or(ServeError::Cancelled)
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
