//! A worker: its operations, and those that count.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Operations between two readings of the clock. Chosen by us: a reading costs a fifth of an operation, and so a thousandth
/// altogether.
const LOOK_EVERY: u64 = 256;

/// When workers work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    /// Nanoseconds of work before what counts: caches and pages are as they will be then, and all workers there.
    pub(super) warm_up: u64,
    /// Nanoseconds that count.
    pub(super) time: u64,
}

/// The result of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Operations that ended in the time that counts.
    pub(super) operations: u64,
    /// Nanoseconds that locks were waited for that were found taken; `None` if that cannot be seen.
    pub(super) waits: Option<Latencies>,
    /// Nanoseconds that a lock is held by this worker when it is by itself, if that can be seen.
    pub(super) hold: Option<f64>,
}

/// Works from the instant `at` on. The lock was held for `hold` ns before that.
pub(super) fn work(
    exchange: &mut impl Exchange,
    hold: Option<f64>,
    at: u64,
    window: Window,
    stop: &Stop,
) -> Result<Tally, Error> {
    // Asleep: workers may have to share a core.
    thread::sleep(Duration::from_nanos(at.saturating_sub(clock::now())));
    let counts_from = at + window.warm_up;
    let end = counts_from + window.time;
    let (_, began) = until(counts_from, exchange, stop)?;
    let noted = exchange.waits();
    if began >= end {
        // Others had the lock, or the core, all the time.
        return Ok(Tally { operations: 0, waits: noted.map(|_| Latencies::new()), hold });
    }
    // All workers have the same time, however late they read the clock. What had begun before it and ended in
    // it counts, and what ends after it does not: that is as many looks.
    let (operations, _) = until(end, exchange, stop)?;
    Ok(Tally { operations, waits: exchange.waits(), hold })
}

/// Works until `end` or `stop`. Returns the number of operations, and when the last one ended.
fn until(end: u64, exchange: &mut impl Exchange, stop: &Stop) -> Result<(u64, u64), Error> {
    let mut operations = 0;
    loop {
        for _ in 0..LOOK_EVERY {
            exchange.operate()?;
        }
        operations += LOOK_EVERY;
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
    fn what_comes_after_the_warm_up_counts() {
        // The system may stop this thread for all of the warm-up, or of the time that counts.
        assert!((0..1_000).any(|_| some_came_before_and_some_after()));
    }

    fn some_came_before_and_some_after() -> bool {
        let mut exchange = Counting::default();
        let window = Window { warm_up: 1_000_000, time: 2_000_000 };
        let at = clock::now();
        let tally = work(&mut exchange, Some(5.0), at, window, &Stop::default()).unwrap();
        assert!(clock::now() >= at + 3_000_000);
        assert_eq!(tally.waits.unwrap().len(), tally.operations, "their waits count, too");
        assert!(tally.hold == Some(5.0));
        tally.operations > 0 && tally.operations < exchange.all
    }

    /// A rate of its own would be that of the few operations after all others had ended.
    #[test]
    fn who_comes_to_nothing_in_the_time_that_counts_has_done_nothing() {
        let window = Window { warm_up: 0, time: 1_000 };
        let long_ago = clock::now() - 1_000_000;
        let mut exchange = Counting::default();
        let tally = work(&mut exchange, None, long_ago, window, &Stop::default()).unwrap();
        assert_eq!((tally.operations, tally.waits.unwrap().len()), (0, 0));
        assert!(exchange.all > 0);
    }

    #[test]
    fn who_is_asked_to_stop_stops_and_who_fails_says_so() {
        let stop = Stop::default();
        stop.ask();
        let window = Window { warm_up: u64::MAX / 4, time: u64::MAX / 4 };
        work(&mut Counting::default(), None, clock::now(), window, &stop).unwrap();
        let failed = work(&mut Failing, None, clock::now(), window, &Stop::default());
        assert_eq!(failed.unwrap_err().to_string(), "no luck");
    }
}
