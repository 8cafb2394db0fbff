//! A UDP socket with room for bursts.

use crate::error::EndpointError;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use tracing::warn;

/// Binds `address` and asks the kernel for `buffer` bytes each way. Less is
/// granted where `net.core.rmem_max` and `wmem_max` say so: that is told, not
/// refused.
pub(crate) fn bind(address: SocketAddr, buffer: usize) -> Result<UdpSocket, EndpointError> {
    let failed = |source| EndpointError::Bind { address, source };
    let socket =
        Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    // A refusal shows as a short buffer below.
    let _ = socket.set_recv_buffer_size(buffer);
    let _ = socket.set_send_buffer_size(buffer);
    socket.bind(&address.into()).map_err(failed)?;
    let (receive, send) = (socket.recv_buffer_size().unwrap_or(0), socket.send_buffer_size().unwrap_or(0));
    // Linux reports twice what it grants, for its own bookkeeping.
    let granted = receive.min(send) / 2;
    if granted < buffer {
        warn!(
            asked = buffer,
            granted, "the kernel granted small socket buffers; raise net.core.rmem_max and net.core.wmem_max"
        );
    }
    Ok(socket.into())
}
