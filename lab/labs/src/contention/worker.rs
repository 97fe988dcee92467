//! A worker: performs operations and counts them.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Operations between two readings of the clock. Chosen by us: a reading costs a fifth of an
/// operation, so a thousandth of the time in all.
const CLOCK_EVERY: u64 = 256;

/// The times of a measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    /// Nanoseconds of work before the measured time, until caches and pages are warm and all
    /// workers run.
    pub(super) warm_up: u64,
    /// Measured nanoseconds.
    pub(super) time: u64,
}

/// The result of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Operations that ended in the measured time.
    pub(super) operations: u64,
    /// Waits for taken locks in nanoseconds; `None` if they cannot be observed.
    pub(super) waits: Option<Latencies>,
    /// Nanoseconds for which this worker alone holds a lock, if that can be observed.
    pub(super) hold: Option<f64>,
}

/// Works from the instant `at`. `hold` is the hold time that was measured before.
pub(super) fn work(
    exchange: &mut impl Exchange,
    hold: Option<f64>,
    at: u64,
    window: Window,
    stop: &Stop,
) -> Result<Tally, Error> {
    // Sleep rather than spin: workers may share a core.
    thread::sleep(Duration::from_nanos(at.saturating_sub(clock::now())));
    let counts_from = at + window.warm_up;
    let end = counts_from + window.time;
    let (_, began) = until(counts_from, exchange, stop)?;
    let earlier = exchange.waits();
    if began >= end {
        // Other workers had the lock, or the core, all the time.
        return Ok(Tally { operations: 0, waits: earlier.map(|_| Latencies::new()), hold });
    }
    // All workers have the same measured time, even if they read the clock late. Operations across
    // its start count and operations across its end do not; on average these are equally many.
    let (operations, _) = until(end, exchange, stop)?;
    Ok(Tally { operations, waits: exchange.waits(), hold })
}

/// Works until `end` or `stop`. Returns the number of operations, and when the last one ended.
fn until(end: u64, exchange: &mut impl Exchange, stop: &Stop) -> Result<(u64, u64), Error> {
    let mut operations = 0;
    loop {
        for _ in 0..CLOCK_EVERY {
            exchange.operate()?;
        }
        operations += CLOCK_EVERY;
        let now = clock::now();
        if now >= end || stop.is_asked() {
            return Ok((operations, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts operations, each of which has waited once.
    #[derive(Default)]
    struct Counting {
        all: u64,
        new: u64,
    }

    impl Exchange for Counting {
        fn operate(&mut self) -> Result<(), Error> {
            self.all += 1;
            self.new += 1;
            Ok(())
        }

        fn waits(&mut self) -> Option<Latencies> {
            let mut waits = Latencies::new();
            (0..std::mem::take(&mut self.new)).for_each(|_| waits.record(7));
            Some(waits)
        }
    }

    struct Failing;

    impl Exchange for Failing {
        fn operate(&mut self) -> Result<(), Error> {
            Err(Error::Peer("no luck".to_owned()))
        }
    }

    #[test]
    fn operations_after_the_warm_up_count() {
        // The system may stop this thread for all of the warm-up, or of the time that counts.
        assert!((0..1_000).any(|_| some_ended_before_and_some_after()));
    }

    fn some_ended_before_and_some_after() -> bool {
        let mut exchange = Counting::default();
        let window = Window { warm_up: 1_000_000, time: 2_000_000 };
        let at = clock::now();
        let tally = work(&mut exchange, Some(5.0), at, window, &Stop::default()).unwrap();
        assert!(clock::now() >= at + 3_000_000);
        assert_eq!(tally.waits.unwrap().len(), tally.operations, "their waits count, too");
        assert!(tally.hold == Some(5.0));
        tally.operations > 0 && tally.operations < exchange.all
    }

    /// Its own rate would come from the few operations after all other workers had ended.
    #[test]
    fn a_worker_without_the_core_in_the_measured_time_has_no_operations() {
        let window = Window { warm_up: 0, time: 1_000 };
        let long_ago = clock::now() - 1_000_000;
        let mut exchange = Counting::default();
        let tally = work(&mut exchange, None, long_ago, window, &Stop::default()).unwrap();
        assert_eq!((tally.operations, tally.waits.unwrap().len()), (0, 0));
        assert!(exchange.all > 0);
    }

    #[test]
    fn a_worker_stops_when_asked_and_reports_its_failure() {
        let stop = Stop::default();
        stop.ask();
        let window = Window { warm_up: u64::MAX / 4, time: u64::MAX / 4 };
        work(&mut Counting::default(), None, clock::now(), window, &stop).unwrap();
        let failed = work(&mut Failing, None, clock::now(), window, &Stop::default());
        assert_eq!(failed.unwrap_err().to_string(), "no luck");
    }
}
