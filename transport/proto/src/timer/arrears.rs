//! Arrears: how far this endpoint is behind with reading its packets.
//!
//! Packets that wait in the socket of a busy host are not lost. A receiver that took them for lost
//! would request them again, and a sender that answered at once would repeat bytes that are still
//! in flight: both add work to an overload. Two instants prevent that:
//!
//! - packets that arrived by `read_up_to` have been handled: the silence of a peer is measured up
//!   to there (TIME-3);
//! - a packet handled now has waited since `reading_since` at most: a RESEND carries no information
//!   about bytes sent since then (TIME-7).
//!
//! Without reports ([`crate::Transport::begin_reading`], [`crate::Transport::finish_reading`]) no
//! packet counts as waiting.

use crate::time::Instant;

/// Longest wait of packets while the endpoint keeps up with reading, in nanoseconds.
///
/// Chosen by us: several passes of an engine whose socket is empty after each, and an acceptable
/// wait for a call under load.
const BEHIND: u64 = 200_000;

/// The engine's reports about unread packets.
#[derive(Debug, Default)]
pub(crate) struct Arrears {
    reading_since: Option<Instant>,
    read_up_to: Option<Instant>,
    /// When the system last reported that it has dropped packets for lack of room.
    overflowed: Option<Instant>,
    /// Whether the RPCs were checked since.
    checked: bool,
}

impl Arrears {
    /// No packet was unread at `at`; those handled from now on have arrived since.
    pub(crate) fn begin(&mut self, at: Instant) {
        self.reading_since = self.reading_since.max(Some(at));
    }

    /// Everything that had arrived by `at` has been handled.
    pub(crate) fn finish(&mut self, at: Instant) {
        self.begin(at);
        self.read_up_to = self.read_up_to.max(Some(at));
    }

    /// The system has dropped packets for lack of room before `at`.
    pub(crate) const fn overflow(&mut self, at: Instant) {
        self.overflowed = Some(at);
        self.checked = false;
    }

    /// Returns whether packets sent after `heard` may have been dropped for lack of room.
    pub(crate) fn overflowed_since(&self, heard: Instant) -> bool {
        self.overflowed.is_some_and(|at| at >= heard)
    }

    /// Returns `true` once after an overflow, when everything has been read that arrived before it.
    pub(crate) fn take_overflow_check(&mut self) -> bool {
        let due = self.is_overflow_check_due();
        self.checked |= due;
        due
    }

    /// Returns whether that check is due.
    pub(crate) fn is_overflow_check_due(&self) -> bool {
        !self.checked && self.overflowed.is_some() && self.read_up_to >= self.overflowed
    }

    /// Returns the instant up to which a peer's silence is certain.
    pub(crate) fn read_up_to(&self, now: Instant) -> Instant {
        self.read_up_to.unwrap_or(now)
    }

    /// Returns whether this endpoint is behind with reading (BAD-10).
    pub(crate) fn is_behind(&self, now: Instant) -> bool {
        self.behind(now) > BEHIND
    }

    /// Returns the longest time for which the packet handled at `now` may have waited, in
    /// nanoseconds.
    pub(crate) fn behind(&self, now: Instant) -> u64 {
        self.reading_since.map_or(0, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn without_reports_nothing_waits() {
        let arrears = Arrears::default();
        assert_eq!((arrears.read_up_to(at(9)), arrears.behind(at(9))), (at(9), 0));
    }

    #[test]
    fn what_was_read_says_how_long_a_packet_may_have_waited() {
        let mut arrears = Arrears::default();
        arrears.finish(at(5));
        assert_eq!((arrears.read_up_to(at(9)), arrears.behind(at(9))), (at(5), 4));
        arrears.begin(at(8));
        assert_eq!((arrears.read_up_to(at(9)), arrears.behind(at(9))), (at(5), 1));
        assert!(!arrears.is_behind(at(8 + BEHIND)) && arrears.is_behind(at(9 + BEHIND)));
        // Late reports take nothing back.
        arrears.finish(at(6));
        assert_eq!((arrears.read_up_to(at(9)), arrears.behind(at(9))), (at(6), 1));
    }

    #[test]
    fn after_an_overflow_all_are_checked_once_when_everything_has_been_read() {
        let mut arrears = Arrears::default();
        assert!(!arrears.take_overflow_check());
        arrears.finish(at(5));
        arrears.overflow(at(8));
        assert!(!arrears.take_overflow_check(), "packets from before may wait");
        assert!(arrears.overflowed_since(at(8)) && !arrears.overflowed_since(at(9)));
        arrears.finish(at(8));
        assert!(arrears.take_overflow_check());
        assert!(!arrears.take_overflow_check());
    }
}
