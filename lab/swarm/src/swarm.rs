//! Swarm: many seeds on several threads.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::files;
use super::panic_hook::PanicSilencer;
use super::scenario::{PeerModel, Scenario};
use super::seed::{RunTotals, SeedFailure, SeedResult, check_scenario};

/// Parameters of a swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// Seeds to run.
    pub seeds: Range<u64>,
    /// Software on the hosts.
    pub peers: PeerModel,
    /// Whether each seed also runs a world of the file service.
    pub files: bool,
    /// Number of threads.
    pub jobs: NonZero<usize>,
}

/// Results of all seeds, independent of the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwarmSummary {
    /// Number of seeds.
    pub seeds: u64,
    /// Totals of all runs.
    pub totals: RunTotals,
    /// All violations, by seed.
    pub failures: Vec<SeedFailure>,
}

impl Swarm {
    /// Runs all seeds. `progress` is called for each result as soon as it is available, in any
    /// order.
    ///
    /// Meanwhile panics of this process are not printed, since panics during a seed are violations.
    ///
    /// # Panics
    ///
    /// A thread cannot be started.
    pub fn run(&self, mut progress: impl FnMut(u64, &SeedResult)) -> SwarmSummary {
        let quiet = PanicSilencer::begin();
        let next = AtomicU64::new(self.seeds.start);
        let (to, from) = mpsc::channel();
        let mut results = BTreeMap::new();
        thread::scope(|scope| {
            for _ in 0..self.jobs.get() {
                let (to, next) = (to.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end || to.send((seed, self.check(seed))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(to);
            for (seed, result) in from {
                progress(seed, &result);
                results.insert(seed, result);
            }
        });
        drop(quiet);
        SwarmSummary::of(results.into_values())
    }
}

impl Swarm {
    fn check(&self, seed: u64) -> SeedResult {
        let mut result = check_scenario(&Scenario::generate_with(seed, self.peers));
        if self.files && result.failure.is_none() {
            let files = files::check(seed);
            result.totals.add(&files.totals);
            result.failure = files.failure;
        }
        result
    }
}

impl SwarmSummary {
    fn of(results: impl Iterator<Item = SeedResult>) -> Self {
        let mut summary = Self::default();
        for SeedResult { totals, failure } in results {
            summary.seeds += 1;
            summary.totals.add(&totals);
            summary.failures.extend(failure.map(|failure| *failure));
        }
        summary
    }
}
