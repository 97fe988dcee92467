//! How far apart are the monotonic clocks of two hosts?
//!
//! Each host counts from its own start, so instants of one mean nothing to another. The parent asks an
//! agent for the time and looks at its own clock before and after. The agent's reading belongs to some
//! instant in between; half way is the best guess, and half of the round trip is the most it can be
//! wrong by, whatever part of it either direction took. Of several exchanges that with the least round
//! trip says most (D. Mills, RFC 5905, section 10: the clock filter of NTP).
//!
//! Clocks also drift, by some tens of microseconds per second where nothing disciplines them. The bound
//! holds for the instant of the exchange; a run of seconds adds little to it, one of hours would.

/// One question for the time and its answer, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// When the question left, by the parent's clock.
    pub(super) asked: u64,
    /// What the agent's clock said.
    pub(super) theirs: u64,
    /// When the answer came, by the parent's clock.
    pub(super) answered: u64,
}

impl Exchange {
    const fn round_trip(&self) -> u64 {
        self.answered.saturating_sub(self.asked)
    }
}

/// An agent's monotonic clock, seen from its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds by which the agent's clock is ahead.
    ahead: i64,
    error: u64,
}

impl ClockOffset {
    /// What the exchanges say; `None` if there are none.
    pub(super) fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip())?;
        let middle = best.asked + best.round_trip() / 2;
        Some(Self {
            ahead: best.theirs.wrapping_sub(middle).cast_signed(),
            error: best.round_trip().div_ceil(2),
        })
    }

    /// The most nanoseconds that a translated instant can be wrong by.
    #[must_use]
    pub const fn error(self) -> u64 {
        self.error
    }

    /// An instant of the parent's clock on the agent's; 0 if that was before the agent's host started.
    #[must_use]
    pub const fn to_agent(self, instant: u64) -> u64 {
        instant.saturating_add_signed(self.ahead)
    }

    /// An instant of the agent's clock on the parent's; 0 if that was before the parent's host started.
    #[must_use]
    pub const fn to_parent(self, instant: u64) -> u64 {
        instant.saturating_add_signed(self.ahead.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges with a clock that is `ahead`, each with its ways there and back.
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
    fn a_symmetric_way_gives_the_offset_exactly() {
        for ahead in [0, 1, -1, 77_000_000_000, -999_000_000_000] {
            let offset = ClockOffset::estimate(&exchanges(ahead, &[(500, 500)])).unwrap();
            assert_eq!(offset, ClockOffset { ahead, error: 500 });
        }
    }

    #[test]
    fn the_error_stays_below_its_bound_whatever_the_jitter() {
        // Delays from a small generator: mostly short, sometimes a hundred times longer, and never the
        // same in both directions.
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
    fn nothing_asked_nothing_known() {
        assert_eq!(ClockOffset::estimate(&[]), None);
    }
}
