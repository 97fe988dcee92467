//! The file service's world of a seed: clients, a server and its store, with separate crashes and
//! partitions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use apus_fs_sim::Scenario;

use super::panic_hook;
use super::seed::{RunTotals, SeedFailure, SeedResult};
use super::violation::{Violation, ViolationKind};

/// Runs the file service's world of a seed.
pub(crate) fn check(seed: u64) -> SeedResult {
    // The state of a run is dropped after a panic.
    let run = catch_unwind(AssertUnwindSafe(|| apus_fs_sim::check_seed(seed)));
    let (kind, expected, observed, trace) = match run {
        Ok(Ok(run)) => {
            let totals = RunTotals { file_operations: run.operations, ..RunTotals::default() };
            return SeedResult { totals, failure: None };
        }
        Ok(Err(broken)) => {
            let (promise, what) = (broken.violation.promise, broken.violation.what);
            (ViolationKind::Files, promise.to_owned(), what, broken.trace)
        }
        Err(panic) => {
            let observed = panic_hook::describe(panic.as_ref());
            (ViolationKind::Panic, "no panic".to_owned(), observed, Vec::new())
        }
    };
    let failure = SeedFailure {
        seed,
        violation: Violation { kind, calls: Vec::new(), expected, observed },
        scenario: format!("  files      {:?}\n", Scenario::generate(seed)),
        at: None,
        trace,
    };
    SeedResult { totals: RunTotals::default(), failure: Some(Box::new(failure)) }
}
