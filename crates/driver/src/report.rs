//! What went wrong with packets that were sent earlier?

use std::net::SocketAddr;

/// Trouble with a destination.
#[derive(Clone, Copy, Debug)]
pub struct NetworkReport<'a> {
    /// The destination.
    pub peer: SocketAddr,
    /// What happened.
    pub trouble: NetworkError,
    /// The beginning of the packet that caused it, as far as it came back; may be empty.
    pub packet: &'a [u8],
}

/// What can happen to a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkError {
    /// The host answered that nobody listens on the port.
    PortClosed,
    /// The host answered that it does not speak the protocol (raw IP only).
    ProtocolUnreachable,
    /// No way to the host, or the host does not answer.
    HostUnreachable,
    /// The packet was longer than the path carries. Ask
    /// [`crate::TransmitHalf::packet_limit`] again.
    TooBig,
    /// The system refused to send (a firewall rule, a missing privilege).
    NotPermitted,
}
