//! Time of a reading of counters, on the protocol's clock and on the system's.

use apus_proto::Instant;
use std::time::{Duration, SystemTime};

/// A moment on two clocks. Relates times of the protocol, whose origin is arbitrary, to the time of
/// day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTime {
    /// The time that the protocol was given.
    pub protocol: Instant,
    /// The time of day.
    pub system: SystemTime,
}

/// The difference of the two clocks is rounded down to a multiple of this. Both are not read at the
/// same moment, so the difference varies by microseconds. Without rounding, an exemplar would get
/// another time with each scrape, and Prometheus would store it once more each time.
const GRANULARITY: Duration = Duration::from_millis(10);

impl ReadTime {
    /// Converts a time of the protocol to the time of day, as milliseconds since 1970, up to 10 ms
    /// early. `None` if the system's clock is set to before 1970.
    #[must_use]
    pub fn unix_millis(&self, protocol: Instant) -> Option<u64> {
        let now = self.system.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let ahead = now.checked_sub(self.protocol.as_nanos().into())?;
        let ahead = ahead - ahead % GRANULARITY.as_nanos();
        u64::try_from((ahead + u128::from(protocol.as_nanos())) / 1_000_000).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(protocol: u64, system_nanos: u64) -> ReadTime {
        let system = SystemTime::UNIX_EPOCH + Duration::from_nanos(system_nanos);
        ReadTime { protocol: Instant::from_nanos(protocol), system }
    }

    #[test]
    fn a_time_stays_the_same_however_often_the_clocks_are_read() {
        let at = Instant::from_nanos(5_000_000_000);
        let first = read(6_000_000_000, 1_700_000_006_000_300_000).unix_millis(at);
        assert_eq!(first, Some(1_700_000_005_000));
        // A minute later, and with another delay between the two readings.
        assert_eq!(read(66_000_000_000, 1_700_000_066_000_900_000).unix_millis(at), first);
    }

    #[test]
    fn a_wrong_clock_does_no_harm() {
        assert_eq!(read(6_000_000_000, 0).unix_millis(Instant::ZERO), None);
        let system = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let early = ReadTime { protocol: Instant::ZERO, system };
        assert_eq!(early.unix_millis(Instant::ZERO), None);
        assert!(read(0, u64::MAX).unix_millis(Instant::NEVER).is_some());
    }
}
