//! The table of peers: which are known, and which may be forgotten.
//!
//! # Invariants
//!
//! - **PEERS-1** A peer with a live RPC is never forgotten.
//! - **PEERS-2** A peer idle for less than `peer_idle_secs_min` is never forgotten.
//! - **PEERS-3** (AMO-6) A forgotten client's session survives among the dormant ones until there are
//!   `max_dormant_sessions` younger ones.

use super::{Address, Calls, Peer, PeerCutoffs, PeerId, Serving};
use crate::config::Config;
use crate::limits::{DEFAULT_PACKET_BYTES, PEER_SCAN_INTERVAL, PEERS_PER_SCAN};
use crate::secret::{Purpose, Secret};
use crate::time::Instant;
use apus_wire::{DATA_HEADER_LEN, Profile};
use foldhash::fast::FixedState;
use slotmap::SlotMap;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

const SECOND: u64 = 1_000_000_000;

/// All peers.
#[derive(Debug)]
pub(crate) struct Peers {
    slots: SlotMap<PeerId, Peer>,
    by_address: HashMap<Named, PeerId, FixedState>,
    /// The peer that was found last: packets arrive in runs.
    last: Option<(Address, PeerId)>,
    /// All peers in the order in which they are checked for idleness.
    ring: VecDeque<PeerId>,
    next_scan: Instant,
    dormant: Dormant,
    secret: Secret,
    /// No call is further than this from the first id of a peer that was forgotten.
    ids_used: u64,
    profile: Profile,
    highest_priority: u8,
    limit: usize,
    idle_min: u64,
    idle_max: u64,
}

impl Peers {
    pub(crate) fn new(config: &Config, seed: u64, secret: Secret) -> Self {
        Self {
            slots: SlotMap::with_key(),
            by_address: HashMap::with_hasher(FixedState::with_seed(seed)),
            last: None,
            ring: VecDeque::new(),
            next_scan: Instant::NEVER,
            dormant: Dormant::new(config.max_dormant_sessions() as usize, seed),
            secret,
            ids_used: 0,
            profile: config.profile(),
            highest_priority: config.highest_priority(),
            limit: config.max_peers() as usize,
            idle_min: config.peer_idle_secs_min() * SECOND,
            idle_max: config.peer_idle_secs_max() * SECOND,
        }
    }

    /// The peer at `address`, if it is known.
    pub(crate) fn find(&mut self, address: Address) -> Option<PeerId> {
        if let Some((last, id)) = self.last
            && last == address
        {
            return Some(id);
        }
        let id = *self.by_address.get(&Named(address))?;
        self.last = Some((address, id));
        Some(id)
    }

    /// The peer, if it has not been forgotten since `id` was found.
    pub(crate) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.slots.get_mut(id)
    }

    /// The peer at `address`, made if necessary, and whether it is new; `None` if there are too many.
    pub(crate) fn find_or_insert(
        &mut self,
        address: Address,
        now: Instant,
    ) -> Option<(PeerId, bool)> {
        if let Some(id) = self.find(address) {
            return Some((id, false));
        }
        if self.slots.len() >= self.limit {
            self.forget_idle(now, self.idle_min);
            if self.slots.len() >= self.limit {
                return None;
            }
        }
        let calls = Calls::starting_at(self.unused_id(address));
        let id = self.slots.insert(Peer {
            address,
            variant: super::Variant::default(),
            segment: (DEFAULT_PACKET_BYTES - DATA_HEADER_LEN) as u32,
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
            live_rpcs: 0,
            held: 0,
            send: super::Outgoing::default(),
            receive_bytes: 0,
            last_used: now,
            heard: now,
        });
        self.by_address.insert(Named(address), id);
        self.last = Some((address, id));
        self.ring.push_back(id);
        self.next_scan = self.next_scan.min(now.plus(PEER_SCAN_INTERVAL));
        Some((id, true))
    }

    /// The id of the next call to `address` in the udp profile.
    pub(crate) fn next_call_id(&mut self, address: Address) -> u64 {
        let known = self.find(address).map(|peer| self.slots[peer].calls.next_id());
        known.unwrap_or_else(|| self.unused_id(address))
    }

    /// An id that no call to `address` has had, whether or not the peer was known before.
    fn unused_id(&self, address: Address) -> u64 {
        first_id_to(self.secret, address) + self.ids_used
    }

    /// Forgets a peer at once if it has no live RPC and never proved its address.
    pub(crate) fn forget_unknown(&mut self, id: PeerId) {
        let peer = &self.slots[id];
        let is_unknown = peer.live_rpcs == 0 && !peer.serving.is_established();
        if is_unknown && peer.calls.next_id() == self.unused_id(peer.address) {
            self.ring.retain(|other| *other != id);
            self.forget(id);
        }
    }

    /// All peers, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.slots.values()
    }

    /// When the next scan for idle peers is due.
    pub(crate) const fn next_scan(&self) -> Instant {
        self.next_scan
    }

    /// Forgets some of the peers that have been idle for long, in small steps (HM `homa_peer.c` `homa_peer_gc`,
    /// TIME-13). Returns whether a scan was due.
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

    /// Checks the next peers of the ring and forgets those idle for `limit` nanoseconds.
    fn forget_idle(&mut self, now: Instant, limit: u64) {
        for _ in 0..self.ring.len().min(PEERS_PER_SCAN) {
            let Some(id) = self.ring.pop_front() else { return };
            let peer = &self.slots[id];
            if peer.live_rpcs > 0 || now.since(peer.last_used) < limit {
                self.ring.push_back(id);
            } else {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: PeerId) {
        let Some(peer) = self.slots.remove(id) else { return };
        debug_assert_eq!(peer.live_rpcs, 0, "PEERS-1");
        self.by_address.remove(&Named(peer.address));
        self.last = None;
        let used = peer.calls.next_id() - first_id_to(self.secret, peer.address);
        self.ids_used = self.ids_used.max(used);
        if peer.serving.is_established() {
            self.dormant.put(peer.address, peer.serving);
        }
    }
}

impl std::ops::Index<PeerId> for Peers {
    type Output = Peer;

    fn index(&self, id: PeerId) -> &Peer {
        &self.slots[id]
    }
}

impl std::ops::IndexMut<PeerId> for Peers {
    fn index_mut(&mut self, id: PeerId) -> &mut Peer {
        &mut self.slots[id]
    }
}

/// The first id of calls to `address`. A server that is called learns nothing about ids towards others (RPC-7).
fn first_id_to(secret: Secret, address: Address) -> u64 {
    first_id(secret.number_of(Purpose::FirstId, address))
}

/// The first id of calls that a random number decides: even, far from 0, and with room for centuries above it.
pub(crate) const fn first_id(random: u64) -> u64 {
    (random >> 2) & !1 | 1 << 61
}

/// An address as a key that is hashed in one write, or in two for IPv6: the standard hash is ten writes of
/// a few bytes each, for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(Address);

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let port = u64::from(self.0.port());
        match self.0 {
            Address::V4(v4) => state.write_u64(u64::from(v4.ip().to_bits()) << 16 | port),
            Address::V6(v6) => {
                state.write_u128(v6.ip().to_bits());
                state.write_u64(u64::from(v6.scope_id()) << 16 | port);
            }
        }
    }
}

/// Sessions of clients that are idle, oldest first.
#[derive(Debug)]
struct Dormant {
    sessions: HashMap<Address, (u64, Serving), FixedState>,
    order: VecDeque<(u64, Address)>,
    next: u64,
    limit: usize,
}

impl Dormant {
    fn new(limit: usize, seed: u64) -> Self {
        let sessions = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { sessions, order: VecDeque::new(), next: 0, limit }
    }

    fn put(&mut self, address: Address, serving: Serving) {
        self.sessions.insert(address, (self.next, serving));
        self.order.push_back((self.next, address));
        self.next += 1;
        while self.sessions.len() > self.limit {
            let Some((number, address)) = self.order.pop_front() else { break };
            if is_present(&self.sessions, number, &address) {
                self.sessions.remove(&address);
            }
        }
        // Clients that woke up have left their places in the order.
        if self.order.len() > 2 * self.limit.max(self.sessions.len()) {
            let sessions = &self.sessions;
            self.order.retain(|(number, address)| is_present(sessions, *number, address));
        }
    }

    fn wake(&mut self, address: &Address) -> Option<Serving> {
        self.sessions.remove(address).map(|(_, serving)| serving)
    }
}

/// Whether the session that was put in as `number` is still stored, and no later one of that client.
fn is_present(
    sessions: &HashMap<Address, (u64, Serving), FixedState>,
    number: u64,
    address: &Address,
) -> bool {
    sessions.get(address).is_some_and(|(present, _)| *present == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Confirmation;

    /// AMO-6, PEERS-3.
    #[test]
    fn a_client_that_wakes_and_sleeps_evicts_no_other() {
        let mut dormant = Dormant::new(2, 1);
        dormant.put(address(1), Serving::default());
        for _ in 0..100 {
            dormant.put(address(2), Serving::default());
            assert!(dormant.wake(&address(2)).is_some());
        }
        assert!(dormant.order.len() <= 5, "places are given back");
        dormant.put(address(2), Serving::default());
        assert!(dormant.sessions.contains_key(&address(1)));
        dormant.put(address(3), Serving::default());
        assert!(dormant.wake(&address(1)).is_none(), "two younger ones have come");
        assert!(dormant.wake(&address(2)).is_some() && dormant.wake(&address(3)).is_some());
    }

    fn address(n: u16) -> Address {
        Address::from(([10, 0, 0, 1], n))
    }

    fn secs(n: u64) -> Instant {
        Instant::from_nanos(n * SECOND)
    }

    fn peers(limit: u64) -> Peers {
        let config = Config::builder().max_peers(limit).max_dormant_sessions(2).build().unwrap();
        Peers::new(&config, 1, Secret::new(1))
    }

    #[test]
    fn an_idle_peer_is_forgotten_and_a_busy_one_is_not() {
        let mut peers = peers(10);
        let (idle, _) = peers.find_or_insert(address(1), secs(0)).unwrap();
        let (busy, _) = peers.find_or_insert(address(2), secs(0)).unwrap();
        peers[busy].live_rpcs = 1;
        peers.scan(secs(119));
        assert_eq!(peers.find(address(1)), Some(idle));
        peers.scan(secs(121));
        assert_eq!(peers.find(address(1)), None);
        assert_eq!(peers.find(address(2)), Some(busy), "PEERS-1");
        peers[busy].live_rpcs = 0;
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
        assert_eq!(peers.find(address(1)), None);
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

    /// Requirement AMO-6.
    #[test]
    fn sessions_of_forgotten_clients_are_kept_up_to_a_limit() {
        let mut peers = peers(10);
        for n in 1..=3 {
            let (id, _) = peers.find_or_insert(address(n), secs(0)).unwrap();
            let fields = apus_wire::UdpFields::default();
            peers[id].serving.admit(2, Some(&fields), secs(0), 1, || u32::from(n));
            peers[id].serving.confirm(u32::from(n));
        }
        peers.scan(secs(200));
        assert_eq!(peers.len(), 0);
        let mut confirm = |n: u16| {
            let (id, _) = peers.find_or_insert(address(n), secs(200)).unwrap();
            peers[id].serving.confirm(u32::from(n))
        };
        assert_eq!(confirm(1), Confirmation::Stale, "the oldest had to go");
        assert_eq!(confirm(2), Confirmation::Known);
        assert_eq!(confirm(3), Confirmation::Known);
    }
}
