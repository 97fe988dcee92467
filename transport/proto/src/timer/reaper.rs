//! RPCs that must end, a few per call, so that many of them do not delay everything else.

use crate::error::FailureKind;
use crate::rpc::RpcKey;
use slotmap::SecondaryMap;
use std::collections::VecDeque;

/// RPCs that must end, in the order in which that was found (HM `homa_rpc.c` `homa_rpc_reap`, TIME-12).
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    doomed: VecDeque<(RpcKey, Why)>,
    /// RPCs that are queued because their peer cannot be reached.
    unreachable: SecondaryMap<RpcKey, ()>,
}

/// Why an RPC must end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// The client that asked has been restarted.
    Orphan,
    /// Packets do not reach the peer.
    Unreachable(FailureKind),
}

impl Reaper {
    /// The client of these requests has been restarted.
    pub(crate) fn orphans(&mut self, rpcs: impl Iterator<Item = RpcKey>) {
        self.doomed.extend(rpcs.map(|rpc| (rpc, Why::Orphan)));
    }

    /// Packets do not reach the peer of these RPCs. Each packet under way may bring a report: RPCs that are queued for
    /// that are left out.
    pub(crate) fn unreachable(&mut self, rpcs: impl Iterator<Item = RpcKey>, reason: FailureKind) {
        for rpc in rpcs {
            if self.unreachable.insert(rpc, ()).is_none() {
                self.doomed.push_back((rpc, Why::Unreachable(reason)));
            }
        }
    }

    /// The next RPC that must end. It may have ended already.
    pub(crate) fn pop(&mut self) -> Option<(RpcKey, Why)> {
        let (rpc, why) = self.doomed.pop_front()?;
        if matches!(why, Why::Unreachable(_)) {
            self.unreachable.remove(rpc);
        }
        Some((rpc, why))
    }

    /// Whether RPCs wait for their end.
    pub(crate) fn is_due(&self) -> bool {
        !self.doomed.is_empty()
    }
}
