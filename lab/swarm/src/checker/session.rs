//! The session that a packet carries, as checkers of several promises and the observer need it.

use apus_wire::{Flags, Packet};

/// Returns the session in a packet, if it has one.
pub(crate) fn session(packet: &Packet<'_>) -> Option<u64> {
    let fields = packet.header.udp()?;
    fields.flags.contains(Flags::SESSION).then_some(fields.incarnation)
}
