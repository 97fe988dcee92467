//! The tally of exchanges: their number and times.

use apus::PollMode;
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::Error;

/// The instructions for a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Most measured exchanges.
    pub(super) exchanges: u64,
    /// Measured nanoseconds; the exchange that is outstanding at the end is the last.
    pub(super) time: u64,
    /// Most exchanges of the warm-up, which has a tenth of the time. At least one is made, since a
    /// connection acknowledges its first segments immediately.
    pub(super) warm_up: u64,
    /// Seed of the bytes.
    pub(super) seed: u64,
    /// The poll mode of both sides.
    pub(super) poll: PollMode,
}

/// A client's record of the measured exchanges.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Their number.
    pub(super) exchanges: u64,
    /// Their total duration in nanoseconds.
    pub(super) elapsed: u64,
    /// Durations in nanoseconds.
    pub(super) latencies: Latencies,
    /// Number of exchanges that took longer than [`STALL`].
    pub(super) stalled: u64,
    /// Counters of the kernel in this time, of all programs in the network namespace; `None` if it
    /// has none.
    pub(super) counted: Option<Counters>,
}

/// Nanoseconds beyond which an exchange has waited for a timer. Source: the least delayed ACK is 40
/// ms (`TCP_DELACK_MIN`, docs/reference/papers.md, *Small TCP writes*), and nothing else on
/// loopback takes a hundredth of that.
pub(super) const STALL: u64 = 30_000_000;

impl Tally {
    /// Returns the milliseconds per thousand exchanges.
    pub(super) fn per_thousand(&self) -> f64 {
        self.elapsed as f64 / 1e6 * 1e3 / self.exchanges.max(1) as f64
    }

    /// Returns a quantile of the durations in microseconds.
    pub(super) fn quantile_us(&self, fraction: f64) -> f64 {
        self.latencies.quantile(fraction) as f64 / 1e3
    }
}

/// Calls `exchange` with 0, 1, … for the time of the plan. `exchange` returns `false` to stop.
pub(super) fn tally(
    plan: &Plan,
    mut exchange: impl FnMut(u64) -> Result<bool, Error>,
) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let warm = clock::now() + plan.time / 10;
    let mut number = 0;
    while number == 0 || (number < plan.warm_up && clock::now() < warm) {
        if !exchange(number)? {
            return Ok(tally);
        }
        number += 1;
    }
    let before = Counters::now();
    let began = clock::now();
    let mut sent = began;
    while tally.exchanges < plan.exchanges && sent - began < plan.time {
        if !exchange(number)? {
            break;
        }
        let now = clock::now();
        tally.latencies.record(now - sent);
        tally.stalled += u64::from(now - sent > STALL);
        tally.exchanges += 1;
        number += 1;
        sent = now;
    }
    tally.elapsed = sent - began;
    tally.counted = before.zip(Counters::now()).map(|(before, after)| after.since(before));
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(exchanges: u64, time: u64) -> Plan {
        Plan { exchanges, time, warm_up: 5, seed: 1, poll: PollMode::Block }
    }

    #[test]
    fn the_number_ends_the_tally_and_the_warm_up_does_not_count() {
        let mut numbers = Vec::new();
        let tally = tally(&plan(20, u64::MAX / 4), |number| {
            numbers.push(number);
            Ok(true)
        })
        .unwrap();
        assert_eq!(numbers, (0..25).collect::<Vec<_>>());
        assert_eq!((tally.exchanges, tally.latencies.len()), (20, 20));
    }

    #[test]
    fn the_time_ends_the_tally_after_at_least_one_exchange() {
        let mut exchanges = 0;
        let tally = tally(&plan(1_000, 1), |_| {
            exchanges += 1;
            let began = clock::now();
            while clock::now() == began {}
            Ok(true)
        })
        .unwrap();
        assert_eq!((tally.exchanges, exchanges), (1, 2));
    }

    #[test]
    fn an_exchange_can_stop_the_tally() {
        let tally = tally(&plan(1_000, u64::MAX / 4), |number| Ok(number < 8)).unwrap();
        assert_eq!(tally.exchanges, 3);
    }

    #[test]
    fn times_are_scaled_to_a_thousand() {
        let tally = Tally { exchanges: 50, elapsed: 2_200_000_000, ..Tally::default() };
        assert_eq!(tally.per_thousand(), 44_000.0);
    }
}
