//! Timestamps of captures: converts ticks of an interface's clock to nanoseconds.

/// Clock of a captured interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Length of a tick.
    tick: Tick,
    /// Seconds to add to each timestamp.
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
enum Tick {
    /// 10^-n seconds.
    Decimal(u32),
    /// 2^-n seconds.
    Binary(u32),
}

const NANOS: i128 = 1_000_000_000;

impl Clock {
    /// Returns the clock of a pcap file.
    pub(super) fn pcap(nanoseconds: bool) -> Self {
        Self { tick: Tick::Decimal(if nanoseconds { 9 } else { 6 }), offset: 0 }
    }

    /// Returns the clock of an interface in a pcapng file, from its options `if_tsresol` and
    /// `if_tsoffset`. Source: draft-ietf-opsawg-pcapng section 4.2.
    pub(super) fn pcapng(resolution: u8, offset: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let tick =
            if resolution & 0x80 == 0 { Tick::Decimal(exponent) } else { Tick::Binary(exponent) };
        Self { tick, offset }
    }

    /// Converts the timestamp of a pcap record to nanoseconds since 1970.
    pub(super) fn of_parts(self, seconds: u32, fraction: u32) -> i64 {
        self.nanoseconds(i128::from(seconds) * NANOS, u64::from(fraction))
    }

    /// Converts the timestamp of a pcapng packet to nanoseconds since 1970.
    pub(super) fn of_ticks(self, high: u32, low: u32) -> i64 {
        self.nanoseconds(0, u64::from(high) << 32 | u64::from(low))
    }

    /// Converts ticks to nanoseconds. Times out of range saturate.
    fn nanoseconds(self, base: i128, ticks: u64) -> i64 {
        let ticks = i128::from(ticks);
        let nanoseconds = match self.tick {
            Tick::Decimal(exponent @ 0..=9) => ticks * 10_i128.pow(9 - exponent),
            Tick::Decimal(exponent) => {
                10_i128.checked_pow(exponent - 9).map_or(0, |divisor| ticks / divisor)
            }
            Tick::Binary(exponent) => ticks.saturating_mul(NANOS) >> exponent.min(127),
        };
        let all = base + nanoseconds + i128::from(self.offset) * NANOS;
        i64::try_from(all).unwrap_or(if all < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resolution_gives_nanoseconds() {
        assert_eq!(Clock::pcap(false).of_parts(3, 5), 3_000_005_000);
        assert_eq!(Clock::pcap(true).of_parts(3, 5), 3_000_000_005);
        assert_eq!(Clock::pcapng(6, 0).of_ticks(0, 7), 7_000);
        assert_eq!(Clock::pcapng(9, 2).of_ticks(1, 7), 2_000_000_000 + (1 << 32) + 7);
        assert_eq!(Clock::pcapng(12, 0).of_ticks(0, 7_000), 7);
        assert_eq!(Clock::pcapng(0x80 | 10, 0).of_ticks(0, 512), 500_000_000);
    }

    #[test]
    fn hostile_clocks_stay_within_bounds() {
        for resolution in 0..=u8::MAX {
            for offset in [i64::MIN, -1, 0, i64::MAX] {
                Clock::pcapng(resolution, offset).of_ticks(u32::MAX, u32::MAX);
            }
        }
        assert_eq!(Clock::pcapng(0, i64::MAX).of_ticks(u32::MAX, 0), i64::MAX);
        assert_eq!(Clock::pcapng(127, 0).of_ticks(u32::MAX, 0), 0);
    }
}
