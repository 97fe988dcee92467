//! The memory of finished ids that are kept one by one (CAP-22).
//!
//! Ids between two finished ones may belong to requests that are live, or on their way, or to
//! nothing: a client can leave as many gaps as it likes, in as many sessions as it has ports. The
//! rules of [`quota`](crate::quota) bound them: a host has half of the memory, and memory is freed
//! from the host that has most, by closing the lower half of a session's gaps. That refuses
//! requests, and never executes one twice.
//!
//! # Invariants
//!
//! - **IDS-1** What is counted for a peer is at most what its set has occupied since it was counted
//!   last: a set is counted when it grows. One that has shrunk is counted when memory is needed.
//! - **IDS-2** Each peer with counted ids is in the queue of its host once. (So may be peers that
//!   were forgotten.)

use super::hosts::Hosts;
use super::{HostId, Peer, PeerId};
use crate::limits::{MAX_ID_MEMORY, SESSIONS_PER_SEARCH};
use crate::quota::{Quota, Ranking, Size};
use crate::time::Instant;
use slotmap::SlotMap;

/// Hosts are compared in units of this many bytes.
const RANKING_UNIT: u64 = 1 << 10;

/// Memory of finished ids.
#[derive(Debug)]
pub(super) struct IdMemory {
    used: u64,
    quota: Quota,
    hosts: Ranking<HostId>,
}

impl Default for IdMemory {
    fn default() -> Self {
        Self { used: 0, quota: Quota::of_equals(MAX_ID_MEMORY), hosts: Ranking::new(RANKING_UNIT) }
    }
}

impl IdMemory {
    /// Counts the ids of a peer, which have grown, and frees memory if there is too much.
    pub(super) fn count(
        &mut self,
        peers: &mut SlotMap<PeerId, Peer>,
        hosts: &mut Hosts,
        id: PeerId,
        now: Instant,
    ) {
        let Some(peer) = peers.get_mut(id) else { return };
        let host = peer.host;
        self.settle(hosts, peer);
        if !std::mem::replace(&mut peer.ids.is_queued, true) {
            hosts[host].ids.peers.push_back(id);
        }
        for _ in 0..SESSIONS_PER_SEARCH {
            let of_host = hosts[host].ids.used;
            let from = if of_host > self.quota.most_of_host(Size::Short) {
                host
            } else if self.used > self.quota.most(Size::Short)
                && let Some((_, largest)) = self.hosts.largest().next()
            {
                largest
            } else {
                return;
            };
            self.free_some(peers, hosts, from, now);
        }
    }

    /// A peer is forgotten.
    pub(super) fn forget(&mut self, hosts: &mut Hosts, peer: &mut Peer) {
        self.change(hosts, peer, 0);
    }

    /// Frees half of the memory of the next peer of `host` that has any.
    fn free_some(
        &mut self,
        peers: &mut SlotMap<PeerId, Peer>,
        hosts: &mut Hosts,
        host: HostId,
        now: Instant,
    ) {
        let Some(id) = hosts[host].ids.peers.pop_front() else { return };
        let Some(peer) = peers.get_mut(id) else { return };
        // It may have shrunk itself.
        let counted = peer.ids.used;
        self.settle(hosts, peer);
        if peer.ids.used == counted {
            peer.serving.close_some_gaps(now);
            self.settle(hosts, peer);
        }
        peer.ids.is_queued = peer.ids.used > 0;
        if peer.ids.is_queued {
            hosts[host].ids.peers.push_back(id);
        }
    }

    /// Counts what the ids of a peer occupy now.
    fn settle(&mut self, hosts: &mut Hosts, peer: &mut Peer) {
        self.change(hosts, peer, peer.serving.memory() as u64);
    }

    fn change(&mut self, hosts: &mut Hosts, peer: &mut Peer, after: u64) {
        let of_host = &mut hosts[peer.host].ids.used;
        let (before, host_before) = (std::mem::replace(&mut peer.ids.used, after), *of_host);
        self.used = self.used - before + after;
        *of_host = host_before - before + after;
        self.hosts.change(peer.host, host_before, *of_host);
    }
}
