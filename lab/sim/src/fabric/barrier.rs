//! Barrier that synchronizes threads after each window.
//!
//! A window takes about ten microseconds, as long as it takes to wake a thread up. Waiting threads
//! therefore do not sleep, as they would at the barrier of the standard library: they spin for a
//! moment, and then yield their processor repeatedly.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Checks of a waiting thread before it yields its processor: about a microsecond. Chosen by us.
const CHECKS: u32 = 100;

/// The barrier.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// Number of completed rounds.
    rounds: AtomicUsize,
    /// Whether a thread has panicked and will never arrive.
    broken: AtomicBool,
}

/// A thread has panicked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Barrier {
    /// Returns a barrier for this number of threads.
    pub(super) const fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all threads have arrived. Writes of each thread before the barrier are visible
    /// to all threads after it.
    ///
    /// # Errors
    ///
    /// Another thread has panicked.
    pub(super) fn wait(&self) -> Result<(), Broken> {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // No thread arrives for the next round before this round has ended.
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut checks = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Relaxed) {
                return Err(Broken);
            }
            checks += 1;
            if checks < CHECKS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Returns a guard that breaks the barrier if its thread panics.
    pub(super) const fn guard(&self) -> Guard<'_> {
        Guard { barrier: self }
    }
}

/// Breaks the barrier if it is dropped by a panic.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    barrier: &'a Barrier,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.barrier.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_meet_in_each_round() {
        let (barrier, sum) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=1_000 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        barrier.wait().unwrap();
                        assert_eq!(sum.load(Ordering::Relaxed), 3 * round);
                        barrier.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _guard = barrier.guard();
                panic!("as planned");
            });
            assert_eq!(barrier.wait(), Err(Broken));
            assert!(panics.join().is_err());
        });
    }
}
