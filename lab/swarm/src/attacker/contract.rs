//! The interface of all attackers.

use apus_sim::message::HostId;
use bytes::Bytes;

use crate::generator::random::SeededRng;

/// A packet of an attacker.
#[derive(Clone, Debug)]
pub(crate) struct HostilePacket {
    /// The source address that it states.
    pub(crate) claimed: HostId,
    /// The honest host that receives it.
    pub(crate) to: HostId,
    pub(crate) bytes: Bytes,
}

/// The program of a hostile host.
pub(crate) trait Attacker {
    /// Handles a datagram that was sent to the address `to` of the attacker.
    fn receive(&mut self, from: HostId, to: HostId, datagram: &[u8]) {
        let _ = (from, to, datagram);
    }

    /// Returns the next packet.
    fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket>;
}
