//! A UDP socket with room for bursts.

use crate::error::EndpointError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use tracing::info;

/// What is asked of the kernel for each buffer of a socket, in bytes: with 4 MB
/// a thousand viewers can dial within a second.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// How much of [`SOCKET_BUFFER_BYTES`] this kernel grants, tried on a socket
/// that is closed again.
///
/// # Errors
/// UDP sockets cannot be opened here.
pub fn granted_socket_buffer() -> io::Result<usize> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    Ok(ask_for(&socket, SOCKET_BUFFER_BYTES))
}

/// Binds `address` and asks the kernel for `buffer` bytes each way. Less is
/// granted where `net.core.rmem_max` and `wmem_max` say so: that is told, not
/// refused. The unspecified IPv6 address stands for every address of both
/// families, or for every IPv4 address where there is no IPv6.
pub(crate) fn bind(address: SocketAddr, buffer: usize) -> Result<UdpSocket, EndpointError> {
    let failed = |source| EndpointError::Bind { address, source };
    let both = address.is_ipv6() && address.ip().is_unspecified();
    let socket = match open(address) {
        Err(_) if both => open((Ipv4Addr::UNSPECIFIED, address.port()).into()),
        opened => opened,
    };
    let socket = socket.map_err(failed)?;
    let granted = ask_for(&socket, buffer);
    if granted < buffer {
        info!(asked = buffer, granted, "small socket buffers; net.core.rmem_max and wmem_max allow no more");
    }
    Ok(socket.into())
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Asks for buffers of this size and returns the smaller one granted.
fn ask_for(socket: &Socket, bytes: usize) -> usize {
    // A refusal shows in what is granted.
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
    let granted = socket.recv_buffer_size().unwrap_or(0).min(socket.send_buffer_size().unwrap_or(0));
    // Linux reports twice what it grants, for its own bookkeeping.
    if cfg!(target_os = "linux") { granted / 2 } else { granted }
}
