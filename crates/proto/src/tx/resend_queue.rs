//! The queue of retransmissions.

use crate::rpc::RpcKey;
use slotmap::SecondaryMap;
use std::collections::BTreeSet;

/// RPCs with bytes to be sent again, the fewest bytes left first (SEND-1), each at most once. May hold RPCs that have
/// ended.
#[derive(Debug, Default)]
pub(crate) struct ResendQueue {
    order: BTreeSet<(u32, RpcKey)>,
    left: SecondaryMap<RpcKey, u32>,
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
        if let Some(left) = self.left.remove(rpc) {
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
