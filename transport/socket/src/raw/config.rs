//! Settings of the raw IP driver.

use std::net::{Ipv4Addr, SocketAddr};

/// Settings of a [`crate::Raw`] driver. The default suits a host in a datacenter.
///
/// ```
/// use apus_socket::RawConfig;
///
/// let config = RawConfig { max_ip_packet: 1500, ..RawConfig::bound_to(([10, 0, 0, 1], 4000).into()) };
/// assert!(config.priorities);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawConfig {
    /// Address to listen on, and the Homa port. `0.0.0.0`, the default: all of the host's IPv4
    /// addresses; `[::]`: all of its IPv6 addresses. Port 0: any free port from 32768 on, the range
    /// of client ports in the kernel module (HM `homa.h` `HOMA_MIN_DEFAULT_PORT`).
    pub bind: SocketAddr,
    /// Bytes of the receive buffer to request; the granted size is in
    /// [`Capabilities::receive_buffer`](apus_driver::Capabilities::receive_buffer). Default 4 MiB,
    /// as over UDP.
    pub receive_buffer: usize,
    /// Bytes of the send buffer to request. Default 1 MiB, as over UDP.
    pub send_buffer: usize,
    /// Longest IP packet in bytes, including the IP header; the path may carry less. Default 9000,
    /// range 1280 to 65535.
    pub max_ip_packet: usize,
    /// Whether packets carry their priority in the traffic class.
    pub priorities: bool,
    /// Whether ICMP errors are reported (IP_RECVERR).
    pub reports: bool,
}

impl RawConfig {
    /// Returns the default settings with another address.
    #[must_use]
    pub fn bound_to(bind: SocketAddr) -> Self {
        Self { bind, ..Self::default() }
    }
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            receive_buffer: 4 << 20,
            send_buffer: 1 << 20,
            max_ip_packet: 9000,
            priorities: true,
            reports: true,
        }
    }
}
