//! The RPCs waiting to send a RESEND, in the order in which they fell due.
//!
//! A burst of RESENDs to one peer has few places (TIME-6). With thousands of RPCs that are checked
//! in the same order each time, the first would take the places of each burst, and the others would
//! never send one.
//!
//! # Invariants
//!
//! - **TURNS-1** While an RPC lives, it is in the line of its peer exactly if `waits_to_ask` of its
//!   entry is set, and once.

use crate::peer::PeerId;
use crate::rpc::{RpcKey, Rpcs};
use slotmap::SecondaryMap;
use std::collections::VecDeque;

/// A line for each peer. It may name RPCs that have ended: they are skipped at their turn.
#[derive(Debug, Default)]
pub(crate) struct ResendLines {
    lines: SecondaryMap<PeerId, VecDeque<RpcKey>>,
}

impl ResendLines {
    /// Appends `rpc` to the line of its peer, unless it is in it.
    pub(crate) fn join(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let entry = &mut rpcs[rpc];
        if std::mem::replace(&mut entry.waits_to_ask, true) {
            return;
        }
        let line = self.lines.entry(entry.peer).expect("the peer is known").or_default();
        line.push_back(rpc);
    }

    /// Takes the first RPC out of the line of `peer`.
    pub(crate) fn take_first(&mut self, rpcs: &mut Rpcs, peer: PeerId) -> Option<RpcKey> {
        let line = self.lines.get_mut(peer)?;
        while let Some(rpc) = line.pop_front() {
            if let Some(entry) = rpcs.get_mut(rpc) {
                entry.waits_to_ask = false;
                return Some(rpc);
            }
        }
        self.lines.remove(peer);
        None
    }
}
