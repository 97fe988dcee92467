//! Whether a peer may be sent a NEED_ACK now.
//!
//! TIME-9: few NEED_ACKs are outstanding per peer. A response carries other acknowledgments that
//! wait at the peer, and more questions would only burden a peer that is too busy to respond.
//!
//! A peer that was stopped responds to some of them and has lost the others. NEED_ACKs therefore
//! leave in rounds. A NEED_ACK without a response is given up when the next round ends, however
//! many others are answered in the meantime.

use crate::limits::{MAX_NEED_ACK_INTERVAL, MAX_NEED_ACKS};
use crate::time::Instant;

/// The NEED_ACKs outstanding to one peer.
#[derive(Debug, Default)]
pub(crate) struct NeedAckGate {
    /// When the round started.
    began: Instant,
    /// When the last one left.
    last: Instant,
    /// How many have left in this round without a response.
    under_way: u32,
    /// How many have left in the round before without a response.
    earlier: u32,
    /// Rounds in a row that were given up without a response.
    rounds: u32,
    /// Whether a response arrived in this round.
    is_answered: bool,
}

impl NeedAckGate {
    /// Returns whether a NEED_ACK may leave at `now`. A round lasts `interval` nanoseconds, the
    /// next one twice that if there was no response at all, and so on.
    pub(crate) fn may_ask(&mut self, now: Instant, interval: u64) -> bool {
        let longer = interval.saturating_mul(1 << self.rounds.min(16));
        let interval = longer.min(MAX_NEED_ACK_INTERVAL);
        if now.since(self.began) >= interval {
            // Those of the round before are given up.
            if self.earlier > 0 && !self.is_answered {
                self.rounds = self.rounds.saturating_add(1);
            }
            self.earlier = self.under_way;
            self.under_way = 0;
            self.began = now;
            self.is_answered = false;
        }
        if self.earlier + self.under_way < MAX_NEED_ACKS {
            return true;
        }
        let is_silent = now.since(self.last) >= interval;
        if is_silent {
            self.earlier = 0;
            self.under_way = 0;
            self.rounds = self.rounds.saturating_add(1);
        }
        is_silent
    }

    /// Records that a NEED_ACK leaves.
    pub(crate) const fn sent(&mut self, now: Instant) {
        self.last = now;
        self.under_way += 1;
    }

    /// Records a response to a NEED_ACK that left at `sent`, or a packet that may be a response to
    /// any.
    pub(crate) fn answered(&mut self, sent: Option<Instant>) {
        self.rounds = 0;
        self.is_answered = true;
        // A NEED_ACK from before this round counts in the round before, or was given up.
        let is_earlier = sent.map_or(self.under_way == 0, |sent| sent < self.began);
        let count = if is_earlier { &mut self.earlier } else { &mut self.under_way };
        *count = count.saturating_sub(1);
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
        gate.answered(None);
        assert!(gate.may_ask(start, INTERVAL), "one for each response");
        gate.sent(start);
        assert!(!gate.may_ask(start.plus(INTERVAL - 1), INTERVAL));
        let second = start.plus(INTERVAL);
        send_all(&mut gate, second);
        assert!(!gate.may_ask(second.plus(INTERVAL), INTERVAL), "twice as long");
        assert!(gate.may_ask(second.plus(2 * INTERVAL), INTERVAL));
        assert_eq!(gate.rounds(), 2);
        gate.answered(None);
        assert_eq!(gate.rounds(), 0);
    }

    /// NEED_ACKs may fill two rounds unevenly, so that there is always room for another one. (Seed
    /// 2038: 305 responses to a client that was restarted were kept for 21 s.)
    #[test]
    fn rounds_that_are_never_full_count() {
        const INTERVAL: u64 = 2_000_000;
        let mut gate = NeedAckGate::default();
        let mut now = Instant::from_nanos(INTERVAL);
        for count in [15, 1, 15, 1, 15, 1, 15] {
            for _ in 0..count {
                assert!(gate.may_ask(now, INTERVAL));
                gate.sent(now);
            }
            now = now.plus(64 * INTERVAL);
        }
        assert_eq!(gate.rounds(), 5);
    }

    #[test]
    fn the_lost_ones_of_a_round_are_given_up_while_others_are_answered() {
        const INTERVAL: u64 = 2_000_000;
        let mut gate = NeedAckGate::default();
        // Sends as many as may leave, and has the peer respond to all but `lost` of them at once.
        let exchange = |gate: &mut NeedAckGate, now, lost| {
            let sent = (0..).take_while(|_| {
                let may_ask = gate.may_ask(now, INTERVAL);
                may_ask.then(|| gate.sent(now)).is_some()
            });
            let sent = sent.count();
            (lost..sent).for_each(|_| gate.answered(Some(now)));
            sent
        };
        let start = Instant::from_nanos(INTERVAL);
        let sent: Vec<usize> = [13, 0, 0, 0]
            .into_iter()
            .enumerate()
            .map(|(round, lost)| exchange(&mut gate, start.plus(round as u64 * INTERVAL), lost))
            .collect();
        assert_eq!(sent, [16, 3, 16, 16]);
    }
}
