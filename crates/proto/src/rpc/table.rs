//! The table of live RPCs, by name and by what a packet says.
//!
//! # Invariants
//!
//! - **RPCS-1** `by_wire` names exactly the RPCs in `slots`, each by (peer, id, role).

use super::{Rpc, RpcKey};
use crate::peer::PeerId;
use apus_wire::Role;
use foldhash::fast::FixedState;
use slotmap::{Key, SlotMap};
use std::collections::HashMap;

/// All live RPCs at this end.
#[derive(Debug)]
pub(crate) struct Rpcs {
    slots: SlotMap<RpcKey, Rpc>,
    by_wire: HashMap<WireKey, RpcKey, FixedState>,
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
            by_wire: HashMap::with_hasher(FixedState::with_seed(seed)),
            clients: 0,
            births: 0,
        }
    }

    /// Adds the RPC that `new` makes with its place in the order of creation, and that packets name so.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        (peer, id, role): (PeerId, u64, Role),
        new: impl FnOnce(u64) -> Rpc,
    ) -> RpcKey {
        self.births += 1;
        self.clients += usize::from(role == Role::Client);
        let key = wire_key(peer, id, role);
        let id = self.slots.insert(new(self.births));
        let previous = self.by_wire.insert(key, id);
        debug_assert!(previous.is_none(), "RPCS-1: the id is in use");
        id
    }

    /// Removes a live RPC, which packets name so.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: RpcKey, (peer, named, role): (PeerId, u64, Role)) {
        let named = self.by_wire.remove(&wire_key(peer, named, role));
        debug_assert_eq!(named, Some(id), "RPCS-1");
        self.clients -= usize::from(role == Role::Client);
        // The messages are dropped in place. Nothing that owns memory is left: dropping the RPC that the slot
        // returns would copy all of it, 10 ns of the 100 that a packet may cost.
        let rpc = &mut self.slots[id];
        (rpc.incoming, rpc.outgoing) = (None, None);
        std::mem::forget(self.slots.remove(id));
    }

    /// The RPC with `peer` that has `id` on the wire and in which this endpoint has `role`.
    #[inline(always)]
    pub(crate) fn find(&self, peer: PeerId, id: u64, role: Role) -> Option<RpcKey> {
        self.by_wire.get(&wire_key(peer, id, role)).copied()
    }

    pub(crate) fn get(&self, id: RpcKey) -> Option<&Rpc> {
        self.slots.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: RpcKey) -> Option<&mut Rpc> {
        self.slots.get_mut(id)
    }

    /// Number of live RPCs in which this endpoint has `role`.
    pub(crate) fn count(&self, role: Role) -> usize {
        match role {
            Role::Client => self.clients,
            Role::Server => self.slots.len() - self.clients,
        }
    }

    /// All live RPCs, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RpcKey, &Rpc)> {
        self.slots.iter()
    }
}

impl std::ops::Index<RpcKey> for Rpcs {
    type Output = Rpc;

    fn index(&self, id: RpcKey) -> &Rpc {
        &self.slots[id]
    }
}

impl std::ops::IndexMut<RpcKey> for Rpcs {
    fn index_mut(&mut self, id: RpcKey) -> &mut Rpc {
        &mut self.slots[id]
    }
}
