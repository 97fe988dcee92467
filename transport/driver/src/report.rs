//! Reports: failures of packets sent earlier.

use std::net::SocketAddr;

/// Failure of a destination.
#[derive(Clone, Copy, Debug)]
pub struct NetworkReport<'a> {
    /// The destination.
    pub peer: SocketAddr,
    /// The failure.
    pub error: NetworkError,
    /// First bytes of the packet that caused the report, as far as they were returned; may be
    /// empty.
    pub packet: &'a [u8],
}

/// Failure of a packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkError {
    /// The host reports that the port is closed.
    PortClosed,
    /// The host reports that it does not support the protocol (raw IP only).
    ProtocolUnreachable,
    /// There is no route to the host, or the host does not respond.
    HostUnreachable,
    /// The packet exceeds the limit of the path. The caller reads
    /// [`crate::TransmitHalf::packet_limit`] again.
    TooBig,
    /// The system refused to send, because of a firewall rule or a missing privilege.
    NotPermitted,
    /// No keys could be agreed on with the peer.
    Untrusted,
}
