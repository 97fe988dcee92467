//! Simulated time, and link rates.
//!
//! Time is an integer number of nanoseconds since the start of the run. All hosts share one clock.

/// Nanoseconds since the start of the run, or between two instants.
pub type Nanos = u64;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Rate of a link.
///
/// # Invariant
///
/// - **RATE-1**: The rate is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Serialization time of a byte.
    picos_per_byte: u64,
}

impl Rate {
    /// Returns a rate in Mbit/s, from 1 to 8,000,000 (a picosecond per byte); `None` for other
    /// values.
    #[must_use]
    pub const fn from_mbps(mbps: u64) -> Option<Self> {
        if mbps == 0 || mbps > 8_000_000 {
            return None;
        }
        Some(Self { picos_per_byte: 8_000_000 / mbps })
    }

    /// Returns the rate in Mbit/s.
    #[must_use]
    pub const fn mbps(self) -> u64 {
        8_000_000 / self.picos_per_byte
    }

    /// Returns the serialization time of `wire_bytes` bytes, rounded to the nearest nanosecond.
    #[must_use]
    pub const fn time(self, wire_bytes: u64) -> Nanos {
        (self.picos(wire_bytes) + 500) / 1_000
    }

    /// Returns the exact serialization time of `wire_bytes` bytes in picoseconds, for sums whose
    /// parts must not be rounded.
    #[must_use]
    pub const fn picos(self, wire_bytes: u64) -> u64 {
        wire_bytes * self.picos_per_byte
    }

    /// Returns the number of bytes that the link carries in `time`.
    #[must_use]
    pub const fn bytes(self, time: Nanos) -> u64 {
        time * 1_000 / self.picos_per_byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_the_time_of_the_standard() {
        assert_eq!(Rate::from_mbps(10_000).unwrap().time(1_538), 1_230);
        assert_eq!(Rate::from_mbps(40_000).unwrap().time(1_538), 308);
        assert_eq!(Rate::from_mbps(10_000).unwrap().bytes(7_740), 9_675, "RTTbytes of A.1");
    }

    #[test]
    fn a_rate_of_zero_is_refused() {
        assert_eq!(Rate::from_mbps(0), None);
        assert_eq!(Rate::from_mbps(8_000_001), None);
        assert_eq!(Rate::from_mbps(100_000).unwrap().mbps(), 100_000);
    }
}
