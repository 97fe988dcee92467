//! The table of live RPCs, by key and by the fields of packets.
//!
//! # Invariants
//!
//! - **RPCS-1** `by_wire` names exactly the live RPCs, each by (peer, id, role).
//! - **RPCS-2** An RPC that has ended has no messages when its slot is used again, and is neither
//!   watched nor queued.

use super::{NewRpc, Rpc, RpcKey};
use crate::peer::PeerId;
use crate::slots::{HashIndex, Slots, number};
use crate::time::Instant;
use apus_wire::Role;
use foldhash::fast::FixedState;
use slotmap::Key;
use std::hash::BuildHasher;

/// All live RPCs at this end.
#[derive(Debug)]
pub(crate) struct Rpcs {
    slots: Slots<RpcKey, Rpc>,
    by_wire: HashIndex,
    hasher: FixedState,
    clients: usize,
    /// Number of RPCs created, for their order.
    births: u64,
}

/// The fields of a packet that name its RPC: the peer, and the id with this endpoint's role in the
/// low bit. A server finds an RPC by client address and id (HM `homa_rpc.c`
/// `homa_rpc_find_server`); in the kernel profile the id alone would suffice for a client, but ids
/// are per server in the udp profile.
type WireKey = (u64, u64);

fn wire_key(peer: PeerId, id: u64, role: Role) -> WireKey {
    (peer.data().as_ffi(), (id & !1) | u64::from(role == Role::Server))
}

impl Rpcs {
    pub(crate) fn new(seed: u64) -> Self {
        let (slots, by_wire) = (Slots::default(), HashIndex::default());
        Self { slots, by_wire, hasher: FixedState::with_seed(seed), clients: 0, births: 0 }
    }

    /// Adds an RPC, with its place among the RPCs of its peer.
    #[inline(always)]
    pub(super) fn insert(&mut self, now: Instant, place: u32, new: NewRpc) -> RpcKey {
        self.births += 1;
        let role = new.side.role();
        self.clients += usize::from(role == Role::Client);
        let hash = self.hasher.hash_one(wire_key(new.peer, new.id, role));
        debug_assert_eq!(self.find(new.peer, new.id, role), None, "RPCS-1: in use");
        let name = match self.slots.reuse() {
            Some((name, rpc)) => {
                rpc.begin_again(now, self.births, place, new);
                name
            }
            None => self.slots.add(Rpc::new(now, self.births, place, new)),
        };
        self.by_wire.insert(hash, number(name));
        name
    }

    /// Ends a live RPC, whose key becomes invalid. The caller takes its messages out (RPCS-2).
    #[inline(always)]
    pub(super) fn end(&mut self, name: RpcKey) -> Option<&mut Rpc> {
        let rpc = self.slots.end(name)?;
        let role = rpc.role();
        let hash = self.hasher.hash_one(wire_key(rpc.peer, rpc.id, role));
        let was_named = self.by_wire.remove(hash, number(name));
        debug_assert!(was_named, "RPCS-1");
        self.clients -= usize::from(role == Role::Client);
        Some(rpc)
    }

    /// The RPC with `peer` that has `id` on the wire, with `role` as this endpoint's role.
    #[inline(always)]
    pub(crate) fn find(&self, peer: PeerId, id: u64, role: Role) -> Option<RpcKey> {
        self.by_wire.find(self.hasher.hash_one(wire_key(peer, id, role)), |number| {
            let (name, rpc) = self.slots.at(number)?;
            let is_wanted = rpc.id == id & !1 && rpc.peer == peer && rpc.role() == role;
            is_wanted.then_some(name)
        })
    }

    #[inline(always)]
    pub(crate) fn get(&self, name: RpcKey) -> Option<&Rpc> {
        self.slots.get(name)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, name: RpcKey) -> Option<&mut Rpc> {
        self.slots.get_mut(name)
    }

    /// Number of live RPCs with `role` as this endpoint's role.
    pub(crate) const fn count(&self, role: Role) -> usize {
        match role {
            Role::Client => self.clients,
            Role::Server => self.slots.len() - self.clients,
        }
    }

    /// Selects the live RPCs whose ids `selects` is true of, and no others.
    pub(crate) fn select(&mut self, selects: impl Fn(u64) -> bool) {
        self.slots.all_mut().for_each(|rpc| rpc.selected = selects(rpc.id));
    }

    /// All live RPCs, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RpcKey, &Rpc)> {
        self.slots.iter()
    }
}

impl std::ops::Index<RpcKey> for Rpcs {
    type Output = Rpc;

    #[inline(always)]
    fn index(&self, name: RpcKey) -> &Rpc {
        self.get(name).expect("the RPC is live")
    }
}

impl std::ops::IndexMut<RpcKey> for Rpcs {
    #[inline(always)]
    fn index_mut(&mut self, name: RpcKey) -> &mut Rpc {
        self.get_mut(name).expect("the RPC is live")
    }
}
