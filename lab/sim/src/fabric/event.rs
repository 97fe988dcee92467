//! Events of a fabric.

use super::packets::PacketIndex;
use super::port::PortIndex;
use crate::message::HostId;

/// An event of the fabric.
#[derive(Clone, Copy, Debug)]
pub(super) enum FabricEvent {
    /// A packet reaches the output of a switch.
    Enqueue(PortIndex, PacketIndex),
    /// A port has finished its transmission.
    PortFree(PortIndex),
    /// A packet has passed the software of its host.
    Arrive(PacketIndex),
    /// A host's link is free, or an application has called.
    Serve(HostId),
    /// A host's deadline has passed.
    Timer(HostId),
    /// A sample of idle links is due.
    Sample,
    /// A delayed packet is delivered; only with faults.
    Deliver(PacketIndex),
    /// A host crashes; only with faults.
    Crash(HostId),
    /// A host resumes or restarts; only with faults.
    Return(HostId),
}
