//! Ports that stay free until a test binds them, also if it does so again later.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Returns an address whose port is free: below the range from which the system takes ports for
/// sockets that ask for any, and at a place that depends on this process. No other test gets the
/// port while its first server ends and its second one starts.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let offset = std::process::id() * 16 + u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::from(([127, 0, 0, 1], 10_000 + (offset % 20_000) as u16));
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
