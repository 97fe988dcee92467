//! Settings of the UDP driver.

use std::net::{Ipv6Addr, SocketAddr};

/// Settings of a [`crate::Udp`] driver. The default suits a host in a datacenter; the switches turn
/// off features that a system may lack, so that tests can imitate such a system.
///
/// ```
/// use apus_socket::UdpConfig;
///
/// let config = UdpConfig { max_ip_packet: 1500, ..UdpConfig::bound_to(([10, 0, 0, 1], 4000).into()) };
/// assert!(config.segmentation_offload);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Address to listen on. Port 0: any free port. `[::]`, the default: all addresses of the host,
    /// including IPv4; a system without IPv6 then listens on `0.0.0.0`.
    pub bind: SocketAddr,
    /// Bytes of the receive buffer to request; the granted size is in
    /// [`Capabilities::receive_buffer`](apus_driver::Capabilities::receive_buffer). Default 4 MiB,
    /// chosen by us: the packets of a millisecond at 25 Gbit/s, plus the system's own structures.
    /// Without privileges `net.core.rmem_max` is the maximum.
    pub receive_buffer: usize,
    /// Bytes of the send buffer to request. Default 1 MiB, chosen by us: the size of a NIC's queue,
    /// where priorities have no effect. Without privileges `net.core.wmem_max` is the maximum.
    pub send_buffer: usize,
    /// Longest IP packet in bytes, including IP and UDP headers; the path may carry less. Range
    /// 1280, which every IPv6 path carries (RFC 8200 section 5), to 65535, the default: Ethernet
    /// carries 1500 or 9000, and on loopback a packet of 64 KB costs as much as a packet of 9000
    /// bytes.
    pub max_ip_packet: usize,
    /// Whether to send several packets with one system call and one pass through the system
    /// (UDP_SEGMENT, Linux 4.18).
    pub segmentation_offload: bool,
    /// Whether to receive several packets at once (UDP_GRO, Linux 5.0).
    pub receive_offload: bool,
    /// Whether packets carry the traffic class of their burst; if not, all carry class 0.
    pub priorities: bool,
    /// Whether ICMP errors are reported (IP_RECVERR).
    pub reports: bool,
    /// Microseconds that the kernel polls the network interface while no packet arrives, instead of
    /// waiting for its interrupt (SO_BUSY_POLL, Linux 3.11; with SO_PREFER_BUSY_POLL and
    /// SO_BUSY_POLL_BUDGET, 5.11). The default, 0, leaves that to `net.core.busy_read`. Higher
    /// values need CAP_NET_ADMIN; the granted time is in
    /// [`Capabilities::busy_poll_usecs`](apus_driver::Capabilities::busy_poll_usecs). The kernel's
    /// documentation recommends 50.
    ///
    /// Receives here never block, so each of them polls once. While a thread sleeps until a packet
    /// arrives, the kernel polls for that time only if `net.core.busy_poll` is set as well. Busy
    /// polling costs processor time of the receiving thread, pays off on an interface queue
    /// dedicated to this endpoint, and has no effect on loopback.
    pub busy_poll_usecs: u32,
    /// Number of sends to a peer, minus sends to many other peers, after which short sends to it
    /// use a connected socket that only sends. Default 256: opening one takes as long as 60 sends
    /// save. 0 disables these sockets. At most four peers have one: four more descriptors for an
    /// eighth to two sevenths less time per send. A peer has none if the system would choose a
    /// source address other than the driver's.
    pub connect_after: u32,
    /// Longest time in microseconds that packets from the middle of a long message may wait before
    /// they wake a sleeping thread: several of them then cost one wake-up (interrupt coalescing, as
    /// `rx-usecs` of ethtool(8)). They arrive at a second socket at the address (SO_REUSEPORT),
    /// with its own receive buffer, through a filter in the system. All other packets wake at once:
    /// packets of short messages, the first and the last packet of a long message, retransmissions,
    /// grants. The default, 0, disables coalescing.
    ///
    /// Coalescing saves processor time where packets arrive one at a time, on slow links. Choose
    /// the time of a few packets, and at most a quarter of the time that the link needs for
    /// `max_incoming`: GRANTs are delayed by as much. No effect on sealed packets, raw IP, and
    /// endpoints with several shards.
    pub receive_coalescing_usecs: u32,
    /// Number of additional source ports that marked packets leave from in turn, 0 to 64:
    /// `spray_ports` of the protocol's configuration, which an endpoint sets here. With 1 or more,
    /// packets from peers' spray ports are attributed to the peers. The default, 0, disables both.
    pub spray_ports: u8,
    /// Whether to use IPv6. `false` imitates a system without it.
    pub ipv6: bool,
}

impl UdpConfig {
    /// Returns the default settings with another address.
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
            max_ip_packet: 65_535,
            segmentation_offload: true,
            receive_offload: true,
            priorities: true,
            reports: true,
            busy_poll_usecs: 0,
            connect_after: 256,
            receive_coalescing_usecs: 0,
            spray_ports: 0,
            ipv6: true,
        }
    }
}
