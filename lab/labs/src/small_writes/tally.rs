//! The tally of exchanges: their times, and those that count.

use apus::PollMode;
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::Error;

/// The instructions for a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Exchanges that count, at most.
    pub(super) exchanges: u64,
    /// Nanoseconds that they may take; the exchange that is outstanding then is the last.
    pub(super) time: u64,
    /// Exchanges before what counts, at most; they have a tenth of the time. At least one: a connection acknowledges its
    /// first segments at once.
    pub(super) warm_up: u64,
    /// Seed of the bytes.
    pub(super) seed: u64,
    /// The way in which both sides wait.
    pub(super) poll: PollMode,
}

/// The observations of a client of the exchanges that count.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Their number.
    pub(super) exchanges: u64,
    /// Nanoseconds that they took together.
    pub(super) elapsed: u64,
    /// Nanoseconds of each.
    pub(super) latencies: Latencies,
    /// The number that took longer than [`STALL`].
    pub(super) stalled: u64,
    /// Counters of the kernel meanwhile, of all programs of the network namespace; `None` if it does not say.
    pub(super) counted: Option<Counters>,
}

/// Nanoseconds from which on an exchange has waited for a timer. Source: the least delayed ACK is 40 ms (`TCP_DELACK_MIN`,
/// docs/reference/papers.md, *Small TCP writes*), and nothing else on loopback takes a hundredth of that.
pub(super) const STALL: u64 = 30_000_000;

impl Tally {
    /// Returns the milliseconds of a thousand exchanges.
    pub(super) fn per_thousand(&self) -> f64 {
        self.elapsed as f64 / 1e6 * 1e3 / self.exchanges.max(1) as f64
    }
}

/// Calls `exchange` with 0, 1, … for the time of the plan. `exchange` returns `false` when it has to stop.
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
    fn the_number_ends_it_and_warm_up_does_not_count() {
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
    fn the_time_ends_it_too_but_not_before_one_was_timed() {
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
    fn who_is_told_to_stop_stops() {
        let tally = tally(&plan(1_000, u64::MAX / 4), |number| Ok(number < 8)).unwrap();
        assert_eq!(tally.exchanges, 3);
    }

    #[test]
    fn a_few_are_told_as_a_thousand() {
        let tally = Tally { exchanges: 50, elapsed: 2_200_000_000, ..Tally::default() };
        assert_eq!(tally.per_thousand(), 44_000.0);
    }
}
