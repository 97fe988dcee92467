//! Peers: the state about other endpoints.
//!
//! One [`Peer`] per remote address: the properties of packets to it (size, priorities, round-trip
//! time), and what either side has promised the other (sessions, finished ids, acks). RPCs are not
//! kept here; they name their peer.

mod acks;
mod address;
mod birth;
mod calls;
mod challenges;
mod counted_ids;
mod cutoffs;
mod dormant;
mod finished_ids;
mod host_lives;
mod hosts;
mod id_memory;
mod need_ack;
mod outgoing;
mod packet_size;
mod resend_burst;
mod rtt;
mod serving;
mod sparse_ids;
mod table;
mod unproven;
mod unscheduled_window;
mod variant;

pub(crate) use acks::Acks;
pub use address::Address;
pub(crate) use address::peer_address;
pub(crate) use birth::{Birth, stated_age};
pub(crate) use calls::{Calls, Offer};
pub(crate) use challenges::{Challenges, Slot};
pub(crate) use cutoffs::PeerCutoffs;
pub(crate) use finished_ids::FinishedIds;
pub(crate) use host_lives::{RequestSign, digest};
pub(crate) use hosts::HostAddress;
pub(crate) use need_ack::NeedAckGate;
pub(crate) use outgoing::OutgoingBytes;
pub(crate) use packet_size::{PacketSize, SizeChange};
pub(crate) use resend_burst::ResendBurst;
pub(crate) use rtt::Rtt;
pub(crate) use serving::{Displaced, Serving, Standing};
pub(crate) use sparse_ids::SparseIds;
pub(crate) use table::{Peers, first_id};
pub(crate) use unproven::UnprovenAnswers;
pub(crate) use unscheduled_window::UnscheduledWindow;
pub(crate) use variant::Variant;

use crate::rpc_key::RpcKey;
use crate::time::Instant;
use apus_wire::DATA_HEADER_LEN;

slotmap::new_key_type! {
    /// Names a host as long as it has peers ([`hosts`]).
    pub(crate) struct HostId;
    /// Names a peer as long as it is known.
    pub(crate) struct PeerId;
}

/// Another endpoint; in the kernel profile, another host.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: Address,
    /// Its host.
    host: HostId,
    /// Variant of its module (kernel profile).
    pub(crate) variant: Variant,
    /// The size of packets to it.
    pub(crate) size: PacketSize,
    /// Priorities that it announces for unscheduled packets.
    pub(crate) cutoffs: PeerCutoffs,
    /// Unscheduled bytes in flight to it.
    pub(crate) unscheduled: UnscheduledWindow,
    /// Whether it reads several packets of one datagram (WIRE-29).
    pub(crate) reads_shared_datagrams: bool,
    /// When this endpoint's cutoffs were last sent to it.
    pub(crate) cutoffs_sent: Instant,
    /// Round-trip time to it.
    pub(crate) rtt: Rtt,
    /// Acks that wait for a DATA packet.
    pub(crate) acks: Acks,
    /// RESENDs outstanding to it.
    pub(crate) resends: ResendBurst,
    /// NEED_ACKs outstanding to it.
    pub(crate) need_ack: NeedAckGate,
    /// Calls to it.
    pub(crate) calls: Calls,
    /// Its calls to this endpoint.
    pub(crate) serving: Serving,
    /// Memory of finished ids that is counted for it.
    ids: counted_ids::CountedIds,
    /// Live RPCs with it, in either role (TABLES-1).
    pub(crate) live_rpcs: Vec<RpcKey>,
    /// Payload bytes that wait for transmission to it or for its acknowledgment.
    pub(crate) send: OutgoingBytes,
    /// Packets from it that switches have marked.
    pub(crate) marks: u64,
    /// Bytes reserved for messages that are being received from it.
    pub(crate) receive_bytes: u64,
    /// When a command or a packet last concerned it.
    pub(crate) last_used: Instant,
    /// When a packet last concerned a live RPC with it.
    pub(crate) heard: Instant,
    /// When it disclaimed one of its requests, if it has not shown others since (TIME-15).
    pub(crate) disclaimed: Option<Instant>,
}

impl Peer {
    /// Its host.
    pub(crate) const fn host(&self) -> HostId {
        self.host
    }

    /// Returns the bytes of the longest datagram that several packets to it may share (WIRE-29); 0
    /// if it does not read such datagrams.
    pub(crate) const fn longest_shared_datagram(&self) -> usize {
        if self.reads_shared_datagrams { DATA_HEADER_LEN + self.size.segment() as usize } else { 0 }
    }

    /// Records that it disclaimed one of its requests. Its others are doubtful from `now` on, or
    /// still from the last time on if that is less than `interval` nanoseconds ago: each is asked
    /// about once.
    pub(crate) fn disclaim(&mut self, now: Instant, interval: u64) {
        // It has answered a RESEND: the next burst may leave.
        self.resends.answered();
        if self.disclaimed.is_none_or(|before| now.since(before) >= interval) {
            self.disclaimed = Some(now);
        }
    }

    /// Records a packet about a live RPC: the peer is alive.
    pub(crate) const fn hear(&mut self, now: Instant) {
        self.resends.answered();
        self.last_used = now;
        self.heard = now;
    }
}
