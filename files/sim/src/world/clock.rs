//! Clocks that run at different rates.

use std::time::Duration;

use apus_fs_core::client::Clock;
use apus_fs_core::wire::Time;

const MILLION: u128 = 1_000_000;

/// The clock of one machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock {
    offset: Duration,
    /// Local time that passes in a million units of true time.
    rate: u128,
}

impl LocalClock {
    /// Returns a clock that deviates by some parts of a million.
    pub(super) fn new(offset: Duration, deviation: i64) -> Self {
        Self { offset, rate: u128::try_from(1_000_000 + deviation).unwrap_or(MILLION) }
    }

    /// Returns the time that the clock shows.
    pub(super) fn local(self, now: Duration) -> Duration {
        self.offset + nanoseconds(now.as_nanos() * self.rate / MILLION)
    }

    /// Returns when the clock will have shown a time.
    pub(super) fn when(self, local: Duration) -> Duration {
        let since = local.saturating_sub(self.offset).as_nanos();
        nanoseconds((since * MILLION).div_ceil(self.rate)) + Duration::from_nanos(2)
    }

    /// Returns the times that a client reads.
    pub(super) fn read(self, now: Duration) -> Clock {
        let local = self.local(now);
        let wall = Time {
            seconds: 1_750_000_000 + local.as_secs() as i64,
            nanoseconds: local.subsec_nanos(),
        };
        Clock { now: local, wall }
    }
}

fn nanoseconds(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}
