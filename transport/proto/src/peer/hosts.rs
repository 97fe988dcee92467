//! The hosts behind peers, and the resources that all peers of a host share.
//!
//! A *host* is an IPv4 address, or the 64 bits of an IPv6 address that name its network (RFC 4291
//! section 2.5.4): a machine with one address there may take any. Several machines behind one NAT
//! are one host. A client can have any number of ports, and thereby of peers, but only one host:
//! limits per host cannot be multiplied.
//!
//! A peer holds the [`HostId`] of its host, so that no address is hashed for a packet of a known
//! peer.
//!
//! # Invariants
//!
//! - **HOSTS-1** A host is known exactly as long as it has peers, and `by_size` holds each host
//!   with their number.
//! - **HOSTS-2** Each peer of a host is in the host's order once. (So may be peers that were
//!   forgotten.)
//! - **HOSTS-3** `busy` is the number of peers of a host that have live RPCs.

use super::counted_ids::HostIds;
use super::{Address, HostId, PeerId};
use crate::quota::Ranking;
use crate::rpc_key::RpcKey;
use crate::time::Instant;
use apus_wire::Role;
use foldhash::fast::FixedState;
use slotmap::SlotMap;
use std::collections::{HashMap, VecDeque};

/// The address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HostAddress {
    V4(u32),
    /// The upper half of the address; the interface, for addresses that are valid on one link.
    V6(u64, u32),
}

impl HostAddress {
    pub(crate) fn of(address: &Address) -> Self {
        match address {
            Address::V4(v4) => Self::V4(v4.ip().to_bits()),
            Address::V6(v6) => Self::V6((v6.ip().to_bits() >> 64) as u64, v6.scope_id()),
        }
    }
}

/// Resources used by the peers of one host.
#[derive(Debug)]
pub(crate) struct Host {
    address: HostAddress,
    /// Number of its peers.
    peers: u32,
    /// Number of them that have live RPCs.
    busy: u32,
    /// Live RPCs in which its peers are the clients.
    pub(crate) server_rpcs: u32,
    /// Bytes reserved for messages that are being received from them.
    pub(crate) receive_bytes: u64,
    /// Whether messages from them have waited for room among these bytes.
    pub(crate) is_waited_for: bool,
    /// Memory of finished ids of its peers (`id_memory`).
    pub(super) ids: HostIds,
    /// Long responses to them (`budget::send`).
    pub(crate) responses: HostResponses,
    /// Its peers, each with the time at which it was queued; the oldest entries are in front.
    order: VecDeque<(PeerId, Instant)>,
}

/// The responses to the peers of a host that count for it. Kept by `budget::send`.
#[derive(Debug, Default)]
pub(crate) struct HostResponses {
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Their number.
    pub(crate) count: u32,
    /// Each of them, with the time at which it was queued or was seen to make progress; the oldest
    /// entries are in front. Some have ended.
    pub(crate) order: VecDeque<(RpcKey, Instant)>,
}

impl Host {
    /// Number of its peers.
    pub(crate) const fn peers(&self) -> u32 {
        self.peers
    }

    /// Whether all of its peers have live RPCs: none can go.
    pub(super) const fn is_busy(&self) -> bool {
        self.busy == self.peers
    }

    /// Counts a new live RPC with one of its peers, which has `others`.
    pub(crate) fn rpc_begins(&mut self, others: usize, ours: Role) {
        self.busy += u32::from(others == 0);
        self.server_rpcs += u32::from(ours == Role::Server);
    }

    /// A live RPC with one of its peers, which has `others`, ends.
    pub(crate) fn rpc_ends(&mut self, others: usize, ours: Role) {
        self.busy -= u32::from(others == 0);
        self.server_rpcs -= u32::from(ours == Role::Server);
    }

    /// Takes the first peer out of the order.
    pub(super) fn next_in_order(&mut self) -> Option<(PeerId, Instant)> {
        self.order.pop_front()
    }

    /// Puts a peer to the end of the order.
    pub(super) fn put_in_order(&mut self, peer: PeerId, at: Instant) {
        self.order.push_back((peer, at));
    }
}

/// All hosts that have peers.
#[derive(Debug)]
pub(crate) struct Hosts {
    slots: SlotMap<HostId, Host>,
    by_address: HashMap<HostAddress, HostId, FixedState>,
    by_size: Ranking<HostId>,
}

impl Hosts {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            slots: SlotMap::with_key(),
            by_address: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_size: Ranking::new(1),
        }
    }

    /// Returns the host at `address`, if it has peers.
    pub(super) fn find(&self, address: &Address) -> Option<HostId> {
        self.by_address.get(&HostAddress::of(address)).copied()
    }

    /// Returns the number of peers that the host at `address` has.
    pub(super) fn peers_at(&self, address: &Address) -> u32 {
        self.find(address).map_or(0, |host| self.slots[host].peers)
    }

    /// Adds a peer to the host at `address`; [`Host::put_in_order`] must follow.
    pub(super) fn join(&mut self, address: &Address) -> HostId {
        let address = HostAddress::of(address);
        let slots = &mut self.slots;
        let id = *self.by_address.entry(address).or_insert_with(|| {
            let order = VecDeque::new();
            slots.insert(Host {
                address,
                peers: 0,
                busy: 0,
                server_rpcs: 0,
                receive_bytes: 0,
                is_waited_for: false,
                ids: HostIds::default(),
                responses: HostResponses::default(),
                order,
            })
        });
        let host = &mut self.slots[id];
        host.peers += 1;
        self.by_size.change(id, u64::from(host.peers - 1), u64::from(host.peers));
        id
    }

    /// Removes a forgotten peer of `id`; `is_known` returns whether a peer is still known.
    pub(super) fn leave(&mut self, id: HostId, is_known: impl Fn(PeerId) -> bool) {
        let host = &mut self.slots[id];
        self.by_size.change(id, u64::from(host.peers), u64::from(host.peers - 1));
        host.peers -= 1;
        if host.peers == 0 {
            let bytes = host.receive_bytes + host.responses.bytes;
            debug_assert_eq!((host.server_rpcs, bytes), (0, 0), "PEERS-1");
            self.by_address.remove(&host.address);
            self.slots.remove(id);
            return;
        }
        if host.order.len() > 2 * host.peers as usize + 8 {
            host.order.retain(|(peer, _)| is_known(*peer));
        }
    }

    /// Returns the hosts with the number of their peers, the largest first.
    pub(super) fn largest(&self) -> impl Iterator<Item = (u64, HostId)> {
        self.by_size.largest()
    }
}

impl std::ops::Index<HostId> for Hosts {
    type Output = Host;

    #[inline(always)]
    fn index(&self, id: HostId) -> &Host {
        &self.slots[id]
    }
}

impl std::ops::IndexMut<HostId> for Hosts {
    #[inline(always)]
    fn index_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.slots[id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostAddress {
        HostAddress::of(&text.parse().unwrap())
    }

    #[test]
    fn ports_and_the_lower_half_of_ipv6_addresses_are_one_host() {
        assert_eq!(host("10.0.0.1:1"), host("10.0.0.1:2"));
        assert_ne!(host("10.0.0.1:1"), host("10.0.0.2:1"));
        assert_eq!(host("[2001:db8:0:1::1]:1"), host("[2001:db8:0:1:ffff::2]:2"));
        assert_ne!(host("[2001:db8:0:1::1]:1"), host("[2001:db8:0:2::1]:1"));
        assert_ne!(host("[fe80::1%1]:1"), host("[fe80::1%2]:1"), "two links");
    }

    #[test]
    fn a_host_is_known_as_long_as_it_has_peers() {
        let mut hosts = Hosts::new(1);
        let (one, other) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let id = hosts.join(&one);
        assert_eq!(hosts.join(&one), id);
        let second = hosts.join(&other);
        assert_eq!(hosts.largest().collect::<Vec<_>>(), [(2, id), (1, second)], "HOSTS-1");
        hosts.leave(id, |_| true);
        hosts.leave(id, |_| true);
        assert_eq!((hosts.find(&one), hosts.peers_at(&other)), (None, 1));
        assert_eq!(hosts.largest().collect::<Vec<_>>(), [(1, second)]);
    }
}
