//! What is known about another host?
//!
//! One [`Peer`] per remote address: what packets to it look like (size, priorities, round-trip time),
//! and what either side has promised the other (sessions, finished ids, acks). RPCs are not kept
//! here; they know their peer.

mod acks;
mod address;
mod calls;
mod cutoffs;
mod finished_ids;
mod outgoing;
mod resend_burst;
mod rtt;
mod serving;
mod sparse_ids;
mod table;
mod variant;

pub(crate) use acks::Acks;
pub use address::Address;
pub(crate) use address::peer_address;
pub(crate) use calls::Calls;
pub(crate) use cutoffs::PeerCutoffs;
pub(crate) use finished_ids::FinishedIds;
pub(crate) use outgoing::Outgoing;
pub(crate) use resend_burst::ResendBurst;
pub(crate) use rtt::Rtt;
pub(crate) use serving::{Admission, Confirmation, Serving};
pub(crate) use sparse_ids::SparseIds;
pub(crate) use table::Peers;
pub(crate) use variant::Variant;

use crate::time::Instant;

slotmap::new_key_type! {
    /// Names a peer as long as it is known.
    pub(crate) struct PeerId;
}

/// Another host, or rather another endpoint.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: Address,
    /// What its module can do (kernel profile).
    pub(crate) variant: Variant,
    /// Payload bytes of a full DATA packet to it.
    pub(crate) segment: u32,
    /// Priorities that it wants for unscheduled packets.
    pub(crate) cutoffs: PeerCutoffs,
    /// When we sent it our cutoffs last.
    pub(crate) cutoffs_sent: Instant,
    /// Round-trip time to it.
    pub(crate) rtt: Rtt,
    /// Acks that wait for a DATA packet to ride on.
    pub(crate) acks: Acks,
    /// The RESENDs under way to it.
    pub(crate) resends: ResendBurst,
    /// Our calls to it.
    pub(crate) calls: Calls,
    /// Its calls to us.
    pub(crate) serving: Serving,
    /// RPCs with it that live, in either role.
    pub(crate) live_rpcs: u32,
    /// Requests of it that are held until it has confirmed them.
    pub(crate) held: u32,
    /// Payload bytes that wait for transmission to it or for its acknowledgment.
    pub(crate) send: Outgoing,
    /// Bytes of messages that are being received from it, with their whole length.
    pub(crate) receive_bytes: u64,
    /// When a command or a packet concerned it last.
    pub(crate) last_used: Instant,
}
