//! Suspicions: reports that packets do not reach a peer, accepted only if the peer stays silent.
//!
//! Any host can send an ICMP packet, and a firewall may drop one packet of a hundred. A report
//! alone therefore ends no RPC. The peer is asked at once and once more, and its RPCs end only if
//! it sends no packet in that time (RPC-14).

use crate::error::FailureKind;
use crate::peer::PeerId;
use crate::rpc::RpcKey;
use crate::time::Instant;
use slotmap::SecondaryMap;
use std::collections::BTreeSet;

/// Questions before the RPCs end. Chosen by us: one of them, or its answer, may be lost.
const QUESTIONS: u32 = 2;

/// The peers that packets may not reach.
#[derive(Debug, Default)]
pub(crate) struct Suspicions {
    peers: SecondaryMap<PeerId, Suspicion>,
    /// When each of them is checked.
    due: BTreeSet<(Instant, PeerId)>,
    /// Calls with a returned DATA packet, when no packet of the request had been sent twice.
    returned: SecondaryMap<RpcKey, ()>,
    /// When the system last refused to send to a peer.
    refused: SecondaryMap<PeerId, Instant>,
}

/// A suspicion about a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion {
    /// The reported reason.
    pub(crate) reason: FailureKind,
    /// The port that the report is about; `None` for the peer as a whole.
    pub(crate) port: Option<u16>,
    /// When it was reported.
    pub(crate) since: Instant,
    /// When the peer was last asked.
    pub(crate) asked: Instant,
    asks: u32,
    due: Instant,
}

impl Suspicion {
    /// Returns whether the peer has been asked often enough.
    pub(crate) const fn was_asked_enough(&self) -> bool {
        self.asks >= QUESTIONS
    }
}

impl Suspicions {
    /// Records a report; the peer is asked now, and checked when `interval` nanoseconds have
    /// passed. Returns `false` if the peer is suspected already: each packet in flight may cause a
    /// report.
    pub(crate) fn report(
        &mut self,
        peer: PeerId,
        port: Option<u16>,
        reason: FailureKind,
        now: Instant,
        interval: u64,
    ) -> bool {
        if self.peers.contains_key(peer) {
            return false;
        }
        let due = now.plus(interval);
        let new = Suspicion { reason, port, since: now, asked: now, asks: 1, due };
        self.peers.insert(peer, new);
        self.due.insert((due, peer));
        true
    }

    /// Records that the system refused to send to `peer`. It is a lost packet; if all RPCs are
    /// given up for silence later, this is the reason (TIME-4).
    pub(crate) fn refused(&mut self, peer: PeerId, now: Instant) {
        self.refused.insert(peer, now);
    }

    /// Returns whether the system has refused to send to `peer` after `heard`.
    pub(crate) fn is_refused_since(&self, peer: PeerId, heard: Instant) -> bool {
        self.refused.get(peer).is_some_and(|at| *at >= heard)
    }

    /// Records that a DATA packet of a request was returned, no packet of which was sent twice.
    pub(crate) fn note_returned(&mut self, rpc: RpcKey) {
        self.returned.insert(rpc, ());
    }

    /// Returns whether a DATA packet of the request was returned.
    pub(crate) fn was_returned(&self, rpc: RpcKey) -> bool {
        self.returned.contains_key(rpc)
    }

    /// When the next check is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A peer whose check is due.
    pub(crate) fn due(&self, now: Instant) -> Option<(PeerId, Suspicion)> {
        let (_, peer) = *self.due.first().filter(|(at, _)| *at <= now)?;
        Some((peer, self.peers[peer]))
    }

    /// Checks `peer` later, at `due`. `asked` is the time of a repeated question, if there was one.
    pub(crate) fn postpone(&mut self, peer: PeerId, due: Instant, asked: Option<Instant>) {
        let Some(suspicion) = self.peers.get_mut(peer) else { return };
        self.due.remove(&(suspicion.due, peer));
        suspicion.due = due;
        if let Some(asked) = asked {
            suspicion.asked = asked;
            suspicion.asks += 1;
        }
        self.due.insert((due, peer));
    }

    /// Ends a suspicion.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        if let Some(suspicion) = self.peers.remove(peer) {
            self.due.remove(&(suspicion.due, peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::SlotMap;

    #[test]
    fn a_peer_is_suspected_once_and_checked_when_it_is_due() {
        let mut keys = SlotMap::<PeerId, ()>::with_key();
        let (one, two) = (keys.insert(()), keys.insert(()));
        let at = Instant::from_nanos;
        let mut suspicions = Suspicions::default();
        assert!(suspicions.report(one, None, FailureKind::PortClosed, at(100), 50));
        assert!(!suspicions.report(one, None, FailureKind::PortClosed, at(101), 50));
        assert!(suspicions.report(two, None, FailureKind::HostUnreachable, at(110), 10));
        assert_eq!(suspicions.next(), Some(at(120)));
        assert!(suspicions.due(at(119)).is_none());
        assert_eq!(suspicions.due(at(120)).unwrap().0, two);
        suspicions.postpone(two, at(200), Some(at(120)));
        let (peer, suspicion) = suspicions.due(at(150)).unwrap();
        assert!(peer == one && !suspicion.was_asked_enough());
        suspicions.forget(one);
        assert!(suspicions.due(at(200)).unwrap().1.was_asked_enough());
        suspicions.forget(two);
        assert_eq!(suspicions.next(), None);
    }
}
