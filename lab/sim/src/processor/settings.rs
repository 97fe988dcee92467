//! Settings of a processor.

use super::costs::Costs;

/// A host's processor and its socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Time for packets.
    pub costs: Costs,
    /// Maximum bytes on the wire of the packets that wait for the processor; further packets are
    /// dropped.
    pub socket_buffer: u64,
}

impl Processor {
    /// Default size of a socket's buffer in bytes: the size on a host configured by `apus tune`.
    pub const SOCKET_BUFFER: u64 = 4_000_000;
}
