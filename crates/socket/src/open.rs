//! How is a socket prepared, and what if it cannot be had?

use std::io;
use std::net::SocketAddr;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::Socket;

use crate::address::Family;

/// Why a driver could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {address}: {source}")]
pub struct OpenError {
    /// What was tried: `bind`, say.
    pub operation: &'static str,
    /// The address that was to be listened on.
    pub address: SocketAddr,
    /// What the system answered.
    pub source: io::Error,
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

/// Asks for buffers of so many bytes: with privileges if the usual way gives less. That it gives less is no
/// error; what was got says the socket.
pub(crate) fn size_buffers(socket: &Socket, receive: usize, send: usize) {
    // The system doubles what it is asked for, to make up for its own structures: socket(7).
    let is_less = |got: io::Result<usize>, asked: usize| got.is_ok_and(|got| got < 2 * asked);
    let _ = socket.set_recv_buffer_size(receive);
    if is_less(socket.recv_buffer_size(), receive) {
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, receive);
    }
    let _ = socket.set_send_buffer_size(send);
    if is_less(socket.send_buffer_size(), send) {
        let _ = sockopt::set_socket_send_buffer_size_force(socket, send);
    }
}

/// Sets "don't fragment" on all packets; a fragment that is lost costs the whole packet.
///
/// # Errors
///
/// The system refuses it.
pub(crate) fn forbid_fragments(socket: &Socket, family: Family) -> io::Result<()> {
    let v4 = sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO);
    match family {
        Family::V4 => v4?,
        // The IPv4 option is for IPv4 peers, which this socket may or may not have.
        Family::V6 => sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?,
    }
    Ok(())
}
