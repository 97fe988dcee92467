//! The send budget: payload that waits for transmission or for its acknowledgment.
//!
//! Requests are this application's own, and wait for room as CAP-1 states. A response is kept as
//! long as its client may need it, so that clients decide how long: responses follow the rules of
//! [`quota`](crate::quota).
//!
//! # Invariants
//!
//! - **SEND-BUDGET-1** The bytes of a host are the sum of its responses of more than
//!   [`COUNTED_FROM`] bytes. Shorter ones are bounded by their number (CAP-18).
//! - **SEND-BUDGET-2** Each of these responses is in the order of its host once. (So may be
//!   responses that have ended.)

use crate::config::Config;
use crate::extent::charge;
use crate::limits::{PROGRESS_BYTES, RESPONSES_PER_SEARCH};
use crate::peer::{HostId, OutgoingBytes, Peer, PeerId, Peers};
use crate::quota::{Excess, Quota, Ranking, Shortage, Size};
use crate::rpc_key::RpcKey;
use crate::time::Instant;
use apus_wire::Role;

/// Responses up to this length count for their host by their number alone: their path stays short.
const COUNTED_FROM: u64 = PROGRESS_BYTES as u64;

/// Hosts are compared in units of this many bytes.
const RANKING_UNIT: u64 = 1 << 16;

/// The send budget.
#[derive(Debug)]
pub(crate) struct SendBudget {
    used: OutgoingBytes,
    quota: Quota,
    per_peer: u64,
    /// Longest response that counts as short.
    window: u64,
    /// Hosts by the bytes of their responses.
    hosts: Ranking<HostId>,
    /// Responses that found no room.
    shortage: Shortage,
}

/// The limit that a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendExcess {
    /// `max_send_bytes`.
    All,
    /// `max_send_bytes_per_peer`.
    Peer,
    /// The part of one host.
    Host,
}

impl SendBudget {
    pub(super) fn new(config: &Config) -> Self {
        let (all, per_peer) = (config.max_send_bytes(), config.max_send_bytes_per_peer());
        Self {
            used: OutgoingBytes::default(),
            // Half, as of the receive budget, and what the application grants a peer.
            quota: Quota::new(all, per_peer.max(all / 2), config.max_message()),
            per_peer,
            window: config.unscheduled_window(),
            hosts: Ranking::new(RANKING_UNIT),
            shortage: Shortage::default(),
        }
    }

    /// Bytes of all messages.
    pub(crate) const fn bytes(&self) -> u64 {
        self.used.bytes()
    }

    /// Checks that a request of `bytes` bytes may be sent to `peer` (CAP-1).
    pub(super) fn check_request(&mut self, peer: &mut Peer, bytes: u64) -> Result<(), SendExcess> {
        let bytes = charge(bytes);
        if *self.used.of(Role::Client) + bytes > self.quota.most(Size::Short) {
            Err(SendExcess::All)
        } else if *peer.send.of(Role::Client) + bytes > self.per_peer {
            Err(SendExcess::Peer)
        } else {
            Ok(())
        }
    }

    /// Checks that a response of `bytes` bytes may be sent to `peer` (CAP-1, CAP-21).
    pub(crate) fn check_response(
        &mut self,
        peers: &mut Peers,
        peer: PeerId,
        bytes: u64,
    ) -> Result<(), SendExcess> {
        let (size, bytes) = (self.size(bytes), charge(bytes));
        let used = *self.used.of(Role::Server);
        // A host without long responses is not looked up.
        if bytes > COUNTED_FROM {
            let of_host = peers.with_host(peer).1.responses.bytes;
            if let Err(Excess::Host) = self.quota.check(used, of_host, bytes, size) {
                return Err(SendExcess::Host);
            }
        }
        if used + bytes > self.quota.most(size) {
            self.shortage.wait();
            Err(SendExcess::All)
        } else if *peers[peer].send.of(Role::Server) + bytes > self.per_peer {
            self.shortage.wait();
            Err(SendExcess::Peer)
        } else {
            Ok(())
        }
    }

    /// Whether the responses of this host leave no room for another one: the response to a
    /// request of it could not be sent.
    pub(crate) const fn is_host_full(&self, of_host: u64) -> bool {
        of_host >= self.quota.most_of_host(Size::Long)
    }

    /// A response waits for room of its host.
    pub(crate) const fn wait(&mut self) {
        self.shortage.wait();
    }

    /// Reserves `bytes` bytes for a message to `peer`, for which there is room.
    pub(crate) fn reserve(&mut self, peer: &mut Peer, ours: Role, bytes: u64) {
        let bytes = charge(bytes);
        *self.used.of(ours) += bytes;
        *peer.send.of(ours) += bytes;
    }

    /// Counts the response of `rpc` to `peer`, whose bytes were reserved, for the peer's host, if
    /// it is not too short. `is_live` states whether a response still exists.
    pub(crate) fn count_for_host(
        &mut self,
        peers: &mut Peers,
        peer: PeerId,
        rpc: RpcKey,
        bytes: u64,
        now: Instant,
        is_live: impl Fn(RpcKey) -> bool,
    ) {
        let id = peers[peer].host();
        let responses = &mut peers.with_host(peer).1.responses;
        self.hosts.change(id, responses.bytes, responses.bytes + bytes);
        responses.bytes += bytes;
        responses.count += 1;
        responses.order.push_back((rpc, now));
        if responses.order.len() > 2 * responses.count as usize + 8 {
            responses.order.retain(|(rpc, _)| is_live(*rpc));
        }
    }

    /// Whether a message of this length counts for its host.
    pub(crate) const fn is_counted(ours: Role, bytes: u64) -> bool {
        matches!(ours, Role::Server) && bytes > COUNTED_FROM
    }

    /// Releases the `bytes` bytes of a message that `peer` no longer needs.
    pub(super) fn release(&mut self, peer: &mut Peer, ours: Role, bytes: u64) {
        let bytes = charge(bytes);
        *self.used.of(ours) -= bytes;
        *peer.send.of(ours) -= bytes;
    }

    /// Responses that wait for room are tried again.
    pub(super) const fn retry(&mut self) {
        self.shortage.retry();
    }

    /// A counted response to `peer` has ended.
    // Not needed by responses of one packet, whose path stays short.
    #[inline(never)]
    pub(crate) fn release_for_host(&mut self, peers: &mut Peers, peer: PeerId, bytes: u64) {
        let id = peers[peer].host();
        let responses = &mut peers.with_host(peer).1.responses;
        self.hosts.change(id, responses.bytes, responses.bytes - bytes);
        responses.bytes -= bytes;
        responses.count -= 1;
        if responses.count == 0 {
            responses.order = std::collections::VecDeque::new();
        }
    }

    /// Whether a response waits for room, and no host has more of it than the host of `peer`.
    pub(crate) fn takes_from(&self, peers: &mut Peers, peer: PeerId) -> bool {
        self.is_waited_for() && self.hosts.is_largest(peers.with_host(peer).1.responses.bytes)
    }

    /// Whether a response waits for room.
    pub(crate) const fn is_waited_for(&self) -> bool {
        self.shortage.is_waited_for()
    }

    /// A response of the host of `peer` that has stood still since before `limit`, of those that
    /// are checked now; it must be ended. `standing_since` returns since when a response has
    /// made no progress, `None` if it has ended.
    ///
    /// The order is that of the clock algorithm: a response that has made progress since it was
    /// queued moves to the end, once.
    pub(crate) fn stalled_of_host(
        &self,
        peers: &mut Peers,
        peer: PeerId,
        limit: Instant,
        standing_since: impl Fn(RpcKey) -> Option<Instant>,
    ) -> Option<RpcKey> {
        let order = &mut peers.with_host(peer).1.responses.order;
        for _ in 0..RESPONSES_PER_SEARCH {
            let (rpc, _) = order.pop_front()?;
            let Some(since) = standing_since(rpc) else { continue };
            if since < limit {
                return Some(rpc);
            }
            order.push_back((rpc, since));
        }
        None
    }

    const fn size(&self, bytes: u64) -> Size {
        if bytes > self.window { Size::Long } else { Size::Short }
    }
}
