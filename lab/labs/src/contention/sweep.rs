//! The order of measurement: all numbers of workers, contenders and runs.

use std::time::Duration;

use super::contender::Contender;
use super::crew::{Case, CrewResult, measure};
use super::curve::Curve;
use super::declaration::{findings, name};
use super::options::{ContentionOptions, Tasks};
use super::worker::Window;
use crate::turns::Turns;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::series::{Series, SeriesPoint};
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;
use apus_testbed::{clock, machine};

/// Work before the counted time of each point.
const WARM_UP: Duration = Duration::from_millis(50);

impl Experiment for ContentionOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        run(self, &Spawner::this_program()?)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// An option is out of range, or a worker failed.
pub fn run(options: &ContentionOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = machine::physical_first();
    let (curves, repeater) = curves(options, &cores, host)?;
    if curves.is_empty() {
        return Err(repeater.failure());
    }
    let mut findings = findings(options, &curves, cores.len());
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Measures all points in all runs, in a random order. Points that were lost in every run are left
/// out, and so are curves without the first point, which the others are compared with.
fn curves(
    options: &ContentionOptions,
    cores: &[usize],
    host: &Spawner,
) -> Result<(Vec<Curve>, Repeater), Error> {
    let time = clock::as_nanoseconds(Duration::from_secs_f64(options.seconds));
    let window = Window { warm_up: clock::as_nanoseconds(WARM_UP), time };
    let counts = options.counts();
    let kinds = options.tasks.each();
    let pairs: Vec<(Tasks, Contender)> = kinds
        .iter()
        .flat_map(|tasks| Contender::ALL.map(|contender| (*tasks, contender)))
        .collect();
    let cases: Vec<Case> = pairs
        .iter()
        .flat_map(|&(tasks, contender)| {
            counts.iter().map(move |&workers| Case { contender, tasks, workers })
        })
        .collect();
    let phases = options.runs * cases.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let turns = Turns::Shuffled { seed: options.seed };
    let results = turns.measure(options.runs, cases.len(), |run, case| {
        let case = cases[case];
        let Case { contender, tasks, workers } = case;
        repeater.progress().step(&format!("run {run}, {contender}, {workers} {tasks}"));
        let (row, phase) =
            (name(contender, tasks, kinds[0]), format!("{workers} {tasks}, run {run}"));
        repeater.attempt(&row, &phase, || measure(case, window, cores, host))
    })?;
    let mut results = cases.iter().zip(results);
    let curve = |(tasks, contender)| {
        let points = results.by_ref().take(counts.len());
        let points = points.map(|(case, runs)| SeriesPoint { key: case.workers, runs });
        let points: Vec<SeriesPoint<CrewResult>> = points.collect();
        let is_complete = !points[0].runs.is_empty();
        let points = points.into_iter().filter(|point| !point.runs.is_empty()).collect();
        is_complete.then_some(Curve { contender, tasks, series: Series { points } })
    };
    Ok((pairs.into_iter().filter_map(curve).collect(), repeater))
}
