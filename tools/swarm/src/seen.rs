//! What can be seen of a transport from outside?
//!
//! What crosses its API and what crosses the wire, nothing else: checkers know no more than this.

use apus_proto::RpcError;
use apus_wire::{Packet, Role};

use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// Position of a call among all calls of a run.
pub(crate) type CallId = u32;

/// Something that was seen at a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) at: Nanos,
    pub(crate) host: HostId,
    pub(crate) what: What<'a>,
}

/// What it was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'a> {
    /// The application wants to make a call and has to wait for room.
    Waiting(CallId),
    /// A call was accepted.
    Called(CallId),
    /// The caller has let a call go.
    Cancelled(CallId),
    /// The application has got a request; of a call that somebody made, or of nobody's.
    Requested(Option<CallId>, &'a [u8]),
    /// A reply was accepted.
    Replied(CallId),
    /// The application has let a request go.
    Abandoned(CallId),
    /// A call has ended with a response.
    Responded(CallId, &'a [u8]),
    /// A call has failed.
    Failed(CallId, RpcError),
    /// A packet was handed to the driver.
    Sent(Wire<'a>),
    /// A packet was taken from the driver.
    Received(Wire<'a>),
    /// The host has died. Its next life begins at once, and may be long unable to do anything.
    Crashed,
}

/// A packet at one end of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire<'a> {
    /// The host at the other end.
    pub(crate) peer: HostId,
    /// The call that its header names, if somebody made it.
    pub(crate) call: Option<CallId>,
    /// The role of the packet's sender in that call.
    pub(crate) sender: Role,
    pub(crate) packet: &'a Packet<'a>,
    /// Bytes of the packet, without IP and UDP headers.
    pub(crate) len: usize,
    /// Position in the burst in which it was handed over: decisions are made for whole bursts.
    pub(crate) place: usize,
}
