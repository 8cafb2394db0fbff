//! Messages as bytes: a 32-bit big-endian length, then a postcard body.
//!
//! Whatever bytes come in, the outcome is a message within its bounds or a
//! [`FrameError`]; nothing is allocated by a length that was only claimed.

use crate::message::{
    MAX_CONTACTS, MAX_MESSAGE_BYTES, MAX_SOURCES, MAX_STREAM_HEADER_BYTES, MAX_TITLES, Message, StreamReply,
    StreamRequest,
};
use crate::token::MAX_SIGNATURE_BYTES;
use bytes::Bytes;
use media::layer::MAX_LAYERS;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the length that precedes a body.
pub const LENGTH_BYTES: usize = 4;

/// Something that travels as one frame.
pub trait Frame: Serialize + DeserializeOwned {
    /// The longest body in bytes.
    const MAX_BYTES: usize;

    /// Whether every list is within its bound.
    fn is_bounded(&self) -> bool;
}

impl Frame for Message {
    const MAX_BYTES: usize = MAX_MESSAGE_BYTES;

    fn is_bounded(&self) -> bool {
        match self {
            Self::Titles(titles) => titles.len() <= MAX_TITLES,
            Self::Opened(opened) => {
                opened.sources.len() <= MAX_LAYERS
                    && opened.doors.len() <= MAX_SOURCES
                    && opened.sources.iter().all(|layer| layer.nodes.len() <= MAX_SOURCES)
            }
            Self::Agent(agent) => agent.is_bounded(),
            Self::Open(open) => {
                open.token.as_ref().is_none_or(|token| token.signature.len() <= MAX_SIGNATURE_BYTES)
            }
            Self::Contacts(contacts) => contacts.len() <= MAX_CONTACTS,
            Self::Status(status) => status.is_bounded(),
            Self::Query(query) => query.is_bounded(),
            Self::Reply(reply) => reply.is_bounded(),
            Self::ProxyStatus(status) => status.is_bounded(),
            Self::Hello(_)
            | Self::ListTitles
            | Self::Refused { .. }
            | Self::Close(_)
            | Self::Probe(_)
            | Self::Alive(_)
            | Self::Draining
            | Self::BackupIs { .. }
            | Self::DeliveryStart { .. }
            | Self::StillServed { .. }
            | Self::Elsewhere { .. }
            | Self::LayerAt { .. }
            | Self::Position { .. }
            | Self::Publish { .. }
            | Self::Unpublish { .. }
            | Self::Done { .. }
            | Self::AskStatus
            | Self::Neighbour(_) => true,
        }
    }
}

impl Frame for StreamRequest {
    const MAX_BYTES: usize = MAX_STREAM_HEADER_BYTES;

    fn is_bounded(&self) -> bool {
        true
    }
}

impl Frame for StreamReply {
    const MAX_BYTES: usize = MAX_STREAM_HEADER_BYTES;

    fn is_bounded(&self) -> bool {
        true
    }
}

/// Length and body of `value`.
///
/// # Errors
/// The value breaks a bound of its own; nothing is sent.
pub fn encode<F: Frame>(value: &F) -> Result<Bytes, FrameError> {
    if !value.is_bounded() {
        return Err(FrameError::List);
    }
    let mut frame = postcard::to_extend(value, vec![0; LENGTH_BYTES]).map_err(|_| FrameError::Malformed)?;
    let body = frame.len().saturating_sub(LENGTH_BYTES);
    let length = u32::try_from(body).ok().filter(|_| body <= F::MAX_BYTES);
    let length = length.ok_or(FrameError::TooLong { length: body, max: F::MAX_BYTES })?;
    for (place, byte) in frame.iter_mut().zip(length.to_be_bytes()) {
        *place = byte;
    }
    Ok(frame.into())
}

/// The bytes that `value` takes as a frame, its length included.
pub fn length<F: Frame>(value: &F) -> u64 {
    let body = postcard::experimental::serialized_size(value).unwrap_or(0);
    u64::try_from(body.saturating_add(LENGTH_BYTES)).unwrap_or(u64::MAX)
}

/// How many bytes of body follow this length.
///
/// # Errors
/// No body is empty or longer than `F` allows.
pub fn body_length<F: Frame>(length: [u8; LENGTH_BYTES]) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    match length {
        0 => Err(FrameError::Malformed),
        n if n > F::MAX_BYTES => Err(FrameError::TooLong { length, max: F::MAX_BYTES }),
        n => Ok(n),
    }
}

/// Reads one body, all of it.
///
/// # Errors
/// Too long, not a message, bytes left over, or a list beyond its bound.
pub fn decode<F: Frame>(body: &[u8]) -> Result<F, FrameError> {
    if body.len() > F::MAX_BYTES {
        return Err(FrameError::TooLong { length: body.len(), max: F::MAX_BYTES });
    }
    let (value, rest) = postcard::take_from_bytes::<F>(body).map_err(|_| FrameError::Malformed)?;
    if !rest.is_empty() {
        return Err(FrameError::Leftover(rest.len()));
    }
    if value.is_bounded() { Ok(value) } else { Err(FrameError::List) }
}

/// Why bytes are no message, or a message cannot be sent. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds what this kind of frame may have.
    #[error("a frame of {length} bytes where {max} are allowed")]
    TooLong {
        /// The length that was claimed or reached.
        length: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The body says nothing in this version.
    #[error("a frame that is no message of this version")]
    Malformed,
    /// The message ends before its frame does.
    #[error("a frame with {0} bytes behind its message")]
    Leftover(usize),
    /// A list has more entries than its bound.
    #[error("a list longer than its bound")]
    List,
}

#[cfg(test)]
#[path = "frame/tests.rs"]
mod tests;
