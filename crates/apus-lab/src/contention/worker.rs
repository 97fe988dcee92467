//! What does a worker do, and what of it counts?

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::exchange::{Alone, Exchange, Seen};
use crate::clock;
use crate::error::Error;
use crate::process::Stop;
use crate::stats::Latencies;

/// Operations from one look to the next; a look is at two of them. Ours: each time the clock is read, it costs a fifth of an
/// operation, and so a hundredth altogether.
pub(super) const LOOK_EVERY: u64 = 256;

/// When workers work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    /// Nanoseconds of work before what counts: caches and pages are as they will be then, and all workers there.
    pub(super) warm_up: u64,
    /// Nanoseconds that count.
    pub(super) time: u64,
}

/// What came of a worker's work.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Operations that count.
    pub(super) operations: u64,
    /// Nanoseconds that they took.
    pub(super) time: u64,
    /// Nanoseconds that locks were waited for, of the operations that were looked at.
    pub(super) wait: Latencies,
    /// Nanoseconds that they were held.
    pub(super) hold: Latencies,
}

/// Works from the instant `at` on. `alone` was watched before.
pub(super) fn work(
    exchange: &mut impl Exchange,
    alone: &Alone,
    at: u64,
    window: Window,
    stop: &Stop,
) -> Result<Tally, Error> {
    let mut seen = Seen::default();
    // Asleep: workers may have to share a core.
    thread::sleep(Duration::from_nanos(at.saturating_sub(clock::now())));
    let counts_from = at + window.warm_up;
    let (_, began) = until(counts_from, exchange, &mut seen, stop)?;
    seen.clear();
    let (operations, ended) = until(counts_from + window.time, exchange, &mut seen, stop)?;
    let [wait, hold] = seen.latencies(alone);
    Ok(Tally { operations, time: ended - began, wait, hold })
}

/// Works until that instant, or until nobody wants to know. How many operations it was, and when the last one ended.
fn until(
    end: u64,
    exchange: &mut impl Exchange,
    seen: &mut Seen,
    stop: &Stop,
) -> Result<(u64, u64), Error> {
    let mut operations = 0;
    loop {
        for _ in 2..LOOK_EVERY {
            exchange.operate()?;
        }
        let now = exchange.observe(seen)?;
        operations += LOOK_EVERY;
        if now >= end || stop.is_asked() {
            return Ok((operations, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::Look;
    use super::*;

    /// Counts operations.
    #[derive(Default)]
    struct Counting(u64);

    impl Exchange for Counting {
        fn operate(&mut self) -> Result<(), Error> {
            self.0 += 1;
            Ok(())
        }

        fn observe(&mut self, seen: &mut Seen) -> Result<u64, Error> {
            seen.note(Look { waits: [1_000; 2], holds: [1_000; 2] });
            self.0 += 2;
            Ok(clock::now())
        }
    }

    struct Failing;

    impl Exchange for Failing {
        fn operate(&mut self) -> Result<(), Error> {
            Err(Error::Peer("no luck".to_owned()))
        }

        fn observe(&mut self, _: &mut Seen) -> Result<u64, Error> {
            Ok(clock::now())
        }
    }

    #[test]
    fn what_comes_after_the_warm_up_counts() {
        let mut exchange = Counting::default();
        let alone = Alone::watch(&mut exchange).unwrap();
        exchange.0 = 0;
        let window = Window { warm_up: 1_000_000, time: 2_000_000 };
        let at = clock::now();
        let tally = work(&mut exchange, &alone, at, window, &Stop::default()).unwrap();
        assert!(clock::now() >= at + 3_000_000);
        assert!(tally.operations < exchange.0, "some came before");
        assert_eq!(tally.operations % LOOK_EVERY, 0);
        assert_eq!(tally.wait.len(), 2 * tally.operations / LOOK_EVERY, "and were seen");
        assert!(tally.time > 0);
    }

    #[test]
    fn who_is_asked_to_stop_stops_and_who_fails_says_so() {
        let stop = Stop::default();
        stop.ask();
        let window = Window { warm_up: u64::MAX / 4, time: u64::MAX / 4 };
        let alone = Alone::watch(&mut Failing).unwrap();
        work(&mut Counting::default(), &alone, clock::now(), window, &stop).unwrap();
        let failed = work(&mut Failing, &alone, clock::now(), window, &Stop::default());
        assert_eq!(failed.unwrap_err().to_string(), "no luck");
    }
}
