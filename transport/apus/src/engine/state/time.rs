//! The engine's time: a clock and its last reading.

use crate::engine::clock::Clock;
use apus_proto::Instant;

/// The clock and its last reading. Handlers use the reading: reading the clock costs a fifth of the
/// handling of a packet, so a pass of the loop reads it once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    clock: Clock,
    now: Instant,
}

impl Time {
    /// Reads `clock` for the first time.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, now: clock.now() }
    }

    /// Reads the clock.
    pub(crate) fn read_clock(&mut self) -> Instant {
        self.now = self.clock.now();
        self.now
    }

    /// Returns the last reading.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the clock.
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }
}
