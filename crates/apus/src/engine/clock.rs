//! What time is it?

use apus_proto::Instant;

/// Turns the system's monotonic clock into the core's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

/// The origin's value. Not 0, which the core uses for "never yet".
const START: u64 = 1_000_000_000;

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The present time.
    pub(crate) fn now(self) -> Instant {
        self.convert(std::time::Instant::now())
    }

    /// A point in time of the system as the core knows it.
    pub(crate) fn convert(self, at: std::time::Instant) -> Instant {
        let nanos = at.saturating_duration_since(self.origin).as_nanos();
        Instant::from_nanos(START.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}
