//! Frames on QUIC streams.

use crate::error::LinkError;
use protocol::frame::{self, Frame, LENGTH_BYTES};
use quinn::{ReadError, ReadExactError, RecvStream, SendStream, WriteError};

/// Reads one frame; nothing at the end of the stream.
pub(crate) async fn read<F: Frame>(stream: &mut RecvStream) -> Result<Option<F>, LinkError> {
    let mut length = [0; LENGTH_BYTES];
    match stream.read_exact(&mut length).await {
        Ok(()) => {}
        Err(ReadExactError::FinishedEarly(0)) => return Ok(None),
        Err(error) => return Err(read_exact_error(error)),
    }
    let mut body = vec![0; frame::body_length::<F>(length)?];
    stream.read_exact(&mut body).await.map_err(read_exact_error)?;
    Ok(Some(frame::decode(&body)?))
}

/// Writes one frame.
pub(crate) async fn write<F: Frame>(stream: &mut SendStream, value: &F) -> Result<(), LinkError> {
    let bytes = frame::encode(value)?;
    stream.write_chunk(bytes).await.map_err(write_error)
}

fn read_exact_error(error: ReadExactError) -> LinkError {
    match error {
        ReadExactError::FinishedEarly(_) => LinkError::CutShort,
        ReadExactError::ReadError(error) => read_error(error),
    }
}

pub(crate) fn read_error(error: ReadError) -> LinkError {
    match error {
        ReadError::ConnectionLost(error) => LinkError::Lost(error.into()),
        ReadError::Reset(_)
        | ReadError::ClosedStream
        | ReadError::IllegalOrderedRead
        | ReadError::ZeroRttRejected => LinkError::Reset,
    }
}

pub(crate) fn write_error(error: WriteError) -> LinkError {
    match error {
        WriteError::ConnectionLost(error) => LinkError::Lost(error.into()),
        WriteError::Stopped(_) | WriteError::ClosedStream | WriteError::ZeroRttRejected => LinkError::Reset,
    }
}
