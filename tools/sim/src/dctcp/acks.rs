//! When is an ACK sent, and does it carry the echo?
//!
//! Every second segment is acknowledged, and the ACK says whether the segments that it acknowledges were
//! marked. When marks begin or cease, what has come before is acknowledged at once with the old answer, so
//! that the sender can reconstruct the run of marks exactly. Source: the DCTCP paper, section 3.1 (figure 10);
//! RFC 8257 section 3.2; the delays are Linux's (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf` and
//! `tcp_measure_rcv_mss` with an application that reads at once).

use std::collections::VecDeque;

use super::config::Config;
use super::reassembly::Arrival;
use super::segment::{Ack, Position};
use apus_workload::time::Nanos;

/// ACKs that do not wait after a connection has begun, was idle, or has lost something. Source: Linux,
/// `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;

/// Whether an ACK is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owed {
    #[default]
    Nothing,
    /// At this time, unless data or a second segment comes before.
    By(Nanos),
    Now,
}

/// The receiving half's ACKs.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// Whether the last segment was marked.
    echo: bool,
    /// ACKs with the old answer, which leave first.
    before: VecDeque<Ack>,
    owed: Owed,
    /// How far the stream had come at the last ACK.
    told: Position,
    /// Whether a segment that ended a message waits for its ACK.
    pushed: bool,
    /// Whether data goes both ways, so that an ACK had better wait for it.
    both_ways: bool,
    /// ACKs that do not wait.
    quick: u32,
    /// When data came last.
    data_at: Option<Nanos>,
}

impl Acks {
    /// The answer to the question whether segments were marked.
    pub(super) const fn echo(&self) -> bool {
        self.echo
    }

    /// Whether the next segment with data, marked or not, changes the answer.
    pub(super) const fn changes(&self, marked: bool) -> bool {
        self.echo != marked
    }

    /// Whether an ACK waits that a change of the answer would make wrong.
    pub(super) fn is_owed(&self) -> bool {
        self.owed != Owed::Nothing
    }

    /// The answer changes. `old` is the ACK of what has come before, if one is owed.
    pub(super) fn change(&mut self, old: Option<Ack>) {
        self.echo = !self.echo;
        self.owed = Owed::Now;
        if let Some(old) = old {
            self.told = old.upto;
            self.pushed = false;
            self.before.push_back(old);
        }
    }

    /// A segment has arrived, the last of what its sender had for the moment or not (`pushed`); the stream
    /// has come to `next`. `timeout` is this side's retransmission timeout, which tells what a long silence is.
    pub(super) fn on_data(
        &mut self,
        config: &Config,
        now: Nanos,
        arrival: Arrival,
        (pushed, next): (bool, Position),
        timeout: Nanos,
    ) {
        if self.data_at.is_none_or(|at| now - at > timeout) {
            self.quick = QUICK;
        }
        self.data_at = Some(now);
        if arrival != Arrival::InOrder {
            self.quick = QUICK;
            self.both_ways = false;
            self.owed = Owed::Now;
            return;
        }
        let second = next - self.told > u64::from(config.mss) || (pushed && self.pushed);
        self.pushed |= pushed;
        let alone = !self.both_ways && (self.quick > 0 || pushed);
        if second || alone {
            self.owed = Owed::Now;
        } else if self.owed == Owed::Nothing {
            self.owed = Owed::By(now + config.ack_delay());
        }
    }

    /// Data was sent: if data has come lately, this is a conversation.
    pub(super) fn on_data_sent(&mut self, config: &Config, now: Nanos) {
        self.both_ways |= self.data_at.is_some_and(|at| now - at < config.delayed_ack);
    }

    /// Whether an ACK is to be sent at once.
    pub(super) fn is_due(&self) -> bool {
        self.owed == Owed::Now || !self.before.is_empty()
    }

    /// When an ACK must be sent.
    pub(super) const fn deadline(&self) -> Option<Nanos> {
        match self.owed {
            Owed::By(at) => Some(at),
            Owed::Nothing | Owed::Now => None,
        }
    }

    /// Time has passed; an ACK may have waited long enough. Source: Linux, `tcp_delack_timer_handler`.
    pub(super) fn on_timer(&mut self, now: Nanos) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.both_ways = false;
            self.owed = Owed::Now;
        }
    }

    /// Takes the oldest ACK with the old answer.
    pub(super) fn take_before(&mut self) -> Option<Ack> {
        self.before.pop_front()
    }

    /// Whether data that leaves now may carry the ACK.
    pub(super) fn may_ride(&self) -> bool {
        self.before.is_empty()
    }

    /// Everything before `next` was acknowledged with the current answer.
    pub(super) fn on_sent(&mut self, next: Position) {
        self.told = next;
        self.owed = Owed::Nothing;
        self.pushed = false;
        self.quick = self.quick.saturating_sub(1);
    }

    /// There is more to tell than one ACK could.
    pub(super) const fn owe(&mut self) {
        self.owed = Owed::Now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dctcp::config::MSS;

    /// A receiver that has got over its first quick ACKs.
    struct Receiver {
        acks: Acks,
        next: Position,
        now: Nanos,
    }

    impl Receiver {
        fn new() -> Self {
            let acks = Acks { data_at: Some(0), ..Acks::default() };
            Self { acks, next: 0, now: 0 }
        }

        /// A segment arrives in order; whether it is acknowledged at once.
        fn segment(&mut self, len: u32) -> bool {
            let pushed = len < MSS;
            self.next += u64::from(len);
            self.now += 1_000;
            let arrival = (pushed, self.next);
            self.acks.on_data(&Config::default(), self.now, Arrival::InOrder, arrival, 10_000_000);
            let due = self.acks.is_due();
            if due {
                self.acks.on_sent(self.next);
            }
            due
        }
    }

    #[test]
    fn every_second_full_segment_is_acknowledged() {
        let mut receiver = Receiver::new();
        let due: Vec<bool> = (0..6).map(|_| receiver.segment(MSS)).collect();
        assert_eq!(due, [false, true, false, true, false, true]);
    }

    /// The application reads at once, and Linux then acknowledges what was pushed, unless it expects data to
    /// go back; but not a second time.
    #[test]
    fn the_end_of_a_message_is_acknowledged_unless_data_goes_back() {
        let mut receiver = Receiver::new();
        assert!(receiver.segment(100));
        assert!(receiver.segment(100));
        receiver.acks.on_data_sent(&Config::default(), receiver.now);
        let due: Vec<bool> = (0..4).map(|_| receiver.segment(100)).collect();
        assert_eq!(due, [false, true, false, true]);
    }

    #[test]
    fn an_ack_waits_no_longer_than_it_may() {
        let mut receiver = Receiver::new();
        assert!(!receiver.segment(MSS));
        let deadline = receiver.acks.deadline().unwrap();
        assert_eq!(deadline, receiver.now + 9_000_000);
        receiver.acks.on_timer(deadline - 1);
        assert!(!receiver.acks.is_due());
        receiver.acks.on_timer(deadline);
        assert!(receiver.acks.is_due());
    }

    #[test]
    fn the_first_segments_after_silence_and_after_a_gap_are_acknowledged_at_once() {
        let mut receiver = Receiver::new();
        receiver.now += 20_000_000;
        assert!((0..16).all(|_| receiver.segment(MSS)));
        assert!(!receiver.segment(MSS));
        let config = Config::default();
        receiver.acks.on_data(&config, receiver.now, Arrival::Beyond, (false, 0), 10_000_000);
        assert!(receiver.acks.is_due());
        receiver.acks.on_sent(receiver.next);
        assert!((0..15).all(|_| receiver.segment(MSS)));
        assert!(!receiver.segment(MSS));
    }
}
