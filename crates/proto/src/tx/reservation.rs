//! A piece of the link's time that a transport takes before it can use it.
//!
//! Transports of one host that are all held back would wake up when the link is free, one would send, and the others would have
//! woken for nothing. A transport that has taken a piece sleeps until that begins (SEND-14). It keeps the piece if it wakes up
//! late: otherwise the link's time would be lost whenever threads wait for a core.

use crate::time::Instant;

/// A piece of the link's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// When the interface will have sent all that was given to it before.
    pub(super) begins: Instant,
    /// Nanoseconds of it that have not been used.
    left: u64,
    /// Nanoseconds that a packet needs.
    packet: u64,
    /// When the interface will have sent everything, as transports of the host must publish from then on.
    published: Instant,
}

impl Reservation {
    /// A piece of `nanos` nanoseconds, in packets of `packet` nanoseconds. `host_idle_at` is when the interface will have sent
    /// all that it was given, as it is published, with this piece.
    pub(super) const fn new(
        begins: Instant,
        nanos: u64,
        packet: u64,
        host_idle_at: Instant,
    ) -> Self {
        Self { begins, left: nanos, packet, published: host_idle_at }
    }

    /// Whether a packet may leave in it, now or later.
    pub(super) const fn is_usable(&self) -> bool {
        2 * self.left >= self.packet
    }

    /// Whether a packet may leave in it now: it begins within `ahead` nanoseconds.
    pub(super) const fn is_due(&self, now: Instant, ahead: u64) -> bool {
        self.is_usable() && self.begins.since(now) < ahead
    }

    /// Nanoseconds that have not been used.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Uses up to `nanos` nanoseconds, and returns how many.
    pub(super) fn take(&mut self, nanos: u64) -> u64 {
        let taken = nanos.min(self.left);
        self.left -= taken;
        taken
    }

    /// Whether it holds if the interface will have sent everything at `host_idle_at`: a process may have spoiled what is published.
    pub(super) const fn holds(&self, host_idle_at: Instant) -> bool {
        host_idle_at.as_nanos() >= self.published.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::USEC;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * USEC)
    }

    /// SEND-14.
    #[test]
    fn a_piece_is_used_when_it_begins_or_later() {
        let mut piece = Reservation::new(at(100), 20 * USEC, 10 * USEC, at(120));
        assert!(piece.is_usable() && !piece.is_due(at(0), 20 * USEC));
        assert!(piece.is_due(at(81), 20 * USEC) && !piece.is_due(at(80), 20 * USEC));
        assert!(piece.is_due(at(1_000_000), 20 * USEC), "a thread may wait for a core");
        assert_eq!(piece.take(16 * USEC), 16 * USEC);
        assert!(!piece.is_usable(), "less than half a packet");
        assert_eq!(piece.take(16 * USEC), 4 * USEC);
        assert_eq!(piece.left(), 0);
    }

    #[test]
    fn a_piece_that_is_published_no_more_does_not_hold() {
        let piece = Reservation::new(at(900_000), USEC, USEC, at(900_001));
        assert!(piece.holds(at(900_001)) && !piece.holds(at(5)));
    }
}
