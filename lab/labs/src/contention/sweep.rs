//! The order of measurement: all numbers of workers, contenders and runs.

use apus_workload::{Stream, rng};
use rand::seq::SliceRandom;

use super::crew::{Case, measure};
use super::curve::{Curve, Points};
use super::findings::{found, name};
use super::worker::Window;
use super::{Contender, Findings, Options};
use apus_report::progress::Progress;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;
use std::time::Duration;

/// Work before what counts, in each point.
const WARM_UP: Duration = Duration::from_millis(50);

/// Runs the experiment.
///
/// # Errors
///
/// An option does not fit, or a worker failed.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = machine::physical_first();
    let (curves, repeater) = curves(options, &cores, host)?;
    if curves.is_empty() {
        return Err(repeater.failure());
    }
    let mut findings = found(options, &curves, cores.len());
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Returns all points of all runs. Each run measures them in a random order, so that changes of the machine's pace
/// favour no contender and no number of workers. Points that were lost in every run are left out, and so are curves
/// without the first point, which all others are compared with.
fn curves(
    options: &Options,
    cores: &[usize],
    host: &Spawner,
) -> Result<(Vec<Curve>, Repeater), Error> {
    let time = clock::as_nanoseconds(Duration::from_secs_f64(options.seconds));
    let window = Window { warm_up: clock::as_nanoseconds(WARM_UP), time };
    let counts = options.counts();
    let empty = |workers: &usize| Points { workers: *workers, runs: Vec::new() };
    let curve =
        |(tasks, contender)| Curve { contender, tasks, points: counts.iter().map(empty).collect() };
    let kinds = options.tasks.each().iter().copied();
    let kinds = kinds.flat_map(|tasks| Contender::ALL.map(|contender| (tasks, contender)));
    let mut curves: Vec<Curve> = kinds.map(curve).collect();
    let each = 0..curves.len();
    let mut turns: Vec<(usize, usize)> =
        each.flat_map(|curve| (0..counts.len()).map(move |point| (curve, point))).collect();
    let phases = options.runs * turns.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let plain = options.tasks.each()[0];
    let mut chance = rng(options.seed, Stream::Order);
    for run in 1..=options.runs {
        turns.shuffle(&mut chance);
        for &(curve, point) in &turns {
            let Curve { contender, tasks, .. } = curves[curve];
            let workers = counts[point];
            repeater.progress().step(&format!("run {run}, {contender}, {workers} {tasks}"));
            let case = Case { contender, tasks, workers };
            let row = name(contender, tasks, plain);
            let found = repeater.attempt(&row, &format!("{workers} {tasks}, run {run}"), || {
                measure(run, case, window, cores, host)
            })?;
            curves[curve].points[point].runs.extend(found);
        }
    }
    curves.retain(|curve| !curve.first().runs.is_empty());
    for curve in &mut curves {
        curve.points.retain(|point| !point.runs.is_empty());
    }
    Ok((curves, repeater))
}
