//! Points in time, which the caller gives to the core.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since an origin that the caller chooses. The core never reads a clock.
///
/// A `u64` of nanoseconds lasts for 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` until this instant; 0 if `earlier` is later.
    pub(crate) const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant and `nanos` nanoseconds; stops at [`Instant::NEVER`].
    pub(crate) const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

/// Stops at [`Instant::NEVER`].
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.plus(nanos(duration))
    }
}

/// Stops at [`Instant::NEVER`].
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// The time from `earlier` until this instant; zero if `earlier` is later, like
/// [`std::time::Instant::duration_since`].
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.since(earlier))
    }
}

/// The nanoseconds of `duration`; [`u64::MAX`] if there are more.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// Nanoseconds in a microsecond; parameters are given in microseconds.
pub(crate) const USEC: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub(crate) const MSEC: u64 = 1_000 * USEC;

/// Nanoseconds in a second.
pub(crate) const SEC: u64 = 1_000 * MSEC;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_never_overflows() {
        let early = Instant::from_nanos(5);
        assert_eq!(early - Instant::from_nanos(9), Duration::ZERO);
        assert_eq!(Instant::from_nanos(9) - early, Duration::from_nanos(4));
        assert_eq!(Instant::NEVER + Duration::from_nanos(1), Instant::NEVER);
        assert_eq!(early + Duration::MAX, Instant::NEVER);
        let mut now = early;
        now += Duration::from_nanos(2);
        assert_eq!(now.as_nanos(), 7);
    }
}
