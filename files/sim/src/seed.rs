//! One seed: draws a scenario, runs it, and checks what was promised.

use std::fmt;

use crate::Violation;
use crate::scenario::Scenario;
use crate::world;

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations that returned.
    pub operations: u64,
    /// Operations that a kernel's cache served.
    pub hits: u64,
    /// Requests that the server received.
    pub requests: u64,
    /// Callbacks that clients received.
    pub callbacks: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Crashes, of clients and of the server.
    pub crashes: u64,
    /// Sessions that ended although their client lived.
    pub fenced: u64,
    /// Operations that a signal ended.
    pub interrupted: u64,
    /// Histories of objects whose search was given up.
    pub undecided: u64,
    /// Simulated time, in milliseconds.
    pub milliseconds: u64,
    /// Hash of all effects of clients and servers with their times. Equal digests mean equal runs: a
    /// change of the protocol cores that claims to keep their behaviour keeps the digests of all seeds.
    pub digest: u64,
}

/// A violation and its scenario.
#[derive(Clone, Debug)]
pub struct SeedFailure {
    /// The scenario.
    pub scenario: Scenario,
    /// The violation.
    pub violation: Violation,
    /// Last events of the run.
    pub trace: Vec<String>,
}

impl fmt::Display for SeedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.scenario.seed, self.violation)?;
        writeln!(f, "{:?}", self.scenario)?;
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Runs and checks one seed.
///
/// # Errors
///
/// The promise that was broken.
pub fn check_seed(seed: u64) -> Result<Totals, Box<SeedFailure>> {
    check_scenario(&Scenario::generate(seed))
}

/// Runs and checks a scenario.
///
/// # Errors
///
/// The promise that was broken.
pub fn check_scenario(scenario: &Scenario) -> Result<Totals, Box<SeedFailure>> {
    let mut trace = Vec::new();
    world::run(scenario, &mut trace)
        .map_err(|violation| Box::new(SeedFailure { scenario: scenario.clone(), violation, trace }))
}
