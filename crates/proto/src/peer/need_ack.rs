//! Whether a peer may be sent a NEED_ACK now.
//!
//! TIME-9: one NEED_ACK is under way per peer. Its response carries the other acknowledgments that wait at the peer,
//! and a peer that is too busy to respond would only have more to do.

use crate::limits::MAX_NEED_ACK_INTERVAL;
use crate::time::Instant;

/// The NEED_ACK under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct NeedAckGate {
    /// When it left.
    sent: Instant,
    /// NEED_ACKs since the last packet that may have been a response.
    unanswered: u32,
}

impl NeedAckGate {
    /// Returns whether a NEED_ACK may leave at `now`; one without a response is given up after `interval` nanoseconds,
    /// the next one after twice that, and so on.
    pub(crate) fn may_ask(&self, now: Instant, interval: u64) -> bool {
        let Some(doublings) = self.unanswered.checked_sub(1) else { return true };
        let interval = interval.saturating_mul(1 << doublings.min(16)).min(MAX_NEED_ACK_INTERVAL);
        now.since(self.sent) >= interval
    }

    /// Notes that a NEED_ACK leaves.
    pub(crate) const fn sent(&mut self, now: Instant) {
        self.sent = now;
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Notes a packet that may be a response.
    pub(crate) const fn answered(&mut self) {
        self.unanswered = 0;
    }

    /// Returns the number of NEED_ACKs in a row without a response.
    pub(crate) const fn unanswered(&self) -> u32 {
        self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_waits_for_a_response_or_longer_and_longer() {
        const INTERVAL: u64 = 2_000_000;
        let mut gate = NeedAckGate::default();
        let start = Instant::from_nanos(1);
        assert!(gate.may_ask(start, INTERVAL));
        gate.sent(start);
        assert!(!gate.may_ask(start.plus(INTERVAL - 1), INTERVAL));
        let second = start.plus(INTERVAL);
        assert!(gate.may_ask(second, INTERVAL));
        gate.sent(second);
        assert!(!gate.may_ask(second.plus(INTERVAL), INTERVAL), "twice as long");
        assert!(gate.may_ask(second.plus(2 * INTERVAL), INTERVAL));
        gate.answered();
        assert!(gate.may_ask(second, INTERVAL));
        for _ in 0..100 {
            gate.sent(second);
        }
        assert!(gate.may_ask(second.plus(MAX_NEED_ACK_INTERVAL), INTERVAL), "bounded");
        assert_eq!(gate.unanswered(), 100);
    }
}
