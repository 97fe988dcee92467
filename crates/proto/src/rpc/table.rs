//! The table of live RPCs, by name and by what a packet says.
//!
//! # Invariants
//!
//! - **RPCS-1** `by_wire` names exactly the RPCs in `slots`, each by (peer, id, role).
//! - **RPCS-2** An RPC in `ended` has no messages, and is neither watched nor queued.

use super::{NewRpc, Rpc, RpcKey};
use crate::peer::PeerId;
use crate::time::Instant;
use apus_wire::Role;
use foldhash::fast::FixedState;
use hashbrown::hash_table::{HashTable, OccupiedEntry};
use slotmap::{Key, SlotMap};
use std::hash::BuildHasher;

/// All live RPCs at this end.
#[derive(Debug)]
pub(crate) struct Rpcs {
    slots: SlotMap<RpcKey, Box<Rpc>>,
    /// RPCs that have ended, at most as many as ever lived at once. New ones are written over them: an RPC is long, and
    /// `slots` would copy it twice.
    #[expect(clippy::vec_box, reason = "the boxes go back to `slots`")]
    ended: Vec<Box<Rpc>>,
    by_wire: HashTable<(WireKey, RpcKey)>,
    hasher: FixedState,
    clients: usize,
    /// Number of RPCs created, for their order.
    births: u64,
}

/// What a packet says about its RPC: the peer, and the id with this endpoint's role in the low bit. A server
/// finds an RPC by client address and id (HM `homa_rpc.c` `homa_rpc_find_server`); a client could do with the id alone
/// in the kernel profile, but ids are per server in the udp profile.
type WireKey = (u64, u64);

fn wire_key(peer: PeerId, id: u64, role: Role) -> WireKey {
    (peer.data().as_ffi(), (id & !1) | u64::from(role == Role::Server))
}

impl Rpcs {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slots: SlotMap::with_key(),
            ended: Vec::new(),
            by_wire: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            clients: 0,
            births: 0,
        }
    }

    /// Adds an RPC, which has this place among those with its peer.
    #[inline(always)]
    pub(super) fn insert(&mut self, now: Instant, place: u32, new: NewRpc) -> RpcKey {
        self.births += 1;
        let role = new.side.role();
        self.clients += usize::from(role == Role::Client);
        let key = wire_key(new.peer, new.id, role);
        let rpc = match self.ended.pop() {
            Some(mut rpc) => {
                rpc.begin_again(now, self.births, place, new);
                rpc
            }
            None => Box::new(Rpc::new(now, self.births, place, new)),
        };
        let id = self.slots.insert(rpc);
        let Self { by_wire, hasher, .. } = self;
        let hash = hasher.hash_one(key);
        debug_assert!(by_wire.find(hash, |(known, _)| *known == key).is_none(), "RPCS-1: in use");
        by_wire.insert_unique(hash, (key, id), |(key, _)| hasher.hash_one(key));
        id
    }

    /// Takes a live RPC out. [`Rpcs::recycle`] follows.
    #[inline(always)]
    pub(super) fn take(&mut self, id: RpcKey) -> Option<Box<Rpc>> {
        let rpc = self.slots.remove(id)?;
        let key = wire_key(rpc.peer, rpc.id, rpc.role());
        let named = self.by_wire.find_entry(self.hasher.hash_one(key), |(known, _)| *known == key);
        let named = named.map(OccupiedEntry::remove);
        debug_assert!(named.is_ok(), "RPCS-1");
        self.clients -= usize::from(rpc.role() == Role::Client);
        Some(rpc)
    }

    /// Drops the messages of an RPC that was taken out, and keeps its memory for another one.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, mut rpc: Box<Rpc>) {
        rpc.incoming = None;
        rpc.outgoing = None;
        self.ended.push(rpc);
    }

    /// The RPC with `peer` that has `id` on the wire and in which this endpoint has `role`.
    #[inline(always)]
    pub(crate) fn find(&self, peer: PeerId, id: u64, role: Role) -> Option<RpcKey> {
        let key = wire_key(peer, id, role);
        let found = self.by_wire.find(self.hasher.hash_one(key), |(known, _)| *known == key);
        found.map(|(_, rpc)| *rpc)
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: RpcKey) -> Option<&Rpc> {
        self.slots.get(id).map(|rpc| &**rpc)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: RpcKey) -> Option<&mut Rpc> {
        self.slots.get_mut(id).map(|rpc| &mut **rpc)
    }

    /// Number of live RPCs in which this endpoint has `role`.
    pub(crate) fn count(&self, role: Role) -> usize {
        match role {
            Role::Client => self.clients,
            Role::Server => self.slots.len() - self.clients,
        }
    }

    /// Selects the live RPCs whose ids `selects` is true of, and no others.
    pub(crate) fn select(&mut self, selects: impl Fn(u64) -> bool) {
        self.slots.values_mut().for_each(|rpc| rpc.selected = selects(rpc.id));
    }

    /// All live RPCs, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RpcKey, &Rpc)> {
        self.slots.iter().map(|(id, rpc)| (id, &**rpc))
    }
}

impl std::ops::Index<RpcKey> for Rpcs {
    type Output = Rpc;

    #[inline(always)]
    fn index(&self, id: RpcKey) -> &Rpc {
        &self.slots[id]
    }
}

impl std::ops::IndexMut<RpcKey> for Rpcs {
    #[inline(always)]
    fn index_mut(&mut self, id: RpcKey) -> &mut Rpc {
        &mut self.slots[id]
    }
}
