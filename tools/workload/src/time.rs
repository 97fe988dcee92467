//! What is time in the simulator?
//!
//! Nanoseconds since the beginning of the run, as a plain integer: there is one clock, and everything that
//! happens is an integer number of nanoseconds after something else.

/// Nanoseconds since the beginning of the run, or between two instants.
pub type Nanos = u64;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// How fast a link carries bits.
///
/// # Invariant
///
/// - **R1** Never 0: a link that carries nothing does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Time of a byte on the link.
    picos_per_byte: u64,
}

impl Rate {
    /// A rate in Mbit/s, from 1 to 8,000,000 (a picosecond per byte); `None` beyond.
    #[must_use]
    pub const fn from_mbps(mbps: u64) -> Option<Self> {
        if mbps == 0 || mbps > 8_000_000 {
            return None;
        }
        Some(Self { picos_per_byte: 8_000_000 / mbps })
    }

    /// The rate in Mbit/s.
    #[must_use]
    pub const fn mbps(self) -> u64 {
        8_000_000 / self.picos_per_byte
    }

    /// Time that so many bytes take, rounded to the nearest nanosecond.
    #[must_use]
    pub const fn time(self, wire_bytes: u64) -> Nanos {
        (self.picos(wire_bytes) + 500) / 1_000
    }

    /// Time that so many bytes take, in picoseconds: exact, for sums whose parts must not be rounded one
    /// by one.
    #[must_use]
    pub const fn picos(self, wire_bytes: u64) -> u64 {
        wire_bytes * self.picos_per_byte
    }

    /// Bytes that fit into a time.
    #[must_use]
    pub const fn bytes(self, time: Nanos) -> u64 {
        time * 1_000 / self.picos_per_byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_what_the_standard_says() {
        assert_eq!(Rate::from_mbps(10_000).unwrap().time(1_538), 1_230);
        assert_eq!(Rate::from_mbps(40_000).unwrap().time(1_538), 308);
        assert_eq!(Rate::from_mbps(10_000).unwrap().bytes(7_740), 9_675, "RTTbytes of A.1");
    }

    #[test]
    fn there_is_no_rate_of_zero() {
        assert_eq!(Rate::from_mbps(0), None);
        assert_eq!(Rate::from_mbps(8_000_001), None);
        assert_eq!(Rate::from_mbps(100_000).unwrap().mbps(), 100_000);
    }
}
