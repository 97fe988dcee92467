//! The local end of all handshakes: its identity, port and limits.

use super::limits::Limits;
use crate::counters::SealCounters;
use crate::negotiation::Negotiator;
use std::net::SocketAddr;
use std::sync::Arc;

/// The local end of all handshakes.
#[derive(Debug)]
pub(super) struct LocalEnd {
    pub(super) negotiator: Arc<dyn Negotiator>,
    pub(super) port: u16,
    pub(super) limits: Limits,
    pub(super) counters: Arc<SealCounters>,
}

impl LocalEnd {
    /// Returns the ports of a packet to `peer`, the local one first.
    pub(super) const fn ports_to(&self, peer: SocketAddr) -> (u16, u16) {
        (self.port, peer.port())
    }
}
