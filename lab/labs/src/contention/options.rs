//! Options of the contention lab.

use std::fmt;

use clap::{Args, ValueEnum};
use serde::Serialize;

use apus_report::experiment::{defaults, name};
use apus_testbed::error::{Error, require};
use apus_testbed::machine;

/// The cost of one lock for all local sockets
///
/// For years FreeBSD took one lock for every message over any local socket: 96 processes, each with
/// its own sockets, transferred 1.69 million messages per second, fewer than six did; with a lock
/// per socket it was 70.7 million. Here each worker writes one byte into its own pair and reads it,
/// as in will-it-scale's unix1: `global-lock` (the pairs of apus behind one lock that each send and
/// each receive takes), `fine-grained` (the pairs as they are; no two share a lock), and `unix` (a
/// socket pair of the kernel), with one worker and more. The result has operations per second, lock
/// waits, and whether differences are more than chance (Student's t at 95 %, as ministat computes
/// it). Figures for more workers than cores come from a model of the lock's cost here, and are
/// marked as such in tables, JSON and charts. Rows without a suffix are for processes, rows with
/// the suffix `threads` for threads; with `--as threads` all rows are for threads.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(after_help = "Examples:
  apus-lab lab contention
  apus-lab lab contention --workers 96 --as processes --runs 10 --html contention.html
  apus-lab lab contention --as threads --seconds 1 --json")]
pub struct ContentionOptions {
    /// The largest number of workers, 1 to 1024: every number up to 8 is measured, and powers of
    /// two beyond; by default the number of cores
    #[arg(
        long,
        value_name = "WORKERS",
        default_value_t = machine::allowed().len().clamp(1, MOST),
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    pub workers: usize,
    /// The kind of workers
    #[arg(long = "as", value_name = "WHAT", default_value_t = Tasks::Both)]
    #[serde(rename = "as")]
    pub tasks: Tasks,
    /// Measured seconds for each number of workers of each contender in each run: 0.01 to 60. Up to
    /// 32 times as long if no operation completed in them because other programs had the cores
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Number of runs, 1 to 1000; results are the median, the least and the greatest over the runs.
    /// Ten runs resolve smaller differences than five
    #[arg(long, value_name = "RUNS", default_value_t = 5, allow_negative_numbers = true)]
    pub runs: usize,
    /// Seed of the order of contenders and numbers of workers
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
}

impl Default for ContentionOptions {
    fn default() -> Self {
        defaults()
    }
}

/// Most workers. Chosen by us: each process takes up to three descriptors of this one, and few
/// hosts have more cores.
const MOST: usize = 1024;

/// Largest number up to which every number of workers is measured; beyond, only powers of two.
const EACH: usize = 8;

/// The kind of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tasks {
    /// Each worker is a process
    Processes,
    /// Workers are threads of one process
    Threads,
    /// Processes and threads in turn
    Both,
}

impl Tasks {
    /// Returns the kinds to measure, in the order of the report.
    pub(super) const fn each(self) -> &'static [Self] {
        match self {
            Self::Processes => &[Self::Processes],
            Self::Threads => &[Self::Threads],
            Self::Both => &[Self::Processes, Self::Threads],
        }
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name(self))
    }
}

impl ContentionOptions {
    /// Checks that each value is in its range.
    pub(super) fn check(&self) -> Result<(), Error> {
        require((1..=MOST).contains(&self.workers), "workers", "from 1 to 1024; try 2")?;
        let good = (0.01..=60.0).contains(&self.seconds);
        require(good, "seconds", "from 0.01 to 60; try 0.25")?;
        require((1..=1000).contains(&self.runs), "runs", "from 1 to 1000; try 5")
    }

    /// Returns the numbers of workers to measure, ascending.
    pub(super) fn counts(&self) -> Vec<usize> {
        let powers = (0..).map(|power| 1 << power).take_while(|count| *count < self.workers);
        if self.workers <= EACH {
            (1..=self.workers).collect()
        } else {
            powers.chain([self.workers]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn few_workers_are_measured_one_by_one_and_many_by_powers_of_two() {
        let counts =
            |workers| ContentionOptions { workers, ..ContentionOptions::default() }.counts();
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(6), [1, 2, 3, 4, 5, 6]);
        assert_eq!(counts(16), [1, 2, 4, 8, 16]);
        assert_eq!(counts(96), [1, 2, 4, 8, 16, 32, 64, 96]);
    }

    #[test]
    fn names_of_tasks_are_read_back() {
        for tasks in Tasks::value_variants() {
            assert_eq!(Tasks::from_str(&tasks.to_string(), false), Ok(*tasks));
        }
        assert!(Tasks::from_str("fibers", false).is_err());
    }

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused =
            |change: fn(&mut ContentionOptions)| option_problem(ContentionOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.workers = 0).starts_with("workers: "));
        assert!(refused(|options| options.workers = MOST + 1).starts_with("workers: "));
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
    }
}
