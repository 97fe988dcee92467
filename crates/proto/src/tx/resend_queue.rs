//! The queue of retransmissions.

use crate::rpc::RpcKey;
use slotmap::SecondaryMap;
use std::collections::VecDeque;

/// RPCs with bytes to be sent again, first come first served, each at most once. May hold RPCs that have ended.
#[derive(Debug, Default)]
pub(crate) struct ResendQueue {
    order: VecDeque<RpcKey>,
    queued: SecondaryMap<RpcKey, ()>,
}

impl ResendQueue {
    /// Appends `rpc`, unless it is queued.
    pub(super) fn push(&mut self, rpc: RpcKey) {
        if self.queued.insert(rpc, ()).is_none() {
            self.order.push_back(rpc);
        }
    }

    /// The first RPC, which stays.
    pub(super) fn first(&self) -> Option<RpcKey> {
        self.order.front().copied()
    }

    /// Removes the first RPC.
    pub(super) fn pop(&mut self) {
        if let Some(rpc) = self.order.pop_front() {
            self.queued.remove(rpc);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
