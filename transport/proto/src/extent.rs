//! The extent of a message: the positions it occupies wherever bytes are counted.
//!
//! The packet of an empty message is unsent, in flight, lost, requested again and received like a
//! byte of any other message, as SYN and FIN of TCP are (RFC 9293 section 3.4). Positions exist in
//! this endpoint alone: packets, events and counters state bytes.
//!
//! # Invariants
//!
//! - **EXTENT-1** A message occupies as many positions as it has bytes, and an empty one occupies
//!   one. No message that is sent, awaited or held in memory counts as 0.
//!
//! Rationale: a special case for 0 that is forgotten anywhere is a message that never ends. A byte
//! of padding on the wire would be delivered by older versions. They drop empty messages instead,
//! so each packet states that its sender understands them (WIRE-31), and errors name older peers.

/// Returns the number of positions that a message of `length` bytes occupies (EXTENT-1).
pub(crate) const fn extent(length: u32) -> u32 {
    if length == 0 { 1 } else { length }
}

/// Returns the charge of a message of `length` bytes in a budget (EXTENT-1).
pub(crate) const fn charge(length: u64) -> u64 {
    if length == 0 { 1 } else { length }
}
