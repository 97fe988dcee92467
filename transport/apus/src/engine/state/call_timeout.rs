//! Timeout of calls without a deadline.

use super::time::Time;
use apus_proto::Instant;
use std::time::Duration;

/// Counts intervals, each a quarter of the timeout, while there are calls.
///
/// A call stores the interval of its start, and fails at the end of the fourth interval after it:
/// when the timeout has passed, and up to a quarter later. Rationale: a deadline for each call
/// costs a reading of the clock and a place in an ordered set, a third of a call through shared
/// memory (ADR 16). Time in which the loop does not run counts as one interval, however long
/// it is: a pause of the process does not make its calls fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimeout {
    /// `None` if calls have no timeout.
    interval: Option<Duration>,
    /// Whether calls fail at once.
    is_zero: bool,
    /// The number of the current interval.
    number: u32,
    /// When the current interval ends; [`Instant::NEVER`] while intervals are not counted.
    ends: Instant,
}

/// Number of intervals whose ends a call outlives; it fails at the next one.
const OUTLIVED: u32 = 4;

/// Shortest interval. Chosen by us: all calls are checked at the end of each.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl CallTimeout {
    /// The default. Chosen by us: twice what HTTP clients and QUIC wait for a silent peer, and the
    /// longest message of the default configuration needs less at 10 Mbit/s.
    pub(crate) const DEFAULT: Duration = Duration::from_secs(60);

    /// Returns the timeout of an endpoint; [`Duration::MAX`] disables it, and with zero every call
    /// fails at once.
    pub(crate) fn new(timeout: Duration) -> Self {
        let interval = (timeout < Duration::MAX).then(|| (timeout / OUTLIVED).max(MIN_INTERVAL));
        Self { interval, is_zero: timeout.is_zero(), number: 0, ends: Instant::NEVER }
    }

    /// Returns whether the timeout is zero: a call fails before it is sent.
    pub(crate) const fn is_zero(&self) -> bool {
        self.is_zero
    }

    /// Returns when the current interval ends.
    pub(crate) const fn next_due(&self) -> Instant {
        self.ends
    }

    /// Starts to count intervals if necessary. Returns the number of the current one, for a new
    /// call; `None` if there is no timeout.
    pub(crate) fn call_made(&mut self, time: &Time) -> Option<u32> {
        let interval = self.interval?;
        if self.ends == Instant::NEVER {
            self.ends = time.clock().now() + interval;
        }
        Some(self.number)
    }

    /// Ends the current interval if its time has passed, and starts the next one if there are
    /// `calls`. Returns whether it has.
    pub(crate) fn end_interval(&mut self, now: Instant, calls: bool) -> bool {
        if now < self.ends {
            return false;
        }
        self.number = self.number.wrapping_add(1);
        self.ends = match self.interval {
            Some(interval) if calls => now + interval,
            _ => Instant::NEVER,
        };
        true
    }

    /// Returns whether the timeout of a call has passed that was made in the interval `made`.
    pub(crate) const fn is_overdue(&self, made: u32) -> bool {
        self.number.wrapping_sub(made) > OUTLIVED
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use crate::engine::clock::Clock;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn a_call_fails_between_the_timeout_and_a_quarter_more() {
        let interval = TIMEOUT / 4;
        for into_the_interval in [0, 7_000_000_000, 14_999_999_999].map(Duration::from_nanos) {
            let time = Time::new(Clock::start());
            let mut timeout = CallTimeout::new(TIMEOUT);
            let made = timeout.call_made(&time).unwrap();
            let left_of_interval = interval - into_the_interval;
            let first_end = timeout.next_due();
            let mut failed = first_end;
            while !timeout.is_overdue(made) {
                failed = timeout.next_due();
                assert!(timeout.end_interval(failed, true));
            }
            let lived = left_of_interval + (failed - first_end);
            assert!(lived > TIMEOUT && lived <= TIMEOUT + interval, "{lived:?}");
        }
    }

    #[test]
    fn time_in_which_the_loop_does_not_run_counts_as_one_interval() {
        let time = Time::new(Clock::start());
        let mut timeout = CallTimeout::new(TIMEOUT);
        let made = timeout.call_made(&time).unwrap();
        let paused = timeout.next_due() + Duration::from_secs(3600);
        assert!(timeout.end_interval(paused, true));
        assert!(!timeout.end_interval(paused, true));
        assert!(!timeout.is_overdue(made));
    }

    #[test]
    fn nothing_is_due_without_calls_or_without_a_timeout() {
        let time = Time::new(Clock::start());
        let mut timeout = CallTimeout::new(TIMEOUT);
        assert_eq!(timeout.next_due(), Instant::NEVER);
        timeout.call_made(&time);
        assert!(timeout.end_interval(timeout.next_due(), false));
        assert_eq!(timeout.next_due(), Instant::NEVER);
        let mut never = CallTimeout::new(Duration::MAX);
        assert_eq!(never.call_made(&time), None);
        assert_eq!(never.next_due(), Instant::NEVER);
    }
}
