//! Places of servers that cannot find a free one by themselves.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Returns `bind` with a port that no socket has.
///
/// # Errors
///
/// There is no free port.
pub fn free_address(bind: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::bind(bind)?.local_addr()
}

/// Returns the name that stands for an address, for peers that have names instead of addresses.
#[must_use]
pub fn name_of(address: SocketAddr) -> String {
    format!("apus-compare-{}", address.port())
}
