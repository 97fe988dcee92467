//! The order of measurement: all trials of all paths.

use super::declaration::findings;
use super::options::HandoffOptions;
use super::trial::{self, Path};
use crate::turns::Turns;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;

impl Experiment for HandoffOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        run(self, &Spawner::this_program()?)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// An option is out of range, or a trial failed.
pub fn run(options: &HandoffOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let (paths, runs) = (Path::all(), options.runs);
    let phases = runs * paths.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let trials = Turns::Rotating.measure(runs, paths.len(), |run, index| {
        let (path, name) = (paths[index], paths[index].name());
        repeater.progress().step(&format!("trial {run} of {runs}: {name}"));
        repeater.attempt(&name, &format!("trial {run}"), || trial::start(options, path, host))
    })?;
    let mut findings = findings(options, &paths, &trials);
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}
