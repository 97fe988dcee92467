//! What does an error number mean to a driver?
//!
//! Three kinds of trouble come back from one socket: with the packet just sent, with a packet sent
//! long ago (ICMP), and with the socket itself. The number tells the third from the others; between
//! the first and the second decides `submit`, by trying again.
//!
//! Sources: `icmp_err_convert` in Linux `net/ipv4/icmp.c`, `icmpv6_err_convert` in
//! `net/ipv6/icmp.c`; send(2), udp(7), ip(7).

use apus_driver::NetworkError;
use rustix::io::Errno;

/// What to make of an error of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A signal came in between. Call again.
    Interrupted,
    /// The system takes nothing now, or has nothing. Try later.
    NotNow,
    /// ICMP may have told it about an earlier packet; a send can fail so by itself as well.
    Told(NetworkError),
    /// Trouble with the destination of this very packet.
    Own(NetworkError),
    /// The socket is broken.
    Broken,
}

/// Classifies an error of a send or a receive.
pub(crate) fn judge(error: Errno) -> Verdict {
    match error {
        Errno::INTR => Verdict::Interrupted,
        // ENOBUFS: the interface's queue is full (told because the socket takes errors, ip(7)).
        Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => Verdict::NotNow,
        // A firewall rule.
        Errno::PERM => Verdict::Own(NetworkError::NotPermitted),
        // Port 0; a family that the socket does not speak; a source address that the host has lost;
        // an interface that is down, or that fails.
        Errno::INVAL | Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::NETDOWN | Errno::IO => {
            Verdict::Own(NetworkError::HostUnreachable)
        }
        _ => told(error).map_or(Verdict::Broken, Verdict::Told),
    }
}

/// The trouble that ICMP told about, as an error number.
pub(crate) fn told(error: Errno) -> Option<NetworkError> {
    match error {
        Errno::CONNREFUSED => Some(NetworkError::PortClosed),
        Errno::NOPROTOOPT => Some(NetworkError::ProtocolUnreachable),
        Errno::MSGSIZE => Some(NetworkError::TooBig),
        // ICMPv6 "administratively prohibited" and its kin. A send by itself: a broadcast address.
        Errno::ACCESS => Some(NetworkError::NotPermitted),
        // EOPNOTSUPP and EPROTO are "source route failed" and "parameter problem": the network is
        // as useless for us.
        Errno::HOSTUNREACH
        | Errno::NETUNREACH
        | Errno::HOSTDOWN
        | Errno::NONET
        | Errno::OPNOTSUPP
        | Errno::PROTO => Some(NetworkError::HostUnreachable),
        _ => None,
    }
}

/// Whether a refused send of several packets may be the fault of segmentation offload: the device
/// cannot compute checksums (EIO), or this kernel calls an unsuitable segment size invalid.
///
/// Source: `udp_send_skb` in Linux `net/ipv4/udp.c`.
pub(crate) fn blames_segmentation(error: Errno) -> bool {
    matches!(error, Errno::IO | Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_meaning() {
        use NetworkError::{
            HostUnreachable, NotPermitted, PortClosed, ProtocolUnreachable, TooBig,
        };
        let table = [
            ("EINTR", Errno::INTR, Verdict::Interrupted),
            ("EAGAIN", Errno::AGAIN, Verdict::NotNow),
            ("EWOULDBLOCK", Errno::WOULDBLOCK, Verdict::NotNow),
            ("ENOBUFS", Errno::NOBUFS, Verdict::NotNow),
            ("ENOMEM", Errno::NOMEM, Verdict::NotNow),
            ("ECONNREFUSED", Errno::CONNREFUSED, Verdict::Told(PortClosed)),
            ("ENOPROTOOPT", Errno::NOPROTOOPT, Verdict::Told(ProtocolUnreachable)),
            ("EMSGSIZE", Errno::MSGSIZE, Verdict::Told(TooBig)),
            ("EACCES", Errno::ACCESS, Verdict::Told(NotPermitted)),
            ("EHOSTUNREACH", Errno::HOSTUNREACH, Verdict::Told(HostUnreachable)),
            ("ENETUNREACH", Errno::NETUNREACH, Verdict::Told(HostUnreachable)),
            ("EHOSTDOWN", Errno::HOSTDOWN, Verdict::Told(HostUnreachable)),
            ("ENONET", Errno::NONET, Verdict::Told(HostUnreachable)),
            ("EOPNOTSUPP", Errno::OPNOTSUPP, Verdict::Told(HostUnreachable)),
            ("EPROTO", Errno::PROTO, Verdict::Told(HostUnreachable)),
            ("EPERM", Errno::PERM, Verdict::Own(NotPermitted)),
            ("EINVAL", Errno::INVAL, Verdict::Own(HostUnreachable)),
            ("EAFNOSUPPORT", Errno::AFNOSUPPORT, Verdict::Own(HostUnreachable)),
            ("EADDRNOTAVAIL", Errno::ADDRNOTAVAIL, Verdict::Own(HostUnreachable)),
            ("ENETDOWN", Errno::NETDOWN, Verdict::Own(HostUnreachable)),
            ("EIO", Errno::IO, Verdict::Own(HostUnreachable)),
            ("EBADF", Errno::BADF, Verdict::Broken),
            ("ENOTSOCK", Errno::NOTSOCK, Verdict::Broken),
            ("EFAULT", Errno::FAULT, Verdict::Broken),
            ("EPIPE", Errno::PIPE, Verdict::Broken),
        ];
        for (name, error, verdict) in table {
            assert_eq!(judge(error), verdict, "{name}");
        }
    }
}
