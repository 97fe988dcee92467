//! What the leader knows about packets that wait unread in the socket.
//!
//! The protocol must not take them for lost ([`apus_proto::Transport::finish_reading`]), however long the processor was
//! busy or taken away. The socket does not say when a packet has arrived, so the leader derives bounds: a socket that a
//! receive leaves empty holds nothing that had arrived before the receive; and when as many bytes were read as a socket
//! can hold, all that it held before has been read.

use apus_proto::Instant;

/// The bounds on how long packets have waited.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Bytes that the socket can hold.
    capacity: usize,
    /// Last reading of the clock. The next receive begins after it.
    clock: Instant,
    /// Whether the last receive left the socket empty.
    empty: bool,
    /// Everything that had arrived by this instant has been read when `unread` more bytes are.
    mark: Instant,
    unread: usize,
}

impl Reading {
    /// Nothing was received yet from a socket that can hold `capacity` bytes.
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, clock: Instant::ZERO, empty: true, mark: Instant::ZERO, unread: capacity }
    }

    /// Notes a reading of the clock, which the next receive follows.
    pub(in crate::engine) const fn note_clock(&mut self, now: Instant) {
        self.clock = now;
    }

    /// Notes a round in which nothing arrived. `polled` says whether the socket was polled, `now` is the clock if it was
    /// read.
    pub(in crate::engine) fn note_idle(&mut self, polled: bool, now: Option<Instant>) {
        self.empty |= polled;
        self.clock = now.unwrap_or(self.clock);
    }

    /// Returns the instant since which the packets of the next receive have arrived, if that is known.
    pub(in crate::engine) fn begin(&self) -> Option<Instant> {
        self.empty.then_some(self.clock)
    }

    /// Notes that a receive has brought `bytes`, and whether it left the socket empty. Returns the instant up to which
    /// everything that had arrived has been read, if it has changed.
    pub(in crate::engine) fn finish(&mut self, bytes: usize, empty: bool) -> Option<Instant> {
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

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn an_empty_socket_holds_nothing_older_than_the_receive() {
        let mut reading = Reading::new(1_000);
        reading.note_clock(at(5));
        assert_eq!(reading.begin(), Some(at(5)));
        assert_eq!(reading.finish(100, false), None);
        reading.note_clock(at(8));
        assert_eq!(reading.begin(), None, "packets have waited for an unknown time");
        assert_eq!(reading.finish(100, true), Some(at(8)));
        assert_eq!(reading.begin(), Some(at(8)));
    }

    #[test]
    fn a_socket_that_is_never_empty_has_been_read_when_its_capacity_has() {
        let mut reading = Reading::new(1_000);
        reading.note_clock(at(5));
        assert_eq!(reading.finish(100, true), Some(at(5)));
        for now in [10, 20] {
            reading.note_clock(at(now));
            assert_eq!(reading.finish(400, false), None);
        }
        reading.note_clock(at(30));
        assert_eq!(reading.finish(400, false), Some(at(5)));
        for _ in 0..2 {
            assert_eq!(reading.finish(400, false), None);
        }
        assert_eq!(reading.finish(400, false), Some(at(30)));
    }
}
