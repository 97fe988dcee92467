//! Settings of a processor.

use super::costs::Costs;

/// A host's processor and its socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Time for packets.
    pub costs: Costs,
    /// Most bytes on the wire of the packets that wait for the processor; further ones are dropped.
    pub socket_buffer: u64,
}

impl Processor {
    /// Bytes of a socket's buffer by default: what the endpoints' buffers hold on a host that
    /// `apus tune` has configured.
    pub const SOCKET_BUFFER: u64 = 4_000_000;
}
