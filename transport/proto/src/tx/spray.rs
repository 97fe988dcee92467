//! Spraying: packets of long messages leave from several ports of their sender, so that a network
//! that spreads flows by their ports spreads them (SEND-15).

use crate::config::Config;
use crate::peer::Peer;
use crate::rpc::Rpc;
use apus_wire::Header;

/// Whether the packets of an RPC may leave from other ports, in both directions, as far as this end
/// can tell: the session has room for the mark (WIRE-33, WIRE-36), and no translation between the
/// two has changed the peer's port.
pub(super) fn may_spray(config: &Config, peer: &Peer, rpc: &Rpc) -> bool {
    config.spray_ports() > 0
        && rpc.session().is_some_and(|session| session >> 32 != 0)
        && peer.address.port() == rpc.peer_port
}

/// Marks packets, given their consecutive headers of `header_len` bytes each.
pub(super) fn mark(headers: &mut [u8], header_len: usize) {
    headers.chunks_mut(header_len).for_each(Header::mark_sprayed);
}
