//! Addresses for servers that cannot choose a free address themselves.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Returns `bind` with a free port.
///
/// # Errors
///
/// No port is free.
pub fn free_address(bind: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::bind(bind)?.local_addr()
}

/// Returns the name derived from an address, for peers that use names instead of addresses.
#[must_use]
pub fn name_of(address: SocketAddr) -> String {
    format!("apus-compare-{}", address.port())
}
