//! One seed: draws a scenario, runs it, and checks the promises.

use std::fmt;

use crate::Violation;
use crate::scenario::Scenario;
use crate::totals::Totals;
use crate::world;

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
