//! The queue of retransmissions.

use crate::rpc::RpcKey;
use std::collections::{BTreeMap, BTreeSet};

/// RPCs with bytes to be sent again, the fewest bytes left first (SEND-1), each at most once. May
/// hold RPCs that have ended.
#[derive(Debug, Default)]
pub(crate) struct ResendQueue {
    order: BTreeSet<(u32, RpcKey)>,
    /// By whole keys: a `SecondaryMap` would forget an RPC that has ended as soon as another one
    /// has its slot, and `order` would keep it forever.
    left: BTreeMap<RpcKey, u32>,
}

impl ResendQueue {
    /// Puts `rpc` where a message belongs that has `left` bytes to send, retransmissions included.
    pub(super) fn put(&mut self, rpc: RpcKey, left: u32) {
        self.remove(rpc);
        self.left.insert(rpc, left);
        self.order.insert((left, rpc));
    }

    /// Takes `rpc` out.
    pub(super) fn remove(&mut self, rpc: RpcKey) {
        if let Some(left) = self.left.remove(&rpc) {
            self.order.remove(&(left, rpc));
        }
    }

    /// The first RPC, which stays, and the bytes that it has left.
    pub(super) fn first(&self) -> Option<(u32, RpcKey)> {
        self.order.first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::SlotMap;

    /// A transmission took the first RPC out for as long as there was one, and never ended (sealed
    /// seed 635 of the swarm).
    #[test]
    fn an_rpc_that_has_ended_is_taken_out_although_another_one_has_its_slot() {
        let (mut rpcs, mut queue) = (SlotMap::<RpcKey, ()>::with_key(), ResendQueue::default());
        let ended = rpcs.insert(());
        queue.put(ended, 100);
        rpcs.remove(ended);
        let other = rpcs.insert(());
        queue.put(other, 200);
        assert_eq!(queue.first(), Some((100, ended)));
        queue.remove(ended);
        assert_eq!(queue.first(), Some((200, other)));
        queue.remove(other);
        assert!(queue.is_empty());
    }
}
