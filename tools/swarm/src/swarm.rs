//! What came out of many seeds?

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::quiet::Quiet;
use super::scenario::{Peers, Scenario};
use super::seed::{Finding, Tally, Verdict, check_scenario};

/// Seeds, to be run on some threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// Which seeds.
    pub seeds: Range<u64>,
    /// What runs on their hosts.
    pub peers: Peers,
    /// How many threads run them.
    pub jobs: NonZero<usize>,
}

/// What came out of all seeds, whatever the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// What was done in all of them.
    pub tally: Tally,
    /// All broken promises, by seed.
    pub findings: Vec<Finding>,
}

impl Swarm {
    /// Runs all seeds. `progress` learns of each verdict as soon as it is there, in any order.
    ///
    /// While it runs, panics of this process print nothing: those of the seeds are findings.
    ///
    /// # Panics
    ///
    /// If a thread cannot be started.
    pub fn run(&self, mut progress: impl FnMut(u64, &Verdict)) -> Summary {
        let quiet = Quiet::begin();
        let next = AtomicU64::new(self.seeds.start);
        let peers = self.peers;
        let (to, from) = mpsc::channel();
        let mut verdicts = BTreeMap::new();
        thread::scope(|scope| {
            for _ in 0..self.jobs.get() {
                let (to, next) = (to.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end
                            || to
                                .send((seed, check_scenario(&Scenario::draw_with(seed, peers))))
                                .is_err()
                        {
                            break;
                        }
                    }
                });
            }
            drop(to);
            for (seed, verdict) in from {
                progress(seed, &verdict);
                verdicts.insert(seed, verdict);
            }
        });
        drop(quiet);
        Summary::of(verdicts.into_values())
    }
}

impl Summary {
    fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut summary = Self::default();
        for Verdict { tally, finding } in verdicts {
            summary.seeds += 1;
            summary.tally.add(&tally);
            summary.findings.extend(finding.map(|finding| *finding));
        }
        summary
    }
}
