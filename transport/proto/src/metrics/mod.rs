//! Counters of the core.
//!
//! Plain integers that only grow (except the gauges in [`Metrics::live`]); consumers take
//! differences. Groups and names follow the kernel module's metrics (docs/reference/homa-module.md,
//! *Metrics*) where they have a meaning here.

mod counters;
mod exemplars;

use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use apus_wire::{Kind, PRIORITIES};
use counters::{add_each, counters};

pub use crate::histogram::{COARSE_BOUNDS, CoarseHistogram, DurationHistogram};
pub use counters::Metadata;
pub use exemplars::{Exemplar, Exemplars};

/// Number of packet kinds.
const KINDS: usize = Kind::ALL.len();
/// Number of drop reasons.
const REASONS: usize = DropReason::ALL.len();

counters! {
    /// Progress of RPCs (the kernel's group "RPC progress").
    Progress {
        /// Calls that were made here.
        client_requests_started,
        /// Bytes of their requests.
        client_request_bytes_started,
        /// Calls that ended with a response.
        client_responses_done,
        /// Bytes of those responses.
        client_response_bytes_done,
        /// Calls that ended with an error.
        client_rpcs_failed,
        /// Requests whose first packet arrived and was accepted.
        server_requests_started,
        /// Requests that arrived completely and were handed to the application.
        server_requests_done,
        /// Bytes of those requests.
        server_request_bytes_done,
        /// Responses that the application gave.
        server_responses_started,
        /// Bytes of those responses.
        server_response_bytes_started,
        /// Responses that the client acknowledged.
        server_responses_done,
        /// Server RPCs that ended in another way (the kernel's `server_rpc_discards`).
        server_rpcs_discarded,
    }
}

counters! {
    /// Loss, reordering and the cures (the kernel's groups "reception" and "errors").
    Recovery {
        /// DATA packets sent again.
        resent_packets,
        /// Bytes sent again.
        resent_bytes,
        /// Retransmitted DATA packets that brought something new (`resent_packets_used`).
        resent_packets_used,
        /// Retransmitted DATA packets that were not needed: their bytes had arrived, or their RPC
        /// had ended (`resent_discards`).
        resent_discards,
        /// DATA packets that arrived ahead of missing ones (`gaps_created`).
        gaps_created,
        /// RPCs aborted because the peer was silent (`rpc_timeouts`).
        rpc_timeouts,
        /// Reports of the network that packets do not reach a peer. The peer is asked before its
        /// RPCs end.
        unreachable_reports,
        /// Reports refuted by a later packet of the peer: an ICMP packet was forged or late, or a
        /// route was missing for a moment.
        unreachable_refuted,
        /// Packets that this host's firewall, or its full table of connections, dropped. They count
        /// as lost.
        sends_not_permitted,
        /// Requests sent again from the start after RPC_UNKNOWN (the kernel's restarts).
        rpc_restarts,
        /// Server RPCs ended by RPC_UNKNOWN (`server_rpcs_unknown`).
        server_rpcs_unknown,
        /// Responses given up because no acknowledgment arrived.
        need_acks_exhausted,
        /// Times that the ack buffer of a peer was full (`ack_overflows`).
        ack_overflows,
        /// Paths found to drop long packets without a report (a path MTU black hole): packets to
        /// the peer became short.
        paths_narrowed,
    }
}

counters! {
    /// Counters of the granter and the pacer.
    Scheduling {
        /// Bytes granted.
        granted_bytes,
        /// The granted bytes that were reserved for the oldest message (`fifo_grant_bytes`).
        fifo_grant_bytes,
        /// Grants held back because `max_incoming` was used up (`needy_grants`).
        needy_grants,
        /// Grants held back because the receive budget had no room.
        memory_held_grants,
        /// Messages that were assured of the room up to their end while others waited for room.
        assured_messages,
        /// Times that the granter ran (`grant_check_calls`).
        grant_checks,
        /// Integral of the number of messages waiting for grants over time, in nanoseconds
        /// (`grantable_rpcs_integral`): divided by the elapsed time, the average number of waiting
        /// messages. High values indicate an overloaded receiver.
        grantable_integral_nanos,
        /// Times that a message had to wait for the pacer (`throttle_list_adds`).
        throttled,
        /// Bytes that the pacer gave to the oldest message (`pacer_fifo_bytes`).
        pacer_fifo_bytes,
        /// Number of times that the cutoffs were recomputed.
        cutoffs_renewed,
    }
}

counters! {
    /// At-most-once and admission (requirements AMO-*).
    Admission {
        /// Packets of requests whose client has shown no session, each answered by a session
        /// challenge.
        challenges_sent,
        /// Sessions started: a client has answered a session challenge.
        sessions_begun,
        /// Requests refused with a reason.
        refused,
        /// Requests refused because their host had as many peers, requests or bytes as a host may
        /// have. They count as refused, too.
        refused_of_host,
        /// Peers that were forgotten early, because another one needed the place.
        peers_displaced,
        /// Messages that made no progress and returned the room for their missing bytes.
        stalled_messages,
        /// Stalled requests that were given up because others needed the room of their received
        /// bytes.
        stalled_requests_given_up,
        /// Calls that failed because their responses stalled and others needed the room of their
        /// received bytes.
        stalled_responses_given_up,
        /// Responses that made no progress and were given up because others needed their room.
        responses_given_up,
        /// Responses that were dropped because their host had as many as a host may have.
        responses_refused,
        /// Sessions that replaced an earlier one of the same address (a restarted client). In the
        /// kernel profile: hosts whose call counter restarted.
        sessions_replaced,
        /// Servers that had lost the session of this endpoint's calls: they were restarted, or had
        /// forgotten this client.
        peers_restarted,
        /// Calls sent again by themselves to a restarted server that cannot have executed them.
        calls_sent_again,
    }
}

counters! {
    /// Gauges of live state. All are 0 while no RPC is live.
    Live {
        /// RPCs as client.
        client_rpcs,
        /// RPCs as server.
        server_rpcs,
        /// Peers known.
        peers,
        /// Payload bytes waiting for transmission or acknowledgment.
        send_bytes,
        /// Bytes of incoming messages, up to the moment the application takes them.
        receive_bytes,
        /// Messages that wait for grants.
        grantable,
        /// Bytes granted and not received yet.
        incoming_bytes,
        /// Messages with bytes that may be sent now.
        sendable,
        /// Deadlines and silence timers that are set.
        timers,
        /// Control packets waiting.
        control_packets,
    }
}

/// Durations of calls, computed from the times that the protocol is given: no additional clock is
/// read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Calls made here that ended with a response: from the command to the end of the response's
    /// arrival.
    pub answered: DurationHistogram,
    /// Requests that were served here: from the arrival of the first packet to the application's
    /// reply.
    pub served: DurationHistogram,
    /// Exemplars of the calls in `answered` that the probe filter selected: the latest in each
    /// coarse bucket.
    pub answered_exemplars: Exemplars,
    /// Exemplars of the requests in `served` that the probe filter selected: the latest in each
    /// coarse bucket.
    pub served_exemplars: Exemplars,
    failed: [CoarseHistogram; FailureKind::NAMES.len()],
}

impl Calls {
    /// Returns the durations of calls made here that failed for this reason (whatever its figures
    /// are).
    #[must_use]
    pub const fn failed(&self, reason: FailureKind) -> &CoarseHistogram {
        &self.failed[reason.index()]
    }

    /// Returns the durations of all failed calls by [`FailureKind::name`].
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &CoarseHistogram)> {
        FailureKind::NAMES.into_iter().zip(&self.failed)
    }

    fn add(&mut self, other: &Self) {
        self.answered.add(&other.answered);
        self.served.add(&other.served);
        self.answered_exemplars.add(&other.answered_exemplars);
        self.served_exemplars.add(&other.served_exemplars);
        for (durations, more) in self.failed.iter_mut().zip(&other.failed) {
            durations.add(more);
        }
    }

    /// A call made here has failed.
    pub(crate) fn fail(&mut self, reason: FailureKind, nanos: u64) {
        self.failed[reason.index()].record(nanos, 1);
    }
}

/// A snapshot of all counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Packets sent, by kind in the order of [`Kind::ALL`].
    pub packets_sent: [u64; KINDS],
    /// Packets received that parsed and had this endpoint's port, by kind.
    pub packets_received: [u64; KINDS],
    /// Bytes of DATA packets sent at each priority, headers included.
    pub priority_bytes: [u64; PRIORITIES],
    /// DATA packets sent at each priority.
    pub priority_packets: [u64; PRIORITIES],
    /// Progress of RPCs.
    pub progress: Progress,
    /// Loss and its cures.
    pub recovery: Recovery,
    /// Grants and pacing.
    pub scheduling: Scheduling,
    /// At-most-once and admission.
    pub admission: Admission,
    /// How long calls took.
    pub calls: Calls,
    /// Gauges; filled in by `Transport::metrics`.
    pub live: Live,
    drops: Drops,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Drops([u64; REASONS]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; REASONS])
    }
}

impl Metrics {
    /// Returns the number of packets that were dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.0[reason as usize]
    }

    /// Returns the number of all dropped packets.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.drops.0.iter().sum()
    }

    /// Returns the number of packets of `kind` that were sent.
    #[must_use]
    pub const fn sent(&self, kind: Kind) -> u64 {
        self.packets_sent[index(kind)]
    }

    /// Returns the number of packets of `kind` that were received.
    #[must_use]
    pub const fn received(&self, kind: Kind) -> u64 {
        self.packets_received[index(kind)]
    }

    /// Adds the counters and gauges of another transport, for example of another shard of the
    /// endpoint. The later exemplars are kept, if both transports have the same clock.
    pub fn add(&mut self, other: &Self) {
        add_each(&mut self.packets_sent, &other.packets_sent);
        add_each(&mut self.packets_received, &other.packets_received);
        add_each(&mut self.priority_bytes, &other.priority_bytes);
        add_each(&mut self.priority_packets, &other.priority_packets);
        add_each(&mut self.drops.0, &other.drops.0);
        self.progress.add(&other.progress);
        self.recovery.add(&other.recovery);
        self.scheduling.add(&other.scheduling);
        self.admission.add(&other.admission);
        self.calls.add(&other.calls);
        self.live.add(&other.live);
    }

    pub(crate) const fn count_drop(&mut self, reason: DropReason) {
        self.drops.0[reason as usize] += 1;
    }

    pub(crate) const fn count_received(&mut self, kind: Kind) {
        self.packets_received[index(kind)] += 1;
    }

    pub(crate) const fn count_sent(&mut self, kind: Kind, packets: u64) {
        self.packets_sent[index(kind)] += packets;
    }
}

/// Position of `kind` in [`Kind::ALL`].
const fn index(kind: Kind) -> usize {
    kind as usize - Kind::Data as usize
}
