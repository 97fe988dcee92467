//! Classification of error numbers.
//!
//! A call on a socket can return three kinds of errors: about the packet just sent, about an
//! earlier packet (ICMP), and about the socket itself. The number distinguishes the third kind;
//! `submit` distinguishes the first two by retrying.
//!
//! Sources: `icmp_err_convert` in Linux `net/ipv4/icmp.c`, `icmpv6_err_convert` in
//! `net/ipv6/icmp.c`; send(2), udp(7), ip(7).

use apus_driver::NetworkError;
use rustix::io::Errno;

/// Class of an error of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// A signal interrupted the call. Retry.
    Interrupted,
    /// The system accepts, or has, no packets now. Retry later.
    WouldBlock,
    /// Possibly an ICMP error about an earlier packet, possibly an error of this send.
    Icmp(NetworkError),
    /// Error of the destination of this packet.
    Destination(NetworkError),
    /// The socket is broken.
    Broken,
}

/// Classifies an error of a send or a receive.
pub(crate) fn classify(error: Errno) -> ErrorClass {
    match error {
        Errno::INTR => ErrorClass::Interrupted,
        // ENOBUFS: the interface's queue is full (reported because the socket enables IP_RECVERR,
        // ip(7)).
        Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => ErrorClass::WouldBlock,
        // A firewall rule.
        Errno::PERM => ErrorClass::Destination(NetworkError::NotPermitted),
        // Port 0; a family that the socket does not support; a source address that the host has
        // lost; an interface that is down, or that fails.
        Errno::INVAL | Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::NETDOWN | Errno::IO => {
            ErrorClass::Destination(NetworkError::HostUnreachable)
        }
        _ => icmp_error(error).map_or(ErrorClass::Broken, ErrorClass::Icmp),
    }
}

/// Returns the ICMP error that an error number stands for.
pub(crate) fn icmp_error(error: Errno) -> Option<NetworkError> {
    match error {
        Errno::CONNREFUSED => Some(NetworkError::PortClosed),
        Errno::NOPROTOOPT => Some(NetworkError::ProtocolUnreachable),
        Errno::MSGSIZE => Some(NetworkError::TooBig),
        // ICMPv6 "administratively prohibited" and similar codes; also a send to a broadcast
        // address.
        Errno::ACCESS => Some(NetworkError::NotPermitted),
        // EOPNOTSUPP and EPROTO are "source route failed" and "parameter problem": the network is
        // equally unusable.
        Errno::HOSTUNREACH
        | Errno::NETUNREACH
        | Errno::HOSTDOWN
        | Errno::NONET
        | Errno::OPNOTSUPP
        | Errno::PROTO => Some(NetworkError::HostUnreachable),
        _ => None,
    }
}

/// Returns whether a send of several packets may have been refused because of segmentation offload:
/// the device cannot compute checksums (EIO), this kernel rejects the segment size (EINVAL,
/// EMSGSIZE), or a filter of system calls or packets refuses such sends.
///
/// Source: `udp_send_skb` in Linux `net/ipv4/udp.c`.
pub(crate) fn may_be_segmentation(error: Errno) -> bool {
    is_segmentation(error)
        || matches!(error, Errno::MSGSIZE | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP)
}

/// Returns whether a send of several packets has been refused because of segmentation offload, if
/// its packets are accepted one by one.
pub(crate) fn is_segmentation(error: Errno) -> bool {
    matches!(error, Errno::IO | Errno::INVAL | Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_class() {
        use NetworkError::{
            HostUnreachable, NotPermitted, PortClosed, ProtocolUnreachable, TooBig,
        };
        let table = [
            ("EINTR", Errno::INTR, ErrorClass::Interrupted),
            ("EAGAIN", Errno::AGAIN, ErrorClass::WouldBlock),
            ("EWOULDBLOCK", Errno::WOULDBLOCK, ErrorClass::WouldBlock),
            ("ENOBUFS", Errno::NOBUFS, ErrorClass::WouldBlock),
            ("ENOMEM", Errno::NOMEM, ErrorClass::WouldBlock),
            ("ECONNREFUSED", Errno::CONNREFUSED, ErrorClass::Icmp(PortClosed)),
            ("ENOPROTOOPT", Errno::NOPROTOOPT, ErrorClass::Icmp(ProtocolUnreachable)),
            ("EMSGSIZE", Errno::MSGSIZE, ErrorClass::Icmp(TooBig)),
            ("EACCES", Errno::ACCESS, ErrorClass::Icmp(NotPermitted)),
            ("EHOSTUNREACH", Errno::HOSTUNREACH, ErrorClass::Icmp(HostUnreachable)),
            ("ENETUNREACH", Errno::NETUNREACH, ErrorClass::Icmp(HostUnreachable)),
            ("EHOSTDOWN", Errno::HOSTDOWN, ErrorClass::Icmp(HostUnreachable)),
            ("ENONET", Errno::NONET, ErrorClass::Icmp(HostUnreachable)),
            ("EOPNOTSUPP", Errno::OPNOTSUPP, ErrorClass::Icmp(HostUnreachable)),
            ("EPROTO", Errno::PROTO, ErrorClass::Icmp(HostUnreachable)),
            ("EPERM", Errno::PERM, ErrorClass::Destination(NotPermitted)),
            ("EINVAL", Errno::INVAL, ErrorClass::Destination(HostUnreachable)),
            ("EAFNOSUPPORT", Errno::AFNOSUPPORT, ErrorClass::Destination(HostUnreachable)),
            ("EADDRNOTAVAIL", Errno::ADDRNOTAVAIL, ErrorClass::Destination(HostUnreachable)),
            ("ENETDOWN", Errno::NETDOWN, ErrorClass::Destination(HostUnreachable)),
            ("EIO", Errno::IO, ErrorClass::Destination(HostUnreachable)),
            ("EBADF", Errno::BADF, ErrorClass::Broken),
            ("ENOTSOCK", Errno::NOTSOCK, ErrorClass::Broken),
            ("EFAULT", Errno::FAULT, ErrorClass::Broken),
            ("EPIPE", Errno::PIPE, ErrorClass::Broken),
        ];
        for (name, error, verdict) in table {
            assert_eq!(classify(error), verdict, "{name}");
        }
    }
}
