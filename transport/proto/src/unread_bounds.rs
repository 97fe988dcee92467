//! Bounds on how long packets have waited unread in a socket.
//!
//! The transport must not take them for lost, however long the processor was busy or taken away.
//! The socket does not report when a packet arrived, so an engine derives bounds: a socket that a
//! receive leaves empty holds no packet from before the receive; and when as many bytes were read
//! as a socket can hold, everything that it held before has been read.

use crate::time::Instant;

/// Bounds on the age of unread packets in an engine's socket. The engine reports them to the
/// transport with [`Transport::begin_reading`](crate::Transport::begin_reading) and
/// [`Transport::finish_reading`](crate::Transport::finish_reading).
///
/// ```
/// use apus_proto::{Instant, UnreadBounds};
///
/// let mut unread = UnreadBounds::new(4 << 20);
/// // A pass: the clock is read, then 1200 bytes are received, and nothing is left.
/// let since = unread.begin();
/// unread.note_clock(Instant::from_nanos(5));
/// assert_eq!(unread.finish(1_200, true), Some(Instant::from_nanos(5)));
/// // What the next pass receives has arrived since.
/// assert_eq!(unread.begin(), Some(Instant::from_nanos(5)));
/// ```
#[derive(Debug)]
pub struct UnreadBounds {
    /// Bytes that the socket can hold.
    capacity: usize,
    /// Last reading of the clock. The next receive starts after it.
    clock: Instant,
    /// Whether the last receive left the socket empty.
    empty: bool,
    /// Everything that had arrived by this instant has been read when `unread` more bytes are.
    mark: Instant,
    unread: usize,
}

impl UnreadBounds {
    /// Returns the bounds for a socket that can hold `capacity` bytes, before the first receive.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self { capacity, clock: Instant::ZERO, empty: true, mark: Instant::ZERO, unread: capacity }
    }

    /// Records a reading of the clock, which the next receive follows.
    #[inline]
    pub const fn note_clock(&mut self, now: Instant) {
        self.clock = now;
    }

    /// Records a round without packets. `polled` states whether the socket was polled, `now` is the
    /// clock if it was read.
    #[inline]
    pub fn note_idle(&mut self, polled: bool, now: Option<Instant>) {
        self.empty |= polled;
        self.clock = now.unwrap_or(self.clock);
    }

    /// Returns the instant since which the packets of the next receive have arrived, if that is
    /// known.
    #[must_use]
    #[inline]
    pub fn begin(&self) -> Option<Instant> {
        self.empty.then_some(self.clock)
    }

    /// Records a receive of `bytes`, and whether it left the socket empty. Returns the instant up
    /// to which everything that had arrived has been read, if it has changed.
    #[inline]
    pub fn finish(&mut self, bytes: usize, empty: bool) -> Option<Instant> {
        self.empty = empty;
        self.unread = self.unread.saturating_sub(bytes);
        let read_up_to = if empty {
            self.clock
        } else if self.unread == 0 {
            self.mark
        } else {
            return None;
        };
        self.mark = self.clock;
        self.unread = self.capacity;
        Some(read_up_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn an_empty_socket_holds_nothing_older_than_the_receive() {
        let mut unread = UnreadBounds::new(1_000);
        unread.note_clock(at(5));
        assert_eq!(unread.begin(), Some(at(5)));
        assert_eq!(unread.finish(100, false), None);
        unread.note_clock(at(8));
        assert_eq!(unread.begin(), None, "packets have waited for an unknown time");
        assert_eq!(unread.finish(100, true), Some(at(8)));
        assert_eq!(unread.begin(), Some(at(8)));
    }

    #[test]
    fn an_idle_engine_knows_that_nothing_waits() {
        let mut unread = UnreadBounds::new(1_000);
        unread.note_clock(at(5));
        assert_eq!(unread.finish(100, false), None);
        unread.note_idle(false, Some(at(6)));
        assert_eq!(unread.begin(), None, "the socket was not polled");
        unread.note_idle(true, None);
        assert_eq!(unread.begin(), Some(at(6)));
        unread.note_idle(true, Some(at(9)));
        assert_eq!(unread.begin(), Some(at(9)));
    }

    #[test]
    fn a_socket_that_is_never_empty_has_been_read_when_its_capacity_has() {
        let mut unread = UnreadBounds::new(1_000);
        unread.note_clock(at(5));
        assert_eq!(unread.finish(100, true), Some(at(5)));
        for now in [10, 20] {
            unread.note_clock(at(now));
            assert_eq!(unread.finish(400, false), None);
        }
        unread.note_clock(at(30));
        assert_eq!(unread.finish(400, false), Some(at(5)));
        for _ in 0..2 {
            assert_eq!(unread.finish(400, false), None);
        }
        assert_eq!(unread.finish(400, false), Some(at(30)));
    }
}
