//! Work of an application on each request.

use std::hint::black_box;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use apus_testbed::clock;

/// A fixed amount of computation for each request.
///
/// It is measured in loop iterations instead of time, so that an interruption does not shorten the
/// work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    rounds: u64,
}

impl Work {
    /// No work: an echo.
    pub const NONE: Self = Self { rounds: 0 };

    /// Returns the work that takes `time` on this machine when undisturbed: the fastest of several
    /// tries counts.
    #[must_use]
    pub fn lasting(time: Duration) -> Self {
        const ROUNDS: u64 = 1 << 17;
        const TRIES: usize = 20;
        let probe = Self { rounds: ROUNDS };
        let nanoseconds = |_| {
            let began = clock::now();
            probe.perform();
            clock::now() - began
        };
        let fastest = (0..TRIES).map(nanoseconds).min().unwrap_or(1).max(1);
        let time = clock::as_nanoseconds(time);
        let rounds = u128::from(ROUNDS) * u128::from(time) / u128::from(fastest);
        Self { rounds: u64::try_from(rounds).unwrap_or(u64::MAX) }
    }

    /// Returns whether the amount of work is zero.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.rounds == 0
    }

    /// Performs the work.
    pub fn perform(self) {
        let mut state = self.rounds;
        for _ in 0..self.rounds {
            // A step of a linear congruential generator; it depends on the previous step.
            state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_is_more_work_and_no_time_is_none() {
        let (short, long) =
            (Work::lasting(Duration::from_micros(1)), Work::lasting(Duration::from_millis(1)));
        assert!(short.rounds > 0 && long.rounds > short.rounds, "{short:?} {long:?}");
        assert!(Work::lasting(Duration::ZERO).is_none() && Work::NONE.is_none());
        Work::NONE.perform();
    }
}
