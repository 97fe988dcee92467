//! Detection of optional features.
//!
//! Each feature is enabled if it has a switch, and probed otherwise. A feature that the system
//! lacks or the configuration excludes is left out; that is not an error (SOCKET-3).

use std::os::fd::BorrowedFd;

use crate::address::{Family, is_wildcard};
use crate::kernel::{option, set_option};
use rustix::net::sockopt;

use crate::udp::config::UdpConfig;

/// The detected and enabled features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Several packets in one send (UDP_SEGMENT).
    pub(crate) segmentation: bool,
    /// Several packets in one receive (UDP_GRO).
    pub(crate) merging: bool,
    /// Traffic class of received packets, and with it congestion marks.
    pub(crate) ecn: bool,
    /// Traffic class of sent packets.
    pub(crate) priorities: bool,
    /// ICMP errors with their packets (IP_RECVERR).
    pub(crate) reports: bool,
    /// Microseconds that the kernel polls the interface; 0 if it does not.
    pub(crate) busy_poll_usecs: u32,
    /// Destination address of received packets; requested only if it can be any address of the
    /// host.
    pub(crate) destination: bool,
}

impl Features {
    /// Detects the features of a new socket and enables them.
    pub(crate) fn detect(fd: BorrowedFd<'_>, family: Family, config: &UdpConfig) -> Self {
        let on = |level, name| set_option(fd, level, name, 1).is_ok();
        let wildcard = is_wildcard(config.bind.ip());
        // Best effort: the count of overflowed datagrams is only diagnostic.
        on(libc::SOL_SOCKET, libc::SO_RXQ_OVFL);
        Self {
            segmentation: config.segmentation_offload
                && option(fd, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok(),
            merging: config.receive_offload && on(libc::SOL_UDP, libc::UDP_GRO),
            // An IPv6 socket that listens on all addresses needs the options of both families.
            ecn: sockopt::set_ip_recvtos(fd, true).is_ok()
                & (family == Family::V4 || sockopt::set_ipv6_recvtclass(fd, true).is_ok()),
            priorities: config.priorities && sockopt::set_ip_tos(fd, 0).is_ok(),
            reports: config.reports
                && on(libc::IPPROTO_IP, libc::IP_RECVERR)
                    & (family == Family::V4 || on(libc::IPPROTO_IPV6, libc::IPV6_RECVERR)),
            busy_poll_usecs: busy_poll(fd, config.busy_poll_usecs),
            destination: wildcard
                && match family {
                    Family::V4 => on(libc::IPPROTO_IP, libc::IP_PKTINFO),
                    // Also reports IPv4 destinations, as mapped addresses.
                    Family::V6 => on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
                },
        }
    }
}

/// Packets that the kernel takes from the interface in one round of its own polling: a whole round
/// of NAPI, instead of 8. Without privileges it stays at 8.
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// Requests busy polling for `usecs` microseconds; returns the granted time, 0 if the kernel
/// refuses.
fn busy_poll(fd: BorrowedFd<'_>, usecs: u32) -> u32 {
    let set = |name, value| set_option(fd, libc::SOL_SOCKET, name, value);
    let asked = libc::c_int::try_from(usecs).unwrap_or(libc::c_int::MAX);
    if usecs == 0 || set(libc::SO_BUSY_POLL, asked).is_err() {
        return 0;
    }
    // Best effort: these options keep the interface's interrupts off while a thread polls.
    let _ = set(libc::SO_PREFER_BUSY_POLL, 1);
    let _ = set(libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET);
    option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL)
        .ok()
        .and_then(|granted| u32::try_from(granted).ok())
        .unwrap_or(0)
}
