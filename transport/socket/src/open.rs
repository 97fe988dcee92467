//! Preparation of sockets, common to both drivers.

use std::io;
use std::net::SocketAddr;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::Socket;

use crate::address::Family;

/// Why a driver could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {address}: {source}")]
pub struct OpenError {
    /// The failed operation, for example `bind`.
    pub operation: &'static str,
    /// The address to listen on.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

/// Requests buffers of these sizes in bytes, with privileges if the usual request grants less. A
/// smaller buffer is no error; the socket reports the granted size.
pub(crate) fn size_buffers(socket: &Socket, receive: usize, send: usize) {
    // The system doubles the requested size, to account for its own structures: socket(7).
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

/// Sets "don't fragment" on all packets: the loss of one fragment would lose the whole packet.
///
/// # Errors
///
/// Any error of setsockopt(2).
pub(crate) fn forbid_fragments(socket: &Socket, family: Family) -> io::Result<()> {
    let v4 = sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO);
    match family {
        Family::V4 => v4?,
        // The IPv4 option is for IPv4 peers; not every socket supports these.
        Family::V6 => sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?,
    }
    Ok(())
}
