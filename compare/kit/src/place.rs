//! Places of servers that cannot find a free one by themselves.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Returns an address on the loopback interface that no socket has.
///
/// # Errors
///
/// There is none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Returns the name that stands for an address, for peers that have names instead of addresses.
#[must_use]
pub fn name_of(address: SocketAddr) -> String {
    format!("apus-compare-{}", address.port())
}
