//! State that the transports of a host publish to each other: they share its link, the switch port
//! before it, and the queue of its interface.
//!
//! A transport cannot verify that a neighbour is honest. Whatever neighbours publish, it may use
//! its part of the host's limits (GRANT-14, SEND-12), grants at least one message (GRANT-17), and
//! gives its own messages their part of its cutoffs (PRIO-17).

use crate::time::Instant;

/// The combined state of the other transports of a host.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'a> {
    /// Transports that share the host's link, this one included. 0 counts as 1.
    pub sharers: usize,
    /// Bytes that the others have granted and not received.
    pub incoming: u64,
    /// For each message that the others grant at present: the bytes that have not arrived.
    /// Ascending.
    pub active: &'a [u32],
    /// When the interface will have sent all that this transport and the others gave it.
    pub link_idle_at: Instant,
}

/// The state that a transport publishes to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published<'a> {
    /// Bytes that it has granted and not received.
    pub incoming: u64,
    /// For each message that it grants at present: the bytes that have not arrived. Ascending.
    pub active: &'a [u32],
    /// Link time of the bytes that the transport gave to the interface, or reserved there, since
    /// the last publication, in nanoseconds.
    pub link_nanos: u64,
}

/// The unscheduled bytes that arrive at a transport, by the lengths of their messages. It publishes
/// them for the cutoffs of its neighbours (PRIO-17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivingLengths {
    /// Length of the longest message of each eighth of them in bytes, ascending; each is known to
    /// an eighth.
    pub eighths: [u32; EIGHTHS],
    /// Unscheduled bytes that arrive in a second.
    pub unscheduled: u64,
    /// Bytes of all messages that arrive in a second.
    pub total: u64,
    /// Messages that arrive in a second.
    pub messages: u64,
}

/// Number of parts of published [`ArrivingLengths`]: one for each level.
pub(crate) const EIGHTHS: usize = 8;
