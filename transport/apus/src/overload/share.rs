//! A bound for the share of a core that a loop uses while other threads need it.

use apus_proto::Instant;
use std::time::Duration;

/// Limits the processor time that a loop uses in each period.
///
/// It suits loops that compete with other threads for a core; a loop that spins on a dedicated core
/// does not need it.
///
/// Unused time is not saved up: a loop that was idle for long may not run for long. Time used
/// beyond the limit, because a pass is not interrupted, is subtracted from the next period.
#[derive(Clone, Debug)]
pub struct CoreShare {
    /// Nanoseconds, as are the two below: periods are divided in 64 bits.
    period: u64,
    /// How much of each period may be used.
    allowed: u64,
    began: Instant,
    used: u64,
    /// Start of the last period that reached the limit, so that it is counted once.
    counted: Option<Instant>,
    inhibitions: u64,
}

impl CoreShare {
    /// Length of a period: 10 ms. Source: Mogul & Ramakrishnan.
    ///
    /// It is long compared with a pass of some microseconds, so that the limit is met closely, and
    /// short enough for the protocol: a peer that receives no packet for 5 ms (`resend_usecs`)
    /// sends a RESEND, and gives up after a second (`timeout_usecs`).
    pub const PERIOD: Duration = Duration::from_millis(10);

    /// Limits a loop to `percent` of a core: 1 to 100; values outside count as the nearest. With
    /// 100 receiving is never inhibited.
    #[inline]
    #[must_use]
    pub const fn of_percent(percent: u32) -> Self {
        Self::new(percent, Self::PERIOD)
    }

    /// Limits a loop to `percent` of a core in periods of `period`; zero counts as a nanosecond.
    #[inline]
    #[must_use]
    pub const fn new(percent: u32, period: Duration) -> Self {
        let period = match period.as_nanos() as u64 {
            0 => 1,
            nanos => nanos,
        };
        let percent = match percent {
            0 => 1,
            100.. => 100,
            percent => percent,
        };
        Self {
            period,
            allowed: (period as u128 * percent as u128 / 100) as u64,
            began: Instant::ZERO,
            used: 0,
            counted: None,
            inhibitions: 0,
        }
    }

    /// Records that the loop has used `time` of processor time, up to `now`.
    #[inline]
    pub fn charge(&mut self, time: Duration, now: Instant) {
        self.roll(now);
        self.used = self.used.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the end of the period if receiving is inhibited until then. Sending, timers and
    /// deliveries may continue: they finish work that was started.
    #[inline]
    #[must_use]
    pub fn until(&mut self, now: Instant) -> Option<Instant> {
        self.roll(now);
        if self.allowed == self.period || self.used < self.allowed.max(1) {
            return None;
        }
        if self.counted != Some(self.began) {
            self.counted = Some(self.began);
            self.inhibitions += 1;
        }
        Some(self.began + Duration::from_nanos(self.period))
    }

    /// Returns the number of periods with inhibited receiving.
    #[inline]
    #[must_use]
    pub const fn inhibitions(&self) -> u64 {
        self.inhibitions
    }

    /// Starts the period that contains `now`.
    fn roll(&mut self, now: Instant) {
        let periods = (now - self.began).as_nanos() as u64 / self.period;
        if periods == 0 {
            return;
        }
        self.began += Duration::from_nanos(periods * self.period);
        // The excess, minus the allowance of the periods in between, and at most one period's
        // allowance.
        let overdrawn = self.used.saturating_sub(self.allowed.saturating_mul(periods));
        self.used = overdrawn.min(self.allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_limit_inhibits_until_the_period_ends() {
        let mut share = CoreShare::of_percent(50);
        share.charge(4 * MS, at(14));
        assert_eq!(share.until(at(14)), None);
        share.charge(MS, at(15));
        assert_eq!(share.until(at(15)), Some(at(20)));
        assert_eq!((share.until(at(19)), share.inhibitions()), (Some(at(20)), 1));
        assert_eq!(share.until(at(20)), None, "a new period");
        share.charge(5 * MS, at(25));
        assert_eq!((share.until(at(25)), share.inhibitions()), (Some(at(30)), 2));
    }

    #[test]
    fn what_was_overdrawn_is_paid_back_and_what_was_not_used_is_lost() {
        let mut share = CoreShare::of_percent(25);
        share.charge(4 * MS, at(4));
        assert_eq!(share.until(at(10)), None);
        share.charge(MS, at(11));
        assert_eq!(share.until(at(11)), Some(at(20)), "1.5 ms were overdrawn, 2.5 are allowed");
        assert_eq!(share.until(at(500)), None);
        share.charge(5 * MS / 2, at(503));
        assert_eq!(share.until(at(503)), Some(at(510)), "idle periods save nothing up");
    }

    #[test]
    fn a_very_long_pass_costs_one_period_at_most() {
        let mut share = CoreShare::of_percent(50);
        share.charge(1_000 * MS, at(9));
        assert_eq!(share.until(at(10)), Some(at(20)));
        assert_eq!(share.until(at(20)), None);
    }

    #[test]
    fn over_many_periods_a_greedy_loop_gets_its_share() {
        // Does not divide the period.
        const PASS: Duration = Duration::from_nanos(70_001);
        for percent in [1, 25, 50, 75, 99] {
            let mut share = CoreShare::of_percent(percent);
            let (mut now, mut used) = (Instant::ZERO, 0_u128);
            while now < at(10_000) {
                if let Some(until) = share.until(now) {
                    now = until;
                } else {
                    now += PASS;
                    used += PASS.as_nanos();
                    share.charge(PASS, now);
                }
            }
            let got = used as f64 / now.as_nanos() as f64 * 100.0;
            assert!((got - f64::from(percent)).abs() < 0.05, "{percent} %: {got}");
        }
    }

    #[test]
    fn the_whole_core_is_never_inhibited_and_no_number_is_refused() {
        for percent in [100, 101, u32::MAX] {
            let mut share = CoreShare::of_percent(percent);
            share.charge(Duration::from_nanos(u64::MAX), at(1));
            assert_eq!(share.until(at(1)), None);
        }
        let mut share = CoreShare::new(0, Duration::ZERO);
        assert_eq!(share.until(at(0)), None);
        share.charge(Duration::from_nanos(1), at(1));
        assert!(share.until(at(1)).is_some());
        assert_eq!(share.until(Instant::NEVER), None);
    }
}
