//! What can be asked of the contention experiment?

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use apus_report::result::named;
use apus_testbed::error::{Error, require};
use apus_testbed::machine;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The largest number of workers, 1 to 1024.
    pub workers: usize,
    /// What workers are.
    pub tasks: Tasks,
    /// Seconds that count, for each number of workers, 0.01 to 60.
    pub seconds: f64,
    /// How often everything is repeated, 1 to 1000.
    pub runs: usize,
    /// Draws the order in which points are measured.
    pub seed: u64,
}

impl Default for Options {
    /// As many workers as there are cores for this process.
    fn default() -> Self {
        let workers = machine::allowed().len().clamp(1, MOST);
        Self { workers, tasks: Tasks::Both, seconds: 0.25, runs: 5, seed: 1 }
    }
}

/// Workers at most. Ours: each process has a descriptor or three of ours, and this is more than hosts have cores.
const MOST: usize = 1024;

/// Up to here every number of workers is measured, and powers of two beyond.
const EACH: usize = 8;

/// What workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tasks {
    /// Each a process.
    Processes,
    /// Threads of one process.
    Threads,
    /// Both are measured.
    Both,
}

impl Tasks {
    const ALL: [Self; 3] = [Self::Processes, Self::Threads, Self::Both];

    /// What is to be measured, in the order in which it is shown.
    pub(super) const fn each(self) -> &'static [Self] {
        match self {
            Self::Processes => &[Self::Processes],
            Self::Threads => &[Self::Threads],
            Self::Both => &[Self::Processes, Self::Threads],
        }
    }
}

impl FromStr for Tasks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|each| each.to_string() == text).ok_or_else(|| Error::Option {
            option: "as",
            problem: format!("`{text}` is none of processes, threads and both"),
        })
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
            Self::Both => "both",
        })
    }
}

impl Options {
    /// Whether this can be measured.
    pub(super) fn check(&self) -> Result<(), Error> {
        require((1..=MOST).contains(&self.workers), "workers", "from 1 to 1024; try 2")?;
        let good = (0.01..=60.0).contains(&self.seconds);
        require(good, "seconds", "from 0.01 to 60; try 0.25")?;
        require((1..=1000).contains(&self.runs), "runs", "from 1 to 1000; try 5")
    }

    /// The numbers of workers that are measured, ascending.
    pub(super) fn counts(&self) -> Vec<usize> {
        let powers = (0..).map(|power| 1 << power).take_while(|count| *count < self.workers);
        if self.workers <= EACH {
            (1..=self.workers).collect()
        } else {
            powers.chain([self.workers]).collect()
        }
    }

    /// What is asked for, for those who read the result.
    pub(super) fn config(&self) -> Map<String, Value> {
        named([
            ("workers", json!(self.workers)),
            ("as", json!(self.tasks.to_string())),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn few_workers_are_measured_one_by_one_and_many_by_powers_of_two() {
        let counts = |workers| Options { workers, ..Options::default() }.counts();
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(6), [1, 2, 3, 4, 5, 6]);
        assert_eq!(counts(16), [1, 2, 4, 8, 16]);
        assert_eq!(counts(96), [1, 2, 4, 8, 16, 32, 64, 96]);
    }

    #[test]
    fn tasks_are_what_they_are_called() {
        for tasks in Tasks::ALL {
            assert_eq!(tasks.to_string().parse::<Tasks>().unwrap(), tasks);
        }
        let said = "fibers".parse::<Tasks>().unwrap_err().to_string();
        assert!(said.contains("none of processes, threads and both"), "{said}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused = |change: fn(&mut Options)| option_problem(Options::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.workers = 0).starts_with("workers: "));
        assert!(refused(|options| options.workers = MOST + 1).starts_with("workers: "));
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
    }
}
