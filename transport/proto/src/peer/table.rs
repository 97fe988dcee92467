//! The table of peers: which are known, and which may be forgotten.
//!
//! # Invariants
//!
//! - **PEERS-1** A peer with a live RPC is never forgotten.
//! - **PEERS-2** A peer idle for less than `peer_idle_secs_min` is forgotten only for a newcomer of
//!   its own host, when that host is at its limit of peers, or for one of a host that has fewer.
//! - **PEERS-3** (AMO-6) A forgotten client's session survives among the dormant ones
//!   ([`dormant`](super::dormant)).
//! - **PEERS-4** (CAP-18) When there are too many peers, the idlest peer of the host with the most
//!   peers is evicted: a host with many peers keeps no other host away. The work for a newcomer is
//!   bounded.

use super::counted_ids::CountedIds;
use super::dormant::Dormant;
use super::hosts::{Host, Hosts};
use super::id_memory::IdMemory;
use super::{
    Address, Calls, Challenges, Displaced, HostId, PacketSize, Peer, PeerCutoffs, PeerId, Serving,
    UnprovenAnswers,
};
use crate::config::Config;
use crate::limits::{HOSTS_PER_EVICTION, PEER_SCAN_INTERVAL, PEERS_PER_EVICTION, PEERS_PER_SCAN};
use crate::secret::{Purpose, Secret};
use crate::time::Instant;
use apus_wire::Profile;
use foldhash::fast::FixedState;
use slotmap::SlotMap;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{SocketAddrV4, SocketAddrV6};

const SECOND: u64 = 1_000_000_000;

/// All peers.
#[derive(Debug)]
pub(crate) struct Peers {
    slots: SlotMap<PeerId, Peer>,
    /// By address and port. 16 bytes for each peer: with an `Address` as the key it would be 40,
    /// and most look-ups of many peers a cache miss.
    by_v4: HashMap<u64, PeerId, FixedState>,
    by_v6: HashMap<NamedV6, PeerId, FixedState>,
    /// The peer that was found last: packets arrive in runs.
    last: Option<(Address, PeerId)>,
    /// All peers in the order of the checks for idleness, and some that were forgotten.
    ring: VecDeque<PeerId>,
    /// The hosts of the peers.
    hosts: Hosts,
    /// Peers that were forgotten to make room for others.
    displaced: u64,
    next_scan: Instant,
    dormant: Dormant,
    /// Memory of finished ids.
    ids: IdMemory,
    /// Which sessions unknown clients are offered.
    pub(crate) challenges: Challenges,
    /// The rate of answers to senders without a session.
    pub(crate) unproven: UnprovenAnswers,
    secret: Secret,
    /// No call is further than this from the first id of a peer that was forgotten.
    ids_used: u64,
    profile: Profile,
    highest_priority: u8,
    limit: usize,
    limit_per_host: u32,
    idle_min: u64,
    idle_max: u64,
}

impl Peers {
    pub(crate) fn new(config: &Config, seed: u64, secret: Secret) -> Self {
        Self {
            slots: SlotMap::with_key(),
            by_v4: HashMap::with_hasher(FixedState::with_seed(seed)),
            by_v6: HashMap::with_hasher(FixedState::with_seed(seed)),
            last: None,
            ring: VecDeque::new(),
            hosts: Hosts::new(seed),
            displaced: 0,
            next_scan: Instant::NEVER,
            dormant: Dormant::new(config.max_dormant_sessions(), seed),
            ids: IdMemory::default(),
            challenges: Challenges::new(secret),
            unproven: UnprovenAnswers::new(seed),
            secret,
            ids_used: 0,
            profile: config.profile(),
            highest_priority: config.highest_priority(),
            limit: config.max_peers() as usize,
            limit_per_host: u32::try_from(config.max_peers_per_host()).unwrap_or(u32::MAX),
            idle_min: config.peer_idle_secs_min() * SECOND,
            idle_max: config.peer_idle_secs_max() * SECOND,
        }
    }

    /// The peer at `address`, if it is known.
    #[inline(always)]
    pub(crate) fn find(&mut self, address: &Address) -> Option<PeerId> {
        match &self.last {
            Some((last, id)) if last == address => Some(*id),
            _ => self.search(*address),
        }
    }

    // Not needed while packets arrive from the same peer as before.
    #[inline(never)]
    fn search(&mut self, address: Address) -> Option<PeerId> {
        let id = *match &address {
            Address::V4(v4) => self.by_v4.get(&key(v4)),
            Address::V6(v6) => self.by_v6.get(&NamedV6(*v6)),
        }?;
        self.last = Some((address, id));
        Some(id)
    }

    /// The peer, if it has not been forgotten since `id` was found.
    pub(crate) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.slots.get_mut(id)
    }

    /// Whether an unknown client at `address` may find room: its host has fewer peers than it may
    /// have, or one of them can go.
    pub(crate) fn may_have_room(&self, address: Address) -> bool {
        let Some(host) = self.hosts.find(&address) else { return true };
        self.hosts[host].peers() < self.limit_per_host || !self.hosts[host].is_busy()
    }

    /// Makes room for an unknown client at `address` among the peers of its host, by evicting the
    /// idlest of them. Returns whether there is room now.
    pub(crate) fn make_room_in_host(&mut self, address: Address, now: Instant) -> bool {
        let Some(host) = self.hosts.find(&address) else { return true };
        self.hosts[host].peers() < self.limit_per_host || self.evict_from(host, now)
    }

    /// Returns the peer at `address`, created if necessary, and whether it is new; `None` if there
    /// are too many.
    pub(crate) fn find_or_insert(
        &mut self,
        address: Address,
        now: Instant,
    ) -> Option<(PeerId, bool)> {
        if let Some(id) = self.find(&address) {
            return Some((id, false));
        }
        if self.slots.len() >= self.limit {
            self.make_room(address, now);
            if self.slots.len() >= self.limit {
                return None;
            }
        }
        let host = self.hosts.join(&address);
        let calls = Calls::starting_at(self.unused_id(address));
        let id = self.slots.insert(Peer {
            address,
            host,
            variant: super::Variant::default(),
            size: PacketSize::unknown(),
            cutoffs: PeerCutoffs::unknown(self.highest_priority),
            unscheduled: super::UnscheduledWindow::default(),
            cutoffs_sent: Instant::ZERO,
            rtt: super::Rtt::default(),
            acks: super::Acks::new(self.profile),
            resends: super::ResendBurst::default(),
            need_ack: super::NeedAckGate::default(),
            reads_shared_datagrams: false,
            calls,
            serving: self.dormant.wake(&address).unwrap_or_default(),
            ids: CountedIds::default(),
            live_rpcs: Vec::new(),
            send: super::OutgoingBytes::default(),
            marks: 0,
            receive_bytes: 0,
            last_used: now,
            heard: now,
            disclaimed: None,
        });
        match address {
            Address::V4(v4) => self.by_v4.insert(key(&v4), id),
            Address::V6(v6) => self.by_v6.insert(NamedV6(v6), id),
        };
        self.last = Some((address, id));
        self.ring.push_back(id);
        self.hosts[host].put_in_order(id, now);
        self.next_scan = self.next_scan.min(now.plus(PEER_SCAN_INTERVAL));
        Some((id, true))
    }

    /// An id that no call to `address` has had, whether or not the peer was known before.
    fn unused_id(&self, address: Address) -> u64 {
        first_id_to(self.secret, address) + self.ids_used
    }

    /// The serving state for `address`, whose peer is `peer`, or dormant.
    pub(crate) fn serving_of(&self, address: Address, peer: Option<PeerId>) -> Option<&Serving> {
        match peer {
            Some(peer) => Some(&self.slots[peer].serving),
            None => self.dormant.get(&address),
        }
    }

    /// A client's finished ids take more memory: some of another client's, or of its own, are freed
    /// if there are too many (CAP-22).
    #[cold]
    pub(crate) fn count_ids(&mut self, id: PeerId, now: Instant) {
        self.ids.count(&mut self.slots, &mut self.hosts, id, now);
    }

    /// A session of the client at `address` has ended.
    pub(crate) fn end_session(&mut self, address: Address, ended: Displaced, now: Instant) {
        self.challenges.end(address, ended.offered, now);
    }

    /// The names of all peers, in the order of their slots.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.slots.keys()
    }

    /// The host of a peer.
    pub(crate) fn host_of(&mut self, id: PeerId) -> &mut Host {
        &mut self.hosts[self.slots[id].host]
    }

    /// The name of the host of a peer.
    pub(crate) fn host_id(&self, id: PeerId) -> HostId {
        self.slots[id].host
    }

    /// A peer and its host.
    #[inline]
    pub(crate) fn with_host(&mut self, id: PeerId) -> (&mut Peer, &mut Host) {
        let peer = &mut self.slots[id];
        let host = &mut self.hosts[peer.host];
        (peer, host)
    }

    /// Number of peers that were forgotten to make room for others.
    pub(crate) const fn displaced(&self) -> u64 {
        self.displaced
    }

    /// All peers, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.slots.values()
    }

    /// When the next scan for idle peers is due.
    pub(crate) const fn next_scan(&self) -> Instant {
        self.next_scan
    }

    /// Forgets some of the peers that have been idle for long, in small steps (HM `homa_peer.c`
    /// `homa_peer_gc`, TIME-13). Returns whether a scan was due.
    pub(crate) fn scan(&mut self, now: Instant) -> bool {
        if now < self.next_scan {
            return false;
        }
        self.forget_idle(now, self.idle_max);
        let again = now.plus(PEER_SCAN_INTERVAL);
        self.next_scan = if self.slots.is_empty() { Instant::NEVER } else { again };
        true
    }

    /// Number of peers.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for a peer at `address`, if possible (PEERS-4). Otherwise every host has about as
    /// many peers, and a peer idle for some seconds is evicted.
    fn make_room(&mut self, address: Address, now: Instant) {
        let enough = u64::from(self.hosts.peers_at(&address) + 1);
        let largest = self.hosts.largest().take(HOSTS_PER_EVICTION);
        let hosts: SmallVec<[HostId; HOSTS_PER_EVICTION]> =
            largest.filter(|(peers, _)| *peers > enough).map(|(_, host)| host).collect();
        if !hosts.into_iter().any(|host| self.evict_from(host, now)) {
            self.forget_idle(now, self.idle_min);
        }
    }

    /// Evicts the idlest peer of `host` among the first of its order. Returns `false` if all of
    /// these have live RPCs.
    ///
    /// The order is that of the clock algorithm: a peer that was used since it was queued moves to
    /// the end, once. Exact order would cost list moves for every packet.
    fn evict_from(&mut self, host: HostId, now: Instant) -> bool {
        let mut idlest: Option<(Instant, PeerId)> = None;
        for _ in 0..PEERS_PER_EVICTION {
            let Some((id, since)) = self.hosts[host].next_in_order() else { break };
            let Some(peer) = self.slots.get(id) else { continue };
            let last_used = peer.last_used;
            if peer.live_rpcs.is_empty() {
                idlest = idlest.min(Some((last_used, id))).or(Some((last_used, id)));
                if last_used <= since {
                    self.hosts[host].put_in_order(id, last_used);
                    break;
                }
            }
            self.hosts[host].put_in_order(id, last_used.max(since));
        }
        let Some((_, id)) = idlest else { return false };
        self.displaced += 1;
        self.forget(id, now);
        true
    }

    /// Checks the next peers of the ring and forgets those idle for `limit` nanoseconds.
    fn forget_idle(&mut self, now: Instant, limit: u64) {
        for _ in 0..self.ring.len().min(PEERS_PER_SCAN) {
            let Some(id) = self.ring.pop_front() else { return };
            let Some(peer) = self.slots.get_mut(id) else { continue };
            peer.size.raise_if_due(now);
            if !peer.live_rpcs.is_empty() || now.since(peer.last_used) < limit {
                self.ring.push_back(id);
            } else {
                self.forget(id, now);
            }
        }
    }

    fn forget(&mut self, id: PeerId, now: Instant) {
        let Some(mut peer) = self.slots.remove(id) else { return };
        debug_assert!(peer.live_rpcs.is_empty(), "PEERS-1");
        match &peer.address {
            Address::V4(v4) => self.by_v4.remove(&key(v4)),
            Address::V6(v6) => self.by_v6.remove(&NamedV6(*v6)),
        };
        self.ids.forget(&mut self.hosts, &mut peer);
        let slots = &self.slots;
        self.hosts.leave(peer.host, |id| slots.contains_key(id));
        if self.ring.len() > 2 * slots.len() + PEERS_PER_SCAN {
            self.ring.retain(|id| slots.contains_key(*id));
        }
        self.last = None;
        let used = peer.calls.next_id() - first_id_to(self.secret, peer.address);
        self.ids_used = self.ids_used.max(used);
        if peer.serving.is_established() {
            peer.serving.rest(now);
            let lost = self.dormant.put(peer.address, peer.serving);
            if let Some((address, lost)) = lost
                && let Some(offered) = lost.offered()
            {
                self.challenges.end(address, offered, now);
            }
        }
    }
}

impl std::ops::Index<PeerId> for Peers {
    type Output = Peer;

    #[inline(always)]
    fn index(&self, id: PeerId) -> &Peer {
        &self.slots[id]
    }
}

impl std::ops::IndexMut<PeerId> for Peers {
    #[inline(always)]
    fn index_mut(&mut self, id: PeerId) -> &mut Peer {
        &mut self.slots[id]
    }
}

/// The first id of calls to `address`. It reveals nothing about ids towards other servers (RPC-7).
fn first_id_to(secret: Secret, address: Address) -> u64 {
    first_id(secret.number_of(Purpose::FirstId, address))
}

/// The first id of calls that a random number decides: even, far from 0, and with room for
/// centuries above it.
pub(crate) const fn first_id(random: u64) -> u64 {
    (random >> 2) & !1 | 1 << 61
}

/// The key of an address of IPv4.
fn key(v4: &SocketAddrV4) -> u64 {
    u64::from(v4.ip().to_bits()) << 16 | u64::from(v4.port())
}

/// An address of IPv6 that is hashed in two writes: the standard hash is ten of a few bytes each,
/// for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedV6(SocketAddrV6);

impl Hash for NamedV6 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.0.ip().to_bits());
        state.write_u64(u64::from(self.0.scope_id()) << 16 | u64::from(self.0.port()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u16) -> Address {
        Address::from(([10, 0, 0, 1], n))
    }

    fn secs(n: u64) -> Instant {
        Instant::from_nanos(n * SECOND)
    }

    fn peers(limit: u64) -> Peers {
        let config = Config::builder().max_peers(limit).max_dormant_sessions(4).build().unwrap();
        Peers::new(&config, 1, Secret::new(1))
    }

    #[test]
    fn an_idle_peer_is_forgotten_and_a_busy_one_is_not() {
        let mut peers = peers(10);
        let (idle, _) = peers.find_or_insert(address(1), secs(0)).unwrap();
        let (busy, _) = peers.find_or_insert(address(2), secs(0)).unwrap();
        peers[busy].live_rpcs.push(crate::RpcKey::default());
        peers.scan(secs(119));
        assert_eq!(peers.find(&address(1)), Some(idle));
        peers.scan(secs(121));
        assert_eq!(peers.find(&address(1)), None);
        assert_eq!(peers.find(&address(2)), Some(busy), "PEERS-1");
        peers[busy].live_rpcs.clear();
        peers.scan(secs(123));
        assert_eq!((peers.len(), peers.next_scan()), (0, Instant::NEVER));
    }

    #[test]
    fn when_the_table_is_full_an_idle_peer_makes_room_earlier() {
        let mut peers = peers(2);
        peers.find_or_insert(address(1), secs(0)).unwrap();
        peers.find_or_insert(address(2), secs(5)).unwrap();
        assert!(peers.find_or_insert(address(3), secs(9)).is_none(), "PEERS-2");
        assert!(peers.find_or_insert(address(3), secs(12)).is_some());
        assert_eq!(peers.find(&address(1)), None);
    }

    #[test]
    fn ids_towards_a_forgotten_peer_are_not_used_again() {
        let mut peers = peers(2);
        let (id, _) = peers.find_or_insert(address(1), secs(0)).unwrap();
        let first = peers[id].calls.allocate();
        assert_eq!(peers[id].calls.allocate(), first + 2);
        peers.scan(secs(200));
        let (id, new) = peers.find_or_insert(address(1), secs(201)).unwrap();
        assert!(new);
        assert_eq!(peers[id].calls.allocate(), first + 4);
    }

    /// Requirement CAP-22: 1,000 ports of one host with 300 gaps each, and a client of another host
    /// with a few.
    #[test]
    fn gaps_of_one_host_take_half_of_the_memory_and_none_from_others() {
        let mut peers = peers(2_000);
        let finish = |peers: &mut Peers, address, gaps: u64| {
            let (id, new) = peers.find_or_insert(address, secs(0)).unwrap();
            if new {
                assert_eq!(peers[id].serving.establish(7, 7, crate::peer::Slot::default()), None);
            }
            for gap in 1..=gaps {
                if peers[id].serving.finish(7, 4 * gap, secs(0)) {
                    peers.count_ids(id, secs(0));
                }
            }
            id
        };
        let other = finish(&mut peers, ([10, 0, 0, 2], 1).into(), 300);
        for port in 1..=1_000 {
            finish(&mut peers, address(port), 300);
        }
        let memory = |peers: &Peers, id: PeerId| peers[id].serving.memory() as u64;
        let all: u64 = peers.ids().map(|id| memory(&peers, id)).sum();
        let half = crate::limits::MAX_ID_MEMORY / 2;
        assert!(all <= half + 20_000, "{all}");
        assert!(all > half / 2, "no more is freed than needed: {all}");
        assert!(!peers[other].serving.is_finished(2), "its gaps are open");
        let first = peers.find(&address(1)).unwrap();
        assert!(peers[first].serving.is_finished(2), "the host closes its own");
        (200..210).for_each(|now| _ = peers.scan(secs(now)));
        let memory: u64 = peers.ids().map(|id| memory(&peers, id)).sum();
        assert_eq!(memory, 0, "idle clients need none");
    }

    /// Requirement AMO-6.
    #[test]
    fn sessions_of_forgotten_clients_are_kept_up_to_a_limit() {
        let mut peers = peers(10);
        let claim = 7;
        let numbers = [1, 2, 3].map(|n| peers.challenges.offer(address(n), claim, secs(199)));
        let show = |peers: &mut Peers, n: u16, now| {
            let number = numbers[usize::from(n) - 1];
            let slot = peers.challenges.accept(address(n), claim, number, now);
            let known = peers.serving_of(address(n), None).is_some_and(|s| s.is_current(number));
            (known, slot)
        };
        for n in 1..=3 {
            let (id, _) = peers.find_or_insert(address(n), secs(0)).unwrap();
            let (known, slot) = show(&mut peers, n, secs(199));
            assert!(!known);
            let number = numbers[usize::from(n) - 1];
            assert_eq!(peers[id].serving.establish(number, claim, slot.unwrap()), None);
        }
        peers.scan(secs(200));
        assert_eq!(peers.len(), 0);
        let (known, slot) = show(&mut peers, 1, secs(200));
        assert!(!known && slot.is_none(), "the oldest had to go, and its number with it");
        assert!(show(&mut peers, 2, secs(200)).0 && show(&mut peers, 3, secs(200)).0);
        let (id, _) = peers.find_or_insert(address(2), secs(200)).unwrap();
        assert!(peers[id].serving.is_current(numbers[1]), "it wakes up");
    }
}
