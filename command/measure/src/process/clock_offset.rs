//! Offset between the monotonic clocks of two hosts.
//!
//! Each host counts from its own boot, so instants of one host are meaningless on another. The
//! parent requests an agent's clock and reads its own clock before and after. The agent's reading
//! belongs to some instant in between: the midpoint is the best estimate, and half of the round
//! trip bounds the error, however the delay is split between the two directions. Among several
//! exchanges, the exchange with the shortest round trip has the smallest bound (D. Mills, RFC 5905,
//! section 10: the clock filter of NTP).
//!
//! Clocks also drift, by some tens of microseconds per second if nothing disciplines them. The
//! bound holds at the instant of the exchange. A run of seconds adds little error; a run of hours
//! adds much.

/// One request for the agent's clock and its answer, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Parent's clock when the request was sent.
    pub(super) asked: u64,
    /// Agent's clock.
    pub(super) theirs: u64,
    /// Parent's clock when the answer arrived.
    pub(super) answered: u64,
}

impl Exchange {
    const fn round_trip(&self) -> u64 {
        self.answered.saturating_sub(self.asked)
    }
}

/// Offset of an agent's monotonic clock from its parent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Lead of the agent's clock in nanoseconds.
    ahead: i64,
    error: u64,
}

impl ClockOffset {
    /// Estimates the offset; `None` without exchanges.
    pub(super) fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip())?;
        let middle = best.asked + best.round_trip() / 2;
        Some(Self {
            ahead: best.theirs.wrapping_sub(middle).cast_signed(),
            error: best.round_trip().div_ceil(2),
        })
    }

    /// Returns the error bound of a translated instant, in nanoseconds.
    #[must_use]
    pub const fn error(self) -> u64 {
        self.error
    }

    /// Translates an instant from the parent's clock to the agent's; 0 if it precedes the boot of
    /// the agent's host.
    #[must_use]
    pub const fn to_agent(self, instant: u64) -> u64 {
        instant.saturating_add_signed(self.ahead)
    }

    /// Translates an instant from the agent's clock to the parent's; 0 if it precedes the boot of
    /// the parent's host.
    #[must_use]
    pub const fn to_parent(self, instant: u64) -> u64 {
        instant.saturating_add_signed(self.ahead.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns exchanges with a clock that is `ahead`, each with its delays there and back.
    fn exchanges(ahead: i64, ways: &[(u64, u64)]) -> Vec<Exchange> {
        let start = 1_000_000_000_000;
        let exchange = |(number, (there, back)): (usize, &(u64, u64))| {
            let asked = start + number as u64 * 1_000_000;
            let theirs = (asked + there).checked_add_signed(ahead).unwrap();
            Exchange { asked, theirs, answered: asked + there + back }
        };
        ways.iter().enumerate().map(exchange).collect()
    }

    #[test]
    fn a_symmetric_delay_gives_the_exact_offset() {
        for ahead in [0, 1, -1, 77_000_000_000, -999_000_000_000] {
            let offset = ClockOffset::estimate(&exchanges(ahead, &[(500, 500)])).unwrap();
            assert_eq!(offset, ClockOffset { ahead, error: 500 });
        }
    }

    #[test]
    fn the_error_stays_below_its_bound_whatever_the_jitter() {
        // Delays from a small generator: mostly short, sometimes a hundred times longer, and
        // different in the two directions.
        let mut state = 7_u64;
        let mut delay = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = state >> 33;
            if random.is_multiple_of(5) {
                10_000 + random % 3_000_000
            } else {
                5_000 + random % 20_000
            }
        };
        for ahead in [-500_000_000_000, -3, 0, 12_345, 86_400_000_000_000] {
            for _ in 0..100 {
                let ways: Vec<_> = (0..16).map(|_| (delay(), delay())).collect();
                let offset = ClockOffset::estimate(&exchanges(ahead, &ways)).unwrap();
                let wrong = offset.ahead.abs_diff(ahead);
                assert!(wrong <= offset.error, "{wrong} ns wrong, not {} ns", offset.error);
                let least = ways.iter().map(|(there, back)| there + back).min().unwrap();
                assert_eq!(offset.error, least.div_ceil(2), "the best exchange decides");
            }
        }
    }

    #[test]
    fn instants_are_translated_there_and_back() {
        for ahead in [-40_000, 0, 3_000_000_000] {
            let offset = ClockOffset { ahead, error: 9 };
            let instant = 5_000_000_000;
            assert_eq!(offset.to_agent(instant), instant.checked_add_signed(ahead).unwrap());
            assert_eq!(offset.to_parent(offset.to_agent(instant)), instant);
        }
        let young = ClockOffset { ahead: -10, error: 0 };
        assert_eq!(young.to_agent(3), 0, "before the other host started");
    }

    #[test]
    fn no_exchange_gives_no_estimate() {
        assert_eq!(ClockOffset::estimate(&[]), None);
    }
}
