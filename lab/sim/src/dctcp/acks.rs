//! Generation of ACKs with the congestion echo.
//!
//! Every second segment is acknowledged, and the ACK reports whether these segments were marked.
//! When marking starts or stops, the preceding segments are acknowledged at once with the old echo,
//! so that the sender can reconstruct the runs of marks exactly. Source: the DCTCP paper, section
//! 3.1 (figure 10); RFC 8257 section 3.2. The delays are Linux's (`__tcp_ack_snd_check`,
//! `tcp_cleanup_rbuf` and `tcp_measure_rcv_mss` with an application that reads at once).

use std::collections::VecDeque;

use super::config::Config;
use super::reassembly::Arrival;
use super::segment::{Ack, Position};
use apus_workload::time::Nanos;

/// Immediate ACKs at the start of a connection, after an idle period, or after a lost segment.
/// Source: Linux, `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;

/// Whether an ACK is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PendingAck {
    #[default]
    Nothing,
    /// Due at this time, unless data or a second segment arrives before.
    By(Nanos),
    Now,
}

/// ACKs of the receiving half.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// Whether the last segment was marked.
    echo: bool,
    /// ACKs with the old echo, which leave first.
    before: VecDeque<Ack>,
    pending: PendingAck,
    /// Position of the last ACK.
    acked_to: Position,
    /// Whether a segment that ended a message is still unacknowledged.
    pushed: bool,
    /// Whether data flows in both directions, so that ACKs wait for data to carry them.
    both_ways: bool,
    /// Remaining immediate ACKs.
    quick: u32,
    /// Time of the last data.
    data_at: Option<Nanos>,
}

impl Acks {
    /// Returns the current echo.
    pub(super) const fn echo(&self) -> bool {
        self.echo
    }

    /// Returns whether the next segment with data, marked or not, changes the echo.
    pub(super) const fn changes(&self, marked: bool) -> bool {
        self.echo != marked
    }

    /// Returns whether an ACK is pending that a change of the echo would falsify.
    pub(super) fn is_pending(&self) -> bool {
        self.pending != PendingAck::Nothing
    }

    /// Changes the echo. `old` is the ACK of the preceding segments, if one is pending.
    pub(super) fn change(&mut self, old: Option<Ack>) {
        self.echo = !self.echo;
        self.pending = PendingAck::Now;
        if let Some(old) = old {
            self.acked_to = old.upto;
            self.pushed = false;
            self.before.push_back(old);
        }
    }

    /// Handles a segment with data. `pushed` is set on the last segment that the sender has for
    /// now, and `next` is the position that the stream has reached. `timeout` is this side's
    /// retransmission timeout, which defines a long silence.
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
            self.pending = PendingAck::Now;
            return;
        }
        let second = next - self.acked_to > u64::from(config.mss) || (pushed && self.pushed);
        self.pushed |= pushed;
        let alone = !self.both_ways && (self.quick > 0 || pushed);
        if second || alone {
            self.pending = PendingAck::Now;
        } else if self.pending == PendingAck::Nothing {
            self.pending = PendingAck::By(now + config.ack_delay());
        }
    }

    /// Handles the transmission of data: data in both directions within a short time make the
    /// connection bidirectional.
    pub(super) fn on_data_sent(&mut self, config: &Config, now: Nanos) {
        self.both_ways |= self.data_at.is_some_and(|at| now - at < config.delayed_ack);
    }

    /// Returns whether an ACK must be sent at once.
    pub(super) fn is_due(&self) -> bool {
        self.pending == PendingAck::Now || !self.before.is_empty()
    }

    /// Returns when an ACK must be sent.
    pub(super) const fn deadline(&self) -> Option<Nanos> {
        match self.pending {
            PendingAck::By(at) => Some(at),
            PendingAck::Nothing | PendingAck::Now => None,
        }
    }

    /// Makes a delayed ACK due whose delay has expired. Source: Linux, `tcp_delack_timer_handler`.
    pub(super) fn on_timer(&mut self, now: Nanos) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.both_ways = false;
            self.pending = PendingAck::Now;
        }
    }

    /// Removes the oldest ACK with the old echo.
    pub(super) fn take_before(&mut self) -> Option<Ack> {
        self.before.pop_front()
    }

    /// Returns whether data that leaves now may carry the ACK.
    pub(super) fn may_piggyback(&self) -> bool {
        self.before.is_empty()
    }

    /// Records that everything before `next` was acknowledged with the current echo.
    pub(super) fn on_sent(&mut self, next: Position) {
        self.acked_to = next;
        self.pending = PendingAck::Nothing;
        self.pushed = false;
        self.quick = self.quick.saturating_sub(1);
    }

    /// Makes another ACK due: one ACK cannot report everything.
    pub(super) const fn owe(&mut self) {
        self.pending = PendingAck::Now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dctcp::config::MSS;

    /// A receiver that has used up its immediate ACKs.
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

        /// Receives a segment in order; returns whether it is acknowledged at once.
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

    /// The application reads at once, and Linux then acknowledges pushed data, unless it expects
    /// data in the other direction; but not a second time.
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
    fn an_ack_waits_until_its_deadline() {
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
