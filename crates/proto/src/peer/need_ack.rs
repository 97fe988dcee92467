//! Whether a peer may be sent a NEED_ACK now.
//!
//! TIME-9: a few NEED_ACKs are under way per peer. A response carries other acknowledgments that wait at the peer, and a
//! peer that is too busy to respond would only have more to do.

use crate::limits::{MAX_NEED_ACK_INTERVAL, MAX_NEED_ACKS};
use crate::time::Instant;

/// The NEED_ACKs under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct NeedAckGate {
    /// When the last one left.
    sent: Instant,
    /// How many have left without a response, in this round.
    under_way: u32,
    /// Rounds in a row that were given up without a response.
    rounds: u32,
}

impl NeedAckGate {
    /// Returns whether a NEED_ACK may leave at `now`. A round without a response is given up after `interval`
    /// nanoseconds, the next one after twice that, and so on.
    pub(crate) fn may_ask(&mut self, now: Instant, interval: u64) -> bool {
        if self.under_way < MAX_NEED_ACKS {
            return true;
        }
        let longer = interval.saturating_mul(1 << self.rounds.min(16));
        let is_over = now.since(self.sent) >= longer.min(MAX_NEED_ACK_INTERVAL);
        if is_over {
            self.under_way = 0;
            self.rounds = self.rounds.saturating_add(1);
        }
        is_over
    }

    /// Notes that a NEED_ACK leaves.
    pub(crate) const fn sent(&mut self, now: Instant) {
        self.sent = now;
        self.under_way += 1;
    }

    /// Notes a packet that may be a response.
    pub(crate) const fn answered(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        self.rounds = 0;
    }

    /// Returns the number of rounds in a row without a response.
    pub(crate) const fn rounds(&self) -> u32 {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_waits_for_a_response_or_longer_and_longer() {
        const INTERVAL: u64 = 2_000_000;
        let mut gate = NeedAckGate::default();
        let send_all = |gate: &mut NeedAckGate, now| {
            for _ in 0..MAX_NEED_ACKS {
                assert!(gate.may_ask(now, INTERVAL));
                gate.sent(now);
            }
            assert!(!gate.may_ask(now, INTERVAL));
        };
        let start = Instant::from_nanos(1);
        send_all(&mut gate, start);
        gate.answered();
        assert!(gate.may_ask(start, INTERVAL), "one for each response");
        gate.sent(start);
        assert!(!gate.may_ask(start.plus(INTERVAL - 1), INTERVAL));
        let second = start.plus(INTERVAL);
        send_all(&mut gate, second);
        assert!(!gate.may_ask(second.plus(INTERVAL), INTERVAL), "twice as long");
        assert!(gate.may_ask(second.plus(2 * INTERVAL), INTERVAL));
        assert_eq!(gate.rounds(), 2);
        gate.answered();
        assert_eq!(gate.rounds(), 0);
    }
}
