//! The operation of a worker, and the observation of its lock waits.
//!
//! A message of one byte is written into a pair and read from it by the same worker: there is no
//! switch to another task, and only locks can make the worker wait.
//!
//! # Observing waits without making them longer
//!
//! A worker that reads the clock between releasing a lock and requesting it again gives others time
//! to take it; a few nanoseconds there, or a slightly longer hold, made waits ten times as likely.
//! So there is no sampling. A worker that finds the lock free continues without a measurement; its
//! wait is 0. A worker that finds it taken reads the clock before and after the wait, and every
//! such wait is counted.

use apus_report::stats::Latencies;
use apus_testbed::error::Error;

/// Acquisitions of the lock per operation: one to write, and one to read.
pub(super) const TURNS: u64 = 2;

/// A contender's way to write a byte and to read it.
pub(super) trait Exchange {
    /// Performs one operation.
    ///
    /// # Errors
    ///
    /// The message did not arrive, or another message did.
    fn operate(&mut self) -> Result<(), Error>;

    /// Starts to share locks with the other workers. Returns the nanoseconds for which a lone
    /// worker holds the lock, if that can be observed.
    ///
    /// # Errors
    ///
    /// The shared memory cannot be opened.
    fn join(&mut self) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// Returns the waits for locks that were found taken since the previous call, in nanoseconds;
    /// `None` if they cannot be observed.
    fn waits(&mut self) -> Option<Latencies> {
        None
    }
}
