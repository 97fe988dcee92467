//! Which of the optional features does this system have?
//!
//! Each is turned on where there is a switch, and asked for where there is none. What is missing, in
//! the system or by wish of the configuration, is left out; nothing here is an error (invariant U3).

use std::os::fd::BorrowedFd;

use crate::address::{Family, is_wildcard};
use crate::kernel::{option, set_option};
use rustix::net::sockopt;

use crate::udp::config::UdpConfig;

/// The features that were found and turned on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Several packets in one send (UDP_SEGMENT).
    pub(crate) segmentation: bool,
    /// Several packets in one receive (UDP_GRO).
    pub(crate) merging: bool,
    /// The traffic class of arriving packets, and with it congestion marks.
    pub(crate) ecn: bool,
    /// The traffic class of packets that are sent.
    pub(crate) priorities: bool,
    /// ICMP errors with their packets (IP_RECVERR).
    pub(crate) reports: bool,
    /// Microseconds for which the kernel polls the interface itself; 0: it does not.
    pub(crate) busy_poll_usecs: u32,
    /// The address that a packet was sent to; asked for only if it can be any of the host's.
    pub(crate) destination: bool,
}

impl Features {
    /// Turns the features of a new socket on.
    pub(crate) fn turn_on(fd: BorrowedFd<'_>, family: Family, config: &UdpConfig) -> Self {
        let on = |level, name| set_option(fd, level, name, 1).is_ok();
        let wildcard = is_wildcard(config.bind.ip());
        // Best effort: the count of overflowed datagrams is a diagnosis and nothing depends on it.
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
                    // Tells IPv4 destinations too, as mapped addresses.
                    Family::V6 => on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
                },
        }
    }
}

/// Packets that the kernel takes from the interface in one round of its own polling: a whole round of NAPI, in
/// place of 8. Without privileges it stays at 8.
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// Has the kernel poll the interface for that long; returns for how many microseconds, 0 if it refuses.
fn busy_poll(fd: BorrowedFd<'_>, usecs: u32) -> u32 {
    let set = |name, value| set_option(fd, libc::SOL_SOCKET, name, value);
    let asked = libc::c_int::try_from(usecs).unwrap_or(libc::c_int::MAX);
    if usecs == 0 || set(libc::SO_BUSY_POLL, asked).is_err() {
        return 0;
    }
    // Best effort: with them the interface's interrupts stay off for as long as somebody polls.
    let _ = set(libc::SO_PREFER_BUSY_POLL, 1);
    let _ = set(libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET);
    option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL)
        .ok()
        .and_then(|granted| u32::try_from(granted).ok())
        .unwrap_or(0)
}
