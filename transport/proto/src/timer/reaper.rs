//! RPCs that must end, a few per call, so that many of them do not delay everything else.

use crate::error::FailureKind;
use crate::rpc::RpcKey;
use slotmap::SecondaryMap;
use std::collections::VecDeque;

/// RPCs that must end, in the order of discovery (HM `homa_rpc.c` `homa_rpc_reap`, TIME-12).
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    doomed: VecDeque<(RpcKey, Why)>,
    /// RPCs that are queued because their peer cannot be reached.
    unreachable: SecondaryMap<RpcKey, ()>,
}

/// Why an RPC must end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// The client has been restarted since its request.
    Orphan,
    /// Packets do not reach the peer.
    Unreachable(FailureKind),
}

impl Reaper {
    /// Queues requests whose client has been restarted.
    pub(crate) fn orphans(&mut self, rpcs: impl Iterator<Item = RpcKey>) {
        self.doomed.extend(rpcs.map(|rpc| (rpc, Why::Orphan)));
    }

    /// Queues RPCs whose peer is unreachable. Each packet in flight may cause a report: RPCs that
    /// are queued for that reason are skipped.
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
