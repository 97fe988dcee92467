//! Observations: the externally visible events of a transport.
//!
//! Checkers see only the events at the API and on the wire.

use apus_proto::RpcError;
use apus_wire::{Packet, Role};

use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// Index of a call among all calls of a run.
pub(crate) type CallId = u32;

/// An event at a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation<'a> {
    pub(crate) at: Nanos,
    pub(crate) host: HostId,
    pub(crate) event: HostEvent<'a>,
}

/// An observable event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostEvent<'a> {
    /// The application wants to make a call and waits for room.
    Waiting(CallId),
    /// The transport accepted a call.
    Called(CallId),
    /// The client cancelled a call.
    Cancelled(CallId),
    /// The application received a request of the hostile host from its real address.
    Served(HostId),
    /// A peer requested the time trace (FREEZE).
    Frozen(HostId),
    /// The application received a request; `None` if no planned call made it.
    Requested(Option<CallId>, &'a [u8]),
    /// The transport accepted a reply.
    Replied(CallId),
    /// The application abandoned a request.
    Abandoned(CallId),
    /// A call ended with a response.
    Responded(CallId, &'a [u8]),
    /// A call failed.
    Failed(CallId, RpcError),
    /// The transport passed a packet to the driver.
    Sent(WirePacket<'a>),
    /// The transport received a packet from the driver.
    Received(WirePacket<'a>),
    /// The transport received a packet that the hostile host has sent with another host's address.
    Forged(WirePacket<'a>),
    /// The host crashed. Its next incarnation starts at once, but may be disconnected for a long
    /// time.
    Crashed,
}

/// A packet at one end of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WirePacket<'a> {
    /// Host at the other end.
    pub(crate) peer: HostId,
    /// Call named by the header, if it was made.
    pub(crate) call: Option<CallId>,
    /// Role of the packet's sender in that call.
    pub(crate) sender: Role,
    pub(crate) packet: &'a Packet<'a>,
    /// Packet length in bytes, without IP and UDP headers.
    pub(crate) len: usize,
    /// Position in its burst, which the transport schedules as a whole, or in the received
    /// datagram.
    pub(crate) place: usize,
}
