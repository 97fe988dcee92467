//! Which of the optional features does this system have?
//!
//! Each is turned on where there is a switch, and asked for where there is none. What is missing, in
//! the system or by wish of the configuration, is left out; nothing here is an error (invariant U3).

use std::os::fd::BorrowedFd;

use rustix::net::sockopt;

use crate::address::{self, Family};
use crate::config::UdpConfig;
use crate::kernel;

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
    /// The address that a packet was sent to; asked for only if it can be any of the host's.
    pub(crate) destination: bool,
}

impl Features {
    /// Turns the features of a new socket on.
    pub(crate) fn turn_on(fd: BorrowedFd<'_>, family: Family, config: &UdpConfig) -> Self {
        let on = |level, name| kernel::set_option(fd, level, name, 1).is_ok();
        let wildcard = address::is_wildcard(config.bind.ip());
        // Best effort: the count of overflowed datagrams is a diagnosis and nothing depends on it.
        on(libc::SOL_SOCKET, libc::SO_RXQ_OVFL);
        Self {
            segmentation: config.segmentation_offload
                && kernel::option(fd, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok(),
            merging: config.receive_offload && on(libc::SOL_UDP, libc::UDP_GRO),
            // An IPv6 socket that listens on all addresses needs the options of both families.
            ecn: sockopt::set_ip_recvtos(fd, true).is_ok()
                & (family == Family::V4 || sockopt::set_ipv6_recvtclass(fd, true).is_ok()),
            priorities: config.priorities && sockopt::set_ip_tos(fd, 0).is_ok(),
            reports: config.reports
                && on(libc::IPPROTO_IP, libc::IP_RECVERR)
                    & (family == Family::V4 || on(libc::IPPROTO_IPV6, libc::IPV6_RECVERR)),
            destination: wildcard
                && match family {
                    Family::V4 => on(libc::IPPROTO_IP, libc::IP_PKTINFO),
                    // Tells IPv4 destinations too, as mapped addresses.
                    Family::V6 => on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
                },
        }
    }
}
