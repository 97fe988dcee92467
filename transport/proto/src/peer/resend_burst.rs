//! Whether a peer may be sent RESENDs now.
//!
//! TIME-6: one burst of RESENDs is outstanding per peer at a time (described in HM `protocol.md`
//! and enforced by no code): after an incast with losses, all messages of a peer fall silent
//! together, and requesting all of them at once would cause the next loss. A burst ends when the
//! peer answers, or after an interval without an answer. The second burst without an answer may
//! have been lost; from the third on the interval doubles, so that a peer that was stopped does not
//! find a pile of RESENDs.

use crate::limits::{MAX_RESEND_BURST, MAX_RESEND_BYTES};
use crate::time::{Instant, USEC};

/// RESENDs that start within this time belong to one burst: one pass of the engine.
const BURST_SPAN: u64 = 100 * USEC;

/// The RESENDs outstanding to one peer.
#[derive(Debug, Default)]
pub(crate) struct ResendBurst {
    /// When the burst started; `None` if none is outstanding.
    started: Option<Instant>,
    /// RESENDs in it.
    packets: u32,
    /// Bytes that they ask for.
    bytes: u64,
    /// Bursts in a row that were given up without an answer.
    unanswered: u32,
    /// When the first unanswered burst started.
    silent_since: Option<Instant>,
}

/// Bursts without an answer before the interval doubles.
const LOST_BURSTS: u32 = 1;

impl ResendBurst {
    /// Whether a message may ask now; a burst without an answer is given up after `interval`, or
    /// after a longer time that is `most` at most.
    pub(crate) fn may_ask(&mut self, now: Instant, interval: u64, most: u64) -> bool {
        let doublings = self.unanswered.saturating_sub(LOST_BURSTS).min(16);
        let interval = interval.saturating_mul(1 << doublings).min(most.max(interval));
        match self.started {
            Some(started) if now.since(started) >= interval => {
                self.started = None;
                self.unanswered = self.unanswered.saturating_add(1);
                self.silent_since.get_or_insert(started);
                true
            }
            Some(started) => {
                now.since(started) < BURST_SPAN
                    && self.packets < MAX_RESEND_BURST
                    && self.bytes < MAX_RESEND_BYTES
            }
            None => true,
        }
    }

    /// Consecutive bursts without an answer, if the first of them started at least `time`
    /// nanoseconds ago; 0 otherwise.
    pub(crate) fn unanswered_for(&self, now: Instant, time: u64) -> u32 {
        let is_long = self.silent_since.is_some_and(|since| now.since(since) >= time);
        if is_long { self.unanswered } else { 0 }
    }

    /// RESENDs that the burst still has room for.
    pub(crate) fn room(&self) -> u32 {
        if self.started.is_none() {
            MAX_RESEND_BURST
        } else {
            MAX_RESEND_BURST.saturating_sub(self.packets)
        }
    }

    /// Records that a RESEND for `bytes` bytes leaves.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        if self.started.is_none() {
            *self = Self { started: Some(now), packets: 0, bytes: 0, ..*self };
        }
        self.packets += 1;
        self.bytes += bytes;
    }

    /// The peer has sent DATA, GRANT or BUSY: it is alive, and the burst is over.
    pub(crate) const fn answered(&mut self) {
        self.started = None;
        self.unanswered = 0;
        self.silent_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_burst_waits_for_an_answer_or_an_interval() {
        const INTERVAL: u64 = 5_000_000;
        const MOST: u64 = 250_000_000;
        let mut burst = ResendBurst::default();
        let start = Instant::from_nanos(1);
        for _ in 0..MAX_RESEND_BURST {
            assert!(burst.may_ask(start, INTERVAL, MOST));
            burst.sent(start, 100);
        }
        assert!(!burst.may_ask(start, INTERVAL, MOST), "full");
        assert_eq!(burst.room(), 0);
        let later = start.plus(BURST_SPAN);
        burst.answered();
        assert!(burst.may_ask(later, INTERVAL, MOST));
        burst.sent(later, 100);
        assert!(!burst.may_ask(later.plus(BURST_SPAN), INTERVAL, MOST), "not answered yet");
        assert!(burst.may_ask(later.plus(INTERVAL), INTERVAL, MOST), "given up");
        burst.sent(later.plus(INTERVAL), MAX_RESEND_BYTES);
        assert!(!burst.may_ask(later.plus(INTERVAL), INTERVAL, MOST), "asks for enough");
    }

    #[test]
    fn a_silent_peer_is_asked_less_and_less_often() {
        const INTERVAL: u64 = 5_000_000;
        let mut burst = ResendBurst::default();
        let mut now = Instant::from_nanos(1);
        let mut waits = Vec::new();
        for _ in 0..6 {
            assert!(burst.may_ask(now, INTERVAL, 9 * INTERVAL));
            burst.sent(now, 100);
            let wait =
                (1..).find(|n| burst.may_ask(now.plus(n * INTERVAL), INTERVAL, 9 * INTERVAL));
            waits.push(wait.unwrap());
            now = now.plus(wait.unwrap() * INTERVAL);
        }
        assert_eq!(waits, [1, 1, 2, 4, 8, 9]);
        burst.answered();
        burst.sent(now, 100);
        assert!(burst.may_ask(now.plus(INTERVAL), INTERVAL, 9 * INTERVAL));
    }
}
