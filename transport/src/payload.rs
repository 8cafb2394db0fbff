//! The receiving side of a stream: a payload, whole and checked.

use crate::connection::Pulse;
use crate::error::{LinkError, RequestError};
use crate::responder::Form;
use crate::wire;
use bytes::{BufMut as _, Bytes, BytesMut};
use media::{Hash, Hasher, PackedManifest};
use protocol::StreamReply;
use quinn::RecvStream;
use tokio::io::AsyncReadExt as _;

/// What is allocated ahead for a payload of which only the sender knows the
/// length, in bytes.
const TRUSTED_AHEAD: usize = 256 * 1024;
/// The longest piece that is handed on, in bytes.
const PIECE: usize = 64 * 1024;

/// What a payload must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly this, as a manifest or an opening reply states.
    Exactly {
        /// Length in bytes.
        length: u64,
        /// BLAKE3 of the bytes.
        hash: Hash,
    },
    /// A chunk or its first half, as the manifest states their lengths and hashes.
    Either {
        /// The chunk.
        whole: (u64, Hash),
        /// Its first half.
        half: (u64, Hash),
    },
    /// Whatever matches its own hash and has at most this many bytes.
    AtMost(u64),
}

/// A payload that came whole and matches its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes.
    pub bytes: Bytes,
    /// Their BLAKE3.
    pub hash: Hash,
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes, {:?})", self.bytes.len(), self.hash)
    }
}

/// A payload that was granted and arrives. Dropping it tells the peer to stop.
#[derive(Debug)]
pub struct PayloadReader {
    stream: RecvStream,
    length: u64,
    hash: Hash,
    form: Form,
    /// Length of the manifest that is packed.
    unpacked: Option<u64>,
    got: u64,
    hasher: Hasher,
    /// Pieces are split from it, so that all of a payload lies in one place.
    buffer: BytesMut,
    pulse: Pulse,
}

impl PayloadReader {
    pub(crate) async fn start(
        mut stream: RecvStream,
        expect: Expect,
        pulse: Pulse,
    ) -> Result<Self, RequestError> {
        let reply = wire::read::<StreamReply>(&mut stream).await?;
        pulse.beat();
        let mut travels = None;
        let (length, hash, form) = match reply {
            Some(StreamReply::Granted { length, hash }) => (length, hash, Form::Whole),
            Some(StreamReply::Half { length, hash }) => (length, hash, Form::Half),
            Some(StreamReply::Trial { length, hash }) => (length, hash, Form::Trial),
            Some(StreamReply::HalfTrial { length, hash }) => (length, hash, Form::HalfTrial),
            Some(StreamReply::Packed { packed, length, hash }) => {
                if packed > PackedManifest::most(length) {
                    return Err(RequestError::Unexpected);
                }
                travels = Some(packed);
                (length, hash, Form::Whole)
            }
            Some(StreamReply::Refused(why)) => return Err(RequestError::Refused(why)),
            None => return Err(RequestError::Reset),
        };
        let ahead = match expect {
            Expect::Exactly { length: right, hash: right_hash } if (length, hash) != (right, right_hash) => {
                return Err(RequestError::Unexpected);
            }
            Expect::Either { whole, half } if whole != (length, hash) && half != (length, hash) => {
                return Err(RequestError::Unexpected);
            }
            Expect::Exactly { .. } | Expect::Either { .. } => {
                usize::try_from(length).unwrap_or(TRUSTED_AHEAD)
            }
            Expect::AtMost(max) if length > max => return Err(RequestError::TooLong { length, max }),
            Expect::AtMost(_) => usize::try_from(length).unwrap_or(TRUSTED_AHEAD).min(TRUSTED_AHEAD),
        };
        let unpacked = travels.map(|_| length);
        let length = travels.unwrap_or(length);
        let ahead = ahead.min(usize::try_from(length).unwrap_or(TRUSTED_AHEAD));
        let buffer = BytesMut::with_capacity(ahead);
        Ok(Self { stream, length, hash, form, unpacked, got: 0, hasher: Hasher::new(), buffer, pulse })
    }

    /// The length announced of what travels.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What it is, as the sender says.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The hash announced.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The next piece, whatever has arrived up to 64 KiB; nothing once all are
    /// here **and** their hash is right. Until then no piece is to be believed.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, RequestError> {
        if self.got < self.length {
            self.read_some().await?;
            let piece = self.buffer.split().freeze();
            self.hasher.update(&piece);
            return Ok(Some(piece));
        }
        self.expect_end().await?;
        if self.hasher.finish() == self.hash { Ok(None) } else { Err(RequestError::Corrupt) }
    }

    /// All of it, checked, and unpacked if it travelled packed.
    pub async fn collect(self) -> Result<Payload, RequestError> {
        let (hash, unpacked) = (self.hash, self.unpacked);
        let bytes = self.collect_unchecked().await?;
        if let Some(length) = unpacked {
            let packed = PackedManifest { bytes, length, hash };
            let unpacking = tokio::task::spawn_blocking(move || packed.unpack());
            let bytes = unpacking.await.ok().and_then(Result::ok).ok_or(RequestError::Corrupt)?;
            return Ok(Payload { bytes, hash });
        }
        if Hash::of(&bytes) == hash { Ok(Payload { bytes, hash }) } else { Err(RequestError::Corrupt) }
    }

    /// All of it, of the right length but not checked against its hash: the
    /// caller does that.
    pub async fn collect_unchecked(mut self) -> Result<Bytes, RequestError> {
        while self.got < self.length {
            self.read_some().await?;
        }
        self.expect_end().await?;
        Ok(self.buffer.freeze())
    }

    /// Reads to the end and keeps nothing: what a measurement of the network
    /// alone needs. Returns the number of bytes.
    pub async fn discard(mut self) -> Result<u64, RequestError> {
        while let Some(piece) = self.stream.read_chunk(usize::MAX, true).await.map_err(wire::read_error)? {
            self.count(piece.bytes.len())?;
        }
        if self.got == self.length {
            Ok(self.got)
        } else {
            Err(RequestError::Length { want: self.length, got: self.got })
        }
    }

    /// Appends what has arrived to the buffer, at least one byte.
    async fn read_some(&mut self) -> Result<(), RequestError> {
        let left = usize::try_from(self.length.saturating_sub(self.got)).unwrap_or(usize::MAX);
        let room = left.min(PIECE);
        self.buffer.reserve(room);
        let read = self.stream.read_buf(&mut (&mut self.buffer).limit(room)).await.map_err(io_error)?;
        if read == 0 {
            return Err(RequestError::Length { want: self.length, got: self.got });
        }
        self.pulse.beat();
        self.count(read)
    }

    async fn expect_end(&mut self) -> Result<(), RequestError> {
        match self.stream.read_chunk(PIECE, true).await.map_err(wire::read_error)? {
            None => Ok(()),
            Some(more) => self.count(more.bytes.len()),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), RequestError> {
        self.got = self.got.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.got > self.length {
            return Err(RequestError::Length { want: self.length, got: self.got });
        }
        Ok(())
    }
}

/// What quinn wrapped for tokio's reading traits.
fn io_error(error: std::io::Error) -> RequestError {
    match error.downcast::<quinn::ReadError>() {
        Ok(error) => wire::read_error(error).into(),
        Err(_) => LinkError::Reset.into(),
    }
}
