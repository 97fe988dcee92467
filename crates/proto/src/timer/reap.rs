//! How do many RPCs end without stopping everything else?

use crate::error::FailureKind;
use crate::rpc::{RpcKey, Side};
use crate::transport::{Ending, Transport};
use std::collections::VecDeque;

/// RPCs that shall end, a few per call (row X-3, TIME-12).
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    doomed: VecDeque<(RpcKey, Why)>,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// The client that asked has been restarted.
    Orphan,
    /// Packets do not reach the peer.
    Unreachable(FailureKind),
}

impl Reaper {
    pub(crate) fn orphans(&mut self, rpcs: impl Iterator<Item = RpcKey>) {
        self.doomed.extend(rpcs.map(|rpc| (rpc, Why::Orphan)));
    }

    pub(crate) fn unreachable(&mut self, rpcs: impl Iterator<Item = RpcKey>, reason: FailureKind) {
        self.doomed.extend(rpcs.map(|rpc| (rpc, Why::Unreachable(reason))));
    }

    /// Whether RPCs wait for their end.
    pub(crate) fn is_due(&self) -> bool {
        !self.doomed.is_empty()
    }
}

impl Transport {
    /// Ends some of the doomed RPCs; those that have ended meanwhile are skipped.
    pub(super) fn reap(&mut self) {
        for _ in 0..self.config.reap_limit() {
            let Some((rpc, why)) = self.reaper.doomed.pop_front() else { return };
            let Some(entry) = self.rpcs.get(rpc) else { continue };
            match (&entry.side, why) {
                (Side::Client(_), Why::Unreachable(reason)) => self.fail_client(rpc, reason),
                (Side::Client(_), Why::Orphan) => {
                    debug_assert!(false, "only requests are orphaned");
                }
                (Side::Server(_), _) => self.end_server(rpc, Ending::Discarded),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Call, Config, Instant, Transport, Unreachable};

    /// Every packet to a closed port may bring a report of its own, each about all RPCs with the peer.
    #[test]
    fn an_rpc_is_doomed_once_however_often_the_peer_is_reported() {
        let now = Instant::from_nanos(1);
        let mut transport = Transport::new(Config::default(), 1, 1);
        let to = ([10, 0, 0, 2], 1).into();
        for cookie in 0..20 {
            let payload = "x".into();
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            transport.call(now, call).unwrap();
            transport.handle_unreachable(now, to, Unreachable::PortClosed);
        }
        assert_eq!(transport.reaper.doomed.len(), 20);
    }
}
