//! The session of a packet, for the observer and the checkers of several promises.

use apus_wire::{Flags, Packet};

/// Returns the session in a packet, if it has one.
pub(crate) fn session(packet: &Packet<'_>) -> Option<u64> {
    let fields = packet.header.udp()?;
    fields.flags.contains(Flags::SESSION).then_some(fields.incarnation)
}
