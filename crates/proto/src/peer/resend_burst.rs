//! Whether a peer may be sent RESENDs now.
//!
//! TIME-6: one burst of RESENDs is under way per peer at a time (described in HM `protocol.md` and enforced by no
//! code): after an incast with losses, all messages of a peer fall silent together, and asking for all of them at once
//! would cause the next loss. A burst ends when the peer answers, or when it has not answered for an interval.

use crate::limits::{MAX_RESEND_BURST, MAX_RESEND_BYTES};
use crate::time::{Instant, USEC};

/// RESENDs that start within this time belong to one burst: one pass of the engine.
const BURST_SPAN: u64 = 100 * USEC;

/// The RESENDs under way to one peer.
#[derive(Debug, Default)]
pub(crate) struct ResendBurst {
    /// When the burst began; `None` if none is under way.
    started: Option<Instant>,
    /// RESENDs in it.
    packets: u32,
    /// Bytes that they ask for.
    bytes: u64,
}

impl ResendBurst {
    /// Whether a message may ask now; a burst without an answer is given up after `interval`.
    pub(crate) fn may_ask(&mut self, now: Instant, interval: u64) -> bool {
        match self.started {
            Some(started) if now.since(started) >= interval => {
                self.started = None;
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

    /// RESENDs that the burst still has room for.
    pub(crate) fn room(&self) -> u32 {
        if self.started.is_none() {
            MAX_RESEND_BURST
        } else {
            MAX_RESEND_BURST.saturating_sub(self.packets)
        }
    }

    /// Notes that a RESEND for `bytes` bytes leaves.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        if self.started.is_none() {
            *self = Self { started: Some(now), packets: 0, bytes: 0 };
        }
        self.packets += 1;
        self.bytes += bytes;
    }

    /// The peer has sent DATA, GRANT or BUSY: it is alive, and the burst is over.
    pub(crate) const fn answered(&mut self) {
        self.started = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_burst_waits_for_an_answer_or_an_interval() {
        const INTERVAL: u64 = 5_000_000;
        let mut burst = ResendBurst::default();
        let start = Instant::from_nanos(1);
        for _ in 0..MAX_RESEND_BURST {
            assert!(burst.may_ask(start, INTERVAL));
            burst.sent(start, 100);
        }
        assert!(!burst.may_ask(start, INTERVAL), "full");
        assert_eq!(burst.room(), 0);
        let later = start.plus(BURST_SPAN);
        burst.answered();
        assert!(burst.may_ask(later, INTERVAL));
        burst.sent(later, 100);
        assert!(!burst.may_ask(later.plus(BURST_SPAN), INTERVAL), "not answered yet");
        assert!(burst.may_ask(later.plus(INTERVAL), INTERVAL), "given up");
        burst.sent(later.plus(INTERVAL), MAX_RESEND_BYTES);
        assert!(!burst.may_ask(later.plus(INTERVAL), INTERVAL), "asks for enough");
    }
}
