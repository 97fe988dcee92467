//! The engine's clock, in the protocol's time.

use apus_proto::Instant;
use std::sync::LazyLock;

/// Translates the system's monotonic clock into the protocol's time. All clocks of a process show the same time, so that
/// times of several shards and endpoints can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

/// The protocol's time at the origin. Not 0, which the protocol uses for "never yet".
const START: u64 = 1_000_000_000;

impl Clock {
    /// Starts a clock. The first one of the process sets the origin of all.
    pub(crate) fn start() -> Self {
        static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        Self { origin: *ORIGIN }
    }

    /// Returns the current time.
    pub(crate) fn now(self) -> Instant {
        self.convert(std::time::Instant::now())
    }

    /// Translates a point in time of the system.
    pub(crate) fn convert(self, at: std::time::Instant) -> Instant {
        let nanos = at.saturating_duration_since(self.origin).as_nanos();
        Instant::from_nanos(START.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}
