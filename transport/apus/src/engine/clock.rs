//! The engine's clock, in the protocol's time.

use apus_proto::Instant;
use std::sync::LazyLock;

/// Translates the system's monotonic clock into the protocol's time. All clocks of a host show the
/// same time, so that times of shards, endpoints and processes can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Origin,
}

/// One point in time, as the standard library and the system show it.
#[derive(Clone, Copy, Debug)]
struct Origin {
    at: std::time::Instant,
    nanos: u64,
}

/// The protocol's time at the origin of the system's clock. Not 0, which the protocol uses for
/// "never yet".
const START: u64 = 1_000_000_000;

impl Clock {
    /// Starts a clock. The first one of the process reads the origin of all.
    pub(crate) fn start() -> Self {
        static ORIGIN: LazyLock<Origin> = LazyLock::new(|| {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            // Neither is negative, and the clock starts with the system.
            let nanos = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
            Origin { at: std::time::Instant::now(), nanos: START + nanos }
        });
        Self { origin: *ORIGIN }
    }

    /// Returns the current time.
    pub(crate) fn now(self) -> Instant {
        self.convert(std::time::Instant::now())
    }

    /// Translates a point in time of the system.
    pub(crate) fn convert(self, at: std::time::Instant) -> Instant {
        let nanos = at.saturating_duration_since(self.origin.at).as_nanos();
        let since = u64::try_from(nanos).unwrap_or(u64::MAX);
        Instant::from_nanos(self.origin.nanos.saturating_add(since))
    }
}
