//! How should a socket be opened?

use std::net::{Ipv6Addr, SocketAddr};

/// How a [`crate::Udp`] driver is opened. The default suits a host in a datacenter; the switches turn
/// things off that a system may lack, so that tests can play such a system.
///
/// ```
/// use apus_socket::UdpConfig;
///
/// let config = UdpConfig { max_ip_packet: 1500, ..UdpConfig::bound_to(([10, 0, 0, 1], 4000).into()) };
/// assert!(config.segmentation_offload);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The address to listen on. Port 0: any free one. `[::]`, the default: all addresses of the
    /// host, IPv4's too; a system without IPv6 then listens on `0.0.0.0`.
    pub bind: SocketAddr,
    /// Bytes that the system shall queue for us; what it grants is in
    /// [`Capabilities::receive_buffer`](apus_driver::Capabilities::receive_buffer). Default 4 MiB
    /// (ours: what 25 Gbit/s bring in a millisecond, plus the system's own structures). Without
    /// privileges `net.core.rmem_max` is the most.
    pub receive_buffer: usize,
    /// Bytes that the system shall take from us before it says that it is full. Default 1 MiB (ours:
    /// as much as waits in the queue of a NIC, priorities do not reach it there). Without
    /// privileges `net.core.wmem_max` is the most.
    pub send_buffer: usize,
    /// Longest IP packet in bytes, IP and UDP headers included; the path may carry less. Default
    /// 9000: jumbo frames. From 1280, which every IPv6 path carries (RFC 8200 section 5), to 65535.
    pub max_ip_packet: usize,
    /// Whether to send several packets with one system call and one pass through the system
    /// (UDP_SEGMENT, Linux 4.18).
    pub segmentation_offload: bool,
    /// Whether to take several packets at once (UDP_GRO, Linux 5.0).
    pub receive_offload: bool,
    /// Whether packets carry the traffic class that the engine gives; if not, all carry class 0.
    pub priorities: bool,
    /// Whether to learn from the system what ICMP says (IP_RECVERR).
    pub reports: bool,
    /// Microseconds for which the kernel itself polls the network interface when nothing has arrived, in
    /// place of waiting for its interrupt (SO_BUSY_POLL, Linux 3.11; with SO_PREFER_BUSY_POLL and
    /// SO_BUSY_POLL_BUDGET, 5.11). 0, the default, leaves that to `net.core.busy_read`. More needs
    /// CAP_NET_ADMIN; what was got is in
    /// [`Capabilities::busy_poll_usecs`](apus_driver::Capabilities::busy_poll_usecs). 50 is what
    /// the kernel's documentation recommends. Receives here never block, so each of them polls once;
    /// while a thread sleeps until something arrives, the kernel polls for that time only if
    /// `net.core.busy_poll` is set, too. It takes processor time of whoever receives, is worth
    /// it on an interface whose queue this endpoint has to itself, and does nothing on loopback.
    pub busy_poll_usecs: u32,
    /// Whether to use IPv6. `false` is a system without it.
    pub ipv6: bool,
}

impl UdpConfig {
    /// The defaults, but for the address.
    #[must_use]
    pub fn bound_to(bind: SocketAddr) -> Self {
        Self { bind, ..Self::default() }
    }
}

impl Default for UdpConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            receive_buffer: 4 << 20,
            send_buffer: 1 << 20,
            max_ip_packet: 9000,
            segmentation_offload: true,
            receive_offload: true,
            priorities: true,
            reports: true,
            busy_poll_usecs: 0,
            ipv6: true,
        }
    }
}
