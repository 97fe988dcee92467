//! Peers with acks that wait for DATA to carry them: without DATA for a while, they leave in ACK
//! packets (RPC-18).

use crate::peer::PeerId;
use crate::time::Instant;
use std::collections::VecDeque;

/// When the acks for a peer must have left, for each peer that has any.
///
/// A peer is added by the first response of a burst and checked once in each delay, whatever
/// arrives in the meantime: a busy client pays one comparison per response.
#[derive(Debug, Default)]
pub(crate) struct IdleAcks {
    /// In the order of their times, because all wait for the same delay. The delay follows the
    /// link's rate: a peer may be checked late once, when that becomes known.
    order: VecDeque<(Instant, PeerId)>,
}

impl IdleAcks {
    /// Checks `peer` at `at`.
    pub(crate) fn watch(&mut self, peer: PeerId, at: Instant) {
        self.order.push_back((at, peer));
    }

    /// Returns when a peer must be checked next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.front().map(|(at, _)| *at)
    }

    /// Takes a peer that must be checked now. It may have been forgotten.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<PeerId> {
        let (at, peer) = *self.order.front()?;
        (at <= now).then(|| {
            self.order.pop_front();
            peer
        })
    }
}
