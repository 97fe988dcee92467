//! The operation of a worker, and how the waits at its locks are observed.
//!
//! A message of one byte, written into a pair and read from it by the same worker: no switch to another task, and
//! nothing that has to be waited for but locks.
//!
//! # How waits are seen without making them longer
//!
//! A worker that reads the clock between releasing a lock and requesting it again gives others the time to take it; even a
//! few nanoseconds there, or a lock that is held a bit longer, were seen to make waits ten times as likely. So nothing is
//! sampled. A worker that finds the lock free continues without a measurement, and has not waited. One that finds it taken
//! has the time to read the clock, before and afterwards: all of these are counted.

use apus_report::stats::Latencies;
use apus_testbed::error::Error;

/// Acquisitions of the lock in an operation: one to write, and one to read.
pub(super) const TURNS: u64 = 2;

/// A contender's way to write a byte and to read it.
pub(super) trait Exchange {
    /// One operation.
    ///
    /// # Errors
    ///
    /// The message did not come, or another one did.
    fn operate(&mut self) -> Result<(), Error>;

    /// Comes to where locks are shared with others; before, each worker is by itself. How many nanoseconds a lock is
    /// held by such a worker, if that can be seen.
    ///
    /// # Errors
    ///
    /// The shared memory cannot be opened.
    fn join(&mut self) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// Returns how long locks were waited for that were found taken since this was asked the last time, in nanoseconds;
    /// `None` if that cannot be seen.
    fn waits(&mut self) -> Option<Latencies> {
        None
    }
}
